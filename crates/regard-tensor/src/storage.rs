//! The memory behind a tensor, on whichever device.

use crate::backend::Backend;
use crate::backend::cuda::CudaBackend;
use crate::buffer::Buffer;
use crate::{DType, Device};
use regard_kernels::CudaBuffer;

/// Numbers of one type, somewhere.
pub(crate) struct Storage {
    pub(crate) dtype: DType,
    pub(crate) memory: Memory,
}

pub(crate) enum Memory {
    Host(Buffer),
    Cuda(CudaBuffer, &'static CudaBackend),
}

impl Storage {
    pub(crate) fn device(&self) -> Device {
        match &self.memory {
            Memory::Host(_) => Device::Cpu,
            Memory::Cuda(_, backend) => backend.device(),
        }
    }

    pub(crate) fn backend(&self) -> &'static dyn Backend {
        match &self.memory {
            Memory::Host(_) => &crate::backend::cpu::CpuBackend,
            Memory::Cuda(_, backend) => *backend,
        }
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> usize {
        match &self.memory {
            Memory::Host(buffer) => buffer.slice::<u8>().len(),
            Memory::Cuda(buffer, _) => buffer.len(),
        }
    }
}

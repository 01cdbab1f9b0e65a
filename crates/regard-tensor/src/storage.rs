//! The memory behind a tensor, on whichever device.

use crate::backend::Backend;
#[cfg(feature = "cuda")]
use crate::backend::cuda::CudaBackend;
use crate::buffer::Buffer;
use crate::{DType, Device};
#[cfg(feature = "cuda")]
use regard_kernels::CudaBuffer;

/// Numbers of one type, somewhere.
pub(crate) struct Storage {
    pub(crate) dtype: DType,
    pub(crate) memory: Memory,
}

pub(crate) enum Memory {
    Host(Buffer),
    #[cfg(feature = "cuda")]
    Cuda(CudaBuffer, &'static CudaBackend),
}

impl Storage {
    pub(crate) fn device(&self) -> Device {
        match &self.memory {
            Memory::Host(_) => Device::Cpu,
            #[cfg(feature = "cuda")]
            Memory::Cuda(_, backend) => backend.device(),
        }
    }

    pub(crate) fn backend(&self) -> &'static dyn Backend {
        match &self.memory {
            Memory::Host(_) => &crate::backend::cpu::CpuBackend,
            #[cfg(feature = "cuda")]
            Memory::Cuda(_, backend) => *backend,
        }
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> usize {
        match &self.memory {
            Memory::Host(buffer) => buffer.slice::<u8>().len(),
            #[cfg(feature = "cuda")]
            Memory::Cuda(buffer, _) => buffer.len(),
        }
    }
}

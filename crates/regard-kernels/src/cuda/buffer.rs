//! Memory of a GPU that outlives a call: what a tensor's numbers lie in.

use super::device::{Cuda, Device};
use super::memory::Memory;
use crate::error::{Error, ensure};
use std::sync::Arc;

/// Some bytes of a GPU's memory, given back when dropped, after all that was asked of the GPU's stream before.
///
/// ```no_run
/// use regard_kernels::Cuda;
/// let buffer = Cuda::new(0)?.upload(&[1, 2, 3])?;
/// let mut bytes = [0; 2];
/// buffer.download(1, &mut bytes)?;
/// assert_eq!(bytes, [2, 3]);
/// # Ok::<(), regard_kernels::Error>(())
/// ```
pub struct CudaBuffer {
    /// Always there but while this is dropped.
    memory: Option<Memory>,
    bytes: usize,
    device: Arc<Device>,
}

impl Cuda {
    /// Room for so many bytes, which hold anything.
    /// Refuses more than the GPU has.
    ///
    /// ```no_run
    /// assert_eq!(regard_kernels::Cuda::new(0)?.uninit(1024)?.len(), 1024);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn uninit(&self, bytes: usize) -> Result<CudaBuffer, Error> {
        let _entered = self.device.enter()?;
        let memory = Some(Memory::uninit(&self.device, bytes)?);
        Ok(CudaBuffer { memory, bytes, device: self.device.clone() })
    }

    /// A copy of bytes, which have been read when this returns.
    /// Refuses more than the GPU has.
    ///
    /// ```no_run
    /// let gpu = regard_kernels::Cuda::new(0)?;
    /// let (there, mut back) = (gpu.upload(&[1, 2, 3])?, [0; 3]);
    /// there.download(0, &mut back)?;
    /// assert_eq!(back, [1, 2, 3]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn upload(&self, bytes: &[u8]) -> Result<CudaBuffer, Error> {
        let _entered = self.device.enter()?;
        let memory = Some(Memory::of(&self.device, bytes)?);
        Ok(CudaBuffer { memory, bytes: bytes.len(), device: self.device.clone() })
    }
}

impl CudaBuffer {
    /// A copy of a slice. The device was entered.
    pub(super) fn of<X: Copy>(device: &Arc<Device>, data: &[X]) -> Result<Self, Error> {
        let memory = Some(Memory::of(device, data)?);
        Ok(Self { memory, bytes: size_of_val(data), device: device.clone() })
    }

    /// Where it begins, a multiple of 256.
    ///
    /// ```no_run
    /// assert_eq!(regard_kernels::Cuda::new(0)?.uninit(8)?.address() % 256, 0);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn address(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.at)
    }

    /// How many bytes.
    ///
    /// ```no_run
    /// assert_eq!(regard_kernels::Cuda::new(0)?.upload(&[1, 2, 3])?.len(), 3);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are none.
    ///
    /// ```no_run
    /// assert!(regard_kernels::Cuda::new(0)?.uninit(0)?.is_empty());
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Copies bytes back, from one on, after all that was asked of the stream before. Refuses more than there are.
    ///
    /// ```no_run
    /// let (there, mut back) = (regard_kernels::Cuda::new(0)?.upload(&[1, 2, 3])?, [0; 2]);
    /// there.download(1, &mut back)?;
    /// assert_eq!(back, [2, 3]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn download(&self, from: usize, to: &mut [u8]) -> Result<(), Error> {
        let fits = from.checked_add(to.len()).is_some_and(|end| end <= self.bytes);
        ensure!(fits, "{} bytes from {from} on leave a buffer of {}", to.len(), self.bytes);
        let _entered = self.device.enter()?;
        match &self.memory {
            Some(memory) => memory.copy_part_to(from, to),
            None => Ok(()),
        }
    }
}

impl Drop for CudaBuffer {
    fn drop(&mut self) {
        let entered = self.device.enter();
        self.memory = None;
        drop(entered);
    }
}

impl std::fmt::Debug for CudaBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "CudaBuffer of {} bytes", self.bytes)
    }
}

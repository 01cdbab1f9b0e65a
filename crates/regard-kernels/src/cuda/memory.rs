//! Memory of a GPU.

use super::device::Device;
use super::refused;
use crate::error::Error;
use cudarc::driver::{result, sys};
use std::sync::Arc;

/// Some bytes of a GPU's memory; given back, in the order of the stream, when dropped.
pub(super) struct Memory {
    pub(super) at: sys::CUdeviceptr,
    bytes: usize,
    device: Arc<Device>,
}

impl Memory {
    /// Bytes that hold anything.
    pub(super) fn uninit(device: &Arc<Device>, bytes: usize) -> Result<Self, Error> {
        // SAFETY: the stream lives as long as the device, which this keeps.
        let at = unsafe { result::malloc_async(device.stream, bytes.max(1)) }.map_err(|error| {
            match error.0 {
                sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => no_room(bytes),
                _ => refused("memory", error),
            }
        })?;
        Ok(Self { at, bytes, device: device.clone() })
    }

    /// Zeros.
    pub(super) fn zeros(device: &Arc<Device>, bytes: usize) -> Result<Self, Error> {
        let memory = Self::uninit(device, bytes)?;
        memory.clear()?;
        Ok(memory)
    }

    /// Fills it with zeros.
    pub(super) fn clear(&self) -> Result<(), Error> {
        clear(&self.device, self.at, self.bytes)
    }

    /// A copy of a slice.
    pub(super) fn of<X: Copy>(device: &Arc<Device>, data: &[X]) -> Result<Self, Error> {
        let memory = Self::uninit(device, size_of_val(data))?;
        if !data.is_empty() {
            // SAFETY: the memory holds the slice. Copies from pageable memory have read it when
            // they return.
            unsafe { result::memcpy_htod_async(memory.at, data, device.stream) }
                .map_err(|e| refused("a copy to its memory", e))?;
        }
        Ok(memory)
    }

    /// Copies as many bytes back as the slice has, after all that was asked before.
    pub(super) fn copy_to<X: Copy>(&self, to: &mut [X]) -> Result<(), Error> {
        assert!(size_of_val(to) <= self.bytes, "more is copied than there is");
        if to.is_empty() {
            return Ok(());
        }
        // SAFETY: the memory holds the slice; waiting makes the copy complete.
        unsafe { result::memcpy_dtoh_async(to, self.at, self.device.stream) }
            .map_err(|e| refused("a copy from its memory", e))?;
        self.device.wait()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: whatever uses it was asked of the same stream before.
        let _ = unsafe { result::free_async(self.at, self.device.stream) };
    }
}

/// Fills so many bytes with zeros.
pub(super) fn clear(device: &Device, at: sys::CUdeviceptr, bytes: usize) -> Result<(), Error> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the memory there holds so many bytes, as whoever names it promises.
    unsafe { result::memset_d8_async(at, 0, bytes, device.stream) }
        .map_err(|e| refused("to clear memory", e))
}

/// What is said where the GPU's memory is full.
pub(super) fn no_room(bytes: usize) -> Error {
    Error::new(format!(
        "the GPU has no room for {} more: use a smaller batch, or the CPU",
        megabytes(bytes)
    ))
}

fn megabytes(bytes: usize) -> String {
    match bytes >> 20 {
        0 => format!("{bytes} bytes"),
        n => format!("{n} MiB"),
    }
}

//! Memory of a GPU.

use super::device::Device;
use super::refused;
use crate::error::{Error, ensure};
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

    /// A copy of a slice, which has been read when this returns. Refuses a stream that is being captured.
    pub(super) fn of<X: Copy>(device: &Arc<Device>, data: &[X]) -> Result<Self, Error> {
        ensure!(!device.is_capturing()?, "{}", CAPTURED);
        let memory = Self::uninit(device, size_of_val(data))?;
        if !data.is_empty() {
            // Copies from pageable memory have read it when they return; those from pinned memory
            // have not, and its owner may free it or write there at once.
            let staged = is_pinned(data).then(|| data.to_vec());
            // SAFETY: the memory holds the slice.
            unsafe {
                let data = staged.as_deref().unwrap_or(data);
                result::memcpy_htod_async(memory.at, data, device.stream)
            }
            .map_err(|e| refused("a copy to its memory", e))?;
        }
        Ok(memory)
    }

    /// Copies as many bytes back as the slice has, after all that was asked before.
    pub(super) fn copy_to<X: Copy>(&self, to: &mut [X]) -> Result<(), Error> {
        self.copy_part_to(0, to)
    }

    /// As [`Self::copy_to`], from a byte on.
    pub(super) fn copy_part_to<X: Copy>(&self, from: usize, to: &mut [X]) -> Result<(), Error> {
        assert!(from + size_of_val(to) <= self.bytes, "more is copied than there is");
        if to.is_empty() {
            return Ok(());
        }
        // SAFETY: the memory holds the slice; waiting makes the copy complete.
        unsafe { result::memcpy_dtoh_async(to, self.at + from as u64, self.device.stream) }
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

/// What is said where a copy would be captured: at every replay it would read the host's memory, which is
/// another's by then.
const CAPTURED: &str = "the stream is being captured into a CUDA graph, and this call copies from the \
    host's memory (masks, biases, lengths, segments, edges, parameters of a score), which a replay cannot \
    do: capture calls without these, or call it outside of the capture";

/// Whether the driver copies from a slice by itself, later: it was allocated or registered as pinned.
fn is_pinned<X>(data: &[X]) -> bool {
    let mut kind = 0u32;
    let which = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    // SAFETY: the number outlives the call; an address that the driver does not know is an error.
    let known = unsafe {
        sys::cuPointerGetAttribute((&raw mut kind).cast(), which, data.as_ptr() as sys::CUdeviceptr)
    };
    known == sys::CUresult::CUDA_SUCCESS
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
    Error::memory(format!(
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

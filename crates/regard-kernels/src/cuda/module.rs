//! Machine code that was loaded onto a GPU, and its kernels.

use super::device::Device;
use super::refused;
use crate::error::Error;
use cudarc::driver::{result, sys};
use std::ffi::{CString, c_void};

/// Threads of a block in kernels that give each row a warp.
pub(super) const THREADS: u32 = 128;

pub(super) struct Module {
    handle: sys::CUmodule,
}

// SAFETY: modules may be used from any thread; the driver locks them.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    pub(super) fn load(cubin: &[u8]) -> Result<Self, Error> {
        // SAFETY: the driver checks the image, and has copied it when this returns.
        let handle = unsafe { result::module::load_data(cubin.as_ptr().cast()) }
            .map_err(|e| refused("the machine code of a kernel", e))?;
        Ok(Self { handle })
    }

    /// Asks a kernel of the device's stream; `arguments` are those of the kernel's text, in order.
    ///
    /// # Safety
    /// Each argument points to a value of the type that the kernel's text says, and the memory
    /// that those values name is there until the kernel is done.
    pub(super) unsafe fn launch(
        &self,
        device: &Device,
        kernel: &str,
        blocks: u32,
        arguments: &mut [*mut c_void],
    ) -> Result<(), Error> {
        let name = CString::new(kernel).map_err(|_| Error::new("a kernel's name holds a zero"))?;
        // SAFETY: the module lives; the arguments are the caller's.
        unsafe {
            let function = result::module::get_function(self.handle, name)
                .map_err(|e| refused(&format!("the kernel {kernel}"), e))?;
            result::launch_kernel(
                function,
                (blocks, 1, 1),
                (THREADS, 1, 1),
                0,
                device.stream,
                arguments,
            )
            .map_err(|e| refused(&format!("to launch the kernel {kernel}"), e))
        }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: nobody uses the module any more; its context is current or gone.
        let _ = unsafe { result::module::unload(self.handle) };
    }
}

//! Machine code that was loaded onto a GPU, and its kernels.

use super::device::Device;
use super::refused;
use crate::error::Error;
use cudarc::driver::{result, sys};
use std::ffi::{CString, c_void};
use std::sync::{Mutex, PoisonError};

pub(super) struct Module {
    handle: sys::CUmodule,
    /// Those that were launched before: finding one by its name takes as long as launching it.
    functions: Mutex<Vec<Function>>,
}

struct Function {
    name: String,
    handle: sys::CUfunction,
    /// Bytes of shared memory that it may have.
    shared: u32,
}

// SAFETY: modules may be used from any thread; the driver locks them.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

/// How a kernel is cut into blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub(super) blocks: [u32; 3],
    pub(super) threads: u32,
    /// Bytes of shared memory that the kernel's text does not name.
    pub(super) shared: u32,
}

/// Bytes of shared memory that a kernel has without asking.
const SHARED_WITHOUT_ASKING: u32 = 48 << 10;

impl Grid {
    pub(super) fn new(blocks: [u32; 3], threads: usize, shared: u32) -> Self {
        Self { blocks, threads: threads as u32, shared }
    }

    /// A block of so many warps for each of some rows, or enough blocks of four that have one each.
    pub(super) fn of_rows(rows: usize, row_warps: usize) -> Self {
        match row_warps {
            1 => Self::of_warps(rows),
            _ => Self::new([rows.max(1) as u32, 1, 1], 32 * row_warps, 0),
        }
    }

    /// Enough blocks of four warps.
    pub(super) fn of_warps(warps: usize) -> Self {
        Self { blocks: [warps.div_ceil(4).max(1) as u32, 1, 1], threads: 128, shared: 0 }
    }
}

impl Module {
    pub(super) fn load(cubin: &[u8]) -> Result<Self, Error> {
        // SAFETY: the driver checks the image, and has copied it when this returns.
        let handle = unsafe { result::module::load_data(cubin.as_ptr().cast()) }
            .map_err(|e| refused("the machine code of a kernel", e))?;
        Ok(Self { handle, functions: Mutex::default() })
    }

    /// A kernel that may have so much shared memory.
    fn function(&self, kernel: &str, shared: u32) -> Result<sys::CUfunction, Error> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = functions.iter().position(|function| function.name == kernel);
        let at = match known {
            Some(at) => at,
            None => {
                let name =
                    CString::new(kernel).map_err(|_| Error::new("a kernel's name holds a zero"))?;
                // SAFETY: the module lives.
                let handle = unsafe { result::module::get_function(self.handle, name) }
                    .map_err(|e| refused(&format!("the kernel {kernel}"), e))?;
                let shared = SHARED_WITHOUT_ASKING;
                functions.push(Function { name: kernel.into(), handle, shared });
                functions.len() - 1
            }
        };
        let function = &mut functions[at];
        if shared > function.shared {
            let most = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is the module's.
            unsafe {
                result::function::set_function_attribute(function.handle, most, shared as i32)
            }
            .map_err(|e| refused(&format!("shared memory for the kernel {kernel}"), e))?;
            function.shared = shared;
        }
        Ok(function.handle)
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
        grid: Grid,
        arguments: &mut [*mut c_void],
    ) -> Result<(), Error> {
        let function = self.function(kernel, grid.shared)?;
        let ([x, y, z], size) = (grid.blocks, (grid.threads, 1, 1));
        // SAFETY: the module lives; the arguments are the caller's.
        unsafe {
            result::launch_kernel(function, (x, y, z), size, grid.shared, device.stream, arguments)
        }
        .map_err(|e| refused(&format!("to launch the kernel {kernel}"), e))
    }
}

/// The address of an argument, as a launch takes it.
pub(super) fn argument<X>(value: &X) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: nobody uses the module any more; its context is current or gone.
        let _ = unsafe { result::module::unload(self.handle) };
    }
}

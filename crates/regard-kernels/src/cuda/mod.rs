//! The operator on NVIDIA GPUs.
//!
//! The kernels are CUDA C++ text (`text/`), put together for a problem (`source.rs`), compiled while
//! the program runs by NVRTC (`compiler.rs`) and kept on disk (`cache.rs`). Driver and compiler
//! are opened at run time (`library.rs`), so one program serves machines with and without a GPU.
//!
//! `generic.rs` computes the whole specification by plain means.

mod cache;
mod compiler;
mod device;
mod generic;
mod library;
mod memory;
mod module;
mod problem;
mod source;
mod written;

#[doc(hidden)]
pub use cache::Cache;
#[doc(hidden)]
pub use compiler::{Compiled, compile_for};
pub use device::{Cuda, CudaInfo};
#[doc(hidden)]
pub use source::{Stored, Variant};

use crate::error::Error;
use cudarc::driver::DriverError;

/// What a call of the driver's refused, in one sentence.
fn refused(what: &str, error: DriverError) -> Error {
    let reason =
        error.error_string().ok().and_then(|text| text.to_str().ok()).unwrap_or("an unknown error");
    let name = error.error_name().ok().and_then(|text| text.to_str().ok()).unwrap_or("");
    Error::new(format!("the GPU refused {what}: {reason} ({name})"))
}

//! Computing on NVIDIA GPUs: `attention/` has the operator, `step/` what else a training step is made of.
//!
//! The kernels are CUDA C++ text (`text/`), put together for a problem (`attention/source.rs`), compiled while
//! the program runs by NVRTC (`compiler.rs`) and kept on disk (`cache.rs`). Driver and compiler
//! are opened at run time (`library.rs`), so one program serves machines with and without a GPU.
//!
//! `attention/form.rs` says which kernels a problem goes to: the generic ones compute the whole specification by
//! plain means, the others what is common, fast. The same problem gives the same bits on the same GPU:
//! nothing is added to by two warps, and sums have an order that the shape fixes.

mod attention;
mod buffer;
mod cache;
mod compiler;
mod device;
mod library;
mod memory;
mod module;
#[doc(hidden)]
pub mod step;

pub(crate) use attention::EdgesOnGpu;
pub use attention::{
    BackwardAt, DeviceRows, EdgesAt, ForwardAt, GradientsAt, OptionsAt, PARAMETERS,
};
#[doc(hidden)]
pub use attention::{Choices, DotTiles, GraphSizes, Stored, TileSizes, Variant, form};
pub use buffer::CudaBuffer;
#[doc(hidden)]
pub use cache::Cache;
#[doc(hidden)]
pub use compiler::{Compiled, compile_for, options};
pub use device::{Cuda, CudaInfo};
#[doc(hidden)]
pub use step::{Factors, Operand, Product, ProductBase};

use crate::error::Error;
use cudarc::driver::{DriverError, sys};

/// The compute capability that the tensor cores' forms are written for.
const HOPPER: (i32, i32) = (9, 0);
/// Bytes of shared memory that a block may have there.
const HOPPER_SHARED: usize = 227 << 10;

/// What a call of the driver's refused, in one sentence.
fn refused(what: &str, error: DriverError) -> Error {
    let reason =
        error.error_string().ok().and_then(|text| text.to_str().ok()).unwrap_or("an unknown error");
    let name = error.error_name().ok().and_then(|text| text.to_str().ok()).unwrap_or("");
    let sentence = format!("the GPU refused {what}: {reason} ({name})");
    match error.0 {
        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::memory(sentence),
        _ => Error::device(sentence),
    }
}

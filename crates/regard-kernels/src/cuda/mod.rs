//! The operator on NVIDIA GPUs.
//!
//! The kernels are CUDA C++ text (`text/`), put together for a problem (`source.rs`), compiled while
//! the program runs by NVRTC (`compiler.rs`) and kept on disk (`cache.rs`). Driver and compiler
//! are opened at run time (`library.rs`), so one program serves machines with and without a GPU.
//!
//! `form.rs` says which kernels a problem goes to: the generic ones compute the whole specification by
//! plain means, the others what is common, fast. The same problem gives the same bits on the same GPU:
//! nothing is added to by two warps, and sums have an order that the shape fixes.

mod additive;
mod arrived;
mod backward;
mod buffer;
mod cache;
mod compiler;
mod decode;
mod device;
mod dot;
mod dot_tiles;
mod edges;
mod form;
mod forward;
mod graph;
mod library;
mod memory;
mod module;
mod options_at;
mod pass;
mod problem;
mod product;
mod raw;
mod source;
mod split;
#[doc(hidden)]
pub mod step;
mod tensor_core;
mod tensor_map;
mod tile;
mod tile_sizes;
mod written;

pub use buffer::CudaBuffer;
#[doc(hidden)]
pub use cache::Cache;
#[doc(hidden)]
pub use compiler::{Compiled, compile_for, options};
pub use device::{Cuda, CudaInfo};
#[doc(hidden)]
pub use dot_tiles::DotTiles;
pub(crate) use edges::EdgesOnGpu;
#[doc(hidden)]
pub use graph::GraphSizes;
pub use options_at::{EdgesAt, OptionsAt, PARAMETERS};
#[doc(hidden)]
pub use product::{Operand, Product, ProductBase};
pub use raw::{BackwardAt, DeviceRows, ForwardAt, GradientsAt};
#[doc(hidden)]
pub use source::{Stored, Variant};
#[doc(hidden)]
pub use tile_sizes::{Choices, TileSizes};

use crate::error::Error;
use crate::spec::{Shape, Spec};
use crate::{Element, View};
use cudarc::driver::{DriverError, sys};

/// The compute capability that the tensor cores' forms are written for.
const HOPPER: (i32, i32) = (9, 0);
/// Bytes of shared memory that a block may have there.
const HOPPER_SHARED: usize = 227 << 10;

/// The form of the kernels that a lean pass of a problem goes to on a Hopper: for tests that count
/// whether every form was met.
#[doc(hidden)]
pub fn form<E: Element>(
    spec: &Spec<E::Compute>,
    q: View<E>,
    k: View<E>,
    v: View<E>,
) -> Result<[String; 2], Error> {
    let s = spec.check(&q, &k, &v)?;
    Ok(forms(spec, &s, [q, k, v].map(problem::Rows::from), HOPPER, HOPPER_SHARED))
}

/// The forms of a forward and a backward pass that are asked for nothing but the output and the gradients, on a GPU of
/// this compute capability and so many bytes of shared memory.
fn forms<E: Element>(
    spec: &Spec<E::Compute>,
    s: &Shape,
    [q, k, v]: [problem::Rows<E>; 3],
    capability: (i32, i32),
    shared_memory: usize,
) -> [String; 2] {
    let spec = &Spec { score: spec.score.lowered(s), ..*spec };
    let rows = [q, k, v, v, v];
    [false, true].map(|backward| {
        let rows = if backward { &rows[..] } else { &rows[..3] };
        let lean = match backward {
            true => form::Form::of_backward(spec, s, rows, capability),
            false => form::Form::of_forward(spec, s, rows, capability),
        };
        let lean = lean.within(s, shared_memory, backward);
        lean.or_tile(spec, s, rows, [backward, false], shared_memory).name()
    })
}

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

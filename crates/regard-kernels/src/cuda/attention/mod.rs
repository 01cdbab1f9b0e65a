//! The operator: which kernels a problem goes to (`form.rs`), their text (`source.rs`), and the passes.

mod additive;
mod arrived;
mod backward;
mod decode;
mod dot;
mod dot_tiles;
mod edges;
mod form;
mod forward;
mod graph;
mod options_at;
mod pass;
mod problem;
mod raw;
pub(super) mod source;
mod split;
mod tensor_core;
mod tensor_map;
mod tile;
mod tile_sizes;
mod written;

#[doc(hidden)]
pub use dot_tiles::DotTiles;
pub(crate) use edges::EdgesOnGpu;
#[doc(hidden)]
pub use graph::GraphSizes;
pub use options_at::{EdgesAt, OptionsAt, PARAMETERS};
pub use raw::{BackwardAt, DeviceRows, ForwardAt, GradientsAt};
#[doc(hidden)]
pub use source::{Stored, Variant};
#[doc(hidden)]
pub use tile_sizes::{Choices, TileSizes};

use super::{HOPPER, HOPPER_SHARED};
use crate::error::Error;
use crate::spec::{Shape, Spec};
use crate::{Element, View};

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

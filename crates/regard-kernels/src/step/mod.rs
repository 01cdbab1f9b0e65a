//! The fused operations of a training step, beside attention: each forward and backward, in SIMD, on
//! every core.
//!
//! Arrays are contiguous slices, row after row; a result is written whole, whatever was in it. How
//! the work is cut depends on the shape alone and parts are added in order, so the bits are the
//! same on any number of threads. [`mod@reference`] has the formulas in plain loops; the entrances
//! are methods of [`Cpu`](crate::Cpu).

pub(crate) mod cross_entropy;
pub(crate) mod denormal;
pub(crate) mod dropout;
mod embedding;
pub(crate) mod layer_norm;
pub(crate) mod matmul;
pub(crate) mod optimizer;
mod parts;
pub(crate) mod pointwise;
mod product;
pub(crate) mod recurrent;
pub mod reference;
pub(crate) mod softmax;

pub use cross_entropy::CrossEntropy;
pub use denormal::flush_denormals;
pub use layer_norm::{LayerNorm, LayerNormGrads};
pub use matmul::{Base, Matrix};
pub use optimizer::{Adam, AdamTensor, Sgd, SgdTensor};
pub use recurrent::{Cell, Recurrent, RecurrentGrads, RecurrentOut, RecurrentSeed};

/// Into how many parts the operations of a step are cut, each by the function it asks itself. For
/// tests.
#[doc(hidden)]
pub mod counts {
    /// Pointwise, softmax, layer norm, cross entropy: rows of a width.
    pub fn rows(rows: usize, width: usize) -> usize {
        super::parts::Parts::of(rows, width).count
    }

    /// The gradient of a table of embeddings.
    pub fn embedding(words: usize, width: usize) -> usize {
        super::embedding::Cut::of(words, width).tasks()
    }

    /// A product of few rows.
    pub fn short_product(m: usize, n: usize, k: usize) -> usize {
        n.div_ceil(super::matmul::part_columns(m, n, k))
    }
}

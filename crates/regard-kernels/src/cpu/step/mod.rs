//! What a training step is made of beside attention: each forward and backward, in SIMD, on every core.
//!
//! Each file is one noun: its types, its kernels and its entrances, methods of [`Cpu`](crate::Cpu). The formulas are in
//! [`crate::step::reference`].

pub(crate) mod cross_entropy;
pub(crate) mod dropout;
mod embedding;
pub(crate) mod layer_norm;
pub(crate) mod matmul;
pub(crate) mod optimizer;
mod parts;
pub(crate) mod pointwise;
mod product;
pub(crate) mod recurrent;
pub(crate) mod softmax;

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

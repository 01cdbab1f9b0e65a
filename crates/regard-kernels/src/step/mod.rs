//! The fused operations of a training step, beside attention: each forward and backward, in SIMD, on
//! every core.
//!
//! Arrays are contiguous slices, row after row; a result is written whole, whatever was in it. How
//! the work is cut depends on the shape alone and parts are added in order, so the bits are the
//! same on any number of threads. [`mod@reference`] has the formulas in plain loops; the entrances
//! are methods of [`Cpu`](crate::Cpu), in `cpu/step/`.

pub mod reference;

pub use crate::cpu::flush_denormals;
#[doc(hidden)]
pub use crate::cpu::step::counts;
pub use crate::cpu::step::cross_entropy::CrossEntropy;
pub use crate::cpu::step::layer_norm::{LayerNorm, LayerNormGrads};
pub use crate::cpu::step::matmul::{Base, Matrix};
pub use crate::cpu::step::optimizer::{Adam, AdamTensor, Sgd, SgdTensor};
pub use crate::cpu::step::recurrent::{
    Cell, Recurrent, RecurrentGrads, RecurrentOut, RecurrentSeed,
};

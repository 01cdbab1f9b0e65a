//! The attention operator on plain slices.
//!
//! ```text
//! weights = normalize( score(q, k) + bias, where mask )        output = weights · v
//! ```
//!
//! [`spec`] says what is computed, [`mod@reference`] computes it in plain loops that can be read top to
//! bottom, and [`cpu`] computes it fused, tiled, in SIMD and on every core, forward and backward.
//! [`step`] has what else a training step is made of, in the same manner.
//!
//! ```
//! use regard_kernels::{Cpu, Forward, Spec, View, ViewMut};
//!
//! let (q, k, v) = (vec![0.1f32; 5 * 8], vec![0.2f32; 7 * 8], vec![0.3f32; 7 * 4]);
//! let mut out = vec![0f32; 5 * 4];
//! Cpu::best().forward(
//!     &Spec::scaled_dot(8),
//!     View::new(&q, [1, 1, 5, 8])?,
//!     View::new(&k, [1, 1, 7, 8])?,
//!     View::new(&v, [1, 1, 7, 4])?,
//!     Forward::new(ViewMut::new(&mut out, [1, 1, 5, 4])?),
//! )?;
//! assert!(out.iter().all(|o| (o - 0.3).abs() < 1e-6));
//! # Ok::<(), regard_kernels::Error>(())
//! ```
//!
//! Without optimization the kernels work and are some tens of times slower. These lines in your
//! `Cargo.toml` make them fast in a debug build too:
//!
//! ```toml
//! [profile.dev.package]
//! regard-kernels = { opt-level = 3 }
//! gemm-common = { opt-level = 3 }
//! gemm-f32 = { opt-level = 3 }
//! gemm-f64 = { opt-level = 3 }
//! ```
//!
//! Letters, everywhere the same: B batch, Hq and Hk heads, Nq and Nk lengths, Dq, Dk and Dv widths.

mod activation;
pub mod cpu;
pub mod cuda;
mod element;
mod error;
pub mod expression;
#[doc(hidden)]
pub mod fork;
mod numel;
mod pages;
mod random;
#[doc(hidden)]
pub mod reading;
pub mod reference;
pub mod spec;
pub mod step;
mod view;

pub use activation::Activation;
pub use cpu::{Cpu, Isa, Team, on_team, pooled_bytes, release_memory, sequential};
pub use cuda::{Cuda, CudaBuffer, CudaInfo};
pub use element::{Element, Real};
pub use error::Error;
pub use expression::{Derivatives, Expression, ExpressionError, Graph, Kind, Node};
/// The crate whose `bf16` and `f16` the operator reads and writes.
pub use half;
pub use pages::large_pages;
pub use random::philox;
pub use spec::{
    Backward, Bias, Broadcast, Dropout, Edges, Forward, Gradients, Mask, Normalizer, OwnGrads,
    OwnScore, Parameter, Relative, Saved, Score, Segments, Shape, Spec, Window,
};
pub use step::{
    Adam, AdamTensor, Base, Cell, CrossEntropy, LayerNorm, LayerNormGrads, Matrix, Recurrent,
    RecurrentGrads, RecurrentOut, RecurrentSeed, Sgd, SgdTensor, flush_denormals,
};
pub use view::{View, ViewMut};

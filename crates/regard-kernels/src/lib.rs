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
//! Forward and backward, with a mask, a bias, dropout, and the weights to look at:
//!
//! ```
//! use regard_kernels::{
//!     Backward, Bias, Broadcast, Cpu, Dropout, Forward, Gradients, Mask, Saved, Spec, View, ViewMut,
//! };
//!
//! // B batch, H heads, N queries and keys, D features: [B, H, N, D], row by row.
//! let (b, h, n, d) = (2, 3, 5, 8);
//! let numbers = |seed: usize| -> Vec<f32> {
//!     (0..b * h * n * d).map(|i| ((i * 37 + seed * 11) % 23) as f32 / 23.0 - 0.5).collect()
//! };
//! let (q, k, v) = (numbers(1), numbers(2), numbers(3));
//! fn view(x: &[f32]) -> Result<View<'_, f32>, regard_kernels::Error> {
//!     View::new(x, [2, 3, 5, 8])
//! }
//!
//! // softmax(q · k / √D + bias, where key ≤ query and within the length), a tenth of it left out.
//! let distances: Vec<f32> = (0..n * n).map(|i| -((i / n).abs_diff(i % n) as f32) / 10.0).collect();
//! let spec = Spec {
//!     mask: Mask { causal: true, key_lengths: Some(&[5, 3]), ..Mask::default() },
//!     bias: Bias { full: Some(Broadcast { data: &distances, shape: [1, 1, n, n] }), ..Bias::default() },
//!     dropout: Some(Dropout { p: 0.1, seed: 7 }),
//!     ..Spec::scaled_dot(d)
//! };
//!
//! let mut out = vec![0f32; b * h * n * d];
//! let (mut lse, mut weights) = (vec![0f32; b * h * n], vec![0f32; b * h * n * n]);
//! let pass = Forward {
//!     lse: Some(&mut lse),         // what backward reads
//!     weights: Some(&mut weights), // what a picture shows
//!     ..Forward::new(ViewMut::new(&mut out, [b, h, n, d])?)
//! };
//! Cpu::best().forward(&spec, view(&q)?, view(&k)?, view(&v)?, pass)?;
//! assert_eq!(weights[1..n], [0.0; 4]); // the first query sees the first key alone
//!
//! // The gradients of Σ out.
//! let ones = vec![1f32; out.len()];
//! let [mut of_q, mut of_k, mut of_v] = [(); 3].map(|()| vec![0f32; out.len()]);
//! let mut of_bias = vec![0f32; n * n];
//! let saved = Saved { out: Some(view(&out)?), lse: Some(&lse), ..Saved::default() };
//! let gradients = Gradients {
//!     q: Some(ViewMut::new(&mut of_q, [b, h, n, d])?),
//!     k: Some(ViewMut::new(&mut of_k, [b, h, n, d])?),
//!     v: Some(ViewMut::new(&mut of_v, [b, h, n, d])?),
//!     bias: Some(&mut of_bias),
//!     ..Gradients::default()
//! };
//! let pass = Backward::new(view(&ones)?, saved, gradients);
//! Cpu::best().backward(&spec, view(&q)?, view(&k)?, view(&v)?, pass)?;
//! // Each value's gradient is the sum of the weights on it.
//! let on_first: f32 = (0..n).map(|query| weights[query * n]).sum();
//! assert!((of_v[0] - on_first).abs() < 1e-5);
//! # Ok::<(), regard_kernels::Error>(())
//! ```
//!
//! # Features
//!
//! `cuda`, `gemm` (which [`Cpu::matmul`] calls), `parallel` (rayon's threads) and `serde` are on by default;
//! without them the operator is the same, on the calling thread or on a [`Team`]'s. `ndarray` makes a
//! [`View`] of an array.
//!
//! # Debug builds
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
#[cfg(feature = "ndarray")]
mod arrays;
pub mod cpu;
#[cfg(feature = "cuda")]
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
#[cfg(feature = "cuda")]
pub use cuda::{Cuda, CudaBuffer, CudaInfo};
pub use element::{Element, Real};
pub use error::{Error, ErrorKind};
pub use expression::{Derivatives, Expression, ExpressionError, Graph, Kind, Node};
/// The crate whose `bf16` and `f16` the operator reads and writes.
pub use half;
/// The crate whose arrays a [`View`] is made of.
#[cfg(feature = "ndarray")]
pub use ndarray;
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

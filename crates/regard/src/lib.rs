//! Attention you can pick, train, run fast and look at.
//!
//! ```text
//! weights = normalize( score(q, k) + bias, where mask )        output = weights · v
//! ```
//!
//! ```
//! use regard::prelude::*;
//!
//! let random = Random::new(1);
//! let x = random.normal(&[2, 10, 16], 0.0, 1.0, DType::F32)?;
//! let attention = Attention::new(Score::ScaledDot);
//! let seen = attention.attend(&x, &x, &x, &Mask::within(3), Need::WEIGHTS)?;
//! assert_eq!(seen.out.shape(), [2, 10, 16]);
//! assert_eq!(seen.weights.unwrap().shape(), [2, 10, 10]);
//! # Ok::<(), regard::Error>(())
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | [`attention`] | the operator on tensors: scores, masks, biases, normalizers; mechanisms with parameters; REINFORCE |
//! | [`layers`] | multi-head attention, Transformer blocks, recurrent, convolutional and graph layers, pooling, positions |
//! | [`models`] | sequence to sequence, labeler, classifier, Vision Transformer, graph network, kernel regression, memory network, span reader |
//! | [`tensor`] | tensors with gradients, parameters, optimizers, random numbers, files |
//! | [`prelude`] | what a model of your own needs, for `use regard::prelude::*` |
//!
//! A module is a plain struct that takes its parameters by name from
//! [`Parameters`](tensor::Parameters); a model is its configuration, which serde reads, and its
//! parameters, which a safetensors file holds. Training is [`Mode::Train`], using is
//! [`Mode::Infer`].
//!
//! # Features
//!
//! `cuda`, `files` (parameters in safetensors files), `parallel` (rayon's threads) and `serde` (configurations
//! in files) are on by default; `ndarray` makes tensors of arrays and arrays of tensors.
//!
//! # Debug builds
//!
//! They work as they are, some tens of times slower than a release. These lines in your `Cargo.toml`
//! make them fast where it counts and leave your own code easy to debug:
//!
//! ```toml
//! [profile.dev.package]
//! regard-kernels = { opt-level = 3 }
//! regard-tensor = { opt-level = 3 }
//! gemm-common = { opt-level = 3 }
//! gemm-f32 = { opt-level = 3 }
//! gemm-f64 = { opt-level = 3 }
//! ```

pub mod attention;
mod dtype;
pub mod layers;
mod length;
mod mode;
pub mod models;
pub mod prelude;

pub use mode::Mode;
#[doc(inline)]
pub use regard_tensor as tensor;
#[cfg(feature = "ndarray")]
pub use regard_tensor::ndarray;
#[doc(inline)]
pub use regard_tensor::{DType, Error, Result, Tensor};

// Inside the crate every item goes by its own name: `crate::Linear`.
use attention::*;
use layers::*;
use models::*;

/// The README's snippet, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The programs of two pages in `docs`, in both languages, likewise.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-candle-burn-tch.md")]
#[doc = include_str!("../../../docs/from-candle-burn-tch.zh.md")]
#[doc = include_str!("../../../docs/performance-in-rust.md")]
#[doc = include_str!("../../../docs/performance-in-rust.zh.md")]
struct Pages;

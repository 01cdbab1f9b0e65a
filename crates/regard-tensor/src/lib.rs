//! Tensors with gradients: the operations attention models need, each with its gradient.
//!
//! # Tensors
//!
//! A [`Tensor`] is numbers of one type ([`DType`]) in a shape of up to six axes. It is a storage,
//! which clones and views share, and a layout: the shape, and a stride for each axis. Views
//! ([`Tensor::reshape`], [`Tensor::transpose`], [`Tensor::i`], …) change the layout alone and copy
//! nothing; a tensor whose numbers lie row by row is *contiguous*, and [`Tensor::contiguous`] makes
//! one so. Numbers are changed in place only where no other tensor shares the storage
//! ([`Tensor::as_mut_slice`]).
//!
//! ```
//! use regard_tensor::Tensor;
//! let x = Tensor::new([[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]])?;
//! let y = x.i((.., 1..))?.matmul(&x.transpose(0, 1)?.i((1.., ..))?)?;
//! assert_eq!(y.to_string(), "[[13., 28.],\n [28., 61.]]");
//! # Ok::<(), regard_tensor::Error>(())
//! ```
//!
//! Operations are methods that give a [`Result`]: one sentence says which argument does not fit.
//! The operators `+ - * /` do the same and panic with that sentence. Shapes broadcast as numpy's
//! do; types do not: a tensor is converted by [`Tensor::to_dtype`], never in silence. Operations
//! compute in f32 and f64; on bf16 and f16 they compute in f32 and round each result and each gradient
//! once.
//!
//! # The tape
//!
//! What is computed from a [`Parameter`], or from a tensor that [`Tensor::requires_grad`] gave, is
//! written to a tape: which tensors an operation read, and how the gradient of its result becomes
//! theirs. [`Tensor::backward`] walks the tape back from one number, each operation once, and gives
//! the [`Gradients`] by parameter and by tensor. Every operation that makes fractions has a
//! gradient: one without does not compile. An operation of one's own joins by [`Tensor::record`];
//! [`finite_difference_error`] tells whether its gradient is right.
//!
//! ```
//! use regard_tensor::Tensor;
//! let x = Tensor::from([1f32, 2.0, 3.0]).requires_grad()?;
//! let gradients = (&x * &x + 5.0 * &x).sum_all()?.backward()?;
//! assert_eq!(gradients.get(&x).unwrap().to_vec::<f32>()?, [7.0, 9.0, 11.0]);
//! # Ok::<(), regard_tensor::Error>(())
//! ```
//!
//! # Training
//!
//! [`Parameters`] hold what a model learns, by name; an [`Optimizer`] moves them along their
//! gradients. A line through noisy points:
//!
//! ```
//! use regard_tensor::{DType, Init, Optimizer, Parameters, Random, UpdateRule};
//!
//! let random = Random::new(1);
//! let x = random.uniform(&[64, 1], -1.0, 1.0, DType::F32)?;
//! let y = 3.0 * &x - 0.5 + random.normal(&[64, 1], 0.0, 0.01, DType::F32)?;
//!
//! let parameters = Parameters::new(DType::F32, 1);
//! let slope = parameters.parameter("slope", &[1, 1], Init::Glorot)?;
//! let offset = parameters.parameter("offset", &[1], Init::Zeros)?;
//! let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam())?;
//! for _ in 0..300 {
//!     let guess = x.linear(&slope.tensor(), Some(&offset.tensor()))?;
//!     let loss = guess.squared_error(&y)?;
//!     optimizer.step(&loss.backward()?, 0.05)?;
//! }
//! assert!((slope.tensor().item()? - 3.0).abs() < 0.02);
//! assert!((offset.tensor().item()? + 0.5).abs() < 0.02);
//! # Ok::<(), regard_tensor::Error>(())
//! ```
//!
//! Parameters are written to safetensors files and read from them ([`Parameters::save`],
//! [`load`]). Random numbers come by counter ([`Random`]), so that the same seed gives the same run
//! on any number of threads. The memory of dropped tensors waits in a pool for the next ones;
//! [`Memory`] tells how much that is, and gives it back.
//!
//! # Features
//!
//! `cuda` (tensors on NVIDIA GPUs; the driver is opened at run time), `files` (parameters in safetensors files),
//! `parallel` (rayon's threads) and `serde` (rules and schedules in files) are on by default; without them
//! everything else is the same, on the calling thread. `ndarray` makes tensors of arrays and arrays of tensors.
//!
//! # Debug builds
//!
//! They work as they are, some tens of times slower than a release. These lines in your `Cargo.toml` make them
//! fast where it counts and leave your own code easy to debug:
//!
//! ```toml
//! [profile.dev.package]
//! regard-kernels = { opt-level = 3 }
//! regard-tensor = { opt-level = 3 }
//! gemm-common = { opt-level = 3 }
//! gemm-f32 = { opt-level = 3 }
//! gemm-f64 = { opt-level = 3 }
//! ```

#[cfg(feature = "ndarray")]
mod arrays;
mod backend;
mod buffer;
mod device;
mod display;
mod dtype;
mod error;
#[cfg(feature = "files")]
mod file;
mod finite;
mod init;
mod layout;
mod load_report;
mod nested;
mod ops;
mod optim;
mod parallel;
mod parameter;
mod precision;
mod random;
mod storage;
mod tape;
mod tensor;

#[cfg(feature = "cuda")]
#[doc(hidden)]
pub use backend::cuda::{downloads, fallbacks};
pub use buffer::Memory;
pub use device::Device;
pub use dtype::{DType, Float, Scalar};
pub use error::{Error, ErrorKind, Result};
#[cfg(feature = "files")]
pub use file::{Loaded, TEMPORARY, from_bytes, load, save, to_bytes, write_whole};
pub use finite::{finite_difference_error, parameter_difference_error};
pub use init::Init;
pub use load_report::LoadReport;
pub use nested::NestedArray;
pub use ops::{Index, Indices, Recurred, RecurrentStart, SlidingWindow, lerp_all};
pub use optim::{Better, Decay, Optimizer, Plateau, Schedule, UpdateRule};
pub use parameter::{Parameter, Parameters, limit_parameters};
pub use precision::{Precision, precision, with_precision};
pub use random::Random;
pub use tape::{Gradients, Parents, Variable, is_recording, with_gradients, without_gradients};
pub use tensor::Tensor;

/// The crate whose [`Pod`](bytemuck::Pod) every [`Scalar`] is.
pub use bytemuck;
/// The crate whose `bf16` and `f16` a tensor stores.
pub use half;
/// The crate whose arrays a [`Tensor`] is made of and gives.
#[cfg(feature = "ndarray")]
pub use ndarray;
pub use regard_kernels::{Activation, Cell, CrossEntropy, Element, Real};

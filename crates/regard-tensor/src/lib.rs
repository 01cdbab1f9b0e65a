//! Tensors with gradients: the operations attention models need, each with its gradient.
//!
//! ```
//! use regard_tensor::{DType, Init, Parameters, Tensor};
//!
//! let parameters = Parameters::new(DType::F32, 1);
//! let w = parameters.parameter("w", &[1, 2], Init::Glorot)?;
//! let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
//! let y = x.linear(&w.tensor(), None)?;
//! let gradients = y.square()?.mean_all()?.backward()?;
//! assert_eq!(gradients.get(&w).unwrap().shape(), [1, 2]);
//! # Ok::<(), regard_tensor::Error>(())
//! ```
//!
//! A [`Tensor`] is shared storage with strides; views cost nothing. What a [`Parameter`] went
//! into is on the tape, and [`Tensor::backward`] gives its gradient. Every operation that makes
//! fractions has a gradient: one without does not compile.

mod buffer;
mod device;
mod display;
mod dtype;
mod error;
mod file;
mod finite;
mod init;
mod layout;
mod nested;
mod ops;
mod optim;
mod parallel;
mod parameter;
mod random;
mod tape;
mod tensor;
mod walk;

pub use buffer::Memory;
pub use device::Device;
pub use dtype::{DType, Float, Scalar};
pub use error::{Error, Result};
pub use file::{Loaded, load, save, write_whole};
pub use finite::{finite_difference_error, parameter_difference_error};
pub use init::Init;
pub use nested::NestedArray;
pub use ops::{Index, Indices, Recurred, RecurrentStart, Slide};
pub use optim::{Better, Decay, Optimizer, Plateau, Rule, Schedule};
pub use parameter::{Parameter, Parameters};
pub use random::Random;
pub use tape::{Gradients, Parents, with_gradients, without_gradients};
pub use tensor::Tensor;

pub use regard_kernels::step::{Cell, CrossEntropy, Pointwise};

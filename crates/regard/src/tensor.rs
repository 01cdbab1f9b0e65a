//! Tensors with gradients, parameters, optimizers, random numbers and files: all of the crate `regard-tensor`.
//!
//! A [`Tensor`] is numbers of one type ([`DType`]) in a shape of up to six axes. What is computed from a [`Parameter`], or
//! from a tensor that [`Tensor::requires_grad`] gave, is written to a tape, and [`Tensor::backward`] walks it back to the
//! [`Gradients`]. [`Parameters`] hold what a model learns, by name; an [`Optimizer`] moves them.
//!
//! ```
//! use regard::tensor::Tensor;
//! let x = Tensor::from([1f32, 2.0, 3.0]).requires_grad()?;
//! let gradients = (&x * &x + 5.0 * &x).sum_all()?.backward()?;
//! assert_eq!(gradients.get(&x).unwrap().to_vec::<f32>()?, [7.0, 9.0, 11.0]);
//! # Ok::<(), regard::Error>(())
//! ```
//!
//! `tensor::half` is the crate whose `bf16` and `f16` a tensor stores, `tensor::bytemuck` the one whose `Pod` every
//! [`Scalar`] is.

#[doc(inline)]
pub use regard_tensor::*;

//! In what numbers products are computed.

use crate::{Error, Result};
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

/// In what numbers products of matrices are computed; see [`with_precision`].
///
/// ```
/// use regard_tensor::Precision;
/// assert_eq!(Precision::default(), Precision::F32);
/// assert_eq!(Precision::Bf16.to_string(), "bf16");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precision {
    /// In the tensors' own type.
    #[default]
    F32,
    /// As [`Precision::F32`], but a GPU may round factors in f32 to the 11 significant bits that its units multiply (TF32). The
    /// CPU computes as with f32.
    Tf32,
    /// Factors in f32 are rounded to bf16 first, forward and backward; sums, and all else, stay in f32.
    Bf16,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
        })
    }
}

impl FromStr for Precision {
    type Err = Error;

    /// `f32`, `tf32` or `bf16`; refuses anything else.
    ///
    /// ```
    /// use regard_tensor::Precision;
    /// assert_eq!("bf16".parse::<Precision>()?, Precision::Bf16);
    /// let error = "f8".parse::<Precision>().unwrap_err();
    /// assert_eq!(error.to_string(), "a precision of \"f8\"; there are f32, tf32 and bf16");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    fn from_str(name: &str) -> Result<Self> {
        match name {
            "f32" => Ok(Self::F32),
            "tf32" => Ok(Self::Tf32),
            "bf16" => Ok(Self::Bf16),
            _ => Err(Error::new(format!("a precision of {name:?}; there are f32, tf32 and bf16"))),
        }
    }
}

thread_local! {
    static PRECISION: Cell<Precision> = const { Cell::new(Precision::F32) };
}

/// Runs `f` with products in a precision: those of [`Tensor::matmul`](crate::Tensor::matmul),
/// [`Tensor::linear`](crate::Tensor::linear) and [`Tensor::recurrent`](crate::Tensor::recurrent), and of what is made of them,
/// between tensors of f32. Tensors stay f32; what a product keeps for its gradient takes half the memory. The gradient is
/// computed as its operation was, wherever it is asked for. This thread alone, as [`without_gradients`](crate::without_gradients).
///
/// Products of bf16 take a fraction of the time on GPUs and processors that have units for them, and training goes on as
/// well as in f32, as a rule: sums, normalizations, losses, parameters and an optimizer's moments keep their precision.
///
/// ```
/// use regard_tensor::{Precision, Tensor, with_precision};
/// let x = Tensor::from([[1.001f32]]);
/// assert_eq!(x.matmul(&x)?.item()?, 1.001f32.powi(2) as f64);
/// // 1.001 is 1 in bf16
/// assert_eq!(with_precision(Precision::Bf16, || x.matmul(&x))?.item()?, 1.0);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub fn with_precision<R>(precision: Precision, f: impl FnOnce() -> R) -> R {
    struct Restore(Precision);
    impl Drop for Restore {
        fn drop(&mut self) {
            PRECISION.set(self.0);
        }
    }
    let _restore = Restore(PRECISION.replace(precision));
    f()
}

/// The precision of products on this thread.
///
/// ```
/// use regard_tensor::{Precision, precision, with_precision};
/// assert_eq!(with_precision(Precision::Bf16, precision), Precision::Bf16);
/// assert_eq!(precision(), Precision::F32);
/// ```
pub fn precision() -> Precision {
    PRECISION.get()
}

//! The operators `+ - * /` and the unary minus.
//!
//! ```
//! use regard_tensor::Tensor;
//! let (x, y) = (Tensor::from([1f32, 2.0]), Tensor::from([3f32, 5.0]));
//! let z = 2.0 * &x - &y / 4.0 + 1.0;
//! assert_eq!(z.to_vec::<f32>()?, [2.25, 3.75]);
//! # Ok::<(), regard_tensor::Error>(())
//! ```
//!
//! An operator cannot give a `Result`: where the methods [`Tensor::add`], [`Tensor::sub`],
//! [`Tensor::mul`] and [`Tensor::div`] refuse, the operator panics with the refusal's sentence.

use crate::ops::in_f32;
use crate::{Result, Tensor};
use std::ops::{Add, Div, Mul, Neg, Sub};

#[track_caller]
fn or_panic(result: Result<Tensor>) -> Tensor {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// A number as a tensor of another's type, to be broadcast.
/// A number beside a tensor: of its type, or, where that has 16 bits, wide enough for both.
fn number(
    x: f64,
    like: &Tensor,
    f: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let dtype = like.dtype();
    if dtype.is_half() {
        return in_f32([like], |[like]| number(x, like, f));
    }
    // One too large for the type is infinite there, and so is what comes of it.
    f(&Tensor::scalar(x)?.to_dtype(dtype)?, like)
}

/// One operator for every way to hold its two sides.
macro_rules! operator {
    ($Op:ident, $op:ident, |$a:ident, $b:ident| $both:expr, |$x:ident, $n:ident| $right:expr, $left:expr) => {
        operator!(@tensors $Op, $op, |$a, $b| $both, &Tensor, &Tensor);
        operator!(@tensors $Op, $op, |$a, $b| $both, &Tensor, Tensor);
        operator!(@tensors $Op, $op, |$a, $b| $both, Tensor, &Tensor);
        operator!(@tensors $Op, $op, |$a, $b| $both, Tensor, Tensor);
        operator!(@number $Op, $op, |$x, $n| $right, $left, &Tensor);
        operator!(@number $Op, $op, |$x, $n| $right, $left, Tensor);
    };
    (@tensors $Op:ident, $op:ident, |$a:ident, $b:ident| $both:expr, $A:ty, $B:ty) => {
        impl $Op<$B> for $A {
            type Output = Tensor;
            #[track_caller]
            fn $op(self, other: $B) -> Tensor {
                let ($a, $b): (&Tensor, &Tensor) = (&self, &other);
                or_panic($both)
            }
        }
    };
    (@number $Op:ident, $op:ident, |$x:ident, $n:ident| $right:expr, $left:expr, $A:ty) => {
        impl $Op<f64> for $A {
            type Output = Tensor;
            #[track_caller]
            fn $op(self, $n: f64) -> Tensor {
                let $x: &Tensor = &self;
                or_panic($right)
            }
        }
        impl $Op<$A> for f64 {
            type Output = Tensor;
            #[track_caller]
            fn $op(self, other: $A) -> Tensor {
                let ($x, $n): (&Tensor, f64) = (&other, self);
                or_panic($left)
            }
        }
    };
}

operator!(Add, add, |a, b| a.add(b), |x, n| x.shift(n), x.shift(n));
operator!(Sub, sub, |a, b| a.sub(b), |x, n| x.shift(-n), number(n, x, Tensor::sub));
operator!(Mul, mul, |a, b| a.mul(b), |x, n| x.scale(n), x.scale(n));
operator!(
    Div,
    div,
    |a, b| a.div(b),
    |x, n| number(n, x, |n, x| x.div(n)),
    number(n, x, Tensor::div)
);

impl Neg for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        or_panic(self.scale(-1.0))
    }
}

impl Neg for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        -&self
    }
}

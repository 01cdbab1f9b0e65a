//! Number types: [`Real`] is computed in, [`Element`] is stored.

use crate::{View, ViewMut};
use half::{bf16, f16};
use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// A number the operator computes in: `f32` or `f64`.
///
/// ```
/// use regard_kernels::Real;
/// fn norm<T: Real>(x: &[T]) -> T {
///     x.iter().map(|&x| x * x).sum::<T>().sqrt()
/// }
/// assert_eq!((norm(&[3f32, 4.0]), norm(&[3f64, 4.0])), (5.0, 5.0));
/// ```
pub trait Real:
    Element<Compute = Self>
    + Debug
    + Display
    + PartialOrd
    + Default
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + Sum
{
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// −∞
    const NEG_INFINITY: Self;
    /// The gap between 1 and the next larger number.
    const EPSILON: Self;
    /// Rounded from `f64`.
    fn of(x: f64) -> Self;
    /// Widened to `f64`.
    fn f64(self) -> f64;
    /// eˣ
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// The error function.
    fn erf(self) -> Self;
    /// log(1 + x), accurate near 0.
    fn ln_1p(self) -> Self;
    /// Sine.
    fn sin(self) -> Self;
    /// Cosine.
    fn cos(self) -> Self;
    /// |x|
    fn abs(self) -> Self;
    /// The larger of two numbers; NaN loses.
    fn max(self, other: Self) -> Self;
    #[doc(hidden)]
    fn kernels(isa: crate::Isa) -> &'static crate::cpu::Kernels<Self>;
}

macro_rules! real {
    ($t:ident, $erf:path, $kernels:path) => {
        impl Real for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NEG_INFINITY: Self = $t::NEG_INFINITY;
            const EPSILON: Self = $t::EPSILON;
            fn of(x: f64) -> Self {
                x as $t
            }
            fn f64(self) -> f64 {
                self as f64
            }
            fn exp(self) -> Self {
                self.exp()
            }
            fn ln(self) -> Self {
                self.ln()
            }
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            fn tanh(self) -> Self {
                self.tanh()
            }
            fn erf(self) -> Self {
                $erf(self)
            }
            fn ln_1p(self) -> Self {
                self.ln_1p()
            }
            fn sin(self) -> Self {
                self.sin()
            }
            fn cos(self) -> Self {
                self.cos()
            }
            fn abs(self) -> Self {
                self.abs()
            }
            fn max(self, other: Self) -> Self {
                self.max(other)
            }
            fn kernels(isa: crate::Isa) -> &'static crate::cpu::Kernels<Self> {
                $kernels(isa)
            }
        }
    };
}
real!(f32, libm::erff, crate::cpu::kernels_f32);
real!(f64, libm::erf, crate::cpu::kernels_f64);

mod sealed {
    /// The kernels trust the numbers: any bits are one, and a view of them has the shape it says.
    #[allow(unreachable_pub)] // nobody else shall implement it
    pub trait Sealed {}
}

/// A number q, k, v and the output may be stored in: `f32`, `f64`, `bf16` or `f16`, no other.
///
/// `f32` and `f64` are computed in as they are; the halves are widened to `f32` first.
///
/// ```
/// use regard_kernels::{Element, half::bf16};
/// fn bytes<E: Element>() -> [usize; 2] {
///     [size_of::<E>(), size_of::<E::Compute>()]
/// }
/// assert_eq!((bytes::<bf16>(), bytes::<f64>()), ([2, 4], [8, 8]));
/// ```
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// What this type is computed in.
    type Compute: Real;
    /// Widened to the type computed in.
    fn widen(self) -> Self::Compute;
    /// Rounded to nearest from the type computed in.
    fn narrow(x: Self::Compute) -> Self;
    /// The same view, where the stored type is the one computed in.
    #[doc(hidden)]
    fn as_computed<'a>(view: &View<'a, Self>) -> Option<View<'a, Self::Compute>>;
    /// The same view, where the stored type is bf16.
    #[doc(hidden)]
    fn as_bf16<'a>(view: &View<'a, Self>) -> Option<View<'a, bf16>> {
        let _ = view;
        None
    }
    /// As [`Self::as_computed`], to write to.
    #[doc(hidden)]
    fn as_computed_mut<'a>(view: &'a mut ViewMut<Self>) -> Option<ViewMut<'a, Self::Compute>>;
}

macro_rules! element {
    ($t:ty, $compute:ty, $widen:expr, $narrow:expr, |$view:ident| $same:expr, $same_mut:expr
     $(, $more:item)*) => {
        impl sealed::Sealed for $t {}
        impl Element for $t {
            type Compute = $compute;
            #[inline(always)]
            fn widen(self) -> $compute {
                $widen(self)
            }
            #[inline(always)]
            fn narrow(x: $compute) -> Self {
                $narrow(x)
            }
            fn as_computed<'a>($view: &View<'a, Self>) -> Option<View<'a, $compute>> {
                $same
            }
            fn as_computed_mut<'a>($view: &'a mut ViewMut<Self>) -> Option<ViewMut<'a, $compute>> {
                $same_mut
            }
            $($more)*
        }
    };
}
element!(f32, f32, |x| x, |x| x, |view| Some(*view), Some(view.reborrow()));
element!(f64, f64, |x| x, |x| x, |view| Some(*view), Some(view.reborrow()));
element!(
    bf16,
    f32,
    bf16::to_f32,
    bf16::from_f32,
    |_view| None,
    None,
    fn as_bf16<'a>(view: &View<'a, Self>) -> Option<View<'a, bf16>> {
        Some(*view)
    }
);
element!(f16, f32, f16::to_f32, f16::from_f32, |_view| None, None);

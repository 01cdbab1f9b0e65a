//! The types of numbers a tensor holds.

use bytemuck::Pod;
use half::{bf16, f16};

/// The type of a tensor's numbers.
///
/// ```
/// use regard_tensor::DType;
/// assert_eq!(DType::F32.size(), 4);
/// assert!(DType::F64.is_float() && !DType::I64.is_float());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// What models compute in.
    F32,
    /// What gradients are checked in.
    F64,
    /// Half of f32's bits, with its range: stored and viewed; computed in f32, each result rounded.
    BF16,
    /// Half of f32's bits, more of them after the point: stored and viewed; computed in f32, each result
    /// rounded.
    F16,
    /// Indices.
    I64,
    /// Indices, smaller.
    U32,
    /// True or false, one byte each.
    Bool,
}

impl DType {
    /// Bytes of one number.
    ///
    /// ```
    /// use regard_tensor::DType;
    /// assert_eq!([DType::BF16, DType::F32, DType::I64, DType::Bool].map(DType::size), [2, 4, 8, 1]);
    /// ```
    pub fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::U32 => 4,
            Self::BF16 | Self::F16 => 2,
            Self::Bool => 1,
        }
    }

    /// Whether kernels compute in it; the halves are computed in f32.
    ///
    /// ```
    /// use regard_tensor::DType;
    /// assert!(DType::F32.is_float());
    /// assert!(!DType::BF16.is_float());
    /// ```
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Whether it is stored in 16 bits: bf16 and f16.
    ///
    /// ```
    /// use regard_tensor::DType;
    /// assert!(DType::BF16.is_half() && DType::F16.is_half() && !DType::F32.is_half());
    /// ```
    pub fn is_half(self) -> bool {
        matches!(self, Self::BF16 | Self::F16)
    }

    /// Whether it may carry a gradient: f32, f64 and the halves.
    ///
    /// ```
    /// use regard_tensor::DType;
    /// assert!(DType::F64.is_differentiable() && DType::BF16.is_differentiable());
    /// assert!(!DType::I64.is_differentiable() && !DType::Bool.is_differentiable());
    /// ```
    pub fn is_differentiable(self) -> bool {
        self.is_float() || self.is_half()
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::BF16 => "bf16",
            Self::F16 => "f16",
            Self::I64 => "i64",
            Self::U32 => "u32",
            Self::Bool => "bool",
        })
    }
}

mod sealed {
    /// Storage is cast between these types, so nobody else adds one.
    pub trait Sealed {}
}

/// A Rust type that a tensor stores. Booleans are stored as the bytes 0 and 1.
///
/// ```
/// use regard_tensor::{DType, Scalar};
/// assert_eq!(<i64 as Scalar>::DTYPE, DType::I64);
/// assert_eq!(<i64 as Scalar>::from_f64(2.5), 2);
/// // a byte is a bool
/// assert_eq!(<u8 as Scalar>::from_f64(2.5), 1);
/// ```
pub trait Scalar: sealed::Sealed + Pod + Send + Sync + std::fmt::Debug {
    /// Its name among the types.
    const DTYPE: DType;
    /// From the widest type.
    fn from_f64(x: f64) -> Self;
    /// To the widest type.
    fn to_f64(self) -> f64;
}

macro_rules! scalar {
    ($($t:ty, $dtype:ident, $x:ident, $from:expr, $to:expr;)*) => {$(
        impl sealed::Sealed for $t {}
        impl Scalar for $t {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn from_f64($x: f64) -> Self {
                $from
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                let $x = self;
                $to
            }
        }
    )*};
}

scalar! {
    f32, F32, x, x as f32, f64::from(x);
    f64, F64, x, x, x;
    bf16, BF16, x, bf16::from_f32(round_to_odd(x)), f64::from(x.to_f32());
    f16, F16, x, f16::from_f32(round_to_odd(x)), f64::from(x.to_f32());
    i64, I64, x, x as i64, x as f64;
    u32, U32, x, x as u32, f64::from(x);
    u8, Bool, x, u8::from(x != 0.0), f64::from(x);
}

/// The f32 next to x in the direction of 0, its last bit set where that is not x itself: rounded
/// once more, to a half, it gives what x itself would, a tie broken by the bits that are gone.
#[inline(always)]
fn round_to_odd(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) == x || !near.is_finite() {
        return near;
    }
    let toward_zero = near.to_bits() - u32::from(f64::from(near).abs() > x.abs());
    f32::from_bits(toward_zero | 1)
}

/// The types operations compute in.
///
/// ```
/// use regard_tensor::{Float, Result, Tensor};
/// fn sum<T: Float>(x: &Tensor) -> Result<T> {
///     let mut sum = T::ZERO;
///     x.as_slice::<T>("sum")?.iter().for_each(|&x| sum += x);
///     Ok(sum)
/// }
/// assert_eq!(sum::<f32>(&Tensor::from_vec(vec![1f32, 2.0], &[2])?)?, 3.0);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub trait Float: Scalar + regard_kernels::Real + regard_kernels::Element<Compute = Self> {}
impl Float for f32 {}
impl Float for f64 {}

/// Runs a body with `$T` the Rust type of a float dtype; any other dtype is an error that names
/// the operation.
macro_rules! floats {
    ($dtype:expr, $op:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            other => Err($crate::dtype::no_float($op, other)),
        }
    };
}

pub(crate) fn no_float(op: &str, dtype: DType) -> crate::Error {
    crate::Error::new(format!(
        "{op}: computes in f32 and f64, was given {dtype}; convert with to_dtype"
    ))
}

/// As `floats`, with the halves: for what a gradient needs on its way.
macro_rules! fractions {
    ($dtype:expr, $op:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            $crate::DType::F16 => {
                type $T = half::f16;
                $body
            }
            dtype => floats!(dtype, $op, $T => $body),
        }
    };
}

/// As `floats`, for every type that is stored. The halves have a `from_f64` of their own, which
/// rounds twice: a body says `<T as Scalar>::from_f64`.
macro_rules! scalars {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            $crate::DType::F16 => {
                type $T = half::f16;
                $body
            }
            $crate::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::DType::U32 => {
                type $T = u32;
                $body
            }
            $crate::DType::Bool => {
                type $T = u8;
                $body
            }
        }
    };
}

pub(crate) use {floats, fractions, scalars};

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
pub enum DType {
    /// What models compute in.
    F32,
    /// What gradients are checked in.
    F64,
    /// Stored only; computed in f32.
    BF16,
    /// Stored only; computed in f32.
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

    /// Whether operations compute in it, so that it may carry a gradient.
    ///
    /// ```
    /// use regard_tensor::DType;
    /// assert!(DType::F32.is_float());
    /// // stored only: a parameter cannot be one
    /// assert!(!DType::BF16.is_float());
    /// ```
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
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

/// A Rust type that a tensor stores. Booleans are stored as the bytes 0 and 1.
///
/// ```
/// use regard_tensor::{DType, Scalar};
/// assert_eq!(<i64 as Scalar>::DTYPE, DType::I64);
/// assert_eq!(<i64 as Scalar>::from_f64(2.5), 2);
/// // a byte is a truth
/// assert_eq!(<u8 as Scalar>::from_f64(2.5), 1);
/// ```
pub trait Scalar: Pod + Send + Sync + std::fmt::Debug {
    /// Its name among the types.
    const DTYPE: DType;
    /// From the widest type.
    fn from_f64(x: f64) -> Self;
    /// To the widest type.
    fn to_f64(self) -> f64;
}

macro_rules! scalar {
    ($($t:ty, $dtype:ident, $x:ident, $from:expr, $to:expr;)*) => {$(
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
    bf16, BF16, x, bf16::from_f64(x), x.to_f64();
    f16, F16, x, f16::from_f64(x), x.to_f64();
    i64, I64, x, x as i64, x as f64;
    u32, U32, x, x as u32, f64::from(x);
    u8, Bool, x, u8::from(x != 0.0), f64::from(x);
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
            other => Err($crate::Error::new(format!(
                "{}: computes in f32 and f64, was given {other}",
                $op
            ))),
        }
    };
}

/// As `floats`, for every type that is stored.
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

pub(crate) use {floats, scalars};

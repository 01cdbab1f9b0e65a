//! Tensors written down as nested arrays.

use crate::{Result, Scalar, Tensor};
use half::{bf16, f16};

/// A number, an array of numbers, an array of such arrays, …: what [`Tensor::new`] and
/// `Tensor::from` take. A bool is a number here too.
///
/// ```
/// use regard_tensor::{NestedArray, Result, Tensor};
/// fn ones(like: impl NestedArray) -> Result<Tensor> {
///     let x = Tensor::new(like)?;
///     Tensor::full(x.shape(), 1.0, x.dtype())
/// }
/// assert_eq!(ones([[2f64, 3.0]])?.to_vec::<f64>()?, [1.0, 1.0]);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub trait NestedArray {
    /// What the innermost arrays hold, as it is stored.
    type Number: Scalar;
    /// Adds the sizes, the outermost first.
    fn shape(to: &mut Vec<usize>);
    /// Adds the numbers, row by row.
    fn numbers(&self, to: &mut Vec<Self::Number>);
}

macro_rules! number {
    ($($t:ty, $stored:ty;)*) => {$(
        impl NestedArray for $t {
            type Number = $stored;
            fn shape(_: &mut Vec<usize>) {}
            fn numbers(&self, to: &mut Vec<$stored>) {
                to.push((*self).into());
            }
        }
    )*};
}

number! {
    f32, f32;
    f64, f64;
    bf16, bf16;
    f16, f16;
    i64, i64;
    u32, u32;
    bool, u8;
}

impl<A: NestedArray, const N: usize> NestedArray for [A; N] {
    type Number = A::Number;
    fn shape(to: &mut Vec<usize>) {
        to.push(N);
        A::shape(to);
    }
    fn numbers(&self, to: &mut Vec<A::Number>) {
        self.iter().for_each(|part| part.numbers(to));
    }
}

impl<A: NestedArray> NestedArray for &A {
    type Number = A::Number;
    fn shape(to: &mut Vec<usize>) {
        A::shape(to);
    }
    fn numbers(&self, to: &mut Vec<A::Number>) {
        (**self).numbers(to);
    }
}

impl Tensor {
    /// From a number or nested arrays, whose sizes are the shape.
    /// Refuses more than six axes.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// let x = Tensor::new([[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]])?;
    /// assert_eq!((x.shape(), x.dtype()), (&[2, 3][..], DType::F32));
    /// assert_eq!(Tensor::new(2.5)?.item()?, 2.5);
    /// assert_eq!(Tensor::new([true, false])?.dtype(), DType::Bool);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn new<A: NestedArray>(array: A) -> Result<Tensor> {
        let (mut shape, mut numbers) = (Vec::new(), Vec::new());
        A::shape(&mut shape);
        array.numbers(&mut numbers);
        Tensor::from_vec(numbers, &shape)
    }
}

/// As [`Tensor::new`], where more than six axes are a panic.
///
/// ```
/// use regard_tensor::Tensor;
/// let x = Tensor::from([[1f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.shape(), [2, 2]);
/// ```
impl<A: NestedArray> From<A> for Tensor {
    #[track_caller]
    fn from(array: A) -> Self {
        Tensor::new(array).unwrap_or_else(|error| panic!("{error}"))
    }
}

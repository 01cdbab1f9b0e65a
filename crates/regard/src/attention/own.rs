//! A score of your own.

pub use regard_kernels::{OwnGrads, OwnScore};
use regard_tensor::Float;

/// A score of your own in every precision: what implements [`OwnScore`] for every `T: Real`.
///
/// ```
/// use regard::prelude::*;
/// use regard::attention::{OwnGrads, OwnScore, Real};
///
/// /// −rate · Σ |q − k|
/// struct Manhattan;
///
/// impl<T: Real> OwnScore<T> for Manhattan {
///     fn parameters(&self) -> usize {
///         1
///     }
///     fn score(&self, rate: &[T], q: &[T], k: &[T]) -> T {
///         -rate[0] * q.iter().zip(k).map(|(&q, &k)| (q - k).abs()).sum::<T>()
///     }
///     fn backward(&self, rate: &[T], q: &[T], k: &[T], grad: T, to: OwnGrads<T>) {
///         for d in 0..q.len() {
///             let step = if q[d] > k[d] { grad * rate[0] } else { -grad * rate[0] };
///             to.q[d] -= step;
///             to.k[d] += step;
///             to.parameters[0] -= grad * (q[d] - k[d]).abs();
///         }
///     }
/// }
///
/// let rate = Parameter::new("rate", Tensor::from_vec(vec![1f32], &[1])?)?;
/// let attention = Attention::new(Score::own(Manhattan, rate.tensor()));
/// let x = Tensor::from_vec(vec![0f32, 1.0, 5.0], &[3, 1])?;
/// let gradients = attention.forward(&x, &x, &x, &Mask::none())?.sum_all()?.backward()?;
/// assert!(gradients.get(&rate).is_some());
/// # Ok::<(), regard::Error>(())
/// ```
pub trait AnyOwnScore: Send + Sync {
    /// In f32.
    fn in_f32(&self) -> &dyn OwnScore<f32>;
    /// In f64.
    fn in_f64(&self) -> &dyn OwnScore<f64>;
}

impl<S: OwnScore<f32> + OwnScore<f64>> AnyOwnScore for S {
    fn in_f32(&self) -> &dyn OwnScore<f32> {
        self
    }

    fn in_f64(&self) -> &dyn OwnScore<f64> {
        self
    }
}

/// A precision that attention computes in: picks an own score's.
pub(super) trait Precision: Float {
    fn own(score: &dyn AnyOwnScore) -> &dyn OwnScore<Self>;
}

impl Precision for f32 {
    fn own(score: &dyn AnyOwnScore) -> &dyn OwnScore<f32> {
        score.in_f32()
    }
}

impl Precision for f64 {
    fn own(score: &dyn AnyOwnScore) -> &dyn OwnScore<f64> {
        score.in_f64()
    }
}

//! A score of one's own.

use regard_kernels::Real;

/// A score of one's own, forward and backward, in any precision.
///
/// ```
/// use regard::prelude::*;
///
/// /// −rate · Σ |q − k|
/// struct Manhattan;
///
/// impl OwnScore for Manhattan {
///     fn score<T: Real>(&self, rate: &[T], q: &[T], k: &[T]) -> T {
///         let mut sum = T::ZERO;
///         for (&q, &k) in q.iter().zip(k) {
///             sum += (q - k).abs();
///         }
///         -rate[0] * sum
///     }
///     fn backward<T: Real>(
///         &self, rate: &[T], q: &[T], k: &[T], grad: T,
///         grad_rate: &mut [T], grad_q: &mut [T], grad_k: &mut [T],
///     ) {
///         for d in 0..q.len() {
///             let step = if q[d] > k[d] { grad * rate[0] } else { -grad * rate[0] };
///             grad_q[d] -= step;
///             grad_k[d] += step;
///             grad_rate[0] -= grad * (q[d] - k[d]).abs();
///         }
///     }
/// }
///
/// let rate = Parameter::new("rate", Tensor::from_vec(vec![1f32], &[1])?)?;
/// let attention = Attention::new(Score::own(Manhattan, rate.tensor()));
/// let x = Tensor::from_vec(vec![0f32, 1.0, 5.0], &[3, 1])?;
/// let gradients = attention.forward(&x, &x, &x)?.sum_all()?.backward()?;
/// assert!(gradients.get(&rate).is_some());
/// # Ok::<(), regard::Error>(())
/// ```
pub trait OwnScore: Send + Sync + 'static {
    /// The score of key `k` `[Dk]` for query `q` `[Dq]`, with the learned numbers `[P]`.
    fn score<T: Real>(&self, parameters: &[T], q: &[T], k: &[T]) -> T;

    /// Adds `grad` times the score's derivative to each gradient.
    #[allow(clippy::too_many_arguments)]
    fn backward<T: Real>(
        &self,
        parameters: &[T],
        q: &[T],
        k: &[T],
        grad: T,
        grad_parameters: &mut [T],
        grad_q: &mut [T],
        grad_k: &mut [T],
    );

    /// Refuses widths it cannot score, in one sentence; equal ones are fine unless said.
    fn check(&self, dq: usize, dk: usize) -> Result<(), String> {
        if dq == dk {
            Ok(())
        } else {
            Err(format!("k has head width {dk}, q has {dq}; this score needs them equal"))
        }
    }
}

/// A score with its parameters in one precision: what the kernels take.
struct Bound<'a, S, T> {
    score: &'a S,
    parameters: &'a [T],
}

impl<S: OwnScore, T: Real> regard_kernels::OwnScore<T> for Bound<'_, S, T> {
    fn score(&self, q: &[T], k: &[T]) -> T {
        self.score.score(self.parameters, q, k)
    }

    fn backward(
        &self,
        q: &[T],
        k: &[T],
        grad: T,
        grad_q: &mut [T],
        grad_k: &mut [T],
        grad_parameters: &mut [T],
    ) {
        self.score.backward(self.parameters, q, k, grad, grad_parameters, grad_q, grad_k);
    }

    fn parameters(&self) -> usize {
        self.parameters.len()
    }

    fn check(&self, dq: usize, dk: usize) -> Result<(), String> {
        self.score.check(dq, dk)
    }
}

/// An [`OwnScore`] whose type is forgotten.
#[doc(hidden)]
pub trait Erased: Send + Sync {
    fn f32<'a>(&'a self, parameters: &'a [f32]) -> Box<dyn regard_kernels::OwnScore<f32> + 'a>;
    fn f64<'a>(&'a self, parameters: &'a [f64]) -> Box<dyn regard_kernels::OwnScore<f64> + 'a>;
}

impl<S: OwnScore> Erased for S {
    fn f32<'a>(&'a self, parameters: &'a [f32]) -> Box<dyn regard_kernels::OwnScore<f32> + 'a> {
        Box::new(Bound { score: self, parameters })
    }
    fn f64<'a>(&'a self, parameters: &'a [f64]) -> Box<dyn regard_kernels::OwnScore<f64> + 'a> {
        Box::new(Bound { score: self, parameters })
    }
}

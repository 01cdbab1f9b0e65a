//! How a query and a key give a score.

use super::{AnyOwnScore, OwnScore};
use regard_kernels::Activation;
use regard_tensor::Tensor;
use std::sync::Arc;

/// How a query and a key give a score. The mechanisms' modules (bilinear, cosine, …) bring theirs
/// to one of these.
///
/// ```
/// use regard::prelude::*;
/// let x = Tensor::from_vec(vec![1.0, 3.0], &[2, 1])?;
/// // where all scores are 0, attention is the mean
/// let mean = Attention::new(Score::Dot { scale: 0.0 }).forward(&x, &x, &x, &Mask::none())?;
/// assert!(mean.to_vec::<f64>()?.iter().all(|y| (y - 2.0).abs() < 1e-9));
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone)]
pub enum Score {
    /// q·k / √D.
    ScaledDot,
    /// q·k · scale.
    Dot {
        /// The factor.
        scale: f64,
    },
    /// Σ_d w_d · act(q_d + k_d).
    Additive {
        /// Applied to each q_d + k_d.
        activation: Activation,
        /// `[D]` or `[Hq, D]`.
        w: Tensor,
    },
    /// One's own; see [`OwnScore`].
    Own {
        /// The score.
        score: Arc<dyn AnyOwnScore>,
        /// Its learned numbers, `[P]` or `[Hq, P]`.
        parameters: Tensor,
    },
}

impl Score {
    /// The plain dot product.
    ///
    /// ```
    /// use regard::prelude::*;
    /// assert!(matches!(Score::dot(), Score::Dot { scale: 1.0 }));
    /// ```
    pub fn dot() -> Self {
        Self::Dot { scale: 1.0 }
    }

    /// A score of one's own with its learned numbers: `[P]`, which may be none, or `[Hq, P]`.
    ///
    /// ```
    /// use regard::prelude::*;
    /// /// The same for every pair, with nothing learned.
    /// struct Even;
    /// impl<T: Real> OwnScore<T> for Even {
    ///     fn score(&self, _: &[T], _: &[T], _: &[T]) -> T {
    ///         T::ZERO
    ///     }
    ///     fn backward(&self, _: &[T], _: &[T], _: &[T], _: T, _: OwnGrads<T>) {}
    /// }
    /// let mean = Attention::new(Score::own(Even, Tensor::zeros(&[0], DType::F64)?));
    /// let x = Tensor::from_vec(vec![1.0, 3.0], &[2, 1])?;
    /// assert!(mean.forward(&x, &x, &x, &Mask::none())?.to_vec::<f64>()?.iter().all(|y| (y - 2.0).abs() < 1e-9));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn own(score: impl OwnScore<f32> + OwnScore<f64> + 'static, parameters: Tensor) -> Self {
        Self::Own { score: Arc::new(score), parameters }
    }
}

impl std::fmt::Debug for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ScaledDot => f.write_str("ScaledDot"),
            Self::Dot { scale } => write!(f, "Dot({scale})"),
            Self::Additive { activation, w } => {
                write!(f, "Additive({activation:?}, {:?})", w.shape())
            }
            Self::Own { parameters, .. } => write!(f, "Own({:?})", parameters.shape()),
        }
    }
}

//! How a query and a key give a score.

use super::OwnScore;
use super::own::Erased;
use regard_kernels::Activation;
use regard_tensor::Tensor;
use std::sync::Arc;

/// How a query and a key give a score. The mechanisms' modules (bilinear, cosine, …) bring theirs
/// to one of these.
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
    #[doc(hidden)]
    Own {
        /// The score.
        score: Arc<dyn Erased>,
        /// Its learned numbers, `[P]`.
        parameters: Tensor,
    },
}

impl Score {
    /// The plain dot product.
    pub fn dot() -> Self {
        Self::Dot { scale: 1.0 }
    }

    /// A score of one's own with its learned numbers `[P]` (which may be none).
    pub fn own(score: impl OwnScore, parameters: Tensor) -> Self {
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

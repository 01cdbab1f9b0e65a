//! Scores: how much a key matters to a query, before normalizing.

use super::Shape;
use crate::error::{Error, ensure};
use crate::numel::{MOST, numel};
use crate::{Activation, Real};
use std::fmt;

/// How a query and a key give a score.
///
/// Bilinear, low-rank, Gaussian and cosine scores are `Dot` on projected inputs, concat is
/// `Additive`.
#[derive(Clone, Copy)]
pub enum Score<'a, T> {
    /// q·k times `scale`.
    Dot {
        /// The factor; 1 for the plain dot product, 1/√D for the scaled one.
        scale: T,
    },
    /// Σ_d w_d · act(q_d + k_d).
    Additive {
        /// Applied to each q_d + k_d.
        activation: Activation,
        /// `[D]`, or `[Hq, D]` row after row.
        w: &'a [T],
    },
    /// The caller's own.
    Own(&'a dyn OwnScore<T>),
}

impl<T: Real> Score<'_, T> {
    /// q·k / √width.
    pub fn scaled_dot(width: usize) -> Self {
        Self::Dot { scale: T::of(1.0 / (width.max(1) as f64).sqrt()) }
    }

    pub(super) fn check(&self, s: &Shape) -> Result<(), Error> {
        let name = match self {
            Self::Dot { scale } => {
                ensure!(scale.f64().is_finite(), "scale {scale} is not a finite number");
                "dot"
            }
            Self::Additive { w, activation } => {
                ensure!(
                    w.len() == s.dk || w.len() == numel(&[s.hq, s.dk]),
                    "w has {} elements; the additive score over width {} needs [{}] or [{}, {}]",
                    w.len(),
                    s.dk,
                    s.dk,
                    s.hq,
                    s.dk
                );
                activation.check()?;
                ensure!(
                    activation.fits_additive(),
                    "the additive score has tanh, leaky-relu, relu, gelu and identity; {activation} was asked for"
                );
                "additive"
            }
            Self::Own(own) => {
                let parameters = own.parameters();
                ensure!(
                    numel(&[s.b.max(1), s.hq.max(1), parameters]) <= MOST,
                    "the own score has {parameters} parameters, which for B {} and Hq {} are more \
                     than any memory holds",
                    s.b,
                    s.hq
                );
                return own.check(s.dq, s.dk).map_err(Error::new);
            }
        };
        ensure!(
            s.dq == s.dk,
            "k has head width {}, q has {}; the {name} score needs them equal",
            s.dk,
            s.dq
        );
        Ok(())
    }
}

/// The row of `w` that belongs to a head.
pub(crate) fn w_of_head<T>(w: &[T], h: usize, d: usize) -> &[T] {
    if w.len() == d { w } else { &w[h * d..(h + 1) * d] }
}

impl<T: fmt::Debug> fmt::Debug for Score<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Dot { scale } => write!(f, "Dot({scale:?})"),
            Self::Additive { activation, w } => write!(f, "Additive({activation:?}, {})", w.len()),
            Self::Own(_) => f.write_str("Own"),
        }
    }
}

/// A score of one's own, forward and backward.
///
/// ```
/// use regard_kernels::{OwnScore, Score, Spec};
/// /// −|q − k| summed over the features, times a learned rate.
/// struct Manhattan(f32);
/// impl OwnScore<f32> for Manhattan {
///     fn score(&self, q: &[f32], k: &[f32]) -> f32 {
///         -self.0 * q.iter().zip(k).map(|(q, k)| (q - k).abs()).sum::<f32>()
///     }
///     fn backward(
///         &self, q: &[f32], k: &[f32], grad: f32, grad_q: &mut [f32], grad_k: &mut [f32],
///         grad_parameters: &mut [f32],
///     ) {
///         for d in 0..q.len() {
///             let sign = (q[d] - k[d]).signum();
///             grad_q[d] -= grad * self.0 * sign;
///             grad_k[d] += grad * self.0 * sign;
///             grad_parameters[0] -= grad * (q[d] - k[d]).abs();
///         }
///     }
///     fn parameters(&self) -> usize { 1 }
/// }
/// let spec = Spec::new(Score::Own(&Manhattan(0.5)));
/// # let _ = spec;
/// ```
pub trait OwnScore<T>: Send + Sync {
    /// The score of key `k` `[Dk]` for query `q` `[Dq]`.
    fn score(&self, q: &[T], k: &[T]) -> T;

    /// Adds `grad` times the derivative of the score to each gradient.
    fn backward(
        &self,
        q: &[T],
        k: &[T],
        grad: T,
        grad_q: &mut [T],
        grad_k: &mut [T],
        grad_parameters: &mut [T],
    );

    /// How many learned numbers the score has.
    fn parameters(&self) -> usize {
        0
    }

    /// Refuses widths it cannot score, in one sentence.
    fn check(&self, dq: usize, dk: usize) -> Result<(), String> {
        if dq == dk {
            Ok(())
        } else {
            Err(format!("k has head width {dk}, q has {dq}; this score needs them equal"))
        }
    }
}

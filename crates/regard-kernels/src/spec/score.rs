//! Scores: how much a key matters to a query, before normalizing.

use super::{Parameter, Shape, parameter};
use crate::error::{Error, ensure};
use crate::expression::{Kind, Pattern};
use crate::{Expression, Real};
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
    /// One written as text.
    Expression {
        /// What is computed.
        expression: &'a Expression,
        /// As many as the expression has, in the order of [`Expression::parameters`].
        parameters: &'a [Parameter<'a, T>],
    },
}

impl<'a, T: Real> Score<'a, T> {
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
                    w.len() == s.dk || w.len() == s.hq * s.dk,
                    "w has {} elements; the additive score over width {} needs [{}] or [{}, {}]",
                    w.len(),
                    s.dk,
                    s.dk,
                    s.hq,
                    s.dk
                );
                if let Activation::LeakyRelu { slope } = activation {
                    ensure!(slope.is_finite(), "negative slope {slope} is not a finite number");
                }
                "additive"
            }
            Self::Own(own) => return own.check(s.dq, s.dk).map_err(Error::new),
            Self::Expression { expression, parameters } => {
                parameter::check(expression, parameters, s)?;
                let kinds: Vec<Kind> = parameters.iter().map(Parameter::kind).collect();
                ensure!(
                    expression.result(&kinds) == Kind::Number,
                    "with these parameters `{expression}` is a row of the head width; \
                     a score is one number"
                );
                "expression's"
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

    /// How many learned numbers are this score's own, as [`Gradients::own`](super::Gradients) has
    /// them; none where it has no such gradient.
    pub(crate) fn own_len(&self) -> Option<usize> {
        match self {
            Self::Dot { .. } | Self::Additive { .. } => None,
            Self::Own(own) => Some(own.parameters()),
            Self::Expression { parameters, .. } => {
                Some(parameters.iter().map(|parameter| parameter.data.len()).sum())
            }
        }
    }

    /// The same score, or one that has kernels of its own and computes the same. An additive
    /// score's gradient of w is then that of all the expression's parameters.
    pub(crate) fn lowered(self, s: &Shape) -> Self {
        let Self::Expression { expression, parameters } = self else { return self };
        let kinds: Vec<Kind> = parameters.iter().map(Parameter::kind).collect();
        match Pattern::of(&expression.graph(&kinds), s.dk) {
            Some(Pattern::Dot { scale }) => Self::Dot { scale: T::of(scale) },
            Some(Pattern::Additive { activation, w }) if parameters[w].shape[1] == s.dk => {
                Self::Additive { activation, w: parameters[w].data }
            }
            _ => self,
        }
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
            Self::Expression { expression, .. } => write!(f, "Expression({expression})"),
        }
    }
}

/// What an additive score applies to q_d + k_d.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// Bahdanau's.
    Tanh,
    /// x where x > 0, slope · x elsewhere; GATv2's.
    LeakyRelu {
        /// 0.2 in the graph attention papers.
        slope: f64,
    },
    /// max(x, 0)
    Relu,
    /// x · Φ(x), with the error function, not an approximation.
    Gelu,
    /// x
    Identity,
}

impl Activation {
    /// The activation at x and its derivative there.
    pub(crate) fn value_and_slope<T: Real>(self, x: T) -> (T, T) {
        let positive = x > T::ZERO;
        match self {
            Self::Tanh => {
                let t = x.tanh();
                (t, T::ONE - t * t)
            }
            Self::LeakyRelu { slope } => {
                let slope = if positive { T::ONE } else { T::of(slope) };
                (slope * x, slope)
            }
            Self::Relu => (x.max(T::ZERO), if positive { T::ONE } else { T::ZERO }),
            Self::Gelu => {
                let half = T::of(0.5);
                let cdf = half * (T::ONE + (x * T::of(std::f64::consts::FRAC_1_SQRT_2)).erf());
                let pdf = T::of(0.3989422804014327) * (-half * x * x).exp();
                (x * cdf, cdf + x * pdf)
            }
            Self::Identity => (x, T::ONE),
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

//! Scores: how much a key matters to a query, before normalizing.

use super::{Parameter, Shape, parameter};
use crate::error::{Error, ensure};
use crate::expression::{Kind, Pattern};
use crate::numel::{MOST, numel};
use crate::{Activation, Expression, Real};
use std::fmt;

/// How a query and a key give a score.
///
/// Bilinear, low-rank, Gaussian and cosine scores are `Dot` on projected inputs, concat is
/// `Additive`.
///
/// ```
/// use regard_kernels::{Activation, Score};
/// let scaled = Score::Dot { scale: 1f32 / 8f32.sqrt() };
/// let additive = Score::Additive { activation: Activation::Tanh, w: &[0.5f32, -0.5] };
/// # let _ = (scaled, additive);
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
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
    Own {
        /// The score.
        score: &'a dyn OwnScore<T>,
        /// Its learned numbers: `[P]`, or `[Hq, P]` row after row.
        parameters: &'a [T],
    },
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
            Self::Own { score, parameters } => {
                let p = score.parameters();
                ensure!(
                    numel(&[s.b.max(1), s.hq.max(1), p]) <= MOST,
                    "the own score has {p} parameters, which for B {} and Hq {} are more than any \
                     memory holds",
                    s.b,
                    s.hq
                );
                ensure!(
                    parameters.len() == p || parameters.len() == s.hq * p,
                    "the parameters of the own score are {}; it needs [{p}] or [{}, {p}]",
                    parameters.len(),
                    s.hq
                );
                return score.check(s.dq, s.dk).map_err(Error::new);
            }
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
            Self::Own { parameters, .. } => Some(parameters.len()),
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
        let known = expression
            .cache()
            .get((kinds.clone(), s.dk), || Pattern::of(&expression.graph(&kinds), s.dk));
        match *known {
            Some(Pattern::Dot { scale }) => Self::Dot { scale: T::of(scale) },
            Some(Pattern::Additive { activation, w }) if parameters[w].shape[1] == s.dk => {
                Self::Additive { activation, w: parameters[w].data }
            }
            _ => self,
        }
    }
}

/// The row, of a score's learned numbers, that belongs to a head.
pub(crate) fn w_of_head<T>(w: &[T], h: usize, d: usize) -> &[T] {
    if w.len() == d { w } else { &w[h * d..(h + 1) * d] }
}

impl<T: fmt::Debug> fmt::Debug for Score<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Dot { scale } => write!(f, "Dot({scale:?})"),
            Self::Additive { activation, w } => write!(f, "Additive({activation:?}, {})", w.len()),
            Self::Own { parameters, .. } => write!(f, "Own({})", parameters.len()),
            Self::Expression { expression, .. } => write!(f, "Expression({expression})"),
        }
    }
}

/// A score of one's own, forward and backward; written for every `T: Real` it serves all
/// precisions.
///
/// ```
/// use regard_kernels::{OwnGrads, OwnScore, Real, Score, Spec};
/// /// −|q − k| summed over the features, times a learned rate.
/// struct Manhattan;
/// impl<T: Real> OwnScore<T> for Manhattan {
///     fn parameters(&self) -> usize { 1 }
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
/// let spec = Spec::new(Score::Own { score: &Manhattan, parameters: &[0.5f32] });
/// # let _ = spec;
/// ```
pub trait OwnScore<T>: Send + Sync {
    /// The score of key `k` `[Dk]` for query `q` `[Dq]`, with the learned numbers `[P]`.
    fn score(&self, parameters: &[T], q: &[T], k: &[T]) -> T;

    /// Adds `grad` times the derivative of the score to each gradient.
    fn backward(&self, parameters: &[T], q: &[T], k: &[T], grad: T, to: OwnGrads<T>);

    /// P: how many learned numbers the score has.
    fn parameters(&self) -> usize {
        0
    }

    /// Refuses widths it cannot score, in one sentence; equal ones are fine unless said.
    fn check(&self, dq: usize, dk: usize) -> Result<(), String> {
        if dq == dk {
            Ok(())
        } else {
            Err(format!("k has head width {dk}, q has {dq}; this score needs them equal"))
        }
    }
}

/// What the backward of an [`OwnScore`] adds to.
/// For a score s and a gradient g that arrives at it: g · ∂s/∂q, g · ∂s/∂k and g · ∂s/∂p.
#[derive(Debug)]
#[non_exhaustive]
pub struct OwnGrads<'a, T> {
    /// `[Dq]`
    pub q: &'a mut [T],
    /// `[Dk]`
    pub k: &'a mut [T],
    /// `[P]`
    pub parameters: &'a mut [T],
}

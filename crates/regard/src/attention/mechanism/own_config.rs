//! A score of your own in a configuration.

use crate::{AnyOwnScore, OwnGrads, OwnScore};
use std::fmt;
use std::sync::Arc;

/// A score of your own and the first values of its learned numbers. Two are equal where they hold
/// the same score, not one that was made alike.
///
/// ```
/// use regard::prelude::*;
/// use regard::attention::{OwnGrads, OwnScore, Real};
/// # struct Even;
/// # impl<T: Real> OwnScore<T> for Even {
/// #     fn score(&self, _: &[T], _: &[T], _: &[T]) -> T { T::ZERO }
/// #     fn backward(&self, _: &[T], _: &[T], _: &[T], _: T, _: OwnGrads<T>) {}
/// # }
/// let score = ScoreConfig::own(Even, &[]);
/// assert_eq!(score, score.clone());
/// assert_ne!(score, ScoreConfig::own(Even, &[]));
/// ```
#[derive(Clone)]
pub struct OwnConfig {
    /// The score.
    pub score: Arc<dyn AnyOwnScore>,
    /// The first values of its numbers; each head starts from these.
    pub parameters: Vec<f64>,
}

impl PartialEq for OwnConfig {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.score, &other.score) && self.parameters == other.parameters
    }
}

impl fmt::Debug for OwnConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnConfig({:?})", self.parameters)
    }
}

/// An own score times a factor.
pub(super) struct Scaled {
    pub(super) score: Arc<dyn AnyOwnScore>,
    pub(super) factor: f64,
}

macro_rules! scaled {
    ($t:ty, $of:ident) => {
        impl OwnScore<$t> for Scaled {
            fn score(&self, parameters: &[$t], q: &[$t], k: &[$t]) -> $t {
                self.factor as $t * self.score.$of().score(parameters, q, k)
            }

            fn backward(&self, p: &[$t], q: &[$t], k: &[$t], grad: $t, to: OwnGrads<$t>) {
                self.score.$of().backward(p, q, k, grad * self.factor as $t, to);
            }

            fn parameters(&self) -> usize {
                self.score.$of().parameters()
            }

            fn check(&self, dq: usize, dk: usize) -> Result<(), String> {
                self.score.$of().check(dq, dk)
            }
        }
    };
}

scaled!(f32, in_f32);
scaled!(f64, in_f64);

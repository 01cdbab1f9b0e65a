//! Dropout on the weights.

use crate::Real;
use crate::error::{Error, ensure};
use crate::random::{Draw, Stream};

/// Each weight is zeroed with probability `p`, the others divided by 1 − p.
///
/// Which ones depends on the seed and the weight's position alone, so backward draws again what
/// forward drew, and nothing is stored.
///
/// ```
/// use regard_kernels::{Dropout, Spec};
/// let spec = Spec { dropout: Some(Dropout { p: 0.1, seed: 7 }), ..Spec::<f32>::scaled_dot(8) };
/// # let _ = spec;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// 0 ≤ p < 1
    pub p: f64,
    /// The same seed drops the same weights.
    pub seed: u64,
}

impl Dropout {
    pub(super) fn check(&self) -> Result<(), Error> {
        ensure!((0.0..1.0).contains(&self.p), "dropout {} is not in 0 ≤ p < 1", self.p);
        Ok(())
    }

    /// The factors of one head's weights; `head` counts batch items times heads.
    pub(crate) fn of_head<T: Real>(&self, head: usize) -> Keep<T> {
        Keep {
            draw: Draw::new(self.seed, Stream::Dropout, head),
            below: (self.p * 4294967296.0) as u32,
            factor: T::of(1.0 / (1.0 - self.p)),
        }
    }
}

/// The dropout factors of one head.
#[derive(Clone, Copy)]
pub(crate) struct Keep<T> {
    pub(crate) draw: Draw,
    /// A word below this drops its weight.
    pub(crate) below: u32,
    /// What a kept weight is multiplied by.
    pub(crate) factor: T,
}

impl<T: Real> Keep<T> {
    /// 0 for a dropped weight, 1 / (1 − p) for a kept one.
    #[inline(always)]
    pub(crate) fn factor(&self, i: usize, j: usize) -> T {
        if self.draw.word(i, j) < self.below { T::ZERO } else { self.factor }
    }
}

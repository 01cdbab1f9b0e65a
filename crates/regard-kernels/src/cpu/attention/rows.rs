//! Where forward writes its rows, and what a row chose.

use crate::cpu::shared::Shared;
use crate::{Real, ViewMut};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Where forward writes its rows.
pub(in crate::cpu) struct Rows<'a, T: Real> {
    pub(super) out: ViewMut<'a, T>,
    pub(super) lse: Option<Shared<'a, T>>,
    pub(super) threshold: Option<Shared<'a, T>>,
    pub(super) index: Option<Shared<'a, i64>>,
    pub(super) log_prob: Option<Shared<'a, T>>,
    /// The score, noise included, by which a key was chosen.
    pub(super) best: Option<Shared<'a, T>>,
    /// The weights, where they are written on the way.
    pub(super) weights: Option<Shared<'a, T>>,
    /// The weights along the edges of a graph.
    pub(super) edge_weights: Option<Shared<'a, T>>,
    /// Set where an output may be infinite or NaN, if that matters.
    pub(super) undefined: Option<&'a AtomicBool>,
}

/// The key that hard attention chose for a row.
#[derive(Clone, Copy)]
pub(super) struct Chosen<T> {
    /// −1 where there was none to choose.
    pub(super) index: i64,
    /// Its score, noise included, by which it won.
    pub(super) best: T,
    /// Its score.
    pub(super) score: T,
}

impl<T: Real> Chosen<T> {
    pub(super) const NONE: Self = Self { index: -1, best: T::NEG_INFINITY, score: T::NEG_INFINITY };
}

impl<T: Real> Rows<'_, T> {
    /// Something may be infinite or NaN.
    pub(super) fn set_undefined(&self) {
        if let Some(undefined) = self.undefined {
            undefined.store(true, Relaxed);
        }
    }

    /// Whether anybody asks for the rows' log-sum-exps, or what follows from them.
    pub(super) fn asks_lse(&self) -> bool {
        self.lse.is_some() || self.log_prob.is_some()
    }

    /// Computes a row's log-sum-exp where it is asked for.
    ///
    /// # Safety
    /// The row is the calling task's alone.
    pub(super) unsafe fn set_lse(&self, row: usize, lse: impl FnOnce() -> T) {
        if let Some(to) = &self.lse {
            // SAFETY: the caller's.
            unsafe { to.set(row, lse()) };
        }
    }

    /// # Safety
    /// The row is the calling task's alone.
    pub(super) unsafe fn set_threshold(&self, row: usize, threshold: T) {
        if let Some(to) = &self.threshold {
            // SAFETY: the caller's.
            unsafe { to.set(row, threshold) };
        }
    }

    /// What a row chose, and its log-sum-exp.
    ///
    /// # Safety
    /// The row is the calling task's alone.
    pub(super) unsafe fn set_choice(&self, row: usize, chosen: Chosen<T>, lse: impl FnOnce() -> T) {
        let Chosen { index, best, score } = chosen;
        // SAFETY: the caller's.
        unsafe {
            if let Some(to) = &self.index {
                to.set(row, index);
            }
            if let Some(to) = &self.log_prob {
                to.set(row, if index < 0 { T::ZERO } else { score - lse() });
            }
            if let Some(to) = &self.best {
                to.set(row, best);
            }
        }
    }
}

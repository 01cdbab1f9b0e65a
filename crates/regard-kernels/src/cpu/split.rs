//! Forward cut over the keys too, where there are few queries: what each range of keys gives, and
//! how it is merged.

use super::plan::rows_at_once;
use super::problem::Problem;
use super::scratch::Large;
use super::shared::Shared;
use super::{Chosen, Rows, tasks};
use crate::Real;
use crate::spec::Normalizer;
use std::ops::Range;

/// Runs tasks over all keys, or over `splits` ranges of keys whose results are then merged.
pub(super) fn forward<T: Real>(
    p: &Problem<T>,
    rows: &Rows<T>,
    splits: usize,
    tasks: usize,
    run: impl Fn(usize, Range<usize>, &Rows<T>) + Sync,
) {
    let s = &p.s;
    if splits == 1 {
        tasks::each(tasks, &|task| run(task, 0..s.nk, rows));
        return;
    }
    let chunk = s.nk.div_ceil(splits).next_multiple_of(4);
    let mut parts = Parts::<T>::new(p, splits);
    let shared = parts.share();
    tasks::each(splits * tasks, &|at| {
        let (split, task) = (at / tasks, at % tasks);
        let from = (split * chunk).min(s.nk);
        // SAFETY: each task writes its own rows of its split's part.
        let part = unsafe { shared.rows(p, split) };
        run(task, from..(from + chunk).min(s.nk), &part);
    });
    tasks::runs(s.rows(), rows_at_once(s.dv), &|row| {
        // SAFETY: each row is one task's alone.
        unsafe { parts.merge(p, row, rows) };
    });
}

/// What each range of keys gives: rows, one range after the other.
struct Parts<T> {
    splits: usize,
    rows: usize,
    out: Large<T>,
    lse: Large<T>,
    best: Large<T>,
    log_prob: Large<T>,
    index: Vec<i64>,
}

/// [`Parts`], shared by tasks.
struct SharedParts<'a, T> {
    rows: usize,
    out: Shared<'a, T>,
    lse: Shared<'a, T>,
    best: Shared<'a, T>,
    log_prob: Shared<'a, T>,
    index: Shared<'a, i64>,
}

impl<T: Real> SharedParts<'_, T> {
    /// Where one range of keys writes.
    ///
    /// # Safety
    /// Tasks write to distinct rows of it.
    unsafe fn rows(&self, p: &Problem<T>, split: usize) -> Rows<'_, T> {
        let (n, dv) = (self.rows, p.s.dv);
        // SAFETY: the caller's.
        let out = unsafe { self.out.narrow(split * n * dv, n * dv).view(p.s.out()) };
        Rows {
            out,
            lse: Some(self.lse.narrow(split * n, n)),
            threshold: None,
            index: Some(self.index.narrow(split * n, n)),
            log_prob: Some(self.log_prob.narrow(split * n, n)),
            best: Some(self.best.narrow(split * n, n)),
            weights: None,
            edge_weights: None,
        }
    }
}

impl<T: Real> Parts<T> {
    fn new(p: &Problem<T>, splits: usize) -> Self {
        let rows = p.s.rows();
        Self {
            splits,
            rows,
            out: Large::new(splits * rows * p.s.dv),
            lse: Large::new(splits * rows),
            best: Large::new(splits * rows),
            log_prob: Large::new(splits * rows),
            index: vec![-1; splits * rows],
        }
    }

    fn share(&mut self) -> SharedParts<'_, T> {
        SharedParts {
            rows: self.rows,
            out: Shared::new(&mut self.out),
            lse: Shared::new(&mut self.lse),
            best: Shared::new(&mut self.best),
            log_prob: Shared::new(&mut self.log_prob),
            index: Shared::new(&mut self.index),
        }
    }

    /// Where a row's number lies, range after range.
    fn places(&self, row: usize) -> impl Iterator<Item = usize> + Clone {
        (row..).step_by(self.rows).take(self.splits)
    }

    /// Merges what the ranges gave of one row.
    ///
    /// # Safety
    /// The row is the calling task's alone.
    unsafe fn merge(&self, p: &Problem<T>, row: usize, rows: &Rows<T>) {
        let (dv, places) = (p.s.dv, self.places(row));
        let largest = places.clone().map(|at| self.lse[at]).fold(T::NEG_INFINITY, T::max);
        let base = if largest == T::NEG_INFINITY { T::ZERO } else { largest };
        let total: T = places.clone().map(|at| (self.lse[at] - base).exp()).sum();
        let lse = if total == T::ZERO { T::NEG_INFINITY } else { base + total.ln() };
        let (b, h, i) = p.s.place(row);
        // SAFETY: the caller's.
        let to = unsafe {
            rows.set_lse(row, lse);
            std::slice::from_raw_parts_mut(rows.out.row(b, h, i), dv)
        };
        if p.spec.normalizer.is_hard() {
            // The first of the best.
            let mut at = row;
            for place in places {
                if self.best[place] > self.best[at] {
                    at = place;
                }
            }
            to.copy_from_slice(&self.out[at * dv..][..dv]);
            let score = self.log_prob[at] + self.lse[at];
            let chosen = Chosen { index: self.index[at], best: self.best[at], score };
            // SAFETY: the caller's.
            unsafe { rows.set_choice(row, chosen, lse) };
            return;
        }
        to.fill(T::ZERO);
        for at in places {
            let factor = match p.spec.normalizer {
                Normalizer::Softmax if total == T::ZERO => T::ZERO,
                Normalizer::Softmax => (self.lse[at] - base).exp() / total,
                _ => T::ONE,
            };
            for (to, &x) in to.iter_mut().zip(&self.out[at * dv..]) {
                *to += factor * x;
            }
        }
    }
}

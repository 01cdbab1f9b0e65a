//! Forward cut over the keys too, where there are few queries: what each range of keys gives, and
//! how it is merged.

use super::plan::rows_at_once;
use super::problem::Problem;
use super::scratch::Large;
use super::shared::Shared;
use super::{Chosen, Rows, tasks};
use crate::Real;
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
    let mut parts = Parts::new(p, splits, rows);
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

/// What each range of keys gives: rows, one range after the other. What neither the merging nor the
/// caller needs is not asked for.
struct Parts<T> {
    splits: usize,
    rows: usize,
    out: Large<T>,
    lse: Option<Large<T>>,
    /// Of hard attention.
    best: Option<Large<T>>,
    log_prob: Option<Large<T>>,
    index: Option<Vec<i64>>,
}

/// [`Parts`], shared by tasks.
struct SharedParts<'a, T> {
    rows: usize,
    out: Shared<'a, T>,
    lse: Option<Shared<'a, T>>,
    best: Option<Shared<'a, T>>,
    log_prob: Option<Shared<'a, T>>,
    index: Option<Shared<'a, i64>>,
}

impl<T: Real> SharedParts<'_, T> {
    /// Where one range of keys writes.
    ///
    /// # Safety
    /// Tasks write to distinct rows of it.
    unsafe fn rows(&self, p: &Problem<T>, split: usize) -> Rows<'_, T> {
        fn part<'a, T: Copy>(
            x: &'a Option<Shared<T>>,
            at: usize,
            n: usize,
        ) -> Option<Shared<'a, T>> {
            x.as_ref().map(|x| x.narrow(at * n, n))
        }
        let (n, dv) = (self.rows, p.s.dv);
        // SAFETY: the caller's.
        let out = unsafe { self.out.narrow(split * n * dv, n * dv).view(p.s.out()) };
        Rows {
            out,
            lse: part(&self.lse, split, n),
            threshold: None,
            index: part(&self.index, split, n),
            log_prob: part(&self.log_prob, split, n),
            best: part(&self.best, split, n),
            weights: None,
            edge_weights: None,
        }
    }
}

impl<T: Real> Parts<T> {
    fn new(p: &Problem<T>, splits: usize, to: &Rows<T>) -> Self {
        let rows = p.s.rows();
        let n = splits * rows;
        let numbers = |wanted: bool| wanted.then(|| Large::new(n));
        let hard = p.spec.normalizer.is_hard();
        // Softmax is merged by it, and a log-probability follows from it.
        let lse = p.spec.normalizer.needs_lse() || to.lse.is_some() || to.log_prob.is_some();
        Self {
            splits,
            rows,
            out: Large::new(n * p.s.dv),
            lse: numbers(lse),
            best: numbers(hard),
            log_prob: numbers(to.log_prob.is_some()),
            // A row that chose nothing has no log-probability.
            index: (to.index.is_some() || to.log_prob.is_some()).then(|| vec![-1; n]),
        }
    }

    fn share(&mut self) -> SharedParts<'_, T> {
        fn share<T: Real>(x: &mut Option<Large<T>>) -> Option<Shared<'_, T>> {
            x.as_mut().map(|x| Shared::new(x))
        }
        SharedParts {
            rows: self.rows,
            out: Shared::new(&mut self.out),
            lse: share(&mut self.lse),
            best: share(&mut self.best),
            log_prob: share(&mut self.log_prob),
            index: self.index.as_mut().map(|x| Shared::new(x)),
        }
    }

    /// Where a row's number lies, range after range.
    fn places(&self, row: usize) -> impl Iterator<Item = usize> + Clone + use<T> {
        (row..).step_by(self.rows).take(self.splits)
    }

    /// Merges what the ranges gave of one row.
    ///
    /// # Safety
    /// The row is the calling task's alone.
    unsafe fn merge(&self, p: &Problem<T>, row: usize, rows: &Rows<T>) {
        let (b, h, i) = p.s.place(row);
        let lse = self.lse.as_ref().map(|lse| Shares::of(lse, self.places(row)));
        let all = lse.as_ref().map_or(T::NEG_INFINITY, Shares::lse);
        // SAFETY: the caller's.
        let to = unsafe {
            rows.set_lse(row, || all);
            std::slice::from_raw_parts_mut(rows.out.row(b, h, i), p.s.dv)
        };
        if let Some(best) = &self.best {
            let at = self.best_place(best, row);
            to.copy_from_slice(&self.out[at * to.len()..][..to.len()]);
            let number = |x: &Option<Large<T>>| x.as_ref().map_or(T::ZERO, |x| x[at]);
            let chosen = Chosen {
                index: self.index.as_ref().map_or(0, |index| index[at]),
                best: best[at],
                score: number(&self.log_prob) + number(&self.lse),
            };
            // SAFETY: the caller's.
            unsafe { rows.set_choice(row, chosen, || all) };
            return;
        }
        // What is no share of a whole is simply added up.
        let shares = lse.filter(|_| p.spec.normalizer.needs_lse());
        to.fill(T::ZERO);
        for at in self.places(row) {
            let part = &self.out[at * to.len()..][..to.len()];
            match &shares {
                Some(shares) => {
                    let share = shares.share(at);
                    to.iter_mut().zip(part).for_each(|(to, &x)| *to += share * x);
                }
                None => to.iter_mut().zip(part).for_each(|(to, &x)| *to += x),
            }
        }
    }

    /// Where the best of a row's choices lies; the first of equals.
    fn best_place(&self, best: &[T], row: usize) -> usize {
        let better = |at: usize, other: usize| if best[other] > best[at] { other } else { at };
        self.places(row).fold(row, better)
    }
}

/// The log-sum-exps of one row's ranges, and their sum.
struct Shares<'a, T> {
    lse: &'a [T],
    base: T,
    total: T,
}

impl<'a, T: Real> Shares<'a, T> {
    fn of(lse: &'a [T], places: impl Iterator<Item = usize> + Clone) -> Self {
        let largest = places.clone().map(|at| lse[at]).fold(T::NEG_INFINITY, T::max);
        let base = if largest == T::NEG_INFINITY { T::ZERO } else { largest };
        Self { lse, base, total: places.map(|at| (lse[at] - base).exp()).sum() }
    }

    /// The log-sum-exp of the whole row.
    fn lse(&self) -> T {
        if self.total == T::ZERO { T::NEG_INFINITY } else { self.base + self.total.ln() }
    }

    /// A range's share of the row.
    fn share(&self, at: usize) -> T {
        let empty = self.total == T::ZERO;
        if empty { T::ZERO } else { (self.lse[at] - self.base).exp() / self.total }
    }
}

//! Forward cut over the keys too, where there are few queries: what each range of keys gives, and
//! how it is merged.

use super::plan::rows_at_once;
use super::problem::Problem;
use super::rows::{Chosen, Rows};
use crate::Real;
use crate::cpu::scratch::Large;
use crate::cpu::shared::Shared;
use crate::cpu::tasks;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// A range of keys, and where what it gives is written.
pub(super) struct Portion<'a, T: Real> {
    pub(super) keys: Range<usize>,
    pub(super) rows: &'a Rows<'a, T>,
}

/// The tasks of a pass over the queries.
pub(super) struct Tasks<'a> {
    pub(super) count: usize,
    /// The rows of a task, which follow each other.
    pub(super) rows: &'a (dyn Fn(usize) -> Range<usize> + Sync),
}

/// Runs tasks over all keys, or over `splits` ranges of keys whose results are then merged. Where
/// there are tasks enough for all threads, one has all ranges of its rows, and merges them while
/// they are near.
pub(super) fn forward<T: Real>(
    p: &Problem<T>,
    rows: &Rows<T>,
    splits: usize,
    tasks: Tasks,
    run: impl Fn(usize, &[Portion<T>]) + Sync,
) {
    let s = &p.s;
    if splits == 1 {
        tasks::each(tasks.count, &|task| run(task, &[Portion { keys: 0..s.nk, rows }]));
        return;
    }
    let chunk = s.nk.div_ceil(splits).next_multiple_of(4);
    let mut parts = Parts::new(p, splits, rows);
    let shared = parts.share();
    // SAFETY: each task writes its own rows of every part.
    let of_splits: Vec<Rows<T>> =
        (0..splits).map(|split| unsafe { shared.rows(p, split, rows.undefined) }).collect();
    let portion = |split: usize| {
        let from = (split * chunk).min(s.nk);
        Portion { keys: from..(from + chunk).min(s.nk), rows: &of_splits[split] }
    };
    if tasks.count >= 8 * crate::cpu::tasks::threads() {
        let portions: Vec<Portion<T>> = (0..splits).map(portion).collect();
        tasks::each(tasks.count, &|task| {
            run(task, &portions);
            for row in (tasks.rows)(task) {
                // SAFETY: each row is one task's alone, which has written all its parts.
                unsafe { shared.merge(p, row, rows) };
            }
        });
        return;
    }
    // Neighbors read on where the other ended.
    tasks::each(tasks.count * splits, &|at| run(at / splits, &[portion(at % splits)]));
    tasks::runs(s.rows(), rows_at_once(s.dv), &|row| {
        // SAFETY: each row is one task's alone, and all parts are written.
        unsafe { shared.merge(p, row, rows) };
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
    splits: usize,
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
    unsafe fn rows<'b>(
        &'b self,
        p: &Problem<T>,
        split: usize,
        undefined: Option<&'b AtomicBool>,
    ) -> Rows<'b, T> {
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
            undefined,
        }
    }

    /// Where a row's number lies, range after range.
    fn places(&self, row: usize) -> impl Iterator<Item = usize> + Clone + use<T> {
        (row..).step_by(self.rows).take(self.splits)
    }

    /// Merges what the ranges gave of one row.
    ///
    /// # Safety
    /// The row is the calling task's alone, and no task writes its parts any more.
    unsafe fn merge(&self, p: &Problem<T>, row: usize, rows: &Rows<T>) {
        let (b, h, i) = p.s.place(row);
        // SAFETY: the caller's.
        let number = |x: &Shared<T>, at: usize| unsafe { x.part(at, 1)[0] };
        let shares =
            self.lse.as_ref().map(|lse| Shares::of(|at| number(lse, at), self.places(row)));
        let all = shares.as_ref().map_or(T::NEG_INFINITY, Shares::lse);
        let dv = p.s.dv;
        // SAFETY: the caller's row.
        let to = unsafe {
            rows.set_lse(row, || all);
            rows.out.row(b, h, i)
        };
        if let Some(best) = &self.best {
            let better =
                |at, other| if number(best, other) > number(best, at) { other } else { at };
            let at = self.places(row).fold(row, better);
            let optional = |x: &Option<Shared<T>>| x.as_ref().map_or(T::ZERO, |x| number(x, at));
            // SAFETY: the caller's row and its parts.
            unsafe {
                to.copy_from_nonoverlapping(self.out.part(at * dv, dv).as_ptr(), dv);
                let chosen = Chosen {
                    index: self.index.as_ref().map_or(0, |index| index.part(at, 1)[0]),
                    best: number(best, at),
                    score: optional(&self.log_prob) + optional(&self.lse),
                };
                rows.set_choice(row, chosen, || all);
            }
            return;
        }
        // What is no share of a whole is simply added up.
        let shares = shares.filter(|_| p.spec.normalizer.needs_lse());
        for (split, at) in self.places(row).enumerate() {
            let share = shares.as_ref().map_or(T::ONE, |shares| shares.share(split));
            // SAFETY: the caller's row and its parts, of dv numbers each.
            unsafe {
                let part = self.out.part(at * dv, dv).as_ptr();
                (p.kernels.add_scaled)(dv, share, split > 0, part, to);
            }
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
            splits: self.splits,
            rows: self.rows,
            out: Shared::new(&mut self.out),
            lse: share(&mut self.lse),
            best: share(&mut self.best),
            log_prob: share(&mut self.log_prob),
            index: self.index.as_mut().map(|x| Shared::new(x)),
        }
    }
}

/// The log-sum-exps of one row's ranges, and their sum.
struct Shares<T> {
    /// The exponentials of the log-sum-exps relative to the base.
    shares: Vec<T>,
    base: T,
    total: T,
}

impl<T: Real> Shares<T> {
    fn of(lse: impl Fn(usize) -> T, places: impl Iterator<Item = usize> + Clone) -> Self {
        let largest = places.clone().map(&lse).fold(T::NEG_INFINITY, T::max);
        let base = if largest == T::NEG_INFINITY { T::ZERO } else { largest };
        let shares: Vec<T> = places.map(|at| (lse(at) - base).exp()).collect();
        let total = shares.iter().copied().sum();
        Self { shares, base, total }
    }

    /// The log-sum-exp of the whole row.
    fn lse(&self) -> T {
        if self.total == T::ZERO { T::NEG_INFINITY } else { self.base + self.total.ln() }
    }

    /// A range's share of the row.
    fn share(&self, split: usize) -> T {
        if self.total == T::ZERO { T::ZERO } else { self.shares[split] / self.total }
    }
}

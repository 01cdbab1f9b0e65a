//! How rows are shared out: parts that depend on the shape alone, so that sums over parts have the
//! same bits on any number of threads.

use crate::Real;
use crate::cpu::denormal::Flushed;
use crate::cpu::scratch::Large;
use crate::cpu::shared::Shared;
use crate::cpu::tasks;
use std::ops::Range;

/// Numbers worth a task of their own.
const LEAST: usize = 1 << 14;
/// Parts, where there are so many of this size: what many cores need, and what sums over parts must
/// be kept for. At most about twice as many.
const PARTS: usize = 64;

/// Columns of the parts' sums that one task adds up.
const COLUMNS: usize = 128;

#[derive(Clone, Copy)]
pub(super) struct Parts {
    rows: usize,
    size: usize,
    pub(super) count: usize,
}

impl Parts {
    /// Parts of `rows` rows of `width` numbers each.
    pub(super) fn of(rows: usize, width: usize) -> Self {
        let size = (LEAST / width.max(1)).max(rows / PARTS).max(1);
        Self { rows, size, count: rows.div_ceil(size) }
    }

    /// As [`Self::of`], in whole blocks of rows.
    pub(super) fn of_blocks(rows: usize, width: usize, block: usize) -> Self {
        let size = Self::of(rows, width).size.next_multiple_of(block);
        Self { rows, size, count: rows.div_ceil(size) }
    }

    /// Gives every part's number and rows to a task.
    pub(super) fn run(self, task: impl Fn(usize, Range<usize>) + Sync) {
        each(self.count, |part| {
            let from = part * self.size;
            task(part, from..(from + self.size).min(self.rows));
        });
    }

    /// As [`Self::run`], with `width` zeros for each part to add to.
    pub(super) fn sums<T: Real>(
        self,
        width: usize,
        task: impl Fn(Range<usize>, &mut [T]) + Sync,
    ) -> Sums<T> {
        let mut sums = Large::<T>::new(self.count * width);
        let shared = Shared::new(&mut sums);
        self.run(|part, rows| {
            // SAFETY: each part has its own.
            let sums = unsafe { shared.part(part * width, width) };
            sums.fill(T::ZERO);
            task(rows, sums);
        });
        Sums { sums, width, count: self.count }
    }
}

/// What each part added up.
pub(super) struct Sums<T> {
    sums: Large<T>,
    width: usize,
    count: usize,
}

impl<T: Real> Sums<T> {
    /// The sum over the parts, in order, of the numbers from `from` on.
    pub(super) fn add_up(&self, from: usize, to: &mut [T]) {
        let n = to.len();
        let to = Shared::new(to);
        each(n.div_ceil(COLUMNS), |task| {
            let start = task * COLUMNS;
            // SAFETY: each task has numbers of its own.
            let to = unsafe { to.part(start, COLUMNS.min(n - start)) };
            to.fill(T::ZERO);
            for part in 0..self.count {
                let sums = &self.sums[part * self.width + from + start..];
                to.iter_mut().zip(sums).for_each(|(to, &x)| *to += x);
            }
        });
    }
}

/// Runs tasks 0..count, one by one where there is only one, denormals flushed.
pub(super) fn each(count: usize, task: impl Fn(usize) + Sync) {
    let run = |at| {
        let _flushed = Flushed::new();
        task(at);
    };
    if count == 1 {
        run(0);
    } else {
        tasks::each(count, &run);
    }
}

/// `whole / width`, and 0 for width 0.
pub(super) fn rows_of(whole: usize, width: usize) -> usize {
    whole.checked_div(width).unwrap_or(0)
}

//! Tasks on rayon's threads.
//!
//! A task is called by reference, so that rayon's machinery is compiled once and not for each.

use rayon::prelude::*;

/// Runs tasks 0..count, each free to be taken by the thread that has nothing to do.
pub(crate) fn each(count: usize, task: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().with_max_len(1).for_each(task);
}

/// Runs small tasks 0..count, at least `least` of them in a row and at most twice as many.
pub(crate) fn runs(count: usize, least: usize, task: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().with_min_len(least).with_max_len(2 * least).for_each(task);
}

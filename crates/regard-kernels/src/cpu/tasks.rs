//! Tasks on rayon's threads, or all of them on the calling one.
//!
//! A task is called by reference, so that rayon's machinery is compiled once and not for each.

use rayon::prelude::*;
use std::cell::Cell;

thread_local! {
    static SEQUENTIAL: Cell<bool> = const { Cell::new(false) };
}

/// Computes what `f` calls for on the calling thread alone: for problems so small that waking
/// another thread costs more than the work. The results are the same, bit for bit.
///
/// ```
/// use regard_kernels::{Cpu, Forward, Spec, View, ViewMut, sequential};
/// let x = [1f32, 0.0, 0.0, 1.0];
/// let mut out = [0f32; 4];
/// sequential(|| {
///     let x = View::new(&x, [1, 1, 2, 2])?;
///     let pass = Forward::new(ViewMut::new(&mut out, [1, 1, 2, 2])?);
///     Cpu::best().forward(&Spec::scaled_dot(2), x, x, x, pass)
/// })?;
/// assert!((out[0] + out[1] - 1.0).abs() < 1e-6);
/// # Ok::<(), regard_kernels::Error>(())
/// ```
pub fn sequential<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            SEQUENTIAL.set(self.0);
        }
    }
    let _restore = Restore(SEQUENTIAL.replace(true));
    f()
}

/// How many threads tasks may be taken by.
pub(crate) fn threads() -> usize {
    if SEQUENTIAL.get() { 1 } else { rayon::current_num_threads() }
}

/// Runs tasks 0..count, each free to be taken by the thread that has nothing to do.
pub(crate) fn each(count: usize, task: &(dyn Fn(usize) + Sync)) {
    if SEQUENTIAL.get() {
        return (0..count).for_each(task);
    }
    (0..count).into_par_iter().with_max_len(1).for_each(task);
}

/// Runs small tasks 0..count, at least `least` of them in a row and at most twice as many.
pub(crate) fn runs(count: usize, least: usize, task: &(dyn Fn(usize) + Sync)) {
    if SEQUENTIAL.get() {
        return (0..count).for_each(task);
    }
    (0..count).into_par_iter().with_min_len(least).with_max_len(2 * least).for_each(task);
}

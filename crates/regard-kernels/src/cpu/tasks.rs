//! Tasks on rayon's threads, on a team that somebody else keeps, or all of them on the calling one: the
//! last is what happens by itself without the feature `parallel`.
//!
//! A task is called by reference, so that rayon's machinery is compiled once and not for each.

#[cfg(feature = "parallel")]
use rayon::prelude::*;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Threads that somebody else keeps, as OpenMP's in a process where PyTorch computes: a second pool
/// beside them would find the cores taken, since such threads go on spinning after their work.
///
/// ```
/// use regard_kernels::Team;
/// /// The calling thread and no other.
/// struct Alone;
/// impl Team for Alone {
///     fn threads(&self) -> usize {
///         1
///     }
///     fn run(&self, work: &(dyn Fn() + Sync)) {
///         work();
///     }
/// }
/// assert_eq!(regard_kernels::on_team(&Alone, || 2 + 2), 4);
/// ```
pub trait Team: Sync {
    /// How many threads there are.
    fn threads(&self) -> usize;

    /// Calls `work`, which does not panic, on each of these threads (or some of them), the calling one
    /// among them, and returns when all calls have.
    fn run(&self, work: &(dyn Fn() + Sync));
}

/// Who takes the tasks of a thread's calls.
#[derive(Clone, Copy)]
enum By {
    #[cfg(feature = "parallel")]
    Rayon,
    Caller,
    /// Valid while [`on_team`], which set it, has not returned.
    Team(NonNull<dyn Team>),
}

#[cfg(feature = "parallel")]
const FIRST: By = By::Rayon;
#[cfg(not(feature = "parallel"))]
const FIRST: By = By::Caller;

thread_local! {
    static BY: Cell<By> = const { Cell::new(FIRST) };
}

fn by<R>(by: By, f: impl FnOnce() -> R) -> R {
    struct Restore(By);
    impl Drop for Restore {
        fn drop(&mut self) {
            BY.set(self.0);
        }
    }
    let _restore = Restore(BY.replace(by));
    f()
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
    by(By::Caller, f)
}

/// Computes what `f` calls for on the threads of a team. The results are the same, bit for bit.
///
/// ```
/// use regard_kernels::{Cpu, Forward, Spec, Team, View, ViewMut, on_team};
/// struct Two;
/// impl Team for Two {
///     fn threads(&self) -> usize {
///         2
///     }
///     fn run(&self, work: &(dyn Fn() + Sync)) {
///         std::thread::scope(|scope| {
///             scope.spawn(work);
///             work();
///         });
///     }
/// }
/// let x = [1f32, 0.0, 0.0, 1.0];
/// let mut out = [0f32; 4];
/// on_team(&Two, || {
///     let x = View::new(&x, [1, 1, 2, 2])?;
///     let pass = Forward::new(ViewMut::new(&mut out, [1, 1, 2, 2])?);
///     Cpu::best().forward(&Spec::scaled_dot(2), x, x, x, pass)
/// })?;
/// assert!((out[0] + out[1] - 1.0).abs() < 1e-6);
/// # Ok::<(), regard_kernels::Error>(())
/// ```
pub fn on_team<R>(team: &dyn Team, f: impl FnOnce() -> R) -> R {
    let team: NonNull<dyn Team + '_> = NonNull::from(team);
    // SAFETY: the pointer forgets how long the team lives, and is only there until this returns.
    let team = unsafe { std::mem::transmute::<NonNull<dyn Team + '_>, NonNull<dyn Team>>(team) };
    by(By::Team(team), f)
}

/// How many threads tasks may be taken by.
pub(crate) fn threads() -> usize {
    match BY.get() {
        #[cfg(feature = "parallel")]
        By::Rayon => rayon::current_num_threads(),
        By::Caller => 1,
        // SAFETY: the team is there as long as it is set.
        By::Team(team) => unsafe { team.as_ref() }.threads(),
    }
}

/// Whether rayon's threads take the calling thread's tasks: what hands work to rayon by itself asks first.
#[cfg(all(feature = "gemm", feature = "parallel"))]
pub(crate) fn by_rayon() -> bool {
    matches!(BY.get(), By::Rayon)
}

/// Runs tasks 0..count, each free to be taken by the thread that has nothing to do.
pub(crate) fn each(count: usize, task: &(dyn Fn(usize) + Sync)) {
    match BY.get() {
        #[cfg(feature = "parallel")]
        By::Rayon => (0..count).into_par_iter().with_max_len(1).for_each(task),
        By::Caller => (0..count).for_each(task),
        // SAFETY: as above.
        By::Team(team) => shared_out(unsafe { team.as_ref() }, count, 1, task),
    }
}

/// Runs small tasks 0..count, at least `least` of them in a row and at most twice as many.
pub(crate) fn runs(count: usize, least: usize, task: &(dyn Fn(usize) + Sync)) {
    match BY.get() {
        #[cfg(feature = "parallel")]
        By::Rayon => {
            (0..count).into_par_iter().with_min_len(least).with_max_len(2 * least).for_each(task)
        }
        By::Caller => (0..count).for_each(task),
        // SAFETY: as above.
        By::Team(team) => shared_out(unsafe { team.as_ref() }, count, least.max(1), task),
    }
}

/// Calls `work` on every thread that tasks may be taken by.
pub(crate) fn on_every_thread(work: &(dyn Fn() + Sync)) {
    match BY.get() {
        #[cfg(feature = "parallel")]
        By::Rayon => drop(rayon::broadcast(|_| work())),
        By::Caller => work(),
        // SAFETY: as above.
        By::Team(team) => unsafe { team.as_ref() }.run(work),
    }
}

/// Tasks taken by a team, so many in a row by a thread: each begins at the front of a range of its own,
/// since neighbors read the same rows, and then helps the others from the back of theirs. A task that
/// panics ends the others and goes on panicking in the calling thread.
fn shared_out(team: &dyn Team, count: usize, together: usize, task: &(dyn Fn(usize) + Sync)) {
    let rows = count.div_ceil(together);
    let threads = team.threads().min(rows);
    if threads <= 1 || u32::try_from(rows).is_err() {
        return sequential(|| (0..count).for_each(task));
    }
    let ranges: Vec<TaskRange> = (0..threads)
        .map(|n| TaskRange::new(rows * n / threads, rows * (n + 1) / threads))
        .collect();
    let (arrived, failure) = (AtomicUsize::new(0), Mutex::new(None));
    let take = || {
        let own = arrived.fetch_add(1, Relaxed) % threads;
        for other in 0..threads {
            let range = &ranges[(own + other) % threads];
            while let Some(row) = range.take(other == 0) {
                (row * together..count.min((row + 1) * together)).for_each(task);
            }
        }
    };
    team.run(&|| {
        // What a task itself cuts up is its own.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| sequential(take))) {
            ranges.iter().for_each(TaskRange::clear);
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
        }
    });
    if let Some(panic) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        resume_unwind(panic);
    }
    // A team that called nobody has left everything.
    sequential(take);
}

/// What is left of a range of tasks, its end above and its start below.
struct TaskRange(AtomicU64);

impl TaskRange {
    const HALF: u32 = u64::BITS / 2;

    fn new(start: usize, end: usize) -> Self {
        Self(AtomicU64::new((end as u64) << Self::HALF | start as u64))
    }

    /// The first that is left, or the last.
    fn take(&self, front: bool) -> Option<usize> {
        let split = |range: u64| (range & (u64::MAX >> Self::HALF), range >> Self::HALF);
        let rest = |range: u64| {
            let (start, end) = split(range);
            (start < end).then(|| if front { range + 1 } else { range - (1 << Self::HALF) })
        };
        let taken = self.0.fetch_update(Relaxed, Relaxed, rest).ok()?;
        let (start, end) = split(taken);
        Some(if front { start } else { end - 1 } as usize)
    }

    fn clear(&self) {
        self.0.store(0, Relaxed);
    }
}

//! The threads that calls compute on: OpenMP's where PyTorch computes on those, else a pool of our own.

use rayon::{ThreadPool, ThreadPoolBuilder};
use regard_kernels::Team;
use std::ffi::{c_int, c_uint, c_void};
use std::process;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The pool of one process. A forked child has none of its parent's threads, and its copy of the
/// parent's lock may be held by one of them for ever: so it gets a state of its own.
struct State {
    process: u32,
    pool: Mutex<Option<(usize, Arc<ThreadPool>)>>,
}

static STATE: AtomicPtr<State> = AtomicPtr::new(std::ptr::null_mut());

/// `GOMP_parallel`: calls a function with its argument on each thread of a team.
type Parallel =
    unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void), *mut c_void, c_uint, c_uint);

/// `omp_get_max_threads`: how many threads a team of the calling thread has.
type MaxThreads = unsafe extern "C" fn() -> c_int;

/// The addresses of PyTorch's [`Parallel`] and [`MaxThreads`], 0 where there are none, and the process
/// that told them: the threads of a forked child's OpenMP are its parent's, and waiting for them would
/// never end.
static PARALLEL: AtomicUsize = AtomicUsize::new(0);
static MAX_THREADS: AtomicUsize = AtomicUsize::new(0);
static TOLD_BY: AtomicU32 = AtomicU32::new(0);

/// Computes on OpenMP's threads from now on.
///
/// # Safety
/// The addresses are those of `GOMP_parallel` and `omp_get_max_threads` in a library that stays
/// loaded; or both are 0, for a pool of our own.
pub(crate) unsafe fn set_openmp([parallel, max_threads]: [usize; 2]) {
    TOLD_BY.store(process::id(), Ordering::Relaxed);
    MAX_THREADS.store(max_threads, Ordering::Relaxed);
    PARALLEL.store(parallel, Ordering::Release);
}

/// The team of an OpenMP library.
struct OpenMp {
    parallel: Parallel,
    threads: usize,
}

impl OpenMp {
    /// The team, where it has so many threads: one of another size would be made at every change, and
    /// where the system gives no more threads the library ends the process.
    fn of(threads: usize) -> Option<Self> {
        let parallel = PARALLEL.load(Ordering::Acquire);
        if parallel == 0 || TOLD_BY.load(Ordering::Relaxed) != process::id() {
            return None;
        }
        // SAFETY: whoever set the addresses said that they are such functions.
        let (parallel, most) = unsafe {
            let max_threads = MAX_THREADS.load(Ordering::Relaxed);
            let max_threads = std::mem::transmute::<usize, MaxThreads>(max_threads);
            (std::mem::transmute::<usize, Parallel>(parallel), max_threads())
        };
        (usize::try_from(most) == Ok(threads)).then_some(Self { parallel, threads })
    }
}

impl Team for OpenMp {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, mut work: &(dyn Fn() + Sync)) {
        unsafe extern "C" fn enter(work: *mut c_void) {
            // SAFETY: it is the reference below, which is there until all threads are done.
            unsafe { (*work.cast::<&(dyn Fn() + Sync)>())() }
        }
        let threads = c_uint::try_from(self.threads).unwrap_or(1);
        // SAFETY: by what `set_openmp` was promised; the threads only read the reference.
        unsafe { (self.parallel)(enter, (&raw mut work).cast(), threads, 0) }
    }
}

/// Computes on so many threads; on the calling one alone where that is enough.
pub(crate) fn run<R: Send>(threads: usize, is_large: bool, f: impl FnOnce() -> R + Send) -> R {
    if threads <= 1 || !is_large {
        return regard_kernels::sequential(f);
    }
    if let Some(team) = OpenMp::of(threads) {
        return regard_kernels::on_team(&team, f);
    }
    match pool(threads) {
        Some(pool) => pool.install(f),
        // A system that gives no threads computes all the same.
        None => regard_kernels::sequential(f),
    }
}

fn pool(threads: usize) -> Option<Arc<ThreadPool>> {
    let mut kept = state().pool.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((count, pool)) = &*kept
        && *count == threads
    {
        return Some(pool.clone());
    }
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    let pool = Arc::new(builder.thread_name(|n| format!("regard-{n}")).build().ok()?);
    *kept = Some((threads, pool.clone()));
    Some(pool)
}

fn state() -> &'static State {
    let process = process::id();
    let current = STATE.load(Ordering::Acquire);
    // SAFETY: what the pointer was set to is never freed.
    if let Some(state) = unsafe { current.as_ref() }
        && state.process == process
    {
        return state;
    }
    let fresh = Box::into_raw(Box::new(State { process, pool: Mutex::new(None) }));
    match STATE.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: as above; a parent's state stays where it is, its threads cannot be joined here.
        Ok(_) => unsafe { &*fresh },
        Err(other) => {
            // SAFETY: nobody else has seen `fresh`; `other` was set by a thread of this process.
            unsafe {
                drop(Box::from_raw(fresh));
                &*other
            }
        }
    }
}

/// As [`run`], for work that reaches for threads in its own ways: what it finds is a pool, also
/// where it is one thread.
pub(crate) fn within<R: Send>(threads: usize, f: impl FnOnce() -> R + Send) -> R {
    match pool(threads.max(1)) {
        Some(pool) => pool.install(f),
        None => regard_kernels::sequential(f),
    }
}

/// Gives back what calls keep for the next, on every thread that computes.
pub(crate) fn release_memory(threads: usize) {
    let kept = state().pool.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some((_, pool)) = kept {
        pool.install(regard_kernels::release_memory);
    }
    match OpenMp::of(threads) {
        Some(team) => regard_kernels::on_team(&team, regard_kernels::release_memory),
        None => regard_kernels::sequential(regard_kernels::release_memory),
    }
}

/// As [`within`], on threads that nothing else computes on.
pub(crate) fn apart<R: Send>(threads: usize, f: impl FnOnce() -> R + Send) -> R {
    let builder = ThreadPoolBuilder::new().num_threads(threads.max(1));
    match builder.thread_name(|n| format!("regard-apart-{n}")).build() {
        Ok(pool) => pool.install(f),
        Err(_) => regard_kernels::sequential(f),
    }
}

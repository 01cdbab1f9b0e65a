//! Locks in a process that was forked: whatever its parent's other threads had locked stays locked there.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// How often a lock is tried before it is asked which process this is, which takes as long as the lock is
/// held by anybody.
const TRIES: usize = 100;

/// A lock that is held for moments; none in a process that was forked while a thread of its parent held it,
/// since nobody gives it back there. The caller then does without what it guards.
#[doc(hidden)]
pub fn lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    // The process that first asked.
    static PROCESS: AtomicU32 = AtomicU32::new(0);
    if PROCESS.load(Relaxed) == 0 {
        PROCESS.store(process::id(), Relaxed);
    }
    for _ in 0..TRIES {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(guard)) => return Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
        }
    }
    let is_forked = PROCESS.load(Relaxed) != process::id();
    (!is_forked).then(|| mutex.lock().unwrap_or_else(PoisonError::into_inner))
}

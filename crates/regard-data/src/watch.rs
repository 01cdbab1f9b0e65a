//! What a long phase other than training tells of itself: validation, a test, a search.

use crate::{Error, Result};
use std::cell::Cell;

/// Who is told of a long phase, and may stop it.
///
/// ```
/// use regard_data::{Watch, watch};
/// watch(Some(Watch { progress: |phase, done, all| println!("{phase} {done}/{all}"), stop: || false }));
/// # watch(None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Told after each of a phase's steps: the phase, how many steps are done, how many there are.
    pub progress: fn(&str, usize, usize),
    /// Whether to stop.
    pub stop: fn() -> bool,
}

thread_local! {
    static WATCH: Cell<Option<Watch>> = const { Cell::new(None) };
}

/// From now on the phases of this thread are watched; or no longer.
pub fn watch(watch: Option<Watch>) {
    WATCH.set(watch);
}

/// Does what is brief and must not be left half done: nobody is told of it, and nobody stops it.
pub fn unwatched<R>(brief: impl FnOnce() -> R) -> R {
    let before = WATCH.take();
    let done = brief();
    WATCH.set(before);
    done
}

/// Does what is one step of something longer: nobody is told how far it is, but it can be stopped.
pub fn quietly<R>(step: impl FnOnce() -> R) -> R {
    let before = WATCH.get();
    WATCH.set(before.map(|watch| Watch { progress: |_, _, _| {}, ..watch }));
    let done = step();
    WATCH.set(before);
    done
}

/// Says how far a phase has come; [`Error::Stopped`] where it is to stop.
pub fn tick(phase: &str, done: usize, all: usize) -> Result<()> {
    let Some(watch) = WATCH.get() else { return Ok(()) };
    (watch.progress)(phase, done, all);
    if (watch.stop)() { Err(Error::Stopped) } else { Ok(()) }
}

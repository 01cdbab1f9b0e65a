//! Memory that is kept and used again: fresh pages cost more than the work done in them.

use crate::{Real, large_pages};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

const LINE: usize = 64;

thread_local! {
    static KEPT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(#[allow(dead_code)] [u8; LINE]);

/// Gives `f` arrays of the given lengths, each starting on a cache line, with anything in them.
pub(crate) fn with<T: Real, const N: usize, R>(
    lengths: [usize; N],
    f: impl FnOnce([&mut [T]; N]) -> R,
) -> R {
    let lines = lengths.map(lines_of::<T>);
    let mut kept = KEPT.take();
    let needed = lines.iter().sum();
    if kept.len() < needed {
        kept.resize(needed, Line([0; LINE]));
    }
    let mut rest = kept.as_mut_slice();
    let mut at = 0;
    let arrays = lines.map(|lines| {
        let (part, tail) = std::mem::take(&mut rest).split_at_mut(lines);
        rest = tail;
        let n = lengths[at];
        at += 1;
        // SAFETY: `part` holds n numbers, is aligned to a line, initialized, and lent once; every
        // pattern of bits is an `f32` or `f64`.
        unsafe { std::slice::from_raw_parts_mut(part.as_mut_ptr().cast::<T>(), n) }
    });
    let result = f(arrays);
    KEPT.set(kept);
    result
}

/// Lines that hold `n` numbers; as for any array, too many to count are a panic.
fn lines_of<T>(n: usize) -> usize {
    n.checked_mul(size_of::<T>()).expect("capacity overflow").div_ceil(LINE)
}

/// Large arrays given back, for the next call to use.
static LARGE: Mutex<Vec<Vec<Line>>> = Mutex::new(Vec::new());
/// How many are kept.
const KEPT_LARGE: usize = 8;
/// Larger ones are not kept.
const LARGEST_KEPT: usize = 64 << 20;

/// An array that lives through a call, given back for the next when dropped.
pub(crate) struct Large<T> {
    lines: Vec<Line>,
    len: usize,
    numbers: PhantomData<T>,
}

impl<T: Real> Large<T> {
    /// An array with anything in it.
    pub(crate) fn new(len: usize) -> Self {
        let needed = lines_of::<T>(len);
        let mut kept = LARGE.lock().unwrap_or_else(PoisonError::into_inner);
        // The smallest that is large enough, else whichever is there.
        let fits =
            (0..kept.len()).filter(|&n| kept[n].len() >= needed).min_by_key(|&n| kept[n].len());
        let mut lines = match fits {
            Some(n) => kept.swap_remove(n),
            None => Vec::new(),
        };
        drop(kept);
        if lines.len() < needed {
            lines = Vec::with_capacity(needed);
            large_pages(lines.spare_capacity_mut());
            lines.resize(needed, Line([0; LINE]));
        }
        Self { lines, len, numbers: PhantomData }
    }

    /// An array of zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        let mut large = Self::new(len);
        large.fill(T::ZERO);
        large
    }
}

impl<T> Drop for Large<T> {
    fn drop(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        if lines.is_empty() || lines.len() * LINE > LARGEST_KEPT {
            return;
        }
        let mut kept = LARGE.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(lines);
        if kept.len() > KEPT_LARGE {
            let smallest = (0..kept.len()).min_by_key(|&n| kept[n].len()).unwrap_or(0);
            kept.swap_remove(smallest);
        }
    }
}

impl<T: Real> Deref for Large<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the lines hold `len` numbers, and every pattern of bits is one.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T: Real> DerefMut for Large<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

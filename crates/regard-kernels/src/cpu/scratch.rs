//! Memory each thread keeps from one tile to the next.

use crate::Real;
use std::cell::Cell;

const LINE: usize = 64;

thread_local! {
    static KEPT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(#[allow(dead_code)] [u8; LINE]);

/// Gives `f` arrays of the given lengths, each starting on a cache line, with anything in them.
pub(super) fn with<T: Real, const N: usize, R>(
    lengths: [usize; N],
    f: impl FnOnce([&mut [T]; N]) -> R,
) -> R {
    let lines = lengths.map(|n| (n * size_of::<T>()).div_ceil(LINE));
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
        // SAFETY: `part` holds n numbers, is aligned to a line, initialised, and lent once; every
        // pattern of bits is an `f32` or `f64`.
        unsafe { std::slice::from_raw_parts_mut(part.as_mut_ptr().cast::<T>(), n) }
    });
    let result = f(arrays);
    KEPT.set(kept);
    result
}

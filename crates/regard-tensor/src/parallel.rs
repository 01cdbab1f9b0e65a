//! Work on long slices, cut in pieces by the length alone, so that the pieces do not depend on
//! how many threads there are.

use rayon::prelude::*;

/// Numbers worth a task of their own.
pub(crate) const PIECE: usize = 1 << 14;

/// Calls `f` with each piece of a slice and where it starts.
pub(crate) fn pieces<T: Send>(to: &mut [T], f: impl Fn(usize, &mut [T]) + Sync) {
    if to.len() <= PIECE {
        f(0, to);
    } else {
        to.par_chunks_mut(PIECE).enumerate().for_each(|(at, to)| f(at * PIECE, to));
    }
}

/// Calls `f` with each row of `width` numbers and its index.
pub(crate) fn rows<T: Send>(to: &mut [T], width: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    if width == 0 {
        return;
    }
    if to.len() <= PIECE {
        to.chunks_mut(width).enumerate().for_each(|(row, to)| f(row, to));
    } else {
        let least = (PIECE / width).max(1);
        let all = to.par_chunks_mut(width).enumerate().with_min_len(least);
        all.for_each(|(row, to)| f(row, to));
    }
}

/// Fills a slice.
pub(crate) fn fill<T: Copy + Send + Sync>(to: &mut [T], x: T) {
    pieces(to, |_, to| to.fill(x));
}

//! Work on long slices, cut in pieces by the length alone, so that the pieces do not depend on
//! how many threads there are.

#[cfg(feature = "parallel")]
use rayon::prelude::*;

/// Numbers worth a task of their own.
pub(crate) const PIECE: usize = 1 << 14;

/// Calls `f` with each piece of a slice and where it starts.
pub(crate) fn pieces<T: Send>(to: &mut [T], f: impl Fn(usize, &mut [T]) + Sync) {
    if to.len() <= PIECE { f(0, to) } else { chunks(to, PIECE, 1, &|at, to| f(at * PIECE, to)) }
}

/// Calls `f` with each row of `width` numbers and its index.
pub(crate) fn rows<T: Send>(to: &mut [T], width: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    if width == 0 {
        return;
    }
    if to.len() <= PIECE {
        to.chunks_mut(width).enumerate().for_each(|(row, to)| f(row, to));
    } else {
        chunks(to, width, (PIECE / width).max(1), &f);
    }
}

/// Calls `f` with each chunk of `size` and its index, `least` of them or a little more in a task. By
/// reference, so that rayon's machinery is compiled once for a type and not for each `f`.
pub(crate) fn chunks<T: Send>(
    to: &mut [T],
    size: usize,
    least: usize,
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    #[cfg(feature = "parallel")]
    {
        let chunks = to.par_chunks_mut(size).enumerate();
        chunks.with_min_len(least).with_max_len(2 * least).for_each(|(at, to)| f(at, to));
    }
    #[cfg(not(feature = "parallel"))]
    {
        let _ = least;
        to.chunks_mut(size).enumerate().for_each(|(at, to)| f(at, to));
    }
}

/// What `f` makes of each of 0..count, in order, at least so many of them in a task.
pub(crate) fn collect<R: Send>(
    count: usize,
    least: usize,
    f: &(dyn Fn(usize) -> R + Sync),
) -> Vec<R> {
    #[cfg(feature = "parallel")]
    return (0..count).into_par_iter().with_min_len(least).map(f).collect();
    #[cfg(not(feature = "parallel"))]
    {
        let _ = least;
        (0..count).map(f).collect()
    }
}

/// Fills a slice.
pub(crate) fn fill<T: Copy + Send + Sync>(to: &mut [T], x: T) {
    pieces(to, |_, to| to.fill(x));
}

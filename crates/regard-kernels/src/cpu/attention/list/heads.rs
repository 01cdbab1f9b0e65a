//! Heads that a task does at once, and their rows near each other.

use super::ROWS;
use crate::cpu::attention::plan::PARTS;
use crate::cpu::attention::problem::Problem;
use crate::cpu::attention::row;
use crate::cpu::scratch::Large;
use crate::cpu::shared::Shared;
use crate::cpu::tasks;
use crate::spec::Shape;
use crate::{Real, View, ViewMut};

/// What may be read in no order and still be near.
const NEAR_BYTES: usize = 3 << 19;

/// Some heads of one batch item that work together: all query heads of some key heads.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    pub(super) b: usize,
    /// The first query head.
    pub(super) h: usize,
    /// The first key head.
    pub(super) hk: usize,
    /// Query heads.
    pub(super) n: usize,
}

impl Heads {
    /// How many parts the key heads are cut into: so that there are tasks enough, and so that what
    /// is read in no order, `width` bytes for each of `rows`, stays in the second-level cache.
    pub(super) fn parts(s: &Shape, rows: usize, width: usize) -> usize {
        let chunks = rows.div_ceil(ROWS).max(1);
        let tasks = PARTS.div_ceil((s.b * chunks).max(1));
        let bytes = rows * width;
        let near = if bytes <= s.hk * NEAR_BYTES { bytes.div_ceil(NEAR_BYTES) } else { 1 };
        let want = tasks.max(near).clamp(1, s.hk);
        (want..=s.hk).find(|parts| s.hk.is_multiple_of(*parts)).unwrap_or(1)
    }

    /// Part `n` of all batch items' parts.
    pub(super) fn new<T: Real>(p: &Problem<T>, parts: usize, n: usize) -> Self {
        let (b, part) = (n / parts, n % parts);
        let size = p.s.hk / parts;
        let hk = part * size;
        Self { b, h: hk * p.s.group(), hk, n: size * p.s.group() }
    }

    /// The rows of these key heads, from row `j` on.
    pub(super) fn keys<T: Real>(&self, p: &Problem<T>, x: &View<T>, j: usize) -> row::Rows<T> {
        row::Rows { base: p.rows(x, self.b, self.hk, j, 1), head: x.strides[1], row: x.strides[2] }
    }

    /// The rows of these query heads of a result, from row `i` on.
    ///
    /// # Safety
    /// They are the calling task's alone.
    pub(super) unsafe fn results<T>(&self, x: &ViewMut<T>, i: usize) -> row::RowsMut<T> {
        // SAFETY: the row exists, and is the caller's.
        let base = unsafe { x.row(self.b, self.h, i) };
        row::RowsMut { base, head: x.strides[1], row: x.strides[2] }
    }

    /// As [`Self::results`], of the key heads.
    ///
    /// # Safety
    /// They are the calling task's alone.
    pub(super) unsafe fn key_results<T>(&self, x: &ViewMut<T>, j: usize) -> row::RowsMut<T> {
        // SAFETY: the row exists, and is the caller's.
        let base = unsafe { x.row(self.b, self.hk, j) };
        row::RowsMut { base, head: x.strides[1], row: x.strides[2] }
    }

    /// The rows of these query heads, from row `i` on.
    pub(super) fn queries<T: Real>(&self, p: &Problem<T>, x: &View<T>, i: usize) -> row::Rows<T> {
        row::Rows { base: p.rows(x, self.b, self.h, i, 1), head: x.strides[1], row: x.strides[2] }
    }
}

/// A copy of k and v in which the rows of a head lie side by side, where heads are read one by one
/// and lay between each other: a cache keeps whole lines, and few that are a power of two apart.
pub(super) struct Near<T: Real> {
    copy: Large<T>,
    same: bool,
}

impl<T: Real> Near<T> {
    pub(super) fn of(p: &Problem<T>, parts: usize) -> Self {
        let same = same(&p.k, &p.v);
        let copy = if same {
            side_by_side(p, [&p.k], parts)
        } else {
            side_by_side(p, [&p.k, &p.v], parts)
        };
        Self { copy, same }
    }

    pub(super) fn problem<'a>(&'a self, p: &Problem<'a, T>) -> Problem<'a, T> {
        let mut near = *p;
        [near.k, near.v] = if self.same {
            let [k] = near_views([p.k], &self.copy);
            [k, k]
        } else {
            near_views([p.k, p.v], &self.copy)
        };
        near
    }
}

/// Whether two views are of the same numbers.
pub(super) fn same<T>(x: &View<T>, y: &View<T>) -> bool {
    x.data.as_ptr() == y.data.as_ptr() && x.strides == y.strides && x.shape == y.shape
}

/// The views of a copy where there is one.
pub(super) fn near_views<'a, T, const N: usize>(
    views: [View<'a, T>; N],
    copy: &'a [T],
) -> [View<'a, T>; N] {
    if copy.is_empty() {
        return views;
    }
    let width: usize = views.iter().map(|x| x.shape[3]).sum();
    let mut from = 0;
    views.map(|x| {
        let [_, h, n, d] = x.shape;
        let data = &copy[from..];
        from += d;
        View { data, shape: x.shape, strides: [h * n * width, n * width, width] }
    })
}

/// A copy of arrays with as many heads and rows, the rows of each next to the other's; nothing
/// where one is not needed.
pub(super) fn side_by_side<T: Real, const N: usize>(
    p: &Problem<T>,
    views: [&View<T>; N],
    parts: usize,
) -> Large<T> {
    let [b, h, n, _] = views[0].shape;
    let width: usize = views.iter().map(|x| x.shape[3]).sum();
    let apart = views.iter().any(|x| x.strides[2] != x.shape[3]);
    if parts == 1 || h == 1 || width == 0 || !apart {
        return Large::new(0);
    }
    let mut copy = Large::new(b * h * n * width);
    let shared = Shared::new(&mut copy);
    // All heads of some rows at a time, since those lie together in what is read.
    const ROWS: usize = 64;
    let chunks = n.div_ceil(ROWS);
    tasks::each(b * chunks, &|task| {
        let (b, from) = (task / chunks, task % chunks * ROWS);
        let count = ROWS.min(n - from);
        for h in 0..h {
            // SAFETY: these rows are this task's alone.
            let to = unsafe {
                shared.part(((b * views[0].shape[1] + h) * n + from) * width, count * width)
            };
            let mut at = 0;
            for x in views {
                let d = x.shape[3];
                let rows = p.rows(x, b, h, from, count);
                // SAFETY: `count` rows of x, and as many of `to`, `width` apart.
                unsafe {
                    (p.kernels.copy_rows)(
                        rows,
                        x.strides[2],
                        count,
                        d,
                        to[at..].as_mut_ptr(),
                        width,
                    )
                };
                at += d;
            }
        }
    });
    copy
}

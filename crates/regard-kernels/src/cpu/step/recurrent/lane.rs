//! Sixteen sequences side by side: turning rows into lanes and back, and the product of weights
//! with such a slice.
//!
//! The product keeps a panel of results in registers, PANEL rows by sixteen lanes where registers
//! are wide (AVX-512, `f32`), and walks the inner axis: one load of the state and PANEL weights per
//! step, each weight spread over the lanes by the load itself. The inner axis is cut so that the
//! part of the state in use stays in the nearest cache.

use crate::cpu::simd::Simd;

/// Sequences in a slice.
pub(super) const SLICE: usize = 16;
/// Rows of a panel.
pub(super) const PANEL: usize = 12;
/// Steps of the inner axis at a time: 16 KiB of `f32`.
const DEPTH: usize = 256;

/// C `[m, SLICE]` (+)= A `[m, k]` · B `[k, SLICE]`.
#[derive(Clone, Copy)]
pub(crate) struct Product<T> {
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) a: *const T,
    /// From one row of A to the next, within a panel.
    pub(super) a_row: usize,
    pub(super) a_column: usize,
    /// From one panel of A to the next.
    pub(super) a_panel: usize,
    pub(super) b: *const T,
    pub(super) c: *mut T,
    /// Add to C instead of overwriting it.
    pub(super) add: bool,
}

#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn product<V: Simd>(p: Product<V::T>) {
    // SAFETY: rows and depth in steps of what is left.
    unsafe {
        let mut from = 0;
        loop {
            let depth = DEPTH.min(p.k - from);
            let add = p.add || from > 0;
            let mut row = 0;
            while row < p.m {
                let a = p.a.add(row / PANEL * p.a_panel + from * p.a_column);
                let (b, c) = (p.b.add(from * SLICE), p.c.add(row * SLICE));
                let rows = PANEL.min(p.m - row);
                // Packed, a panel's numbers lie at fixed distances, which the loads then carry.
                if p.a_row == 1 && p.a_column == PANEL {
                    panel::<V, true>(&p, rows, depth, a, b, c, add);
                } else {
                    panel::<V, false>(&p, rows, depth, a, b, c, add);
                }
                row += PANEL;
            }
            from += depth;
            if from >= p.k {
                return;
            }
        }
    }
}

/// Up to PANEL rows of C.
#[cfg_attr(optimized, inline(always))]
unsafe fn panel<V: Simd, const PACKED: bool>(
    p: &Product<V::T>,
    rows: usize,
    depth: usize,
    a: *const V::T,
    b: *const V::T,
    c: *mut V::T,
    add: bool,
) {
    // SAFETY: as many rows as there are, in blocks that fill the registers and then one by one.
    unsafe {
        let mut r = 0;
        while r < rows {
            let (a, c) = (a.add(r * p.a_row), c.add(r * SLICE));
            r += match (V::LANES, rows - r) {
                (16, 12..) => block::<V, 12, 1, PACKED>(p, depth, a, b, c, add),
                (8, 6..) => block::<V, 6, 2, PACKED>(p, depth, a, b, c, add),
                (4, 3..) => block::<V, 3, 4, PACKED>(p, depth, a, b, c, add),
                (16, _) => block::<V, 1, 1, PACKED>(p, depth, a, b, c, add),
                (8, _) => block::<V, 1, 2, PACKED>(p, depth, a, b, c, add),
                _ => block::<V, 1, 4, PACKED>(p, depth, a, b, c, add),
            };
        }
    }
}

/// MR rows of C, and how many that are.
#[cfg_attr(optimized, inline(always))]
#[allow(clippy::needless_range_loop)] // constant bounds, so that everything stays in registers
unsafe fn block<V: Simd, const MR: usize, const NV: usize, const PACKED: bool>(
    p: &Product<V::T>,
    depth: usize,
    a: *const V::T,
    b: *const V::T,
    c: *mut V::T,
    add: bool,
) -> usize {
    // SAFETY: MR rows of A and C and `depth` rows of B are the caller's.
    unsafe {
        let (row, column) = if PACKED { (1, PANEL) } else { (p.a_row, p.a_column) };
        let mut sum = [[V::zero(); NV]; MR];
        let (mut a, mut b) = (a, b);
        for _ in 0..depth {
            let mut state = [V::zero(); NV];
            for v in 0..NV {
                state[v] = V::load(b.add(v * V::LANES));
            }
            for r in 0..MR {
                let weight = V::splat(*a.add(r * row));
                for v in 0..NV {
                    sum[r][v] = weight.fma(state[v], sum[r][v]);
                }
            }
            a = a.wrapping_add(column);
            b = b.wrapping_add(SLICE);
        }
        for r in 0..MR {
            for v in 0..NV {
                let c = c.add(r * SLICE + v * V::LANES);
                let old = if add { V::load(c) } else { V::zero() };
                sum[r][v].add(old).store(c);
            }
        }
        MR
    }
}

/// n ≤ SLICE rows of d numbers become `[d, SLICE]`; the lanes of missing rows become 0.
#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn turn_in<V: Simd>(
    from: *const V::T,
    row: usize,
    n: usize,
    d: usize,
    to: *mut V::T,
) {
    // SAFETY: squares where n rows and d numbers allow, number by number elsewhere.
    unsafe {
        let one = V::splat(crate::Real::of(1.0));
        let mut i = 0;
        while i < SLICE {
            let mut x = 0;
            while i + V::LANES <= n && x + V::LANES <= d {
                V::transpose(from.add(i * row + x), row, one, to.add(x * SLICE + i), SLICE);
                x += V::LANES;
            }
            for x in x..d {
                for i in i..i + V::LANES {
                    *to.add(x * SLICE + i) =
                        if i < n { *from.add(i * row + x) } else { crate::Real::of(0.0) };
                }
            }
            i += V::LANES;
        }
    }
}

/// `[d, SLICE]` becomes n ≤ SLICE rows of d numbers.
#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn turn_out<V: Simd>(
    from: *const V::T,
    d: usize,
    n: usize,
    to: *mut V::T,
    row: usize,
) {
    // SAFETY: as above.
    unsafe {
        let one = V::splat(crate::Real::of(1.0));
        let mut i = 0;
        while i < n {
            let many = i + V::LANES <= n;
            let mut x = 0;
            while many && x + V::LANES <= d {
                V::transpose(from.add(x * SLICE + i), SLICE, one, to.add(i * row + x), row);
                x += V::LANES;
            }
            for x in x..d {
                for i in i..(i + V::LANES).min(n) {
                    *to.add(i * row + x) = *from.add(x * SLICE + i);
                }
            }
            i += V::LANES;
        }
    }
}

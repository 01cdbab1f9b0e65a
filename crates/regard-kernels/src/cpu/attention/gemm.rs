//! The matrix product of tiles: C (+)= A · B.
//!
//! A is read number by number with any two strides (so transposing it costs nothing), B and C row
//! by row. Six rows of C by `WIDE` registers of columns stay in registers while the loop runs over
//! the inner axis: per step one load per register of B, one broadcast per row of A, and
//! `6 · WIDE` multiply-adds, which keeps both multipliers of an AVX-512 core busy. Nothing is
//! packed: the callers' tiles are small enough to stay in the nearest caches.

use crate::cpu::simd::Simd;

/// C `[m, n]` (+)= A `[m, k]` · B `[k, n]`.
#[derive(Clone, Copy)]
pub(crate) struct Gemm<T> {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a: *const T,
    /// From one row of A to the next.
    pub(crate) a_row: usize,
    /// From one column of A to the next.
    pub(crate) a_column: usize,
    pub(crate) b: *const T,
    pub(crate) b_row: usize,
    pub(crate) c: *mut T,
    pub(crate) c_row: usize,
    /// Add to C instead of overwriting it.
    pub(crate) add: bool,
}

/// # Safety
/// All of A, B and C lies in memory the caller may use; C overlaps neither.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn gemm<V: Simd>(g: Gemm<V::T>) {
    // SAFETY: each panel stays within n columns, the last one by masked loads and stores.
    unsafe {
        let mut at = 0;
        while V::WIDE >= 4 && at + 4 * V::LANES <= g.n {
            panel::<V, 4>(g, at, V::LANES);
            at += 4 * V::LANES;
        }
        while at + 2 * V::LANES <= g.n {
            panel::<V, 2>(g, at, V::LANES);
            at += 2 * V::LANES;
        }
        while at < g.n {
            panel::<V, 1>(g, at, (g.n - at).min(V::LANES));
            at += V::LANES;
        }
    }
}

/// All rows of C for `NV` registers of columns from `at` on; `last` columns in the last register.
#[cfg_attr(optimized, inline(always))]
unsafe fn panel<V: Simd, const NV: usize>(g: Gemm<V::T>, at: usize, last: usize) {
    // SAFETY: rows 0..m in steps of what is left.
    unsafe {
        let (b, c) = (g.b.add(at), g.c.add(at));
        let mut row = 0;
        while row + 6 <= g.m {
            micro::<V, 6, NV>(g, row, b, c, last);
            row += 6;
        }
        if row + 4 <= g.m {
            micro::<V, 4, NV>(g, row, b, c, last);
            row += 4;
        }
        if row + 2 <= g.m {
            micro::<V, 2, NV>(g, row, b, c, last);
            row += 2;
        }
        if row < g.m {
            micro::<V, 1, NV>(g, row, b, c, last);
        }
    }
}

#[cfg_attr(optimized, inline(always))]
#[allow(clippy::needless_range_loop)] // constant bounds, so that everything stays in registers
unsafe fn micro<V: Simd, const MR: usize, const NV: usize>(
    g: Gemm<V::T>,
    row: usize,
    b: *const V::T,
    c: *mut V::T,
    last: usize,
) {
    // SAFETY: rows row..row + MR of A and C and all rows of B are the caller's.
    unsafe {
        let mut sum = [[V::zero(); NV]; MR];
        let mut a = g.a.add(row * g.a_row);
        let mut b = b;
        for _ in 0..g.k {
            let mut columns = [V::zero(); NV];
            for v in 0..NV {
                columns[v] =
                    if NV == 1 { V::load_upto(b, last) } else { V::load(b.add(v * V::LANES)) };
            }
            for r in 0..MR {
                let x = V::splat(*a.add(r * g.a_row));
                for v in 0..NV {
                    sum[r][v] = x.fma(columns[v], sum[r][v]);
                }
            }
            a = a.wrapping_add(g.a_column);
            b = b.wrapping_add(g.b_row);
        }
        for (r, sum) in sum.iter().enumerate() {
            let c = c.add((row + r) * g.c_row);
            for (v, &sum) in sum.iter().enumerate() {
                let c = c.add(v * V::LANES);
                // Not "+ 0 where it is overwritten": an addition takes a multiplier's turn.
                if NV == 1 {
                    let all = if g.add { sum.add(V::load_upto(c, last)) } else { sum };
                    all.store_upto(c, last);
                } else {
                    let all = if g.add { sum.add(V::load(c)) } else { sum };
                    all.store(c);
                }
            }
        }
    }
}

//! Online softmax: a tile of scores at a time, never a whole row.

use super::BLOCK;
use crate::Real;
use crate::cpu::simd::Simd;

/// How far above its base a score may lie: e⁸ loses nothing in a sum.
const SLACK: f64 = 8.0;

/// Takes in one tile `[rows, BLOCK]` of scores, which become exp(score − one near the largest).
///
/// `state` is three rows of BLOCK: a score near the largest so far, the sum of exponentials relative
/// to it, and, as a result, the factor by which what was summed before must shrink. Gives whether
/// any factor is not 1. The score stays while the largest is no more than `SLACK` above it: it
/// cancels in the end, and a little more each time would mean shrinking with nearly every tile.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn softmax_step<V: Simd>(
    tile: *mut V::T,
    rows: usize,
    width: usize,
    state: *mut V::T,
) -> bool {
    // SAFETY: width ≤ BLOCK is a multiple of LANES.
    unsafe {
        let mut changed = false;
        let mut i = 0;
        while i + 4 * V::LANES <= width {
            changed |= columns::<V, 4>(tile.add(i), rows, state.add(i));
            i += 4 * V::LANES;
        }
        while i < width {
            changed |= columns::<V, 1>(tile.add(i), rows, state.add(i));
            i += V::LANES;
        }
        changed
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn columns<V: Simd, const N: usize>(tile: *mut V::T, rows: usize, state: *mut V::T) -> bool {
    // SAFETY: N registers of columns lie within the tile's width.
    unsafe {
        let zero = V::zero();
        let nothing = V::splat(V::T::NEG_INFINITY);
        let mut old = [zero; N];
        for (v, old) in old.iter_mut().enumerate() {
            *old = V::load(state.add(v * V::LANES));
        }
        let mut largest = old;
        for r in 0..rows {
            for (v, largest) in largest.iter_mut().enumerate() {
                *largest = largest.max(V::load(tile.add(r * BLOCK + v * V::LANES)));
            }
        }
        let mut base = [zero; N];
        let mut sum = [zero; N];
        let mut changed = zero;
        for v in 0..N {
            let near = old[v].add(V::number(SLACK));
            largest[v] = largest[v].where_greater(near, largest[v], old[v]);
            // A row with nothing yet subtracts 0, so that −∞ − −∞ does not arise.
            base[v] = largest[v].where_greater(nothing, largest[v], zero);
            let factor = old[v].sub(base[v]).exp();
            let at = state.add(BLOCK + v * V::LANES);
            sum[v] = V::load(at).mul(factor);
            largest[v].store(state.add(v * V::LANES));
            factor.store(state.add(2 * BLOCK + v * V::LANES));
            let one = V::splat(V::T::ONE);
            changed = changed.max(one.where_greater(factor, one, zero));
        }
        for r in 0..rows {
            for v in 0..N {
                let at = tile.add(r * BLOCK + v * V::LANES);
                let e = V::load(at).sub(base[v]).exp();
                sum[v] = sum[v].add(e);
                e.store(at);
            }
        }
        for (v, sum) in sum.iter().enumerate() {
            sum.store(state.add(BLOCK + v * V::LANES));
        }
        changed.sum() > V::T::ZERO
    }
}

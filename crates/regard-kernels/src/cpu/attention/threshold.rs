//! The thresholds of sparsemax and entmax, for whole rows.
//!
//! Σ max(z − τ, 0) = 1 (sparsemax), Σ max(z/2 − τ, 0)² = 1 (entmax 1.5): the left side is convex
//! and falls with τ, so Newton's method from a τ that is too small climbs to the root without ever
//! passing it; for sparsemax it ends after finitely many steps. Relative to the largest score, the
//! root is at least −1.

use super::BLOCK;
use crate::Real;
use crate::cpu::simd::Simd;

/// Steps that suffice for a row of n scores: each drops a key from the support, until on the last
/// support sparsemax is done with one and entmax doubles its digits with each.
/// Most rows end sooner, when a step does not move.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) fn steps(n: usize) -> usize {
    n + 32
}

/// For each column of scores `[rows, BLOCK]` the largest score and, relative to it, τ.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn threshold<V: Simd>(
    entmax: bool,
    tile: *const V::T,
    rows: usize,
    width: usize,
    largest: *mut V::T,
    tau: *mut V::T,
) {
    // SAFETY: width ≤ BLOCK is a multiple of LANES.
    unsafe {
        let zero = V::zero();
        let one = V::splat(V::T::ONE);
        let nothing = V::splat(V::T::NEG_INFINITY);
        let factor = V::number(if entmax { 0.5 } else { 1.0 });
        let mut i = 0;
        while i < width {
            let mut top = nothing;
            for r in 0..rows {
                top = top.max(V::load(tile.add(r * BLOCK + i)));
            }
            top = top.where_greater(nothing, top, zero);
            let mut here = zero.sub(one);
            for _ in 0..steps(rows) {
                let (mut sum, mut slope) = (zero, zero);
                for r in 0..rows {
                    let z = V::load(tile.add(r * BLOCK + i)).sub(top).mul(factor);
                    let above = zero.max(z.sub(here));
                    if entmax {
                        sum = above.fma(above, sum);
                        slope = slope.add(above.add(above));
                    } else {
                        sum = sum.add(above);
                        slope = slope.add(above.where_greater(zero, one, zero));
                    }
                }
                let step = sum.sub(one).div(slope);
                let next = sum.where_greater(one, here.add(step), here);
                let moved = next.where_greater(here, one, zero).sum();
                here = next;
                if moved == V::T::ZERO {
                    break;
                }
            }
            top.store(largest.add(i));
            here.store(tau.add(i));
            i += V::LANES;
        }
    }
}

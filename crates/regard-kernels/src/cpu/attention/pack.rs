//! From rows to columns and back.
//!
//! A tile holds the queries of a block side by side, [`BLOCK`] to a row, so that each lane of a
//! register is a query of its own: maxima and sums over the keys need no shuffling.

use super::BLOCK;
use crate::Real;
use crate::cpu::simd::Simd;

/// Rows `[n, d]` to columns `[d, BLOCK]`, times `scale`; columns n..width become 0.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn pack<V: Simd>(
    from: *const V::T,
    row: usize,
    n: usize,
    d: usize,
    scale: V::T,
    to: *mut V::T,
    width: usize,
) {
    // SAFETY: n rows of d numbers are read, d rows of `width` ≤ BLOCK written.
    unsafe {
        let factor = V::splat(scale);
        let mut i = 0;
        while i < width {
            let mut x = 0;
            while i + V::LANES <= n && x + V::LANES <= d {
                let from = from.add(i * row + x);
                V::transpose(from, row, factor, to.add(x * BLOCK + i), BLOCK);
                x += V::LANES;
            }
            for x in x..d {
                for i in i..i + V::LANES {
                    *to.add(x * BLOCK + i) =
                        if i < n { *from.add(i * row + x) * scale } else { V::T::ZERO };
                }
            }
            i += V::LANES;
        }
    }
}

/// Columns `[d, BLOCK]` to rows `[n, d]`, column i times `factor[i]`.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn unpack<V: Simd>(
    from: *const V::T,
    d: usize,
    n: usize,
    factor: *const V::T,
    to: *mut V::T,
    row: usize,
) {
    // SAFETY: d rows of n ≤ BLOCK numbers are read, n rows of d written.
    unsafe {
        let mut i = 0;
        while i < n {
            let many = i + V::LANES <= n;
            let mut x = 0;
            while many && x + V::LANES <= d {
                let factor = V::load(factor.add(i));
                V::transpose(from.add(x * BLOCK + i), BLOCK, factor, to.add(i * row + x), row);
                x += V::LANES;
            }
            for i in i..if many { i + V::LANES } else { n } {
                let factor = *factor.add(i);
                for x in x..d {
                    *to.add(i * row + x) = *from.add(x * BLOCK + i) * factor;
                }
            }
            i += V::LANES;
        }
    }
}

/// Column i of `[rows, BLOCK]` times `factor[i]`.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn scale_columns<V: Simd>(
    x: *mut V::T,
    rows: usize,
    width: usize,
    factor: *const V::T,
) {
    // SAFETY: width ≤ BLOCK is a multiple of LANES.
    unsafe {
        for r in 0..rows {
            let mut i = 0;
            while i < width {
                let at = x.add(r * BLOCK + i);
                V::load(at).mul(V::load(factor.add(i))).store(at);
                i += V::LANES;
            }
        }
    }
}

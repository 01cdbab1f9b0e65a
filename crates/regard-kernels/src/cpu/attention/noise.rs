//! Random words for a tile and for pairs of a list, and dropout by them.

use super::BLOCK;
use crate::Real;
use crate::cpu::simd::Simd;
use crate::random::Draw;
use crate::spec::Keep;

/// The words of keys j0.. for queries i0.., as `[rows, BLOCK]`.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn words<V: Simd>(
    draw: Draw,
    i0: usize,
    width: usize,
    j0: usize,
    rows: usize,
    to: *mut u32,
) {
    // SAFETY: rows rows of width ≤ BLOCK words are written.
    unsafe {
        let j1 = j0 + rows;
        for quad in j0 / 4..j1.div_ceil(4) {
            let mut four = [[0u32; BLOCK]; 4];
            for i in 0..width {
                let words = draw.quad((i0 + i) as u32, quad as u32);
                for (four, word) in four.iter_mut().zip(words) {
                    four[i] = word;
                }
            }
            for (n, four) in four.iter().enumerate() {
                let j = 4 * quad + n;
                if j0 <= j && j < j1 {
                    to.add((j - j0) * BLOCK).copy_from_nonoverlapping(four.as_ptr(), width);
                }
            }
        }
    }
}

/// A weight whose word is below `below` becomes 0, the others are multiplied by `factor`.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn drop<V: Simd>(
    words: *const u32,
    below: u32,
    factor: V::T,
    tile: *mut V::T,
    rows: usize,
    width: usize,
) {
    // SAFETY: rows rows of width ≤ BLOCK numbers are read and written.
    unsafe {
        for r in 0..rows {
            for i in 0..width {
                let at = r * BLOCK + i;
                let kept = *tile.add(at) * factor;
                *tile.add(at) = if *words.add(at) < below { V::T::ZERO } else { kept };
            }
        }
    }
}

/// Pairs whose dropout factors are drawn together.
pub(in crate::cpu) const PAIRS: usize = 64;

/// The dropout factors of `n` pairs of a query and a key.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn pair_factors<V: Simd>(
    keep: Keep<V::T>,
    queries: &[u32; PAIRS],
    keys: &[u32; PAIRS],
    n: usize,
    to: *mut V::T,
) {
    let mut words = [0; PAIRS];
    for i in 0..PAIRS {
        let [a, b, c, d] = keep.draw.quad(queries[i], keys[i] / 4);
        // One of the four without a branch, so that all of this runs in registers.
        let [low, high] = if keys[i] & 1 == 0 { [a, c] } else { [b, d] };
        words[i] = if keys[i] & 2 == 0 { low } else { high };
    }
    for (i, &word) in words.iter().enumerate().take(n) {
        // SAFETY: n numbers are written.
        unsafe { *to.add(i) = if word < keep.below { V::T::ZERO } else { keep.factor } };
    }
}

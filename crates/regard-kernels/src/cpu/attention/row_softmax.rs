//! Softmax of lists of scores, and its gradient, row by row.
//!
//! Rows of a graph are short: up to four registers of scores are held from the first load to the
//! last store, because what was stored under a mask is slow to be loaded again.

#![allow(clippy::needless_range_loop)] // constant bounds, so that everything stays in registers

use super::row::{Spans, dot};
use crate::Real;
use crate::cpu::simd::Simd;

/// Scores `[heads, pairs]` become softmax weights row by row; `lse`, where given, gets each row's
/// log-sum-exp as `[heads, rows]`: −∞ where there is nothing.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn row_softmax<V: Simd>(
    scores: *mut V::T,
    heads: usize,
    head: usize,
    rows: usize,
    spans: Spans,
    lse: *mut V::T,
) {
    // SAFETY: every pair of every head has its score.
    unsafe {
        for h in 0..heads {
            for i in 0..rows {
                let (first, end) = spans.of(i);
                let (at, n) = (scores.wrapping_add(h * head + first), end - first);
                let (largest, total) = match n.div_ceil(V::LANES) {
                    0 => (V::T::ZERO, V::T::ZERO),
                    // Not one register by itself: which of two it is, nobody foresees.
                    1 | 2 => short::<V, 2>(at, n),
                    3 | 4 => short::<V, 4>(at, n),
                    _ => exponentiate::<V>(at, n),
                };
                if !lse.is_null() {
                    *lse.add(h * rows + i) =
                        if total == V::T::ZERO { V::T::NEG_INFINITY } else { largest + total.ln() };
                }
            }
        }
    }
}

/// Scores become exponentials relative to the largest of all, which it gives.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn exponentials<V: Simd>(n: usize, scores: *mut V::T) -> V::T {
    // SAFETY: n numbers.
    unsafe {
        let base = largest::<V>(scores, n);
        let first = V::splat(base);
        let mut e = 0;
        while e < n {
            let (at, left) = (scores.add(e), n - e);
            V::load_upto(at, left).sub(first).exp().store_upto(at, left);
            e += V::LANES;
        }
        base
    }
}

/// The largest of n scores; 0 where all of them are −∞.
#[cfg_attr(optimized, inline(always))]
unsafe fn largest<V: Simd>(scores: *const V::T, n: usize) -> V::T {
    // SAFETY: n numbers.
    unsafe {
        let nothing = V::splat(V::T::NEG_INFINITY);
        let mut top = nothing;
        let mut e = 0;
        while e < n {
            top = top.max(V::load_upto_or(scores.add(e), n - e, nothing));
            e += V::LANES;
        }
        let largest = top.largest();
        if largest > V::T::NEG_INFINITY { largest } else { V::T::ZERO }
    }
}

/// Scores and the gradients of their softmax weights, each `[heads, pairs]`, row by row.
#[derive(Clone, Copy)]
pub(crate) struct RowSoftmaxGrads<T> {
    pub(crate) heads: usize,
    pub(crate) rows: usize,
    pub(crate) spans: Spans,
    /// Become weights; anything where the log-sum-exps are known.
    pub(crate) scores: *mut T,
    /// Become the gradients of the scores.
    pub(crate) grads: *mut T,
    /// From one head to the next in both.
    pub(crate) head: usize,
    /// Each row's log-sum-exp where it is known, and from one head to the next.
    pub(crate) lse: Option<(*const T, usize)>,
    /// Gets each row's Σ weight · gradient as `[heads, rows]`, unless it is null.
    pub(crate) means: *mut T,
}

#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn row_softmax_grads<V: Simd>(r: RowSoftmaxGrads<V::T>) {
    // SAFETY: every pair of every head has its score and gradient, every row its numbers.
    unsafe {
        for h in 0..r.heads {
            for i in 0..r.rows {
                let (first, end) = r.spans.of(i);
                let n = end - first;
                let scores = r.scores.wrapping_add(h * r.head + first);
                let grads = r.grads.wrapping_add(h * r.head + first);
                let lse = r.lse.map(|(lse, head)| *lse.add(h * head + i));
                let mean = match n.div_ceil(V::LANES) {
                    0 => V::T::ZERO,
                    1 | 2 => short_grads::<V, 2>(scores, grads, n, lse),
                    3 | 4 => short_grads::<V, 4>(scores, grads, n, lse),
                    _ => long_grads::<V>(scores, grads, n),
                };
                if !r.means.is_null() {
                    *r.means.add(h * r.rows + i) = mean;
                }
            }
        }
    }
}

/// N registers of softmax weights from n scores, the largest score, and the sum of exponentials
/// relative to it. Lanes beyond n have no weight.
#[cfg_attr(optimized, inline(always))]
unsafe fn held<V: Simd, const N: usize>(scores: *const V::T, n: usize) -> ([V; N], V::T, V::T) {
    // SAFETY: n ≤ N · LANES numbers.
    unsafe {
        let nothing = V::splat(V::T::NEG_INFINITY);
        let mut x = [nothing; N];
        let mut top = nothing;
        for v in 0..N {
            let left = n.saturating_sub(v * V::LANES);
            x[v] = V::load_upto_or(scores.wrapping_add(v * V::LANES), left, nothing);
            top = top.max(x[v]);
        }
        let largest = top.largest();
        let base = if largest > V::T::NEG_INFINITY { largest } else { V::T::ZERO };
        let mut sum = V::zero();
        for v in 0..N {
            x[v] = x[v].sub(V::splat(base)).exp();
            sum = sum.add(x[v]);
        }
        let total = sum.sum();
        if total != V::T::ZERO {
            let factor = V::splat(V::T::ONE / total);
            for v in 0..N {
                x[v] = x[v].mul(factor);
            }
        }
        (x, base, total)
    }
}

/// The first n of N registers' numbers.
#[cfg_attr(optimized, inline(always))]
unsafe fn put<V: Simd, const N: usize>(x: [V; N], to: *mut V::T, n: usize) {
    // SAFETY: there is room for n numbers.
    unsafe {
        for v in 0..N {
            if v * V::LANES < n {
                x[v].store_upto(to.add(v * V::LANES), n - v * V::LANES);
            }
        }
    }
}

/// As [`exponentiate`], for n ≤ N · LANES.
#[cfg_attr(optimized, inline(always))]
unsafe fn short<V: Simd, const N: usize>(scores: *mut V::T, n: usize) -> (V::T, V::T) {
    // SAFETY: n numbers.
    unsafe {
        let (weights, largest, total) = held::<V, N>(scores, n);
        put(weights, scores, n);
        (largest, total)
    }
}

/// Gradients of n ≤ N · LANES scores, which become weights unless their log-sum-exp is known: it
/// spares finding the largest and the sum.
#[cfg_attr(optimized, inline(always))]
unsafe fn short_grads<V: Simd, const N: usize>(
    scores: *mut V::T,
    grads: *mut V::T,
    n: usize,
    lse: Option<V::T>,
) -> V::T {
    // SAFETY: n ≤ N · LANES numbers each.
    unsafe {
        let mut weights = [V::zero(); N];
        if let Some(lse) = lse {
            for v in 0..N {
                let left = n.saturating_sub(v * V::LANES);
                let (at, nothing) =
                    (scores.wrapping_add(v * V::LANES), V::splat(V::T::NEG_INFINITY));
                weights[v] = V::load_upto_or(at, left, nothing).sub(V::splat(lse)).exp();
            }
        } else {
            weights = held::<V, N>(scores, n).0;
            put(weights, scores, n);
        }
        let mut grad = [V::zero(); N];
        let mut sum = V::zero();
        for v in 0..N {
            let left = n.saturating_sub(v * V::LANES);
            grad[v] = V::load_upto_or(grads.wrapping_add(v * V::LANES), left, V::zero());
            sum = weights[v].fma(grad[v], sum);
        }
        let mean = sum.sum();
        for v in 0..N {
            grad[v] = grad[v].sub(V::splat(mean)).mul(weights[v]);
        }
        put(grad, grads, n);
        mean
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn long_grads<V: Simd>(weights: *mut V::T, grads: *mut V::T, n: usize) -> V::T {
    // SAFETY: n numbers each.
    unsafe {
        exponentiate::<V>(weights, n);
        let mean = dot::<V>(n, weights, grads);
        let mut e = 0;
        while e < n {
            let left = n - e;
            let to = grads.add(e);
            let centered = V::load_upto(to, left).sub(V::splat(mean));
            centered.mul(V::load_upto(weights.add(e), left)).store_upto(to, left);
            e += V::LANES;
        }
        mean
    }
}

/// Scores become softmax weights; gives the largest and the sum of exponentials relative to it.
#[cfg_attr(optimized, inline(always))]
unsafe fn exponentiate<V: Simd>(scores: *mut V::T, n: usize) -> (V::T, V::T) {
    // SAFETY: n numbers.
    unsafe {
        let base = largest::<V>(scores, n);
        let first = V::splat(base);
        let mut sum = V::zero();
        let mut e = 0;
        while e < n {
            let left = n - e;
            let at = scores.add(e);
            let p = V::load_upto(at, left).sub(first).exp();
            p.store_upto(at, left);
            sum = sum.add(if left >= V::LANES { p } else { V::load_first(at, left) });
            e += V::LANES;
        }
        let total = sum.sum();
        if total != V::T::ZERO {
            let factor = V::splat(V::T::ONE / total);
            let mut e = 0;
            while e < n {
                let left = n - e;
                let at = scores.add(e);
                V::load_upto(at, left).mul(factor).store_upto(at, left);
                e += V::LANES;
            }
        }
        (base, total)
    }
}

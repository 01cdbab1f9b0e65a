//! Kernels for one query of every head, or a few queries, against a list of keys: a feature per
//! lane.
//!
//! Graphs use them (the list is the query's edges) and so does decoding (the list is the cache).
//! Keys are the outer loop wherever they come from far away, so that a row of k or v is fetched
//! once for all the heads that read it; the next rows of a list are asked for ahead.

use super::additive::{Form, for_each_form, value, value_and_slope};
use super::simd::Simd;
use crate::Real;

/// The keys of a query, or the queries of a key.
#[derive(Clone, Copy)]
pub(crate) enum List {
    /// These rows.
    These(*const u32),
    /// Rows from this one on.
    From(usize),
}

impl List {
    #[inline(always)]
    pub(super) unsafe fn at(self, n: usize) -> usize {
        match self {
            // SAFETY: n is within the list.
            Self::These(list) => unsafe { *list.add(n) as usize },
            Self::From(first) => first + n,
        }
    }
}

/// An array of heads and rows: element (h, n) starts at `base + h·head + n·row`.
#[derive(Clone, Copy)]
pub(crate) struct Rows<T> {
    pub(crate) base: *const T,
    pub(crate) head: usize,
    pub(crate) row: usize,
}

impl<T> Rows<T> {
    #[inline(always)]
    unsafe fn at(&self, h: usize, n: usize) -> *const T {
        // SAFETY: the caller's row exists.
        unsafe { self.base.add(h * self.head + n * self.row) }
    }
}

/// Asks for the row of a list entry some way ahead.
const AHEAD: usize = 6;

#[inline(always)]
unsafe fn ask_ahead<V: Simd>(
    x: &Rows<V::T>,
    heads: usize,
    d: usize,
    list: List,
    e: usize,
    n: usize,
) {
    if let List::These(_) = list
        && e + AHEAD < n
    {
        // SAFETY: the entry is within the list; asking for memory never faults.
        unsafe {
            let j = list.at(e + AHEAD);
            for h in 0..heads {
                let from = x.at(h, j);
                let mut at = 0;
                while at < d {
                    V::prefetch(from.add(at));
                    at += 64 / size_of::<V::T>();
                }
            }
        }
    }
}

/// How a pair is scored.
#[derive(Clone, Copy)]
pub(crate) enum RowScore<T> {
    /// q·k times this.
    Dot(T),
    /// Σ w · act(q + k); w of head h starts at `w + h · w_head`.
    Additive { form: Form, w: *const T, w_head: usize },
}

/// Scores of `n` keys for one query of each of `heads` heads, `group` of which share a key head.
#[derive(Clone, Copy)]
pub(crate) struct RowScores<T> {
    pub(crate) score: RowScore<T>,
    pub(crate) heads: usize,
    pub(crate) group: usize,
    /// Row 0 of each head is the query.
    pub(crate) q: Rows<T>,
    pub(crate) k: Rows<T>,
    pub(crate) keys: List,
    pub(crate) n: usize,
    pub(crate) d: usize,
    /// `[heads, n]`, heads `to_head` apart.
    pub(crate) to: *mut T,
    pub(crate) to_head: usize,
}

#[inline(always)]
pub(super) unsafe fn row_scores<V: Simd>(r: RowScores<V::T>) {
    // SAFETY: every key is a row of k, `to` holds the result.
    unsafe {
        match r.score {
            RowScore::Dot(scale) => {
                for e in 0..r.n {
                    ask_ahead::<V>(&r.k, r.heads / r.group, r.d, r.keys, e, r.n);
                    let j = r.keys.at(e);
                    for kh in 0..r.heads / r.group {
                        let k = r.k.at(kh, j);
                        let (mut h, end) = (kh * r.group, (kh + 1) * r.group);
                        while h + 4 <= end {
                            dots::<V, 4>(&r, h, k, e, scale);
                            h += 4;
                        }
                        while h < end {
                            dots::<V, 1>(&r, h, k, e, scale);
                            h += 1;
                        }
                    }
                }
            }
            RowScore::Additive { form, w, w_head } => for_each_form!(form, form => {
                for e in 0..r.n {
                    ask_ahead::<V>(&r.k, r.heads / r.group, r.d, r.keys, e, r.n);
                    let j = r.keys.at(e);
                    for kh in 0..r.heads / r.group {
                        let k = r.k.at(kh, j);
                        for h in kh * r.group..(kh + 1) * r.group {
                            let (q, w) = (r.q.at(h, 0), w.add(h * w_head));
                            let mut sum = V::zero();
                            let mut x = 0;
                            while x + V::LANES <= r.d {
                                let value = value(form, V::load(q.add(x)), V::load(k.add(x)));
                                sum = V::load(w.add(x)).fma(value, sum);
                                x += V::LANES;
                            }
                            if x < r.d {
                                let at = |p: *const V::T| V::load_first(p.add(x), r.d - x);
                                sum = at(w).fma(value(form, at(q), at(k)), sum);
                            }
                            *r.to.add(h * r.to_head + e) = sum.sum();
                        }
                    }
                }
            }),
        }
    }
}

/// Dot products of a key with G queries.
#[inline(always)]
unsafe fn dots<V: Simd, const G: usize>(
    r: &RowScores<V::T>,
    h: usize,
    k: *const V::T,
    e: usize,
    scale: V::T,
) {
    // SAFETY: as above; heads h..h + G exist.
    unsafe {
        let mut sum = [V::zero(); G];
        let mut x = 0;
        while x + V::LANES <= r.d {
            let k = V::load(k.add(x));
            for (n, sum) in sum.iter_mut().enumerate() {
                *sum = V::load(r.q.at(h + n, 0).add(x)).fma(k, *sum);
            }
            x += V::LANES;
        }
        if x < r.d {
            let k = V::load_first(k.add(x), r.d - x);
            for (n, sum) in sum.iter_mut().enumerate() {
                *sum = V::load_first(r.q.at(h + n, 0).add(x), r.d - x).fma(k, *sum);
            }
        }
        for (n, sum) in sum.iter().enumerate() {
            *r.to.add((h + n) * r.to_head + e) = sum.sum() * scale;
        }
    }
}

/// Adds Σ_e weight_e · v_e to one row of each head.
#[derive(Clone, Copy)]
pub(crate) struct RowGather<T> {
    pub(crate) heads: usize,
    pub(crate) group: usize,
    /// `[heads, n]`, heads `weights_head` apart.
    pub(crate) weights: *const T,
    pub(crate) weights_head: usize,
    pub(crate) v: Rows<T>,
    pub(crate) keys: List,
    pub(crate) n: usize,
    pub(crate) d: usize,
    /// Row of head h at `to + h · to_head`.
    pub(crate) to: *mut T,
    pub(crate) to_head: usize,
}

#[inline(always)]
pub(super) unsafe fn row_gather<V: Simd>(r: RowGather<V::T>) {
    // SAFETY: every key is a row of v, `to` holds the result.
    unsafe {
        // So many keys that their values are still near when the next features are summed.
        const NEAR: usize = 64;
        let mut from = 0;
        while from < r.n {
            let n = NEAR.min(r.n - from);
            let part = (from, n);
            for kh in 0..r.heads / r.group {
                let (mut h, end) = (kh * r.group, (kh + 1) * r.group);
                while h < end {
                    let four = h + 4 <= end;
                    let mut x = 0;
                    while x < r.d {
                        let left = r.d - x;
                        let wide = left >= 4 * V::LANES && V::WIDE >= 4;
                        match (four, wide) {
                            (true, true) => sums::<V, 4, 4>(&r, kh, h, x, V::LANES, part),
                            (false, true) => sums::<V, 1, 4>(&r, kh, h, x, V::LANES, part),
                            (true, false) => sums::<V, 4, 1>(&r, kh, h, x, left, part),
                            (false, false) => sums::<V, 1, 1>(&r, kh, h, x, left, part),
                        }
                        x += if wide { 4 } else { 1 } * V::LANES;
                    }
                    h += if four { 4 } else { 1 };
                }
            }
            from += n;
        }
    }
}

/// NV registers of features from x on for G heads that share key head `kh`.
#[inline(always)]
unsafe fn sums<V: Simd, const G: usize, const NV: usize>(
    r: &RowGather<V::T>,
    kh: usize,
    h: usize,
    x: usize,
    left: usize,
    (from, n): (usize, usize),
) {
    // SAFETY: as above; the last register is masked where fewer features are left.
    unsafe {
        let mut sum = [[V::zero(); NV]; G];
        for e in from..from + n {
            let v = r.v.at(kh, r.keys.at(e)).add(x);
            let mut value = [V::zero(); NV];
            for (n, value) in value.iter_mut().enumerate() {
                *value = V::load_upto(v.add(n * V::LANES), left);
            }
            for (n, sum) in sum.iter_mut().enumerate() {
                let weight = V::splat(*r.weights.add((h + n) * r.weights_head + e));
                for v in 0..NV {
                    sum[v] = weight.fma(value[v], sum[v]);
                }
            }
        }
        for (n, sum) in sum.iter().enumerate() {
            for (v, sum) in sum.iter().enumerate() {
                let to = r.to.add((h + n) * r.to_head + x + v * V::LANES);
                sum.add(V::load_upto(to, left)).store_upto(to, left);
            }
        }
    }
}

/// The gradients of an additive score on the query's side.
#[derive(Clone, Copy)]
pub(crate) struct RowAdditiveGrads<T> {
    pub(crate) form: Form,
    pub(crate) heads: usize,
    pub(crate) group: usize,
    /// Row 0 of each head is the query.
    pub(crate) q: Rows<T>,
    pub(crate) k: Rows<T>,
    pub(crate) keys: List,
    pub(crate) n: usize,
    pub(crate) d: usize,
    /// The gradients of the scores, `[heads, n]`, heads `grads_head` apart.
    pub(crate) grads: *const T,
    pub(crate) grads_head: usize,
    /// `[heads, d]` += Σ grad · act'(q + k)
    pub(crate) slopes: *mut T,
    /// `[heads, d]` += Σ grad · act(q + k)
    pub(crate) values: *mut T,
}

#[inline(always)]
pub(super) unsafe fn row_additive_grads<V: Simd>(r: RowAdditiveGrads<V::T>) {
    // SAFETY: every key is a row of k; the last features are masked.
    unsafe {
        for_each_form!(r.form, form => for h in 0..r.heads {
            let mut x = 0;
            while x < r.d {
                let left = r.d - x;
                let q = V::load_upto(r.q.at(h, 0).add(x), left);
                let (mut slopes, mut values) = (V::zero(), V::zero());
                for e in 0..r.n {
                    let k = V::load_upto(r.k.at(h / r.group, r.keys.at(e)).add(x), left);
                    let grad = V::splat(*r.grads.add(h * r.grads_head + e));
                    let (value, slope) = value_and_slope(form, q, k);
                    slopes = grad.fma(slope, slopes);
                    values = grad.fma(value, values);
                }
                for (to, sum) in [(r.slopes, slopes), (r.values, values)] {
                    let to = to.add(h * r.d + x);
                    sum.add(V::load_upto(to, left)).store_upto(to, left);
                }
                x += V::LANES;
            }
        })
    }
}

/// The gradients of one key and its value, from the queries that see it.
#[derive(Clone, Copy)]
pub(crate) struct KeyGrads<T> {
    pub(crate) score: RowScore<T>,
    pub(crate) heads: usize,
    pub(crate) group: usize,
    pub(crate) queries: List,
    /// Where each query's pair lies in `weights` and `grads`, in units of `pair`.
    pub(crate) pairs: Pairs,
    pub(crate) n: usize,
    pub(crate) q: Rows<T>,
    /// Row 0 of each key head is the key.
    pub(crate) k: Rows<T>,
    pub(crate) grad_out: Rows<T>,
    pub(crate) d: usize,
    pub(crate) dv: usize,
    /// Per pair one number per head, pairs `pair` apart.
    pub(crate) weights: *const T,
    pub(crate) grads: *const T,
    pub(crate) pair: usize,
    /// `[key heads, d]`, added to; null where not wanted.
    pub(crate) grad_k: *mut T,
    /// `[key heads, dv]`, added to; null where not wanted.
    pub(crate) grad_v: *mut T,
}

/// Places of pairs.
#[derive(Clone, Copy)]
pub(crate) enum Pairs {
    These(*const u32),
    /// From the first on, this far apart.
    Every(usize, usize),
}

impl Pairs {
    #[inline(always)]
    pub(super) unsafe fn at(self, n: usize) -> usize {
        match self {
            // SAFETY: n is within the list.
            Self::These(list) => unsafe { *list.add(n) as usize },
            Self::Every(first, step) => first + n * step,
        }
    }
}

#[inline(always)]
pub(super) unsafe fn key_grads<V: Simd>(r: KeyGrads<V::T>) {
    // SAFETY: every query is a row of q and grad_out, every pair has its numbers.
    unsafe {
        let form = match r.score {
            RowScore::Additive { form, .. } => form,
            RowScore::Dot(_) => Form::Leaky(1.0),
        };
        for_each_form!(form, form => for e in 0..r.n {
            ask_ahead::<V>(&r.q, r.heads, r.d, r.queries, e, r.n);
            ask_ahead::<V>(&r.grad_out, r.heads, r.dv, r.queries, e, r.n);
            let (i, pair) = (r.queries.at(e), r.pairs.at(e) * r.pair);
            for kh in 0..r.heads / r.group {
                for h in kh * r.group..(kh + 1) * r.group {
                    if !r.grad_v.is_null() {
                        let weight = *r.weights.add(pair + h);
                        let to = r.grad_v.add(kh * r.dv);
                        axpy::<V>(r.dv, weight, r.grad_out.at(h, i), to);
                    }
                    if r.grad_k.is_null() {
                        continue;
                    }
                    let (grad, to) = (*r.grads.add(pair + h), r.grad_k.add(kh * r.d));
                    let q = r.q.at(h, i);
                    match r.score {
                        RowScore::Dot(scale) => axpy::<V>(r.d, grad * scale, q, to),
                        RowScore::Additive { w, w_head, .. } => {
                            let (w, k) = (w.add(h * w_head), r.k.at(kh, 0));
                            let grad = V::splat(grad);
                            let mut x = 0;
                            while x < r.d {
                                let left = r.d - x;
                                let at = |p: *const V::T| V::load_upto(p.add(x), left);
                                let (_, slope) = value_and_slope(form, at(q), at(k));
                                let to = to.add(x);
                                let sum = grad.mul(at(w)).fma(slope, V::load_upto(to, left));
                                sum.store_upto(to, left);
                                x += V::LANES;
                            }
                        }
                    }
                }
            }
        })
    }
}

/// y += a · x
#[inline(always)]
pub(super) unsafe fn axpy<V: Simd>(n: usize, a: V::T, x: *const V::T, y: *mut V::T) {
    // SAFETY: n numbers each.
    unsafe {
        let a = V::splat(a);
        let mut i = 0;
        while i < n {
            let left = n - i;
            let to = y.add(i);
            a.fma(V::load_upto(x.add(i), left), V::load_upto(to, left)).store_upto(to, left);
            i += V::LANES;
        }
    }
}

/// x · y
#[inline(always)]
pub(super) unsafe fn dot<V: Simd>(n: usize, x: *const V::T, y: *const V::T) -> V::T {
    // SAFETY: n numbers each.
    unsafe {
        let mut sum = V::zero();
        let mut i = 0;
        while i < n {
            let left = n - i;
            sum = V::load_upto(x.add(i), left).fma(V::load_upto(y.add(i), left), sum);
            i += V::LANES;
        }
        sum.sum()
    }
}

/// Scores become softmax weights; gives their log-sum-exp, −∞ where there is nothing.
#[inline(always)]
pub(super) unsafe fn row_softmax<V: Simd>(scores: *mut V::T, n: usize) -> V::T {
    // SAFETY: n numbers.
    unsafe {
        let mut largest = V::T::NEG_INFINITY;
        for e in 0..n {
            let s = *scores.add(e);
            largest = if s > largest { s } else { largest };
        }
        let first = if largest > V::T::NEG_INFINITY { largest } else { V::T::ZERO };
        let base = V::splat(first);
        let mut sum = V::zero();
        let mut e = 0;
        while e < n {
            let left = n - e;
            let at = scores.add(e);
            let p = V::load_upto(at, left).sub(base).exp();
            p.store_upto(at, left);
            sum = sum.add(if left >= V::LANES { p } else { V::load_first(at, left) });
            e += V::LANES;
        }
        let total = sum.sum();
        if total == V::T::ZERO {
            return V::T::NEG_INFINITY;
        }
        let factor = V::splat(V::T::ONE / total);
        let mut e = 0;
        while e < n {
            let left = n - e;
            let at = scores.add(e);
            V::load_upto(at, left).mul(factor).store_upto(at, left);
            e += V::LANES;
        }
        first + total.ln()
    }
}

//! Kernels for one query, or a few, against a list of keys: a feature per lane.
//!
//! Graphs use them (the list is the query's edges) and so does decoding (the list is the cache).
//! Each key and value is read once, however many query heads share it.

use super::additive::{Form, for_each_form, value, value_and_slope};
use super::simd::Simd;
use crate::Real;

/// The keys of a row.
#[derive(Clone, Copy)]
pub(crate) enum Keys {
    /// These rows of k and v.
    List(*const u32),
    /// Rows from this one on.
    From(usize),
}

impl Keys {
    #[inline(always)]
    unsafe fn at(self, n: usize) -> usize {
        match self {
            // SAFETY: n is within the list.
            Self::List(list) => unsafe { *list.add(n) as usize },
            Self::From(first) => first + n,
        }
    }
}

/// How a row is scored.
#[derive(Clone, Copy)]
pub(crate) enum RowScore<T> {
    /// q·k times this.
    Dot(T),
    /// Σ w · act(q + k), with w `[d]`.
    Additive(Form, *const T),
}

/// Scores of `n` keys for `queries` queries.
#[derive(Clone, Copy)]
pub(crate) struct RowScores<T> {
    pub(crate) score: RowScore<T>,
    pub(crate) q: *const T,
    pub(crate) q_row: usize,
    pub(crate) queries: usize,
    pub(crate) k: *const T,
    pub(crate) k_row: usize,
    pub(crate) keys: Keys,
    pub(crate) n: usize,
    pub(crate) d: usize,
    /// `[queries, n]`, rows `to_row` apart.
    pub(crate) to: *mut T,
    pub(crate) to_row: usize,
}

#[inline(always)]
pub(super) unsafe fn row_scores<V: Simd>(r: RowScores<V::T>) {
    // SAFETY: q has `queries` rows, every key is a row of k, `to` holds the result.
    unsafe {
        match r.score {
            RowScore::Dot(scale) => {
                let mut g = 0;
                while g + 4 <= r.queries {
                    dots::<V, 4>(&r, g, scale);
                    g += 4;
                }
                while g < r.queries {
                    dots::<V, 1>(&r, g, scale);
                    g += 1;
                }
            }
            RowScore::Additive(form, w) => for_each_form!(form, form => {
                for g in 0..r.queries {
                    let q = r.q.add(g * r.q_row);
                    for e in 0..r.n {
                        let k = r.k.add(r.keys.at(e) * r.k_row);
                        let mut sum = V::zero();
                        let mut x = 0;
                        while x < r.d {
                            let left = r.d - x;
                            let at = |p: *const V::T| V::load_upto(p.add(x), left);
                            sum = at(w).fma(value(form, at(q), at(k)), sum);
                            x += V::LANES;
                        }
                        *r.to.add(g * r.to_row + e) = sum.sum();
                    }
                }
            }),
        }
    }
}

/// Dot products of each key with G queries.
#[inline(always)]
unsafe fn dots<V: Simd, const G: usize>(r: &RowScores<V::T>, g: usize, scale: V::T) {
    // SAFETY: as above; queries g..g + G exist.
    unsafe {
        for e in 0..r.n {
            let k = r.k.add(r.keys.at(e) * r.k_row);
            let mut sum = [V::zero(); G];
            let mut x = 0;
            while x + V::LANES <= r.d {
                let k = V::load(k.add(x));
                for (n, sum) in sum.iter_mut().enumerate() {
                    *sum = V::load(r.q.add((g + n) * r.q_row + x)).fma(k, *sum);
                }
                x += V::LANES;
            }
            if x < r.d {
                let k = V::load_first(k.add(x), r.d - x);
                for (n, sum) in sum.iter_mut().enumerate() {
                    let q = V::load_first(r.q.add((g + n) * r.q_row + x), r.d - x);
                    *sum = q.fma(k, *sum);
                }
            }
            for (n, sum) in sum.iter().enumerate() {
                *r.to.add((g + n) * r.to_row + e) = sum.sum() * scale;
            }
        }
    }
}

/// Adds Σ_e weight_e · v_e to each of `queries` rows.
#[derive(Clone, Copy)]
pub(crate) struct RowGather<T> {
    /// `[queries, n]`, rows `weights_row` apart.
    pub(crate) weights: *const T,
    pub(crate) weights_row: usize,
    pub(crate) queries: usize,
    pub(crate) v: *const T,
    pub(crate) v_row: usize,
    pub(crate) keys: Keys,
    pub(crate) n: usize,
    pub(crate) d: usize,
    /// `[queries, d]`, rows `to_row` apart.
    pub(crate) to: *mut T,
    pub(crate) to_row: usize,
}

#[inline(always)]
pub(super) unsafe fn row_gather<V: Simd>(r: RowGather<V::T>) {
    // SAFETY: every key is a row of v, `to` holds the result.
    unsafe {
        let mut g = 0;
        while g < r.queries {
            let four = g + 4 <= r.queries;
            let mut x = 0;
            while x < r.d {
                let left = r.d - x;
                if left >= 4 * V::LANES && V::WIDE >= 4 {
                    if four {
                        sums::<V, 4, 4>(&r, g, x, V::LANES);
                    } else {
                        sums::<V, 1, 4>(&r, g, x, V::LANES);
                    }
                    x += 4 * V::LANES;
                } else {
                    if four {
                        sums::<V, 4, 1>(&r, g, x, left);
                    } else {
                        sums::<V, 1, 1>(&r, g, x, left);
                    }
                    x += V::LANES;
                }
            }
            g += if four { 4 } else { 1 };
        }
    }
}

/// NV registers of features from x on for G queries.
#[inline(always)]
unsafe fn sums<V: Simd, const G: usize, const NV: usize>(
    r: &RowGather<V::T>,
    g: usize,
    x: usize,
    left: usize,
) {
    // SAFETY: as above; the last register is masked where fewer features are left.
    unsafe {
        let mut sum = [[V::zero(); NV]; G];
        for e in 0..r.n {
            let v = r.v.add(r.keys.at(e) * r.v_row + x);
            let mut value = [V::zero(); NV];
            for (n, value) in value.iter_mut().enumerate() {
                *value = V::load_upto(v.add(n * V::LANES), left);
            }
            for (n, sum) in sum.iter_mut().enumerate() {
                let weight = V::splat(*r.weights.add((g + n) * r.weights_row + e));
                for v in 0..NV {
                    sum[v] = weight.fma(value[v], sum[v]);
                }
            }
        }
        for (n, sum) in sum.iter().enumerate() {
            for (v, sum) in sum.iter().enumerate() {
                let to = r.to.add((g + n) * r.to_row + x + v * V::LANES);
                sum.add(V::load_upto(to, left)).store_upto(to, left);
            }
        }
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
            let counted = if left >= V::LANES { p } else { V::load_first(at, left) };
            sum = sum.add(counted);
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

/// Adds grad · act'(q + k) to `slopes` and, where given, grad · act(q + k) to `values`.
#[inline(always)]
pub(super) unsafe fn row_additive_grad<V: Simd>(
    form: Form,
    d: usize,
    q: *const V::T,
    k: *const V::T,
    grad: V::T,
    slopes: *mut V::T,
    values: *mut V::T,
) {
    // SAFETY: d numbers each; `values` may be null.
    unsafe {
        for_each_form!(form, form => {
            let grad = V::splat(grad);
            let mut x = 0;
            while x < d {
                let left = d - x;
                let (value, slope) = value_and_slope(
                    form,
                    V::load_upto(q.add(x), left),
                    V::load_upto(k.add(x), left),
                );
                let to = slopes.add(x);
                grad.fma(slope, V::load_upto(to, left)).store_upto(to, left);
                if !values.is_null() {
                    let to = values.add(x);
                    grad.fma(value, V::load_upto(to, left)).store_upto(to, left);
                }
                x += V::LANES;
            }
        })
    }
}

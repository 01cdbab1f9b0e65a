//! Kernels for lists whose rows fit one register, as the heads of a graph's layers often do.
//!
//! A row is then one load, and what it meets stays in registers: a list costs little more than
//! reading its rows. Many lists are short, so nothing is left over to be done one by one: the last
//! few keys of a list are filled up with the next list's, whose own results come later and stay, or
//! with its last.
//!
//! Only for the scores that graphs use, dot and the leaky family (ReLU and identity are of it):
//! every other form would be compiled a dozen times for nobody.

#![allow(clippy::needless_range_loop)] // constant bounds, so that everything stays in registers

use super::additive::{Form, value, value_and_slope};
use super::row::{AHEAD, List, RowAdditiveGrads, RowGather, RowScore, RowScores, Rows, Term};
use crate::Real;
use crate::cpu::simd::{Simd, prefetch, prefetch_ends, prefetch_ends_to_write};

/// How many rows ahead the lines that they are written to are asked for.
pub(in crate::cpu) const WRITE_AHEAD: usize = 8;

/// A row of d ≤ LANES numbers; `WHOLE` where d = LANES.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn row<V: Simd, const WHOLE: bool>(from: *const V::T, d: usize) -> V {
    // SAFETY: d numbers.
    unsafe { if WHOLE { V::load(from) } else { V::load_first(from, d) } }
}

/// Four entries of a list that ends at `end`, its last where there are fewer.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn four(list: *const u32, e: usize, end: usize) -> [usize; 4] {
    // SAFETY: e < end, and the list has that many.
    unsafe {
        let mut four = [0; 4];
        if e + 4 <= end {
            for n in 0..4 {
                four[n] = *list.add(e + n) as usize;
            }
        } else {
            for n in 0..4 {
                four[n] = *list.add((e + n).min(end - 1)) as usize;
            }
        }
        four
    }
}

/// As `row::row_scores`, for the lists of a graph, d ≤ LANES and one query head to a key head.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn scores<V: Simd>(r: &RowScores<V::T>, keys: *const u32) {
    // SAFETY: as there.
    unsafe {
        match r.score {
            RowScore::Dot(scale) => scores_by::<V>(r, keys, Term::Dot(scale)),
            RowScore::Additive { form: Form::Leaky(slope), w, w_head } => {
                scores_by::<V>(r, keys, Term::Additive { form: Form::Leaky(slope), w, w_head });
            }
            RowScore::Additive { .. } => unreachable!("row_scores takes the others"),
        }
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn scores_by<V: Simd>(r: &RowScores<V::T>, keys: *const u32, term: Term<V>) {
    // SAFETY: as above.
    unsafe {
        let whole = r.d == V::LANES;
        match (r.products, whole) {
            (None, true) => walk::<V, true, false>(r, keys, term, r.q, r.to),
            (None, false) => walk::<V, false, false>(r, keys, term, r.q, r.to),
            (Some((other, to)), true) => walk::<V, true, true>(r, keys, term, other, to),
            (Some((other, to)), false) => walk::<V, false, true>(r, keys, term, other, to),
        }
    }
}

/// One walk along the keys for the scores and, where `BOTH`, the products with `other`'s rows.
#[cfg_attr(optimized, inline(always))]
unsafe fn walk<V: Simd, const WHOLE: bool, const BOTH: bool>(
    r: &RowScores<V::T>,
    keys: *const u32,
    term: Term<V>,
    other: Rows<V::T>,
    products: *mut V::T,
) {
    // SAFETY: as above. Lists follow each other, and heads, so what is read and written behind one
    // is the next one's; behind the last there is room, and its last key is read again.
    unsafe {
        let scale = match term {
            Term::Dot(scale) => scale,
            Term::Additive { .. } => V::T::ONE,
        };
        for h in 0..r.heads {
            let w = match term {
                Term::Dot(_) => V::zero(),
                Term::Additive { w, w_head, .. } => row::<V, WHOLE>(w.add(h * w_head), r.d),
            };
            let (k, k_row) = (r.k.at(h, 0), r.k.row);
            let limit = r.spans.of(r.rows - 1).1;
            let (to, products) =
                (r.to.wrapping_add(h * r.to_head), products.wrapping_add(h * r.to_head));
            for i in 0..r.rows {
                let (first, end) = r.spans.of(i);
                let q = r.q.at(h, i);
                prefetch_ends(q.wrapping_add(AHEAD / 2 * r.q.row), r.d);
                let q = row::<V, WHOLE>(q, r.d);
                let p = if BOTH { row::<V, WHOLE>(other.at(h, i), r.d) } else { q };
                let mut e = first;
                while e < end {
                    let mut scores = [V::zero(); 4];
                    let mut others = [V::zero(); 4];
                    if e + AHEAD < limit {
                        for key in four(keys, e + AHEAD, limit) {
                            prefetch(k.add(key * k_row));
                        }
                    }
                    // A list goes on with the next one's keys, whose scores are then written over these:
                    // where a list ends is what no processor foresees.
                    let four = four(keys, e, limit);
                    for n in 0..4 {
                        let key = row::<V, WHOLE>(k.add(four[n] * k_row), r.d);
                        scores[n] = match term {
                            Term::Dot(_) => q.mul(key),
                            Term::Additive { form, .. } => w.mul(value(form, q, key)),
                        };
                        if BOTH {
                            others[n] = p.mul(key);
                        }
                    }
                    let mut sums = V::sum4(scores);
                    for sum in &mut sums {
                        *sum *= scale;
                    }
                    put(sums, to.wrapping_add(e));
                    if BOTH {
                        put(V::sum4(others), products.wrapping_add(e));
                    }
                    e += 4;
                }
            }
        }
    }
}

/// Writes four numbers.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn put<T: Real>(four: [T; 4], to: *mut T) {
    // SAFETY: there is room.
    unsafe { to.cast::<[T; 4]>().write_unaligned(four) };
}

/// As `row::row_gather`, for d ≤ LANES and one query head to a key head.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn gather<V: Simd>(r: &RowGather<V::T>) {
    // SAFETY: as there.
    unsafe {
        let scale = V::splat(r.scale);
        for h in 0..r.heads {
            let weights = r.weights.wrapping_add(h * r.weights_head);
            for i in 0..r.rows {
                let (first, end) = r.spans.of(i);
                // Four sums, so that none waits for the one before.
                let mut sum = [V::zero(); 4];
                let mut e = first;
                while e < end {
                    let count = (end - e).min(4);
                    for n in 0..4 {
                        if n < count {
                            let v = V::load_upto(r.v.at(h, r.keys.at(e + n, first)), r.d);
                            sum[n] = V::splat(*weights.wrapping_add(e + n)).fma(v, sum[n]);
                        }
                    }
                    e += 4;
                }
                let all = sum[0].add(sum[1]).add(sum[2].add(sum[3]));
                all.mul(scale).store_upto(r.to.at(h, i), r.d);
            }
        }
    }
}

/// As [`gather`], for the lists of one head of a graph, with weights that are shares of their row's
/// sum, which is found on the way and written to `totals`. Gives the smallest sum of a row that has
/// pairs, and 0, or NaN where there is a NaN or ∞ in a row before it is divided.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn share_gather<V: Simd>(
    r: RowGather<V::T>,
    totals: *mut V::T,
) -> [V::T; 2] {
    // SAFETY: as there; a number for each row.
    unsafe {
        if r.d == V::LANES { shares::<V, true>(&r, totals) } else { shares::<V, false>(&r, totals) }
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn shares<V: Simd, const WHOLE: bool>(r: &RowGather<V::T>, totals: *mut V::T) -> [V::T; 2] {
    // SAFETY: as above.
    unsafe {
        let List::These(keys) = r.keys else { unreachable!("a graph has lists") };
        let (v, v_row) = (r.v.at(0, 0), r.v.row);
        let (mut least, mut nothing) = (V::splat(-V::T::NEG_INFINITY), V::zero());
        for i in 0..r.rows {
            let (first, end) = r.spans.of(i);
            prefetch_ends_to_write(r.to.near(0, i + WRITE_AHEAD), r.d);
            // Four sums and two, so that none waits for the one before.
            let mut sum = [V::zero(); 4];
            let mut total = [V::zero(); 2];
            let mut e = first;
            while e + 4 <= end {
                for n in 0..4 {
                    let value = row::<V, WHOLE>(v.add(*keys.add(e + n) as usize * v_row), r.d);
                    let weight = V::splat(*r.weights.wrapping_add(e + n));
                    sum[n] = weight.fma(value, sum[n]);
                    total[n % 2] = total[n % 2].add(weight);
                }
                e += 4;
            }
            while e < end {
                let value = row::<V, WHOLE>(v.add(*keys.add(e) as usize * v_row), r.d);
                let weight = V::splat(*r.weights.wrapping_add(e));
                sum[0] = weight.fma(value, sum[0]);
                total[0] = total[0].add(weight);
                e += 1;
            }
            let total = total[0].add(total[1]);
            *totals.add(i) = total.first();
            // A row without a pair is 0.
            let total = if first < end { total } else { V::splat(V::T::ONE) };
            least = least.min(total);
            let all = sum[0].add(sum[1]).add(sum[2].add(sum[3]));
            nothing = all.fma(V::zero(), nothing);
            all.div(total).store_upto(r.to.at(0, i), r.d);
        }
        [least.first(), nothing.sum()]
    }
}

/// As `row::row_additive_grads`, for the lists of a graph, d ≤ LANES and one query head to a key head.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn additive_grads<V: Simd>(r: &RowAdditiveGrads<V::T>, keys: *const u32) {
    // SAFETY: as there.
    unsafe {
        let Form::Leaky(slope) = r.form else {
            unreachable!("row_additive_grads takes the others")
        };
        if r.d == V::LANES {
            query_grads::<V, true>(r, keys, Form::Leaky(slope));
        } else {
            query_grads::<V, false>(r, keys, Form::Leaky(slope));
        }
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn query_grads<V: Simd, const WHOLE: bool>(
    r: &RowAdditiveGrads<V::T>,
    keys: *const u32,
    form: Form,
) {
    // SAFETY: as above.
    unsafe {
        for h in 0..r.heads {
            let grads = r.grads.wrapping_add(h * r.grads_head);
            let w = row::<V, WHOLE>(r.w.add(h * r.w_head), r.d);
            let k = r.k.at(h, 0);
            // Two sums each, so that none waits for the one before.
            let mut values = [V::zero(); 2];
            for i in 0..r.rows {
                let (first, end) = r.spans.of(i);
                let q = row::<V, WHOLE>(r.q.at(h, i), r.d);
                let mut slopes = [V::zero(); 2];
                let mut e = first;
                while e < end {
                    for n in 0..2 {
                        if e + n < end {
                            let key = k.add(*keys.add(e + n) as usize * r.k.row);
                            let key = row::<V, WHOLE>(key, r.d);
                            let grad = V::splat(*grads.wrapping_add(e + n));
                            let (value, slope) = value_and_slope(form, q, key);
                            slopes[n] = grad.fma(slope, slopes[n]);
                            values[n] = grad.fma(value, values[n]);
                        }
                    }
                    e += 2;
                }
                if !r.grad_q.base.is_null() {
                    let to = r.grad_q.at(h, i);
                    slopes[0].add(slopes[1]).mul(w).store_upto(to, r.d);
                }
            }
            let to = r.grad_w.add(h * r.d);
            let all = values[0].add(values[1]).add(V::load_upto(to, r.d));
            all.store_upto(to, r.d);
        }
    }
}

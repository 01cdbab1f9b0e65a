//! The gradients of keys and values that fit one register each, one query head to a key head: both
//! in one walk along the queries that see them.

#![allow(clippy::needless_range_loop)] // constant bounds, so that everything stays in registers

use super::additive::{Form, value, value_and_slope};
use super::narrow::{four, put, row};
use super::row::{AHEAD, KeyGrads, RowScore, Rows, Term};
use super::simd::{Simd, prefetch};
use crate::Real;

/// As `row::key_grads`, for an additive score: both gradients in one walk along the pairs.
#[inline(always)]
pub(super) unsafe fn key_grads<V: Simd>(
    form: Form,
    w: *const V::T,
    w_head: usize,
    r: &KeyGrads<V::T>,
) {
    // SAFETY: as there.
    unsafe {
        for h in 0..r.heads {
            let numbers = r.numbers.add(2 * h * r.pair_head);
            let w = V::load_upto(w.add(h * w_head), r.d);
            for j in 0..r.keys {
                let (first, end) = r.spans.of(j);
                let limit = r.queries.limit(r.spans, r.keys, end);
                let k = V::load_upto(r.k.at(h, j), r.d);
                let (mut values, mut slopes) = (V::zero(), V::zero());
                for e in first..end {
                    if e + AHEAD < limit {
                        let (i, pair) =
                            (r.queries.at(e + AHEAD, first), r.pairs.at(e + AHEAD, first, j));
                        prefetch(r.q.at(h, i));
                        prefetch(r.grad_out.at(h, i));
                        prefetch(numbers.add(2 * pair));
                    }
                    let (i, pair) = (r.queries.at(e, first), r.pairs.at(e, first, j));
                    let grad_out = V::load_upto(r.grad_out.at(h, i), r.dv);
                    let q = V::load_upto(r.q.at(h, i), r.d);
                    let (_, slope) = value_and_slope(form, q, k);
                    values = V::splat(*numbers.add(2 * pair)).fma(grad_out, values);
                    slopes = V::splat(*numbers.add(2 * pair + 1)).fma(slope, slopes);
                }
                values.store_upto(r.grad_v.at(h, j), r.dv);
                slopes.mul(w).store_upto(r.grad_k.at(h, j), r.d);
            }
        }
    }
}

/// As `row::key_grads`, from what is known of each query of a graph: a pair's weight and gradient
/// are computed again, which is quicker than reading them, since they lie in the order of the
/// queries.
#[inline(always)]
pub(super) unsafe fn key_grads_again<V: Simd>(
    r: &KeyGrads<V::T>,
    queries: *const u32,
    stats: Rows<V::T>,
) {
    // SAFETY: as there.
    unsafe {
        match r.score {
            RowScore::Dot(scale) => recompute_by::<V>(r, queries, stats, Term::Dot(scale)),
            RowScore::Additive { form: Form::Leaky(slope), w, w_head } => {
                let form = Form::Leaky(slope);
                recompute_by::<V>(r, queries, stats, Term::Additive { form, w, w_head });
            }
            RowScore::Additive { .. } => unreachable!("only narrow forms are computed again"),
        }
    }
}

#[inline(always)]
unsafe fn recompute_by<V: Simd>(
    r: &KeyGrads<V::T>,
    queries: *const u32,
    stats: Rows<V::T>,
    term: Term<V>,
) {
    // SAFETY: as above.
    unsafe {
        if r.d == V::LANES && r.dv == V::LANES {
            recompute::<V, true>(r, queries, stats, term);
        } else {
            recompute::<V, false>(r, queries, stats, term);
        }
    }
}

/// Pairs whose numbers are held at a time.
const HELD: usize = 64;

/// Scores, which become weights; gradients of the weights, which become those of the scores; and
/// what is known of the queries.
#[derive(Clone, Copy)]
struct Held<T> {
    weights: [T; HELD],
    grads: [T; HELD],
    lse: [T; HELD],
    mean: [T; HELD],
}

/// Some pairs of a key.
#[derive(Clone, Copy)]
struct Part {
    j: usize,
    from: usize,
    to: usize,
    /// The key's last.
    last: bool,
}

/// One head's walk along the keys.
struct Walk<'a, V: Simd> {
    r: &'a KeyGrads<V::T>,
    h: usize,
    queries: *const u32,
    /// Where the queries end.
    limit: usize,
    stat: *const V::T,
    term: Term<V>,
    w: V,
    scale: V,
}

#[inline(always)]
unsafe fn recompute<V: Simd, const WHOLE: bool>(
    r: &KeyGrads<V::T>,
    queries: *const u32,
    stats: Rows<V::T>,
    term: Term<V>,
) {
    // SAFETY: as above; the queries of a list are filled up with its last.
    unsafe {
        let scale = match term {
            Term::Dot(scale) => V::splat(scale),
            Term::Additive { .. } => V::splat(V::T::ONE),
        };
        let zeros = [V::T::ZERO; HELD];
        let mut held = [Held { weights: zeros, grads: zeros, lse: zeros, mean: zeros }; 2];
        let limit = r.spans.of(r.keys - 1).1;
        for h in 0..r.heads {
            let w = match term {
                Term::Dot(_) => scale,
                Term::Additive { w, w_head, .. } => row::<V, WHOLE>(w.add(h * w_head), r.d),
            };
            let walk = Walk { r, h, queries, limit, stat: stats.at(h, 0), term, w, scale };
            let mut sums = [V::zero(); 2];
            let mut before: Option<Part> = None;
            // A part is finished after the next was looked at: what was just written in small
            // pieces cannot be read at once in large ones.
            let mut turn = 0;
            for j in 0..r.keys {
                let (first, end) = r.spans.of(j);
                let mut from = first;
                loop {
                    let to = (from + HELD).min(end);
                    let part = Part { j, from, to, last: to == end };
                    look::<V, WHOLE>(&walk, part, &mut held[turn]);
                    if let Some(before) = before.replace(part) {
                        take::<V, WHOLE>(&walk, before, &mut held[1 - turn], &mut sums);
                    }
                    turn = 1 - turn;
                    from = to;
                    if part.last {
                        break;
                    }
                }
            }
            if let Some(last) = before {
                take::<V, WHOLE>(&walk, last, &mut held[1 - turn], &mut sums);
            }
        }
    }
}

/// The scores of some pairs and the gradients of their weights.
#[inline(always)]
unsafe fn look<V: Simd, const WHOLE: bool>(x: &Walk<V>, part: Part, held: &mut Held<V::T>) {
    // SAFETY: as above.
    unsafe {
        let Walk { r, h, queries, limit, stat, term, w, .. } = *x;
        let Part { j, from, to, .. } = part;
        let (q, grad_out) = (r.q.at(h, 0), r.grad_out.at(h, 0));
        let (q_row, grad_row) = (r.q.row, r.grad_out.row);
        let k = row::<V, WHOLE>(r.k.at(h, j), r.d);
        let v = row::<V, WHOLE>(r.v.at(h, j), r.dv);
        let mut e = from;
        while e < to {
            if e + AHEAD < limit {
                for i in four(queries, e + AHEAD, limit) {
                    prefetch(q.add(i * q_row));
                    prefetch(grad_out.add(i * grad_row));
                }
            }
            let four = four(queries, e, to);
            let mut scores = [V::zero(); 4];
            let mut products = [V::zero(); 4];
            for n in 0..4 {
                let i = four[n];
                let q = row::<V, WHOLE>(q.add(i * q_row), r.d);
                let grad = row::<V, WHOLE>(grad_out.add(i * grad_row), r.dv);
                scores[n] = match term {
                    Term::Dot(_) => q.mul(k),
                    Term::Additive { form, .. } => w.mul(value(form, q, k)),
                };
                products[n] = grad.mul(v);
                *held.lse.as_mut_ptr().add(e - from + n) = *stat.add(2 * i);
                *held.mean.as_mut_ptr().add(e - from + n) = *stat.add(2 * i + 1);
            }
            put(V::sum4(scores), held.weights.as_mut_ptr().add(e - from), 4);
            put(V::sum4(products), held.grads.as_mut_ptr().add(e - from), 4);
            e += 4;
        }
    }
}

/// Adds some pairs to their key's sums, and writes those with the last.
#[inline(always)]
unsafe fn take<V: Simd, const WHOLE: bool>(
    x: &Walk<V>,
    part: Part,
    held: &mut Held<V::T>,
    [values, slopes]: &mut [V; 2],
) {
    // SAFETY: as above.
    unsafe {
        let Walk { r, h, queries, term, w, scale, .. } = *x;
        let Part { j, from, to, last } = part;
        let mut x = 0;
        while x < to - from {
            let score = V::load(held.weights.as_ptr().add(x)).mul(scale);
            let p = score.sub(V::load(held.lse.as_ptr().add(x))).exp();
            let mean = V::load(held.mean.as_ptr().add(x));
            let grad = V::load(held.grads.as_ptr().add(x)).sub(mean);
            p.store(held.weights.as_mut_ptr().add(x));
            p.mul(grad).store(held.grads.as_mut_ptr().add(x));
            x += V::LANES;
        }
        let (q, grad_out) = (r.q.at(h, 0), r.grad_out.at(h, 0));
        let k = row::<V, WHOLE>(r.k.at(h, j), r.d);
        for e in from..to {
            let i = *queries.add(e) as usize;
            let q = row::<V, WHOLE>(q.add(i * r.q.row), r.d);
            let grad = row::<V, WHOLE>(grad_out.add(i * r.grad_out.row), r.dv);
            let slope = match term {
                Term::Dot(_) => q,
                Term::Additive { form, .. } => value_and_slope(form, q, k).1,
            };
            *values = V::splat(*held.weights.as_ptr().add(e - from)).fma(grad, *values);
            *slopes = V::splat(*held.grads.as_ptr().add(e - from)).fma(slope, *slopes);
        }
        if last {
            if !r.grad_v.base.is_null() {
                values.store_upto(r.grad_v.at(h, j), r.dv);
            }
            if !r.grad_k.base.is_null() {
                slopes.mul(w).store_upto(r.grad_k.at(h, j), r.d);
            }
            (*values, *slopes) = (V::zero(), V::zero());
        }
    }
}

//! The gradients of keys and values that fit one register each, one query head to a key head: both
//! in one walk along the queries that see them.

#![allow(clippy::needless_range_loop)] // constant bounds, so that everything stays in registers

use super::additive::{Form, value, value_and_slope};
use super::narrow::{WRITE_AHEAD, four, put, row};
use super::row::{AHEAD, KeyGrads, RowScore, Rows, Spans, Term};
use crate::Real;
use crate::cpu::simd::{Simd, prefetch, prefetch_ends_to_write};

/// As `row::key_grads`, for an additive score: both gradients in one walk along the pairs.
#[cfg_attr(optimized, inline(always))]
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
#[cfg_attr(optimized, inline(always))]
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

#[cfg_attr(optimized, inline(always))]
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

/// Pairs whose numbers are held at a time: so many that their rows are still near when they are
/// added up.
const HELD: usize = 256;

/// Of some pairs: scores, which become weights; gradients of the weights, which become those of the
/// scores; and what is known of the queries. Whole registers are read, and fours written.
struct Held<T> {
    weights: [T; HELD + 16],
    grads: [T; HELD + 16],
    /// Each pair's log-sum-exp and mean.
    stats: [[T; 2]; HELD + 16],
}

/// Some pairs, one key's behind the other's.
#[derive(Clone, Copy)]
struct Block {
    /// Their keys: of the first and the last perhaps not all pairs.
    first: usize,
    last: usize,
    from: usize,
    to: usize,
}

impl Block {
    /// Those from pair `from` of key `first` on.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn at(spans: Spans, keys: usize, first: usize, from: usize) -> Self {
        // SAFETY: there is such a key.
        unsafe {
            let mut last = first;
            let mut to = spans.of(first).1.min(from + HELD);
            while last + 1 < keys && spans.of(last + 1).1 <= from + HELD {
                last += 1;
                to = spans.of(last).1;
            }
            Self { first, last, from, to }
        }
    }

    /// The pairs of key j among these, and whether its last is.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn of(&self, spans: Spans, j: usize) -> (usize, usize, bool) {
        // SAFETY: one of its keys.
        let (first, end) = unsafe { spans.of(j) };
        (first.max(self.from), end.min(self.to), end <= self.to)
    }
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

#[cfg_attr(optimized, inline(always))]
unsafe fn recompute<V: Simd, const WHOLE: bool>(
    r: &KeyGrads<V::T>,
    queries: *const u32,
    stats: Rows<V::T>,
    term: Term<V>,
) {
    // SAFETY: as above.
    unsafe {
        let scale = match term {
            Term::Dot(scale) => V::splat(scale),
            Term::Additive { .. } => V::splat(V::T::ONE),
        };
        let zeros = [V::T::ZERO; HELD + 16];
        let mut held = Held { weights: zeros, grads: zeros, stats: [[V::T::ZERO; 2]; HELD + 16] };
        let limit = r.spans.of(r.keys - 1).1;
        for h in 0..r.heads {
            let w = match term {
                Term::Dot(_) => scale,
                Term::Additive { w, w_head, .. } => row::<V, WHOLE>(w.add(h * w_head), r.d),
            };
            let walk = Walk { r, h, queries, limit, stat: stats.at(h, 0), term, w, scale };
            let mut sums = [V::zero(); 2];
            let (mut j, mut from) = (0, r.spans.of(0).0);
            while j < r.keys {
                let block = Block::at(r.spans, r.keys, j, from);
                look::<V, WHOLE>(&walk, block, &mut held);
                finish(&walk, block.to - block.from, &mut held);
                take::<V, WHOLE>(&walk, block, &held, &mut sums);
                j = block.last + usize::from(r.spans.of(block.last).1 == block.to);
                from = block.to;
            }
        }
    }
}

/// The scores of some pairs and the gradients of their weights.
#[cfg_attr(optimized, inline(always))]
unsafe fn look<V: Simd, const WHOLE: bool>(x: &Walk<V>, block: Block, held: &mut Held<V::T>) {
    // SAFETY: as above. What is read and written behind a key's pairs is the next one's, or has
    // room; the queries of the last list are filled up with its last.
    unsafe {
        let Walk { r, h, queries, limit, stat, term, w, .. } = *x;
        let (q, grad_out) = (r.q.at(h, 0), r.grad_out.at(h, 0));
        let (q_row, grad_row) = (r.q.row, r.grad_out.row);
        let stat = stat.cast::<[V::T; 2]>();
        let (weights, grads) = (held.weights.as_mut_ptr(), held.grads.as_mut_ptr());
        let stats = held.stats.as_mut_ptr();
        for j in block.first..=block.last {
            let (from, to, _) = block.of(r.spans, j);
            let k = row::<V, WHOLE>(r.k.at(h, j), r.d);
            let v = row::<V, WHOLE>(r.v.at(h, j), r.dv);
            let mut e = from;
            while e < to {
                if e + AHEAD < limit {
                    for i in four(queries, e + AHEAD, limit) {
                        prefetch(q.add(i * q_row));
                        prefetch(grad_out.add(i * grad_row));
                        prefetch(stat.add(i));
                    }
                }
                let four = four(queries, e, limit);
                let mut scores = [V::zero(); 4];
                let mut products = [V::zero(); 4];
                let at = e - block.from;
                for n in 0..4 {
                    let i = four[n];
                    let q = row::<V, WHOLE>(q.add(i * q_row), r.d);
                    let grad = row::<V, WHOLE>(grad_out.add(i * grad_row), r.dv);
                    scores[n] = match term {
                        Term::Dot(_) => q.mul(k),
                        Term::Additive { form, .. } => w.mul(value(form, q, k)),
                    };
                    products[n] = grad.mul(v);
                    *stats.add(at + n) = *stat.add(i);
                }
                put(V::sum4(scores), weights.add(at));
                put(V::sum4(products), grads.add(at));
                e += 4;
            }
        }
    }
}

/// Scores become weights, and gradients of the weights those of the scores.
#[cfg_attr(optimized, inline(always))]
unsafe fn finish<V: Simd>(x: &Walk<V>, n: usize, held: &mut Held<V::T>) {
    // SAFETY: n ≤ HELD pairs, and room for a register more.
    unsafe {
        let (weights, grads) = (held.weights.as_mut_ptr(), held.grads.as_mut_ptr());
        let mut at = 0;
        while at < n {
            let [lse, mean] = V::load_pairs(held.stats.as_ptr().add(at).cast());
            let p = V::load(weights.add(at)).mul(x.scale).sub(lse).exp();
            p.store(weights.add(at));
            V::load(grads.add(at)).sub(mean).mul(p).store(grads.add(at));
            at += V::LANES;
        }
    }
}

/// Adds some pairs to their keys' sums, and writes those with a key's last.
#[cfg_attr(optimized, inline(always))]
unsafe fn take<V: Simd, const WHOLE: bool>(
    x: &Walk<V>,
    block: Block,
    held: &Held<V::T>,
    [values, slopes]: &mut [V; 2],
) {
    // SAFETY: as above.
    unsafe {
        let Walk { r, h, queries, term, w, .. } = *x;
        let (q, grad_out) = (r.q.at(h, 0), r.grad_out.at(h, 0));
        for j in block.first..=block.last {
            let (from, to, last) = block.of(r.spans, j);
            prefetch_ends_to_write(r.grad_v.near(h, j + WRITE_AHEAD), r.dv);
            prefetch_ends_to_write(r.grad_k.near(h, j + WRITE_AHEAD), r.d);
            let k = row::<V, WHOLE>(r.k.at(h, j), r.d);
            for e in from..to {
                let i = *queries.add(e) as usize;
                let q = row::<V, WHOLE>(q.add(i * r.q.row), r.d);
                let grad = row::<V, WHOLE>(grad_out.add(i * r.grad_out.row), r.dv);
                let slope = match term {
                    Term::Dot(_) => q,
                    Term::Additive { form, .. } => value_and_slope(form, q, k).1,
                };
                let at = e - block.from;
                *values = V::splat(*held.weights.as_ptr().add(at)).fma(grad, *values);
                *slopes = V::splat(*held.grads.as_ptr().add(at)).fma(slope, *slopes);
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
}

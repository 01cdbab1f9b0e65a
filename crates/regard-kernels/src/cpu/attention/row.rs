//! Kernels for queries that each have a list of keys of their own: a feature per lane.
//!
//! Graphs use them (the list is the query's edges) and so does decoding (the list is the cache).
//! One call serves many rows. Pairs are numbered through: row i has pairs `spans.of(i)`, and every
//! array of pairs is `[heads, pairs]`. The next rows of a list are asked for ahead, since the
//! processor sees neither them nor beyond the end of a page by itself.

#![allow(clippy::needless_range_loop)] // constant bounds, so that everything stays in registers

use super::additive::{Form, for_each_direct_form, value, value_and_slope};
use super::{narrow, narrow_keys};
use crate::Real;
use crate::cpu::simd::{Simd, prefetch_row};

/// Which pairs belong to each row.
#[derive(Clone, Copy)]
pub(crate) enum Spans {
    /// Row i has those from entry i to entry i + 1.
    Between(*const usize),
    /// Row i has this many from i times as many on.
    Every(usize),
}

impl Spans {
    #[cfg_attr(optimized, inline(always))]
    pub(in crate::cpu) unsafe fn of(self, i: usize) -> (usize, usize) {
        match self {
            // SAFETY: there is an entry for each row, and one more.
            Self::Between(starts) => unsafe { (*starts.add(i), *starts.add(i + 1)) },
            Self::Every(n) => (i * n, (i + 1) * n),
        }
    }
}

/// The other end of each pair.
#[derive(Clone, Copy)]
pub(crate) enum List {
    /// That of pair e is entry e.
    These(*const u32),
    /// Those of a row's pairs are consecutive from this one on.
    From(usize),
}

impl List {
    /// Where to stop asking ahead in a row that ends at `end`: the pairs of a list go on with the
    /// next row's, up to those of the last row.
    #[cfg_attr(optimized, inline(always))]
    pub(in crate::cpu) unsafe fn limit(self, spans: Spans, rows: usize, end: usize) -> usize {
        match self {
            // SAFETY: there is a last row.
            Self::These(_) => unsafe { spans.of(rows - 1).1 },
            Self::From(_) => end,
        }
    }

    /// How far ahead to ask.
    #[cfg_attr(optimized, inline(always))]
    fn ahead(self) -> usize {
        match self {
            Self::These(_) => AHEAD,
            Self::From(_) => AHEAD_IN_ORDER,
        }
    }

    /// The other end of pair e of a row whose pairs begin at `first`.
    #[cfg_attr(optimized, inline(always))]
    pub(in crate::cpu) unsafe fn at(self, e: usize, first: usize) -> usize {
        match self {
            // SAFETY: e is within the list.
            Self::These(list) => unsafe { *list.add(e) as usize },
            Self::From(from) => from + e - first,
        }
    }
}

/// An array of heads and rows: row (h, n) starts at `base + h·head + n·row`.
#[derive(Clone, Copy)]
pub(crate) struct Rows<T> {
    pub(crate) base: *const T,
    pub(crate) head: usize,
    pub(crate) row: usize,
}

impl<T> Rows<T> {
    #[cfg_attr(optimized, inline(always))]
    pub(in crate::cpu) unsafe fn at(&self, h: usize, n: usize) -> *const T {
        // SAFETY: the caller's row exists.
        unsafe { self.base.add(h * self.head + n * self.row) }
    }
}

/// As [`Rows`], to write.
#[derive(Clone, Copy)]
pub(crate) struct RowsMut<T> {
    pub(crate) base: *mut T,
    pub(crate) head: usize,
    pub(crate) row: usize,
}

impl<T> RowsMut<T> {
    /// Where a row is or would be, to ask for it.
    #[cfg_attr(optimized, inline(always))]
    pub(in crate::cpu) fn near(&self, h: usize, n: usize) -> *const T {
        self.base.wrapping_add(h * self.head + n * self.row)
    }

    #[cfg_attr(optimized, inline(always))]
    pub(in crate::cpu) unsafe fn at(&self, h: usize, n: usize) -> *mut T {
        // SAFETY: the caller's row exists.
        unsafe { self.base.add(h * self.head + n * self.row) }
    }
}

/// How many pairs ahead the next rows of a list are asked for; of consecutive rows, which are read
/// in several places at once, fewer are enough.
pub(in crate::cpu) const AHEAD: usize = 32;
const AHEAD_IN_ORDER: usize = 3;
/// How many places a long list is read in at once.
const STREAMS: usize = 4;

/// Numbers for which there must be room behind the last score of a graph's lists.
pub(in crate::cpu) const BEHIND: usize = 3;

/// How a pair is scored.
#[derive(Clone, Copy)]
pub(crate) enum RowScore<T> {
    /// q·k times this.
    Dot(T),
    /// Σ w · act(q + k); w of head h starts at `w + h · w_head`.
    Additive { form: Form, w: *const T, w_head: usize },
}

impl<T> RowScore<T> {
    /// Whether rows of one register have kernels of their own; see `narrow.rs`.
    #[cfg_attr(optimized, inline(always))]
    fn is_narrow(&self) -> bool {
        match self {
            Self::Dot(_) => true,
            Self::Additive { form, .. } => form.is_narrow(),
        }
    }
}

/// Scores of each row's pairs for `heads` heads, `group` of which share a key head.
#[derive(Clone, Copy)]
pub(crate) struct RowScores<T> {
    pub(crate) score: RowScore<T>,
    pub(crate) heads: usize,
    pub(crate) group: usize,
    pub(crate) rows: usize,
    pub(crate) spans: Spans,
    pub(crate) keys: List,
    pub(crate) q: Rows<T>,
    pub(crate) k: Rows<T>,
    pub(crate) d: usize,
    /// Pair e of head h at `to + h·to_head + e`. A graph's lists may be written in fours:
    /// [`BEHIND`].
    pub(crate) to: *mut T,
    pub(crate) to_head: usize,
    /// Where k's rows are also multiplied by other rows on the queries' side, as wide as they: those
    /// rows, and where the products go, as `to`.
    pub(crate) products: Option<(Rows<T>, *mut T)>,
}

#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn row_scores<V: Simd>(r: RowScores<V::T>) {
    // SAFETY: every key is a row of k, `to` holds the result.
    unsafe {
        if let (List::These(keys), 1) = (r.keys, r.group)
            && r.d <= V::LANES
            && r.rows > 0
            && r.score.is_narrow()
        {
            return narrow::scores::<V>(&r, keys);
        }
        if let Some((q, to)) = r.products {
            let score = RowScore::Dot(V::T::ONE);
            wide_scores::<V>(RowScores { score, q, to, products: None, ..r });
        }
        wide_scores::<V>(r);
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn wide_scores<V: Simd>(r: RowScores<V::T>) {
    // SAFETY: as above.
    unsafe {
        match r.score {
            RowScore::Dot(scale) if r.group >= 4 => {
                for i in 0..r.rows {
                    let (first, end) = r.spans.of(i);
                    // Four places at once: memory gives more to four streams than to one.
                    let stream = (end - first) / STREAMS;
                    for e in first..first + stream {
                        let four = [e, e + stream, e + 2 * stream, e + 3 * stream];
                        for kh in 0..r.heads / r.group {
                            shared_keys::<V, STREAMS>(&r, i, kh, four, (first, end), scale);
                        }
                    }
                    for e in first + STREAMS * stream..end {
                        for kh in 0..r.heads / r.group {
                            shared_keys::<V, 1>(&r, i, kh, [e], (first, end), scale);
                        }
                    }
                }
            }
            RowScore::Dot(scale) => by_fours(&r, Term::<V>::Dot(scale)),
            RowScore::Additive { form, w, w_head } => for_each_direct_form!(form, form => {
                by_fours(&r, Term::<V>::Additive { form, w, w_head });
            }),
        }
    }
}

/// One term of a score, feature by feature.
#[derive(Clone, Copy)]
pub(in crate::cpu) enum Term<V: Simd> {
    Dot(V::T),
    Additive { form: Form, w: *const V::T, w_head: usize },
}

/// Scores four keys at a time, so that their sums over the lanes are made together.
#[cfg_attr(optimized, inline(always))]
unsafe fn by_fours<V: Simd>(r: &RowScores<V::T>, term: Term<V>) {
    // SAFETY: as above.
    unsafe {
        let scale = match term {
            Term::Dot(scale) => scale,
            Term::Additive { .. } => V::T::ONE,
        };
        for i in 0..r.rows {
            let (first, end) = r.spans.of(i);
            let limit = r.keys.limit(r.spans, r.rows, end);
            for h in 0..r.heads {
                let kh = if r.group == 1 { h } else { h / r.group };
                let q = r.q.at(h, i);
                prefetch_row(q.wrapping_add(AHEAD / 2 * r.q.row), r.d);
                let to = r.to.wrapping_add(h * r.to_head);
                let mut e = first;
                while e < end {
                    let four = e + 4 <= end;
                    let count = if four { 4 } else { 1 };
                    if h == kh * r.group {
                        for e in e + AHEAD..(e + AHEAD + count).min(limit) {
                            prefetch_row(r.k.at(kh, r.keys.at(e, first)), r.d);
                        }
                    }
                    if four {
                        let mut parts = [V::zero(); 4];
                        for (n, part) in parts.iter_mut().enumerate() {
                            let k = r.k.at(kh, r.keys.at(e + n, first));
                            *part = terms(term, h, q, k, r.d);
                        }
                        for (n, sum) in V::sum4(parts).into_iter().enumerate() {
                            *to.wrapping_add(e + n) = sum * scale;
                        }
                    } else {
                        let k = r.k.at(kh, r.keys.at(e, first));
                        // Summed as four are, so that equal keys have equal scores.
                        let part = terms(term, h, q, k, r.d);
                        let [sum, ..] = V::sum4([part, V::zero(), V::zero(), V::zero()]);
                        *to.wrapping_add(e) = sum * scale;
                    }
                    e += count;
                }
            }
        }
    }
}

/// The terms of head h's score for a pair, to be summed over the lanes.
#[cfg_attr(optimized, inline(always))]
unsafe fn terms<V: Simd>(term: Term<V>, h: usize, q: *const V::T, k: *const V::T, d: usize) -> V {
    // SAFETY: as above.
    unsafe {
        let mut sum = V::zero();
        let mut x = 0;
        while x + V::LANES <= d {
            sum = term.add(sum, h, x, V::LANES, V::load(q.add(x)), V::load(k.add(x)));
            x += V::LANES;
        }
        if x < d {
            let n = d - x;
            sum = term.add(sum, h, x, n, V::load_first(q.add(x), n), V::load_first(k.add(x), n));
        }
        sum
    }
}

impl<V: Simd> Term<V> {
    /// Adds the terms of features x..x + n. Not a closure: those are not sure to be inlined.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn add(self, sum: V, h: usize, x: usize, n: usize, q: V, k: V) -> V {
        // SAFETY: as above.
        unsafe {
            match self {
                Self::Dot(_) => q.fma(k, sum),
                Self::Additive { form, w, w_head } => {
                    V::load_upto(w.add(h * w_head + x), n).fma(value(form, q, k), sum)
                }
            }
        }
    }
}

/// Dot products of NK keys with all queries that share them.
#[cfg_attr(optimized, inline(always))]
unsafe fn shared_keys<V: Simd, const NK: usize>(
    r: &RowScores<V::T>,
    i: usize,
    kh: usize,
    pairs: [usize; NK],
    (first, end): (usize, usize),
    scale: V::T,
) {
    // SAFETY: as above.
    unsafe {
        let mut k = [r.k.base; NK];
        for (n, k) in k.iter_mut().enumerate() {
            let ahead = pairs[n] + r.keys.ahead();
            if ahead < end {
                prefetch_row(r.k.at(kh, r.keys.at(ahead, first)), r.d);
            }
            *k = r.k.at(kh, r.keys.at(pairs[n], first));
        }
        let (mut h, last) = (kh * r.group, (kh + 1) * r.group);
        while h + 4 <= last {
            let q = r.q.at(h, i);
            let mut sum = [[V::zero(); 4]; NK];
            let mut x = 0;
            while x + V::LANES <= r.d {
                let mut keys = [V::zero(); NK];
                for n in 0..NK {
                    keys[n] = V::load(k[n].add(x));
                }
                for g in 0..4 {
                    let q = V::load(q.add(g * r.q.head + x));
                    for n in 0..NK {
                        sum[n][g] = q.fma(keys[n], sum[n][g]);
                    }
                }
                x += V::LANES;
            }
            if x < r.d {
                let left = r.d - x;
                for n in 0..NK {
                    let key = V::load_first(k[n].add(x), left);
                    for g in 0..4 {
                        let q = V::load_first(q.add(g * r.q.head + x), left);
                        sum[n][g] = q.fma(key, sum[n][g]);
                    }
                }
            }
            for (n, sum) in sum.into_iter().enumerate() {
                for (g, sum) in V::sum4(sum).into_iter().enumerate() {
                    *r.to.wrapping_add((h + g) * r.to_head + pairs[n]) = sum * scale;
                }
            }
            h += 4;
        }
        while h < last {
            for (n, &k) in k.iter().enumerate() {
                let part = terms(Term::<V>::Dot(scale), h, r.q.at(h, i), k, r.d);
                let [sum, ..] = V::sum4([part, V::zero(), V::zero(), V::zero()]);
                *r.to.wrapping_add(h * r.to_head + pairs[n]) = sum * scale;
            }
            h += 1;
        }
    }
}

/// Each row's output: the sum of its pairs' weights times their values, times `scale`.
#[derive(Clone, Copy)]
pub(crate) struct RowGather<T> {
    pub(crate) heads: usize,
    pub(crate) group: usize,
    pub(crate) rows: usize,
    pub(crate) spans: Spans,
    pub(crate) keys: List,
    /// Pair e of head h at `weights + h·weights_head + e`.
    pub(crate) weights: *const T,
    pub(crate) weights_head: usize,
    pub(crate) v: Rows<T>,
    pub(crate) d: usize,
    pub(crate) scale: T,
    pub(crate) to: RowsMut<T>,
}

#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn row_gather<V: Simd>(r: RowGather<V::T>) {
    // SAFETY: every key is a row of v, `to` holds the result.
    unsafe {
        if r.d <= V::LANES && r.group == 1 {
            return narrow::gather::<V>(&r);
        }
        let key_heads = r.heads / r.group;
        for i in 0..r.rows {
            let (first, end) = r.spans.of(i);
            // So many keys that their values are still near for the next heads.
            const NEAR: usize = 64;
            let mut from = first;
            // A long row is read in four places at once, as for the scores.
            let stream = if end - first >= 4 * NEAR { (end - first) / STREAMS } else { 0 };
            loop {
                let part = if from < first + stream {
                    let to = (from + NEAR / STREAMS).min(first + stream);
                    Part { i, first, from, to, end, streams: STREAMS, stream }
                } else {
                    from = from.max(first + STREAMS * stream);
                    Part { i, first, from, to: (from + NEAR).min(end), end, streams: 1, stream }
                };
                for kh in 0..key_heads {
                    let (mut h, last) = (kh * r.group, (kh + 1) * r.group);
                    while h < last {
                        let two = h + 2 <= last;
                        let mut x = 0;
                        while x < r.d {
                            let left = r.d - x;
                            let registers = match left / V::LANES {
                                0..2 => 1,
                                2..8 => 2,
                                _ => V::WIDE * 2,
                            };
                            match (two, registers) {
                                (true, 8) => sums::<V, 2, 8>(&r, kh, h, x, V::LANES, part),
                                (true, 4) => sums::<V, 2, 4>(&r, kh, h, x, V::LANES, part),
                                (true, 2) => sums::<V, 2, 2>(&r, kh, h, x, V::LANES, part),
                                (true, _) => sums::<V, 2, 1>(&r, kh, h, x, left, part),
                                (false, 8) => sums::<V, 1, 8>(&r, kh, h, x, V::LANES, part),
                                (false, 4) => sums::<V, 1, 4>(&r, kh, h, x, V::LANES, part),
                                (false, 2) => sums::<V, 1, 2>(&r, kh, h, x, V::LANES, part),
                                (false, _) => sums::<V, 1, 1>(&r, kh, h, x, left, part),
                            }
                            x += registers * V::LANES;
                        }
                        h += if two { 2 } else { 1 };
                    }
                }
                from = part.to;
                if from == first + stream {
                    from = first + STREAMS * stream;
                }
                if from >= end {
                    break;
                }
            }
        }
    }
}

/// Some of the pairs of row i, which has first..end: from..to, and as many again a stream further.
#[derive(Clone, Copy)]
struct Part {
    i: usize,
    first: usize,
    from: usize,
    to: usize,
    end: usize,
    streams: usize,
    stream: usize,
}

/// NV registers of features from x on for G heads that share key head `kh`.
#[cfg_attr(optimized, inline(always))]
unsafe fn sums<V: Simd, const G: usize, const NV: usize>(
    r: &RowGather<V::T>,
    kh: usize,
    h: usize,
    x: usize,
    left: usize,
    part: Part,
) {
    // SAFETY: as above; the last register is masked where fewer features are left.
    unsafe {
        let leads = h == kh * r.group && x == 0;
        let mut sum = [[V::zero(); NV]; G];
        for e in part.from..part.to {
            for s in 0..part.streams {
                let e = e + s * part.stream;
                let ahead = e + r.keys.ahead();
                if leads && ahead < part.end {
                    prefetch_row(r.v.at(kh, r.keys.at(ahead, part.first)), r.d);
                }
                let v = r.v.at(kh, r.keys.at(e, part.first)).add(x);
                let mut value = [V::zero(); NV];
                for (n, value) in value.iter_mut().enumerate() {
                    *value = V::load_upto(v.add(n * V::LANES), left);
                }
                for (n, sum) in sum.iter_mut().enumerate() {
                    let weight = V::splat(*r.weights.wrapping_add((h + n) * r.weights_head + e));
                    for v in 0..NV {
                        sum[v] = weight.fma(value[v], sum[v]);
                    }
                }
            }
        }
        let scale = V::splat(r.scale);
        for (n, sum) in sum.iter().enumerate() {
            for (v, sum) in sum.iter().enumerate() {
                let to = r.to.at(h + n, part.i).add(x + v * V::LANES);
                if part.from == part.first {
                    sum.mul(scale).store_upto(to, left);
                } else {
                    sum.fma(scale, V::load_upto(to, left)).store_upto(to, left);
                }
            }
        }
    }
}

/// The gradients of an additive score on the queries' side.
#[derive(Clone, Copy)]
pub(crate) struct RowAdditiveGrads<T> {
    pub(crate) form: Form,
    pub(crate) w: *const T,
    pub(crate) w_head: usize,
    pub(crate) heads: usize,
    pub(crate) group: usize,
    pub(crate) rows: usize,
    pub(crate) spans: Spans,
    pub(crate) keys: List,
    pub(crate) q: Rows<T>,
    pub(crate) k: Rows<T>,
    pub(crate) d: usize,
    /// The gradient of pair e's score of head h at `grads + h·grads_head + e`.
    pub(crate) grads: *const T,
    pub(crate) grads_head: usize,
    /// Written; a null base where not wanted.
    pub(crate) grad_q: RowsMut<T>,
    /// `[heads, d]`, added to.
    pub(crate) grad_w: *mut T,
}

#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn row_additive_grads<V: Simd>(r: RowAdditiveGrads<V::T>) {
    // SAFETY: every key is a row of k; the last features are masked.
    unsafe {
        if let (List::These(keys), 1) = (r.keys, r.group)
            && r.d <= V::LANES
            && r.form.is_narrow()
        {
            return narrow::additive_grads::<V>(&r, keys);
        }
        for_each_direct_form!(r.form, form => for i in 0..r.rows {
            let (first, end) = r.spans.of(i);
            for h in 0..r.heads {
                let grads = r.grads.wrapping_add(h * r.grads_head);
                let mut x = 0;
                while x < r.d {
                    let left = r.d - x;
                    let q = V::load_upto(r.q.at(h, i).add(x), left);
                    let (mut slopes, mut values) = (V::zero(), V::zero());
                    for e in first..end {
                        let k = r.k.at(h / r.group, r.keys.at(e, first)).add(x);
                        let grad = V::splat(*grads.wrapping_add(e));
                        let (value, slope) = value_and_slope(form, q, V::load_upto(k, left));
                        slopes = grad.fma(slope, slopes);
                        values = grad.fma(value, values);
                    }
                    let to = r.grad_w.add(h * r.d + x);
                    values.add(V::load_upto(to, left)).store_upto(to, left);
                    if !r.grad_q.base.is_null() {
                        let w = V::load_upto(r.w.add(h * r.w_head + x), left);
                        slopes.mul(w).store_upto(r.grad_q.at(h, i).add(x), left);
                    }
                    x += V::LANES;
                }
            }
        })
    }
}

/// The gradients of keys and their values, from the queries that see them.
#[derive(Clone, Copy)]
pub(crate) struct KeyGrads<T> {
    pub(crate) score: RowScore<T>,
    pub(crate) heads: usize,
    pub(crate) group: usize,
    /// Keys, and which entries of `queries` and `pairs` each has.
    pub(crate) keys: usize,
    pub(crate) spans: Spans,
    pub(crate) queries: List,
    pub(crate) pairs: Pairs,
    pub(crate) q: Rows<T>,
    pub(crate) k: Rows<T>,
    pub(crate) v: Rows<T>,
    pub(crate) grad_out: Rows<T>,
    pub(crate) d: usize,
    pub(crate) dv: usize,
    /// Each query's log-sum-exp and, beside it, the mean of its weights' gradients, where the pairs'
    /// numbers are to be computed from them: for a graph, d and dv ≤ LANES, and a `group` of 1.
    pub(crate) stats: Option<Rows<T>>,
    /// Otherwise the weight of pair e of head h at `numbers + 2·(h·pair_head + e)`, and the gradient
    /// of its score beside it.
    pub(crate) numbers: *const T,
    pub(crate) pair_head: usize,
    /// Written, a row for each key head and key; a null base where not wanted.
    pub(crate) grad_k: RowsMut<T>,
    pub(crate) grad_v: RowsMut<T>,
}

/// Where the pairs of keys lie among those of queries.
#[derive(Clone, Copy)]
pub(crate) enum Pairs {
    /// Entry by entry.
    These(*const u32),
    /// Those of key j: from `first + j` on, `step` apart.
    Every { first: usize, step: usize },
}

impl Pairs {
    #[cfg_attr(optimized, inline(always))]
    pub(in crate::cpu) unsafe fn at(self, e: usize, first: usize, j: usize) -> usize {
        match self {
            // SAFETY: e is within the list.
            Self::These(list) => unsafe { *list.add(e) as usize },
            Self::Every { first: from, step } => from + j + (e - first) * step,
        }
    }
}

#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn key_grads<V: Simd>(r: KeyGrads<V::T>) {
    // SAFETY: every query is a row of q and grad_out, every pair has its numbers.
    unsafe {
        if let (Some(stats), List::These(queries)) = (r.stats, r.queries) {
            return narrow_keys::key_grads_again::<V>(&r, queries, stats);
        }
        if let RowScore::Additive { form: Form::Leaky(slope), w, w_head } = r.score
            && r.d.max(r.dv) <= V::LANES
            && r.group == 1
            && !r.grad_k.base.is_null()
            && !r.grad_v.base.is_null()
        {
            return narrow_keys::key_grads::<V>(Form::Leaky(slope), w, w_head, &r);
        }
        for j in 0..r.keys {
            for kh in 0..r.heads / r.group {
                if !r.grad_v.base.is_null() {
                    value_grad::<V>(&r, kh, j);
                }
                if !r.grad_k.base.is_null() {
                    match r.score {
                        RowScore::Dot(scale) => dot_key_grad::<V>(&r, kh, j, scale),
                        RowScore::Additive { form, w, w_head } => {
                            for_each_direct_form!(form, form => {
                                additive_key_grad::<V>(form, w, w_head, &r, kh, j)
                            })
                        }
                    }
                }
            }
        }
    }
}

/// Runs over the pairs of key j for one head: the query's row and the pair's numbers.
macro_rules! for_each_pair {
    ($r:expr, $j:expr, $rows:expr, $h:expr, $d:expr, |$row:ident, $pair:ident| $code:block) => {{
        let (first, end) = $r.spans.of($j);
        for e in first..end {
            if e + AHEAD < end {
                prefetch_row($rows.at($h, $r.queries.at(e + AHEAD, first)), $d);
            }
            let $row = $rows.at($h, $r.queries.at(e, first));
            let $pair = $r.numbers.add(2 * ($h * $r.pair_head + $r.pairs.at(e, first, $j)));
            $code
        }
    }};
}

#[cfg_attr(optimized, inline(always))]
unsafe fn value_grad<V: Simd>(r: &KeyGrads<V::T>, kh: usize, j: usize) {
    // SAFETY: as above.
    unsafe {
        let mut x = 0;
        while x < r.dv {
            let left = r.dv - x;
            let mut sum = V::zero();
            for h in kh * r.group..(kh + 1) * r.group {
                for_each_pair!(r, j, r.grad_out, h, r.dv, |row, pair| {
                    let weight = V::splat(*pair);
                    sum = weight.fma(V::load_upto(row.add(x), left), sum);
                });
            }
            sum.store_upto(r.grad_v.at(kh, j).add(x), left);
            x += V::LANES;
        }
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn dot_key_grad<V: Simd>(r: &KeyGrads<V::T>, kh: usize, j: usize, scale: V::T) {
    // SAFETY: as above.
    unsafe {
        let mut x = 0;
        while x < r.d {
            let left = r.d - x;
            let mut sum = V::zero();
            for h in kh * r.group..(kh + 1) * r.group {
                for_each_pair!(r, j, r.q, h, r.d, |row, pair| {
                    let grad = V::splat(*pair.add(1));
                    sum = grad.fma(V::load_upto(row.add(x), left), sum);
                });
            }
            sum.mul(V::splat(scale)).store_upto(r.grad_k.at(kh, j).add(x), left);
            x += V::LANES;
        }
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn additive_key_grad<V: Simd>(
    form: Form,
    w: *const V::T,
    w_head: usize,
    r: &KeyGrads<V::T>,
    kh: usize,
    j: usize,
) {
    // SAFETY: as above.
    unsafe {
        let mut x = 0;
        while x < r.d {
            let left = r.d - x;
            let k = V::load_upto(r.k.at(kh, j).add(x), left);
            let mut sum = V::zero();
            for h in kh * r.group..(kh + 1) * r.group {
                let mut slopes = V::zero();
                for_each_pair!(r, j, r.q, h, r.d, |row, pair| {
                    let grad = V::splat(*pair.add(1));
                    let (_, slope) = value_and_slope(form, V::load_upto(row.add(x), left), k);
                    slopes = grad.fma(slope, slopes);
                });
                sum = slopes.fma(V::load_upto(w.add(h * w_head + x), left), sum);
            }
            sum.store_upto(r.grad_k.at(kh, j).add(x), left);
            x += V::LANES;
        }
    }
}

/// Copies rows of d numbers.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn copy_rows<V: Simd>(
    from: *const V::T,
    from_row: usize,
    rows: usize,
    d: usize,
    to: *mut V::T,
    to_row: usize,
) {
    // SAFETY: `rows` rows of d numbers each, the last of each by masked access.
    unsafe {
        for r in 0..rows {
            let (from, to) = (from.add(r * from_row), to.add(r * to_row));
            let mut x = 0;
            while x < d {
                V::load_upto(from.add(x), d - x).store_upto(to.add(x), d - x);
                x += V::LANES;
            }
        }
    }
}

/// y += a · x
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn axpy<V: Simd>(n: usize, a: V::T, x: *const V::T, y: *mut V::T) {
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

/// y = a · x, or with `add` y += a · x, the product rounded before it is added: so a sum has the same
/// bits whether its parts were kept or added as they came. Gives 0, or NaN where there is a NaN or ∞
/// among the products.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn add_scaled<V: Simd>(
    n: usize,
    a: V::T,
    add: bool,
    x: *const V::T,
    y: *mut V::T,
) -> V::T {
    // SAFETY: n numbers each.
    unsafe {
        let a = V::splat(a);
        let mut nothing = V::zero();
        let mut i = 0;
        while i < n {
            let left = n - i;
            let (part, to) = (V::load_upto(x.add(i), left).mul(a), y.add(i));
            let sum = if add { V::load_upto(to, left).add(part) } else { part };
            sum.store_upto(to, left);
            nothing = part.fma(V::zero(), nothing);
            i += V::LANES;
        }
        nothing.sum()
    }
}

/// x · y
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn dot<V: Simd>(n: usize, x: *const V::T, y: *const V::T) -> V::T {
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

/// The largest magnitude of n numbers, and 0, or NaN where there is a NaN or ∞ among them.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn max_abs<V: Simd>(n: usize, x: *const V::T) -> [V::T; 2] {
    // SAFETY: n numbers.
    unsafe {
        let (mut top, mut nothing) = (V::zero(), V::zero());
        let mut i = 0;
        while i < n {
            let x = V::load_upto(x.add(i), n - i);
            top = top.max(x).max(V::zero().sub(x));
            nothing = x.fma(V::zero(), nothing);
            i += V::LANES;
        }
        [top.largest(), nothing.sum()]
    }
}

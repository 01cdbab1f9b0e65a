//! Forward by lists: a query, or a few, against a list of keys.
//!
//! A graph's query meets the keys of its edges: work and memory follow the number of edges. Few
//! queries against a long cache (decoding) are cut over the keys, so that every core reads a part
//! of the cache; query heads that share a key head read it once.

use super::additive::Form;
use super::expression::Head;
use super::noise::PAIRS;
use super::problem::Problem;
use super::row::{self, List, Pairs, RowGather, RowScore, RowScores, Spans};
use super::scratch::Large;
use super::shared::Shared;
use super::tile::{gumbel, keep, write_choice};
use super::weights::Rule;
use super::{Rows, SPLIT_KEYS, SPLIT_TASKS, scratch, split_forward, tasks};
use crate::random::{Draw, Stream};
use crate::spec::{Dropout, Edges, Normalizer, Score};
use crate::{Real, View, ViewMut};
use std::ops::Range;

/// Whether a problem goes this way: graphs, and so few queries that lanes would stand empty.
pub(super) fn serves<T: Real>(p: &Problem<T>) -> bool {
    p.spec.mask.edges.is_some() || p.s.nq * 2 <= p.kernels.lanes
}

/// Which keys each query has.
#[derive(Clone, Copy)]
pub(super) enum Links<'a> {
    Graph(&'a Edges),
    /// Every query every key.
    All {
        nq: usize,
        nk: usize,
    },
}

impl<'a> Links<'a> {
    pub(super) fn of<T: Real>(p: &Problem<'a, T>) -> Self {
        match p.spec.mask.edges {
            Some(edges) => Self::Graph(edges),
            None => Self::All { nq: p.s.nq, nk: p.s.nk },
        }
    }

    /// How many pairs there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Graph(edges) => edges.len(),
            Self::All { nq, nk } => nq * nk,
        }
    }

    /// Which pairs the queries from `i` on have, and their keys.
    pub(super) fn by_query(&self, i: usize) -> (Spans, List) {
        match self {
            Self::Graph(edges) => (
                Spans::Between(edges.starts()[i..].as_ptr()),
                List::These(edges.all_keys().as_ptr()),
            ),
            Self::All { nk, .. } => (Spans::Every(*nk), List::From(0)),
        }
    }

    /// Which entries the keys from `j` on have: queries, and the places of their pairs.
    pub(super) fn by_key(&self, j: usize) -> (Spans, List, Pairs) {
        match self {
            Self::Graph(edges) => {
                let (starts, queries, pairs) = edges.by_key();
                (
                    Spans::Between(starts[j..].as_ptr()),
                    List::These(queries.as_ptr()),
                    Pairs::These(pairs.as_ptr()),
                )
            }
            Self::All { nq, nk } => {
                (Spans::Every(*nq), List::From(0), Pairs::Every { first: j, step: *nk })
            }
        }
    }

    /// Calls `f` with each query of a key and the place of that pair.
    pub(super) fn for_each_query(&self, j: usize, mut f: impl FnMut(usize, usize)) {
        match self {
            Self::Graph(edges) => {
                let (starts, queries, pairs) = edges.by_key();
                for e in starts[j]..starts[j + 1] {
                    f(queries[e] as usize, pairs[e] as usize);
                }
            }
            Self::All { nq, nk } => (0..*nq).for_each(|i| f(i, i * nk + j)),
        }
    }

    /// The pairs of queries i0..i1, which follow each other.
    pub(super) fn pairs(&self, queries: Range<usize>) -> Range<usize> {
        match self {
            Self::Graph(edges) => edges.starts()[queries.start]..edges.starts()[queries.end],
            Self::All { nk, .. } => queries.start * nk..queries.end * nk,
        }
    }

    /// How the pairs of queries from `i` on are to be numbered for kernels that see only those:
    /// what to take off a pair's number. Numbers of a graph's pairs are its edges'.
    pub(super) fn first(&self, i: usize) -> usize {
        match self {
            Self::Graph(edges) => edges.starts()[i],
            Self::All { .. } => 0,
        }
    }

    /// The key of a query's pair number `n`.
    pub(super) fn key(&self, i: usize, n: usize) -> usize {
        match self {
            Self::Graph(edges) => edges.of_query(i)[n] as usize,
            Self::All { .. } => n,
        }
    }
}

/// What may be read in no order and still be near.
const NEAR_BYTES: usize = 3 << 19;

/// Some heads of one batch item that work together: all query heads of some key heads.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    pub(super) b: usize,
    /// The first query head.
    pub(super) h: usize,
    /// The first key head.
    pub(super) hk: usize,
    /// Query heads.
    pub(super) n: usize,
}

impl Heads {
    /// How many parts the key heads are cut into: so that there are tasks enough, and so that what
    /// is read in no order, `width` numbers for each of `rows`, stays in the second-level cache.
    pub(super) fn parts<T: Real>(p: &Problem<T>, rows: usize, width: usize) -> usize {
        let chunks = rows.div_ceil(ROWS).max(1);
        let tasks = SPLIT_TASKS.div_ceil((p.s.b * chunks).max(1));
        let bytes = rows * width * size_of::<T>();
        let near = if bytes <= p.s.hk * NEAR_BYTES { bytes.div_ceil(NEAR_BYTES) } else { 1 };
        let want = tasks.max(near).clamp(1, p.s.hk);
        (want..=p.s.hk).find(|parts| p.s.hk.is_multiple_of(*parts)).unwrap_or(1)
    }

    /// Part `n` of all batch items' parts.
    pub(super) fn new<T: Real>(p: &Problem<T>, parts: usize, n: usize) -> Self {
        let (b, part) = (n / parts, n % parts);
        let size = p.s.hk / parts;
        let hk = part * size;
        Self { b, h: hk * p.s.group(), hk, n: size * p.s.group() }
    }

    /// The rows of these key heads, from row `j` on.
    pub(super) fn keys<T: Real>(&self, p: &Problem<T>, x: &View<T>, j: usize) -> row::Rows<T> {
        row::Rows { base: p.rows(x, self.b, self.hk, j, 1), head: x.strides[1], row: x.strides[2] }
    }

    /// The rows of these query heads of a result, from row `i` on.
    ///
    /// # Safety
    /// They are the calling task's alone.
    pub(super) unsafe fn results<T>(&self, x: &ViewMut<T>, i: usize) -> row::RowsMut<T> {
        // SAFETY: the row exists, and is the caller's.
        let base = unsafe { x.row(self.b, self.h, i) };
        row::RowsMut { base, head: x.strides[1], row: x.strides[2] }
    }

    /// As [`Self::results`], of the key heads.
    ///
    /// # Safety
    /// They are the calling task's alone.
    pub(super) unsafe fn key_results<T>(&self, x: &ViewMut<T>, j: usize) -> row::RowsMut<T> {
        // SAFETY: the row exists, and is the caller's.
        let base = unsafe { x.row(self.b, self.hk, j) };
        row::RowsMut { base, head: x.strides[1], row: x.strides[2] }
    }

    /// The rows of these query heads, from row `i` on.
    pub(super) fn queries<T: Real>(&self, p: &Problem<T>, x: &View<T>, i: usize) -> row::Rows<T> {
        row::Rows { base: p.rows(x, self.b, self.h, i, 1), head: x.strides[1], row: x.strides[2] }
    }
}

/// A copy of k and v in which the rows of a head lie side by side, where heads are read one by one
/// and lay between each other: a cache keeps whole lines, and few that are a power of two apart.
pub(super) struct Near<T: Real> {
    copy: Large<T>,
    same: bool,
}

impl<T: Real> Near<T> {
    pub(super) fn of(p: &Problem<T>, parts: usize) -> Self {
        let same = same(&p.k, &p.v);
        let copy = if same {
            side_by_side(p, [&p.k], parts)
        } else {
            side_by_side(p, [&p.k, &p.v], parts)
        };
        Self { copy, same }
    }

    pub(super) fn problem<'a>(&'a self, p: &Problem<'a, T>) -> Problem<'a, T> {
        let mut near = *p;
        [near.k, near.v] = if self.same {
            let [k] = near_views([p.k], &self.copy);
            [k, k]
        } else {
            near_views([p.k, p.v], &self.copy)
        };
        near
    }
}

/// Whether two views are of the same numbers.
pub(super) fn same<T>(x: &View<T>, y: &View<T>) -> bool {
    x.data.as_ptr() == y.data.as_ptr() && x.strides == y.strides && x.shape == y.shape
}

/// The views of a copy where there is one.
pub(super) fn near_views<'a, T, const N: usize>(
    views: [View<'a, T>; N],
    copy: &'a [T],
) -> [View<'a, T>; N] {
    if copy.is_empty() {
        return views;
    }
    let width: usize = views.iter().map(|x| x.shape[3]).sum();
    let mut from = 0;
    views.map(|x| {
        let [_, h, n, d] = x.shape;
        let data = &copy[from..];
        from += d;
        View { data, shape: x.shape, strides: [h * n * width, n * width, width] }
    })
}

/// A copy of arrays with as many heads and rows, the rows of each next to the other's; nothing
/// where one is not needed.
pub(super) fn side_by_side<T: Real, const N: usize>(
    p: &Problem<T>,
    views: [&View<T>; N],
    parts: usize,
) -> Large<T> {
    let [b, h, n, _] = views[0].shape;
    let width: usize = views.iter().map(|x| x.shape[3]).sum();
    let apart = views.iter().any(|x| x.strides[2] != x.shape[3]);
    if parts == 1 || h == 1 || width == 0 || !apart {
        return Large::new(0);
    }
    let mut copy = Large::new(b * h * n * width);
    let shared = Shared::new(&mut copy);
    // All heads of some rows at a time, since those lie together in what is read.
    const ROWS: usize = 64;
    let chunks = n.div_ceil(ROWS);
    tasks::each(b * chunks, &|task| {
        let (b, from) = (task / chunks, task % chunks * ROWS);
        let count = ROWS.min(n - from);
        for h in 0..h {
            // SAFETY: these rows are this task's alone.
            let to = unsafe {
                shared.part(((b * views[0].shape[1] + h) * n + from) * width, count * width)
            };
            let mut at = 0;
            for x in views {
                let d = x.shape[3];
                let rows = p.rows(x, b, h, from, count);
                // SAFETY: `count` rows of x, and as many of `to`, `width` apart.
                unsafe {
                    (p.kernels.copy_rows)(
                        rows,
                        x.strides[2],
                        count,
                        d,
                        to[at..].as_mut_ptr(),
                        width,
                    )
                };
                at += d;
            }
        }
    });
    copy
}

/// How these heads score a pair; none for a score of one's own and for an expression.
pub(super) fn pair_score<T: Real>(p: &Problem<T>, heads: &Heads) -> Option<RowScore<T>> {
    match p.spec.score {
        Score::Dot { scale } => Some(RowScore::Dot(scale)),
        Score::Additive { w, .. } => {
            let w_head = if w.len() == p.s.dk { 0 } else { p.s.dk };
            // What is kept of q and k pays off for tiles only.
            let form = if p.form.is_direct() { p.form } else { Form::Tanh };
            Some(RowScore::Additive { form, w: w[heads.h * w_head..].as_ptr(), w_head })
        }
        Score::Own(_) | Score::Expression { .. } => None,
    }
}

/// The scores of some queries of some heads for their keys, bias and mask included: `[heads,
/// pairs]` with the pairs of these queries alone. On the same walk, where wanted, the products of
/// the keys with other rows of the queries; none for a score of one's own.
pub(super) fn score_rows<T: Real>(
    p: &Problem<T>,
    links: &Links,
    heads: &Heads,
    queries: Range<usize>,
    to: &mut [T],
    products: Option<(&View<T>, &mut [T])>,
) {
    let pairs = links.pairs(queries.clone());
    let n = pairs.len();
    if n == 0 {
        return;
    }
    assert!(to.len() >= heads.n * n);
    let (spans, keys) = links.by_query(queries.start);
    let first = links.first(queries.start);
    if let Some(score) = pair_score(p, heads) {
        let products = products.map(|(x, to)| {
            assert!(to.len() >= heads.n * n && x.shape[3] == p.s.dk);
            (heads.queries(p, x, queries.start), to.as_mut_ptr().wrapping_sub(first))
        });
        // SAFETY: the keys are rows of k: edges were checked against the shape.
        unsafe {
            (p.kernels.row_scores)(RowScores {
                score,
                heads: heads.n,
                group: p.s.group(),
                rows: queries.len(),
                spans,
                keys,
                q: heads.queries(p, &p.q, queries.start),
                k: heads.keys(p, &p.k, 0),
                d: p.s.dk,
                to: to.as_mut_ptr().wrapping_sub(first),
                to_head: n,
                products,
            });
        }
    }
    for (at, to) in to[..heads.n * n].chunks_exact_mut(n).enumerate() {
        let h = heads.h + at;
        if let Some(programs) = p.programs {
            let pairs = queries.clone().flat_map(|i| {
                let own = links.pairs(i..i + 1).len();
                (0..own).map(move |e| (i, links.key(i, e)))
            });
            programs.score_pairs(p, Head { b: heads.b, h }, pairs, to);
        }
        for i in queries.clone() {
            let own_pairs = links.pairs(i..i + 1);
            let row = &mut to[own_pairs.start - pairs.start..][..own_pairs.len()];
            if let Score::Own(own) = p.spec.score {
                for (n, to) in row.iter_mut().enumerate() {
                    let k = p.k.row(heads.b, p.key_head(h), links.key(i, n));
                    *to = own.score(p.q.row(heads.b, h, i), k);
                }
            }
            finish_row(p, (heads.b, h, i), row, |n| links.key(i, n));
        }
    }
}

/// Adds the bias and hides what the mask forbids; `key` gives the key of each score.
pub(super) fn finish_row<T: Real>(
    p: &Problem<T>,
    (b, h, i): (usize, usize, usize),
    scores: &mut [T],
    key: impl Fn(usize) -> usize,
) {
    let mask = &p.spec.mask;
    if !p.spec.bias.is_none() {
        for (n, score) in scores.iter_mut().enumerate() {
            *score += p.spec.bias.at(p.offset, b, h, i, key(n));
        }
    }
    if mask.is_more_than_edges() {
        for (n, score) in scores.iter_mut().enumerate() {
            if !mask.allows(&p.s, p.offset, b, h, i, key(n)) {
                *score = T::NEG_INFINITY;
            }
        }
    }
}

/// One row of scores becomes softmax weights; gives its log-sum-exp.
fn softmax<T: Real>(p: &Problem<T>, scores: &mut [T]) -> T {
    let mut lse = T::ZERO;
    let n = scores.len();
    // SAFETY: one row of one head, of n scores.
    unsafe {
        (p.kernels.row_softmax)(scores.as_mut_ptr(), 1, 0, 1, Spans::Every(n), &mut lse);
    }
    lse
}

/// Scores become weights, before dropout, and the row's statistics are written. Hard attention
/// writes its output instead and gives false.
fn normalize<T: Real>(
    p: &Problem<T>,
    at @ (b, h, i): (usize, usize, usize),
    scores: &mut [T],
    key: impl Fn(usize) -> usize,
    rows: &Rows<T>,
) -> bool {
    let row = p.row(b, h, i);
    let normalizer = p.spec.normalizer;
    let hard = normalizer.is_hard();
    if normalizer == Normalizer::Softmax {
        rows.set_lse(row, softmax(p, scores));
        return true;
    }
    let lse = if hard || rows.lse.is_some() { lse(scores) } else { T::ZERO };
    rows.set_lse(row, lse);
    match normalizer {
        Normalizer::Sparsemax | Normalizer::Entmax15 => {
            let (largest, tau) = threshold(normalizer == Normalizer::Entmax15, scores);
            let half = T::of(if normalizer == Normalizer::Entmax15 { 0.5 } else { 1.0 });
            rows.set_threshold(row, tau + largest * half);
            for score in scores.iter_mut() {
                let above = ((*score - largest) * half - tau).max(T::ZERO);
                *score = if normalizer == Normalizer::Entmax15 { above * above } else { above };
            }
        }
        Normalizer::Argmax | Normalizer::Sample { .. } => {
            let draw = match normalizer {
                Normalizer::Sample { seed } => {
                    Some(Draw::new(seed, Stream::Sample, b * p.s.hq + h))
                }
                _ => None,
            };
            let (mut best, mut chosen, mut index) = (T::NEG_INFINITY, T::ZERO, -1);
            for (n, &score) in scores.iter().enumerate() {
                let j = key(n);
                let noisy = score + draw.map_or(T::ZERO, |draw| gumbel(draw.word(i, j)));
                if noisy > best {
                    (best, chosen, index) = (noisy, score, j as i64);
                }
            }
            rows.set_choice(row, index, best, chosen, lse);
            write_choice(p, at, index, rows);
            return false;
        }
        Normalizer::Softmax | Normalizer::Sigmoid | Normalizer::None => {
            let rule = Rule::of(normalizer).unwrap_or(Rule::Plain);
            scores.iter_mut().for_each(|score| *score = rule.weight(*score, T::ZERO));
        }
    }
    true
}

fn lse<T: Real>(scores: &[T]) -> T {
    let largest = scores.iter().copied().fold(T::NEG_INFINITY, T::max);
    if largest == T::NEG_INFINITY {
        return largest;
    }
    largest + scores.iter().map(|&s| (s - largest).exp()).sum::<T>().ln()
}

/// The largest score and, relative to it, the threshold: as `threshold.rs`, for one row.
fn threshold<T: Real>(entmax: bool, scores: &[T]) -> (T, T) {
    let largest = scores.iter().copied().fold(T::NEG_INFINITY, T::max);
    let largest = if largest == T::NEG_INFINITY { T::ZERO } else { largest };
    let half = T::of(if entmax { 0.5 } else { 1.0 });
    let mut tau = -T::ONE;
    for _ in 0..scores.len() + 2 {
        let (mut sum, mut slope) = (T::ZERO, T::ZERO);
        for &score in scores {
            let above = ((score - largest) * half - tau).max(T::ZERO);
            if entmax {
                sum += above * above;
                slope += above + above;
            } else if above > T::ZERO {
                sum += above;
                slope += T::ONE;
            }
        }
        let next = tau + (sum - T::ONE) / slope;
        if !(sum > T::ONE && next > tau) {
            break;
        }
        tau = next;
    }
    (largest, tau)
}

/// Calls `f` with the number of the head, the query, and the query's pairs of an array
/// `[heads, pairs]`: where they begin, and themselves.
pub(super) fn each_row<T>(
    links: &Links,
    heads: &Heads,
    queries: Range<usize>,
    array: &mut [T],
    f: impl Fn(usize, usize, usize, &mut [T]),
) {
    let pairs = links.pairs(queries.clone());
    for at in 0..heads.n {
        for i in queries.clone() {
            let own = links.pairs(i..i + 1);
            let from = at * pairs.len() + own.start - pairs.start;
            f(at, i, from, &mut array[from..from + own.len()]);
        }
    }
}

/// The dropout factors of some queries' pairs, `[heads, pairs]`.
pub(super) fn factors<T: Real>(
    p: &Problem<T>,
    dropout: Dropout,
    links: &Links,
    heads: &Heads,
    queries: Range<usize>,
    to: &mut [T],
) {
    let n = links.pairs(queries.clone()).len();
    let mut places = queries.flat_map(|i| {
        let own = links.pairs(i..i + 1).len();
        (0..own).map(move |e| (i as u32, links.key(i, e) as u32))
    });
    let (mut of, mut keys) = ([0; PAIRS], [0; PAIRS]);
    for from in (0..n).step_by(PAIRS) {
        let count = (n - from).min(PAIRS);
        for ((of, key), place) in of.iter_mut().zip(&mut keys).take(count).zip(&mut places) {
            (*of, *key) = place;
        }
        for h in 0..heads.n {
            let keep = dropout.of_head(heads.b * p.s.hq + heads.h + h);
            let to = &mut to[h * n + from..][..count];
            // SAFETY: there is room for `count` numbers.
            unsafe { (p.kernels.pair_factors)(keep, &of, &keys, count, to.as_mut_ptr()) };
        }
    }
}

/// Writes a row of weights where they are wanted.
fn put_row<T: Real>(
    p: &Problem<T>,
    (b, h, i): (usize, usize, usize),
    weights: &[T],
    key: impl Fn(usize) -> usize,
    rows: &Rows<T>,
) {
    if let Some(to) = &rows.weights {
        for (n, &weight) in weights.iter().enumerate() {
            to.set(p.row(b, h, i) * p.s.nk + key(n), weight);
        }
    }
}

pub(super) fn forward<T: Real>(p: &Problem<T>, rows: &Rows<T>) {
    match Links::of(p) {
        Links::Graph(edges) => graph(p, edges, rows),
        Links::All { .. } => few(p, rows),
    }
}

/// Queries of a graph that make a task.
pub(super) const ROWS: usize = 32;

fn graph<T: Real>(p: &Problem<T>, edges: &Edges, rows: &Rows<T>) {
    let s = &p.s;
    let links = Links::Graph(edges);
    let chunks = s.nq.div_ceil(ROWS);
    let parts = Heads::parts(p, s.nk, s.hk * s.dk.max(s.dv));
    let near = Near::of(p, parts);
    let p = &near.problem(p);
    tasks::each(s.b * parts * chunks, &|task| {
        let heads = Heads::new(p, parts, task / chunks);
        let (b, chunk) = (heads.b, task % chunks);
        let queries = chunk * ROWS..((chunk + 1) * ROWS).min(s.nq);
        let pairs = links.pairs(queries.clone());
        let n = pairs.len();
        let (spans, keys) = links.by_query(queries.start);
        let drawn = if p.spec.dropout.is_some() { heads.n * n } else { 0 };
        scratch::with([heads.n * n, heads.n * ROWS, drawn], |[scores, lse, drawn]| {
            score_rows(p, &links, &heads, queries.clone(), scores, None);
            let softmax = p.spec.normalizer == Normalizer::Softmax;
            if softmax {
                let from = scores.as_mut_ptr().wrapping_sub(pairs.start);
                let lse = if rows.lse.is_some() { lse.as_mut_ptr() } else { std::ptr::null_mut() };
                // SAFETY: scores of all pairs of all heads; a number for each row and head.
                unsafe { (p.kernels.row_softmax)(from, heads.n, n, queries.len(), spans, lse) };
            }
            if softmax {
                for (at, lse) in lse.chunks_exact(queries.len()).take(heads.n).enumerate() {
                    for (i, &lse) in queries.clone().zip(lse) {
                        rows.set_lse(p.row(b, heads.h + at, i), lse);
                    }
                }
            } else {
                each_row(&links, &heads, queries.clone(), scores, |at, i, _, row| {
                    normalize(p, (b, heads.h + at, i), row, |n| links.key(i, n), rows);
                });
            }
            if p.spec.normalizer.is_hard() {
                return;
            }
            if let Some(dropout) = p.spec.dropout {
                factors(p, dropout, &links, &heads, queries.clone(), drawn);
                scores.iter_mut().zip(drawn).for_each(|(score, factor)| *score *= *factor);
            }
            if rows.weights.is_some() {
                each_row(&links, &heads, queries.clone(), scores, |at, i, _, row| {
                    put_row(p, (b, heads.h + at, i), row, |n| links.key(i, n), rows);
                });
            }
            // SAFETY: these rows are this task's alone; edges were checked against the shape.
            unsafe {
                (p.kernels.row_gather)(RowGather {
                    heads: heads.n,
                    group: s.group(),
                    rows: queries.len(),
                    spans,
                    keys,
                    weights: scores.as_ptr().wrapping_sub(pairs.start),
                    weights_head: n,
                    v: heads.keys(p, &p.v, 0),
                    d: s.dv,
                    scale: T::ONE,
                    to: heads.results(&rows.out, queries.start),
                });
            }
        });
    });
}

fn few<T: Real>(p: &Problem<T>, rows: &Rows<T>) {
    let s = &p.s;
    let tasks = s.b * s.hk;
    let splits = if p.spec.normalizer.has_threshold() {
        1
    } else {
        // Half as many as elsewhere: what is read at memory speed likes long stretches.
        (SPLIT_TASKS / 2).div_ceil(tasks).min(s.nk / SPLIT_KEYS).max(1)
    };
    split_forward(p, rows, splits, tasks, |task, keys, rows| {
        let (b, hk) = (task / s.hk, task % s.hk);
        few_keys(p, b, hk, keys, rows);
    });
}

/// All queries of the heads that share key head `hk`, against a range of its keys.
fn few_keys<T: Real>(p: &Problem<T>, b: usize, hk: usize, keys: Range<usize>, rows: &Rows<T>) {
    let s = &p.s;
    let (first, count) = (hk * s.group(), s.group() * s.nq);
    // Keys that no query sees by length or position are not even read.
    let seen = p.key_range(b, 0, s.nq);
    let start = keys.start.max(seen.start);
    let keys = start..keys.end.min(seen.end).max(start);
    let n = keys.len();
    let at = |row: usize| (b, first + row / s.nq, row % s.nq);
    let heads = Heads { b, h: first, hk, n: s.group() };
    scratch::with([count * s.dq, count * n, count * s.dv], |[queries, scores, out]| {
        if let (Some(score), true) = (pair_score(p, &heads), n > 0) {
            for row in 0..count {
                let (b, h, i) = at(row);
                queries[row * s.dq..][..s.dq].copy_from_slice(p.q.row(b, h, i));
            }
            let mut k = heads.keys(p, &p.k, 0);
            k.head = 0;
            let mut run = |score, first: usize, heads: usize| {
                // SAFETY: `heads` rows of queries from `first` on, n rows of k.
                unsafe {
                    (p.kernels.row_scores)(RowScores {
                        score,
                        heads,
                        group: heads,
                        rows: 1,
                        spans: Spans::Every(n),
                        keys: List::From(keys.start),
                        q: row::Rows { base: queries[first * s.dq..].as_ptr(), head: s.dq, row: 0 },
                        k,
                        d: s.dk,
                        to: scores[first * n..].as_mut_ptr(),
                        to_head: n,
                        products: None,
                    });
                }
            };
            match score {
                RowScore::Dot(_) => run(score, 0, count),
                // The queries of a head share its w.
                RowScore::Additive { form, w, w_head } => {
                    for h in 0..s.group() {
                        // SAFETY: w has a row for every head, or one for all.
                        let w = unsafe { w.add(h * w_head) };
                        run(RowScore::Additive { form, w, w_head: 0 }, h * s.nq, s.nq);
                    }
                }
            }
        } else if let Score::Own(own) = p.spec.score {
            for (row, to) in scores.chunks_exact_mut(n.max(1)).enumerate() {
                let (b, h, i) = at(row);
                for (to, j) in to.iter_mut().zip(keys.clone()) {
                    *to = own.score(p.q.row(b, h, i), p.k.row(b, hk, j));
                }
            }
        }
        if let (Some(programs), true) = (p.programs, n > 0) {
            for (row, to) in scores.chunks_exact_mut(n).enumerate() {
                let (b, h, i) = at(row);
                programs.score_pairs(p, Head { b, h }, keys.clone().map(|j| (i, j)), to);
            }
        }
        let mut soft = true;
        for row in 0..count {
            let scores = &mut scores[row * n..][..n];
            let key = |n: usize| keys.start + n;
            finish_row(p, at(row), scores, key);
            soft = normalize(p, at(row), scores, key, rows);
            if soft {
                let (b, h, i) = at(row);
                if let Some(dropout) = p.spec.dropout {
                    let keep = dropout.of_head::<T>(b * s.hq + h);
                    for (n, weight) in scores.iter_mut().enumerate() {
                        *weight *= keep.factor(i, key(n));
                    }
                }
                put_row(p, at(row), scores, key, rows);
            }
        }
        if !soft {
            return;
        }
        out.fill(T::ZERO);
        if n > 0 {
            // SAFETY: n rows of v, `count` rows of weights and of output.
            unsafe {
                let mut v = heads.keys(p, &p.v, 0);
                v.head = 0;
                (p.kernels.row_gather)(RowGather {
                    heads: count,
                    group: count,
                    rows: 1,
                    spans: Spans::Every(n),
                    keys: List::From(keys.start),
                    weights: scores.as_ptr(),
                    weights_head: n,
                    v,
                    d: s.dv,
                    scale: T::ONE,
                    to: row::RowsMut { base: out.as_mut_ptr(), head: s.dv, row: 0 },
                });
            }
        }
        for row in 0..count {
            let (b, h, i) = at(row);
            // SAFETY: this row is this task's alone.
            let to = unsafe { std::slice::from_raw_parts_mut(rows.out.row(b, h, i), s.dv) };
            to.copy_from_slice(&out[row * s.dv..][..s.dv]);
        }
    });
}

/// Writes all weights, whose places were zero, for the normalizers without a threshold.
pub(super) fn write_weights<T: Real>(p: &Problem<T>, rule: Rule, weights: &Shared<T>) {
    let s = &p.s;
    let links = Links::of(p);
    let parts = Heads::parts(p, s.nk, s.hk * s.dk.max(s.dv));
    tasks::runs(s.b * parts * s.nq, 4, &|task| {
        let heads = Heads::new(p, parts, task / s.nq);
        let i = task % s.nq;
        let n = links.pairs(i..i + 1).len();
        scratch::with([heads.n * n], |[scores]| {
            score_rows(p, &links, &heads, i..i + 1, scores, None);
            for (at, scores) in scores.chunks_exact_mut(n.max(1)).enumerate() {
                let h = heads.h + at;
                if rule == Rule::Softmax {
                    softmax(p, scores);
                } else {
                    scores.iter_mut().for_each(|score| *score = rule.weight(*score, T::ZERO));
                }
                let row = p.row(heads.b, h, i) * s.nk;
                for (n, &weight) in scores.iter().enumerate() {
                    let j = links.key(i, n);
                    weights.set(row + j, weight * keep(p, heads.b, h, i, j));
                }
            }
        });
    });
}

//! Forward by lists: a query, or a few, against a list of keys.
//!
//! A graph's query meets the keys of its edges: work and memory follow the number of edges. Few
//! queries against a long cache (decoding) are cut over the keys, so that every core reads a part
//! of the cache; query heads that share a key head read it once.

use super::additive::Form;
use super::expression::Head;
use super::noise::PAIRS;
use super::plan::{self, PARTS, Phase};
use super::problem::Problem;
use super::row::{self, BEHIND, List, Pairs, RowGather, RowScore, RowScores, Spans};
use super::scratch::Large;
use super::shared::Shared;
use super::split::{Portion, Tasks};
use super::threshold::steps;
use super::tile::{gumbel, keep, positive, write_choice};
use super::weights::Rule;
use super::{Chosen, Rows, scratch, split, tasks};
use crate::random::{Draw, Stream};
use crate::spec::{Dropout, Edges, Normalizer, Score, Shape, Spec, w_of_head};
use crate::{Real, View, ViewMut};
use std::ops::Range;

/// Whether a problem goes this way: graphs, and so few queries that lanes would stand empty.
pub(super) fn serves<T: Real>(p: &Problem<T>) -> bool {
    serves_shape(p.spec, &p.s, p.kernels.lanes)
}

/// As [`serves`], by the shape.
pub(super) fn serves_shape<T>(spec: &Spec<T>, s: &Shape, lanes: usize) -> bool {
    spec.mask.edges.is_some() || s.nq * 2 <= lanes
}

/// The phases by lists: what the passes ask for, under names.
pub(super) fn phases<T>(spec: &Spec<T>, s: &Shape, bytes: usize) -> Vec<Phase> {
    let forward = if spec.mask.edges.is_some() {
        s.b * forward_heads(s, bytes) * s.nq.div_ceil(ROWS)
    } else {
        s.b * s.hk * plan::cache_splits(spec.normalizer, s)
    };
    let heads = s.b * backward_heads(s, bytes);
    vec![
        Phase { name: "forward", parts: forward },
        Phase { name: "queries", parts: heads * s.nq.div_ceil(ROWS) },
        Phase { name: "keys", parts: heads * s.nk.div_ceil(ROWS) },
    ]
}

/// How many parts the heads are cut into, forward.
pub(super) fn forward_heads(s: &Shape, bytes: usize) -> usize {
    Heads::parts(s, s.nk, bytes * s.hk * s.dk.max(s.dv))
}

/// And backward.
pub(super) fn backward_heads(s: &Shape, bytes: usize) -> usize {
    Heads::parts(s, s.nk.max(s.nq), bytes * s.hq * s.dk.max(s.dv))
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

    /// What dropout is drawn by at a query's pair number `n`: its key, unless the same edge was there before.
    fn draw(&self, i: usize, n: usize) -> u32 {
        match self {
            Self::Graph(edges) => edges.draws()[edges.starts()[i] + n],
            Self::All { .. } => n as u32,
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
    /// is read in no order, `width` bytes for each of `rows`, stays in the second-level cache.
    fn parts(s: &Shape, rows: usize, width: usize) -> usize {
        let chunks = rows.div_ceil(ROWS).max(1);
        let tasks = PARTS.div_ceil((s.b * chunks).max(1));
        let bytes = rows * width;
        let near = if bytes <= s.hk * NEAR_BYTES { bytes.div_ceil(NEAR_BYTES) } else { 1 };
        let want = tasks.max(near).clamp(1, s.hk);
        (want..=s.hk).find(|parts| s.hk.is_multiple_of(*parts)).unwrap_or(1)
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
        Score::Own { .. } | Score::Expression { .. } => None,
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
    assert!(to.len() >= heads.n * n + BEHIND);
    let (spans, keys) = links.by_query(queries.start);
    let first = links.first(queries.start);
    if let Some(score) = pair_score(p, heads) {
        let products = products.map(|(x, to)| {
            assert!(to.len() >= heads.n * n + BEHIND && x.shape[3] == p.s.dk);
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
        let is_own = matches!(p.spec.score, Score::Own { .. });
        if !is_own && p.spec.bias.is_none() && !p.spec.mask.is_more_than_edges() {
            continue;
        }
        for i in queries.clone() {
            let own_pairs = links.pairs(i..i + 1);
            let row = &mut to[own_pairs.start - pairs.start..][..own_pairs.len()];
            if let Score::Own { score: own, parameters } = p.spec.score {
                let parameters = w_of_head(parameters, h, own.parameters());
                for (n, to) in row.iter_mut().enumerate() {
                    let k = p.k.row(heads.b, p.key_head(h), links.key(i, n));
                    *to = own.score(parameters, p.q.row(heads.b, h, i), k);
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

/// One row of scores becomes softmax weights; gives its log-sum-exp where it is asked for.
fn softmax<T: Real>(p: &Problem<T>, scores: &mut [T], asked: bool) -> T {
    let mut lse = T::ZERO;
    let n = scores.len();
    let to = if asked { &raw mut lse } else { std::ptr::null_mut() };
    // SAFETY: one row of one head, of n scores.
    unsafe { (p.kernels.row_softmax)(scores.as_mut_ptr(), 1, 0, 1, Spans::Every(n), to) };
    lse
}

/// Scores become weights, before dropout, and the row's statistics are written. Hard attention
/// writes its output too, has dropout in the weights, where they are wanted, and gives false.
///
/// # Safety
/// The row is the calling task's alone.
unsafe fn normalize<T: Real>(
    p: &Problem<T>,
    at @ (b, h, i): (usize, usize, usize),
    scores: &mut [T],
    key: impl Fn(usize) -> usize,
    rows: &Rows<T>,
) -> bool {
    let row = p.row(b, h, i);
    let normalizer = p.spec.normalizer;
    if normalizer == Normalizer::Softmax {
        let lse = softmax(p, scores, rows.lse.is_some());
        // SAFETY: the caller's.
        unsafe { rows.set_lse(row, || lse) };
        return true;
    }
    let lse = if rows.asks_lse() { lse(scores) } else { T::ZERO };
    // SAFETY: the caller's.
    unsafe { rows.set_lse(row, || lse) };
    match normalizer {
        Normalizer::Sparsemax | Normalizer::Entmax15 => {
            let (largest, tau) = threshold(normalizer == Normalizer::Entmax15, scores);
            let half = T::of(if normalizer == Normalizer::Entmax15 { 0.5 } else { 1.0 });
            // SAFETY: the caller's.
            unsafe { rows.set_threshold(row, tau + largest * half) };
            for score in scores.iter_mut() {
                let above = positive((*score - largest) * half - tau);
                *score = if normalizer == Normalizer::Entmax15 { above * above } else { above };
            }
        }
        Normalizer::Argmax | Normalizer::Sample { .. } => {
            let chosen = choose(p, at, scores, &key);
            // SAFETY: the caller's.
            unsafe {
                rows.set_choice(row, chosen, || lse);
                write_choice(p, at, chosen.index, rows);
            }
            if rows.edge_weights.is_some() {
                for (n, weight) in scores.iter_mut().enumerate() {
                    let is_chosen = key(n) as i64 == chosen.index;
                    *weight = if is_chosen { keep(p, b, h, i, key(n)) } else { T::ZERO };
                }
            }
            return false;
        }
        Normalizer::Softmax | Normalizer::Sigmoid | Normalizer::None => {
            let rule = Rule::of(normalizer).unwrap_or(Rule::Plain);
            scores.iter_mut().for_each(|score| *score = rule.weight(*score, T::ZERO));
        }
    }
    true
}

/// The key of a row with the largest score, or the largest with Gumbel noise.
fn choose<T: Real>(
    p: &Problem<T>,
    (b, h, i): (usize, usize, usize),
    scores: &[T],
    key: impl Fn(usize) -> usize,
) -> Chosen<T> {
    let draw = match p.spec.normalizer {
        Normalizer::Sample { seed } => Some(Draw::new(seed, Stream::Sample, b * p.s.hq + h)),
        _ => None,
    };
    let mut chosen = Chosen::<T>::NONE;
    for (n, &score) in scores.iter().enumerate() {
        let j = key(n);
        let noisy = score + draw.map_or(T::ZERO, |draw| gumbel(draw.word(i, j)));
        if noisy > chosen.best {
            chosen = Chosen { index: j as i64, best: noisy, score };
        }
    }
    chosen
}

fn lse<T: Real>(scores: &[T]) -> T {
    let largest = scores.iter().copied().fold(T::NEG_INFINITY, T::max);
    if largest == T::NEG_INFINITY {
        // Nothing but −∞, or NaN.
        return scores.iter().copied().fold(largest, |sum, s| sum + s);
    }
    largest + scores.iter().map(|&s| (s - largest).exp()).sum::<T>().ln()
}

/// The largest score and, relative to it, the threshold: as `threshold.rs`, for one row.
fn threshold<T: Real>(entmax: bool, scores: &[T]) -> (T, T) {
    let largest = scores.iter().copied().fold(T::NEG_INFINITY, T::max);
    let largest = if largest == T::NEG_INFINITY { T::ZERO } else { largest };
    let half = T::of(if entmax { 0.5 } else { 1.0 });
    let mut tau = -T::ONE;
    for _ in 0..steps(scores.len()) {
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
    mut f: impl FnMut(usize, usize, usize, &mut [T]),
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
        (0..own).map(move |e| (i as u32, links.draw(i, e)))
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
///
/// # Safety
/// The row is the calling task's alone.
unsafe fn put_row<T: Real>(
    p: &Problem<T>,
    (b, h, i): (usize, usize, usize),
    weights: &[T],
    key: impl Fn(usize) -> usize,
    rows: &Rows<T>,
) {
    if let Some(to) = &rows.weights {
        // SAFETY: the caller's.
        let to = unsafe { to.part(p.row(b, h, i) * p.s.nk, p.s.nk) };
        for (n, &weight) in weights.iter().enumerate() {
            to[key(n)] = weight;
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
    let parts = forward_heads(s, size_of::<T>());
    let near = Near::of(p, parts);
    let p = &near.problem(p);
    let jointly = is_joint(p, rows);
    tasks::each(s.b * parts * chunks, &|task| {
        let heads = Heads::new(p, parts, task / chunks);
        let chunk = task % chunks;
        let queries = chunk * ROWS..((chunk + 1) * ROWS).min(s.nq);
        let n = heads.n * links.pairs(queries.clone()).len();
        let drawn = if p.spec.dropout.is_some() { n } else { 0 };
        scratch::with([n + BEHIND, heads.n * ROWS, drawn], |[scores, lse, drawn]| {
            // SAFETY: the queries of a chunk are its task's alone.
            unsafe {
                if !jointly {
                    attend(p, &links, &heads, &queries, [scores, lse, drawn], rows);
                    return;
                }
                for i in attend_jointly(p, &links, &heads, &queries, [scores, lse], rows) {
                    attend(p, &links, &heads, &(i..i + 1), [scores, lse, drawn], rows);
                }
            }
        });
    });
}

/// The output of some queries, and what else is asked of them. There is room for `[heads, pairs]`
/// scores, `[heads, queries]` statistics and, where there is dropout, its factors, `[heads,
/// pairs]`.
///
/// # Safety
/// The rows are the calling task's alone.
unsafe fn attend<T: Real>(
    p: &Problem<T>,
    links: &Links,
    heads: &Heads,
    queries: &Range<usize>,
    [scores, lse, drawn]: [&mut [T]; 3],
    rows: &Rows<T>,
) {
    let n = heads.n * links.pairs(queries.clone()).len();
    score_rows(p, links, heads, queries.clone(), scores, None);
    let scores = &mut scores[..n];
    // SAFETY: the caller's.
    unsafe { normalize_rows(p, links, heads, queries, [scores, lse], rows) };
    if p.spec.normalizer.is_hard() {
        // SAFETY: the caller's.
        unsafe { put_edges(p, links, heads, queries, scores, rows) };
        return;
    }
    if let Some(dropout) = p.spec.dropout {
        factors(p, dropout, links, heads, queries.clone(), drawn);
        scores.iter_mut().zip(drawn).for_each(|(score, factor)| *score *= *factor);
    }
    if rows.weights.is_some() {
        each_row(links, heads, queries.clone(), scores, |at, i, _, row| {
            let place = (heads.b, heads.h + at, i);
            // SAFETY: the caller's.
            unsafe { put_row(p, place, row, |n| links.key(i, n), rows) };
        });
    }
    // SAFETY: the caller's; edges were checked against the shape.
    unsafe {
        put_edges(p, links, heads, queries, scores, rows);
        (p.kernels.row_gather)(gather_of(p, links, heads, queries, scores, &rows.out));
    }
}

/// Whether [`attend_jointly`] serves: softmax of narrow rows whose weights nobody looks at.
fn is_joint<T: Real>(p: &Problem<T>, rows: &Rows<T>) -> bool {
    p.spec.normalizer == Normalizer::Softmax
        && p.spec.dropout.is_none()
        && rows.weights.is_none()
        && rows.edge_weights.is_none()
        && p.s.group() == 1
        && p.s.dv <= p.kernels.lanes
}

/// As [`attend`], by exponentials relative to the largest score of all these queries, in one go
/// from the first to the last, and divided by a row's sum where the values are added up: rows are
/// short, and to find each one's largest, then its sum, costs more than all else. Gives the queries
/// that are to be done one by one, because their scores are too far below the largest, or are no
/// numbers.
///
/// # Safety
/// The rows are the calling task's alone.
unsafe fn attend_jointly<T: Real>(
    p: &Problem<T>,
    links: &Links,
    heads: &Heads,
    queries: &Range<usize>,
    [scores, lse]: [&mut [T]; 2],
    rows: &Rows<T>,
) -> impl Iterator<Item = usize> + use<T> {
    let n = links.pairs(queries.clone()).len();
    assert!(lse.len() >= queries.len());
    score_rows(p, links, heads, queries.clone(), scores, None);
    let mut again = [false; ROWS];
    for at in 0..heads.n {
        let scores = &mut scores[at * n..][..n];
        let head = Heads { h: heads.h + at, hk: heads.hk + at, n: 1, ..*heads };
        // SAFETY: the caller's; edges were checked against the shape.
        let (base, [least, nothing]) = unsafe {
            let base = (p.kernels.exponentials)(n, scores.as_mut_ptr());
            let gather = gather_of(p, links, &head, queries, scores, &rows.out);
            (base, (p.kernels.share_gather)(gather, lse.as_mut_ptr()))
        };
        // Not so far below that a sum is made of rounded numbers.
        let is_enough = |total: T| total >= T::EPSILON && nothing == T::ZERO;
        if !is_enough(least) {
            for (again, &total) in again.iter_mut().zip(&*lse) {
                *again |= !is_enough(total);
            }
        }
        if let Some(to) = &rows.lse {
            let from = p.row(heads.b, head.h, queries.start);
            // SAFETY: the caller's.
            let to = unsafe { to.part(from, queries.len()) };
            for (to, &total) in to.iter_mut().zip(&*lse) {
                *to = base + total.ln();
            }
        }
    }
    queries.clone().zip(again).filter_map(|(i, again)| again.then_some(i))
}

/// Scores of some queries, `[heads, pairs]`, become weights, before dropout, and the rows'
/// statistics are written; `lse` has room for `[heads, queries]`.
///
/// # Safety
/// The rows are the calling task's alone.
unsafe fn normalize_rows<T: Real>(
    p: &Problem<T>,
    links: &Links,
    heads: &Heads,
    queries: &Range<usize>,
    [scores, lse]: [&mut [T]; 2],
    rows: &Rows<T>,
) {
    if p.spec.normalizer != Normalizer::Softmax {
        each_row(links, heads, queries.clone(), scores, |at, i, _, row| {
            let place = (heads.b, heads.h + at, i);
            // SAFETY: the caller's.
            unsafe { normalize(p, place, row, |n| links.key(i, n), rows) };
        });
        return;
    }
    let pairs = links.pairs(queries.clone());
    let (spans, _) = links.by_query(queries.start);
    let from = scores.as_mut_ptr().wrapping_sub(links.first(queries.start));
    let to = if rows.lse.is_some() { lse.as_mut_ptr() } else { std::ptr::null_mut() };
    // SAFETY: scores of all pairs of all heads; a number for each row and head.
    unsafe { (p.kernels.row_softmax)(from, heads.n, pairs.len(), queries.len(), spans, to) };
    if let Some(to) = &rows.lse {
        for (at, lse) in lse.chunks_exact(queries.len()).take(heads.n).enumerate() {
            let from = p.row(heads.b, heads.h + at, queries.start);
            // SAFETY: the caller's.
            unsafe { to.part(from, queries.len()) }.copy_from_slice(lse);
        }
    }
}

/// Writes the weights of some queries' edges, `[heads, pairs]`, where they are wanted.
///
/// # Safety
/// The rows are the calling task's alone.
unsafe fn put_edges<T: Real>(
    p: &Problem<T>,
    links: &Links,
    heads: &Heads,
    queries: &Range<usize>,
    weights: &[T],
    rows: &Rows<T>,
) {
    let Some(to) = &rows.edge_weights else { return };
    let pairs = links.pairs(queries.clone());
    for at in 0..heads.n {
        let from = (heads.b * p.s.hq + heads.h + at) * links.len() + pairs.start;
        // SAFETY: the caller's.
        let to = unsafe { to.part(from, pairs.len()) };
        to.copy_from_slice(&weights[at * pairs.len()..][..pairs.len()]);
    }
}

/// What makes the output of some queries: their weights, `[heads, pairs]`, times the values.
///
/// # Safety
/// The rows are the calling task's alone.
unsafe fn gather_of<T: Real>(
    p: &Problem<T>,
    links: &Links,
    heads: &Heads,
    queries: &Range<usize>,
    weights: &[T],
    to: &ViewMut<T>,
) -> RowGather<T> {
    let n = links.pairs(queries.clone()).len();
    assert!(weights.len() >= heads.n * n);
    let (spans, keys) = links.by_query(queries.start);
    RowGather {
        heads: heads.n,
        group: p.s.group(),
        rows: queries.len(),
        spans,
        keys,
        weights: weights.as_ptr().wrapping_sub(links.first(queries.start)),
        weights_head: n,
        v: heads.keys(p, &p.v, 0),
        d: p.s.dv,
        scale: T::ONE,
        // SAFETY: the caller's.
        to: unsafe { heads.results(to, queries.start) },
    }
}

fn few<T: Real>(p: &Problem<T>, rows: &Rows<T>) {
    let s = &p.s;
    let splits = plan::cache_splits(p.spec.normalizer, s);
    let together = s.group() * s.nq;
    let rows_of = |task: usize| task * together..(task + 1) * together;
    let tasks = Tasks { count: s.b * s.hk, rows: &rows_of };
    split::forward(p, rows, splits, tasks, |task, portions| {
        for Portion { keys, rows } in portions {
            few_keys(p, task / s.hk, task % s.hk, keys.clone(), rows);
        }
    });
}

/// All queries of the heads that share a key head, against a range of its keys.
struct Few<'a, 'p, T: Real> {
    p: &'a Problem<'p, T>,
    heads: Heads,
    keys: Range<usize>,
    /// Rows: query heads times queries.
    count: usize,
}

fn few_keys<T: Real>(p: &Problem<T>, b: usize, hk: usize, keys: Range<usize>, rows: &Rows<T>) {
    let s = &p.s;
    // Keys that no query sees by length or position are not even read.
    let seen = p.key_range(b, 0, s.nq);
    let start = keys.start.max(seen.start);
    let keys = start..keys.end.min(seen.end).max(start);
    let n = keys.len();
    let heads = Heads { b, h: hk * s.group(), hk, n: s.group() };
    let few = Few { p, heads, keys, count: s.group() * s.nq };
    let count = few.count;
    scratch::with([count * s.dq, count * n, count * s.dv], |[queries, scores, out]| {
        few.scores(queries, scores);
        // SAFETY: the rows that share a key head are its task's alone.
        unsafe {
            if few.normalize(scores, rows) {
                few.gather(scores, out);
                for (row, out) in (0..count).zip(out.chunks_exact(s.dv.max(1))) {
                    let (b, h, i) = few.at(row);
                    rows.out.row(b, h, i).copy_from_nonoverlapping(out.as_ptr(), s.dv);
                }
            }
        }
    });
}

impl<T: Real> Few<'_, '_, T> {
    /// Batch item, head and query of a row.
    fn at(&self, row: usize) -> (usize, usize, usize) {
        let nq = self.p.s.nq;
        (self.heads.b, self.heads.h + row / nq, row % nq)
    }

    /// Scores `[rows, keys]`, neither bias nor mask looked at; `queries` has room for all rows.
    fn scores(&self, queries: &mut [T], scores: &mut [T]) {
        let Self { p, ref heads, ref keys, count } = *self;
        let (s, n) = (&p.s, keys.len());
        if n == 0 {
            return;
        }
        let Some(score) = pair_score(p, heads) else { return self.own_scores(scores) };
        for row in 0..count {
            let (b, h, i) = self.at(row);
            queries[row * s.dq..][..s.dq].copy_from_slice(p.q.row(b, h, i));
        }
        let k = row::Rows { head: 0, ..heads.keys(p, &p.k, 0) };
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
    }

    /// As [`Self::scores`], by a score of one's own, or by an expression.
    fn own_scores(&self, scores: &mut [T]) {
        if let Some(programs) = self.p.programs {
            for (row, to) in scores.chunks_exact_mut(self.keys.len()).enumerate() {
                let (b, h, i) = self.at(row);
                let pairs = self.keys.clone().map(|j| (i, j));
                programs.score_pairs(self.p, Head { b, h }, pairs, to);
            }
        }
        let Score::Own { score: own, parameters } = self.p.spec.score else { return };
        for (row, to) in scores.chunks_exact_mut(self.keys.len()).enumerate() {
            let (b, h, i) = self.at(row);
            let parameters = w_of_head(parameters, h, own.parameters());
            for (to, j) in to.iter_mut().zip(self.keys.clone()) {
                let k = self.p.k.row(b, self.heads.hk, j);
                *to = own.score(parameters, self.p.q.row(b, h, i), k);
            }
        }
    }

    /// Scores become weights, dropout included. Hard attention writes its output instead and gives
    /// false.
    ///
    /// # Safety
    /// The rows are the calling task's alone.
    unsafe fn normalize(&self, scores: &mut [T], rows: &Rows<T>) -> bool {
        let (p, n) = (self.p, self.keys.len());
        let key = |n: usize| self.keys.start + n;
        let mut soft = true;
        for row in 0..self.count {
            let scores = &mut scores[row * n..][..n];
            let at @ (b, h, i) = self.at(row);
            finish_row(p, at, scores, key);
            // SAFETY: the caller's.
            soft = unsafe { normalize(p, at, scores, key, rows) };
            if !soft {
                continue;
            }
            if let Some(dropout) = p.spec.dropout {
                let keep = dropout.of_head::<T>(b * p.s.hq + h);
                for (n, weight) in scores.iter_mut().enumerate() {
                    *weight *= keep.factor(i, key(n));
                }
            }
            // SAFETY: the caller's.
            unsafe { put_row(p, at, scores, key, rows) };
        }
        soft
    }

    /// Output `[rows, Dv]` of weights `[rows, keys]`.
    fn gather(&self, weights: &[T], out: &mut [T]) {
        let Self { p, ref heads, ref keys, count } = *self;
        let (s, n) = (&p.s, keys.len());
        out.fill(T::ZERO);
        if n == 0 {
            return;
        }
        assert!(weights.len() >= count * n && out.len() >= count * s.dv);
        // SAFETY: n rows of v, `count` rows of weights and of output.
        unsafe {
            (p.kernels.row_gather)(RowGather {
                heads: count,
                group: count,
                rows: 1,
                spans: Spans::Every(n),
                keys: List::From(keys.start),
                weights: weights.as_ptr(),
                weights_head: n,
                v: row::Rows { head: 0, ..heads.keys(p, &p.v, 0) },
                d: s.dv,
                scale: T::ONE,
                to: row::RowsMut { base: out.as_mut_ptr(), head: s.dv, row: 0 },
            });
        }
    }
}

/// Writes all weights, whose places were zero, for the normalizers without a threshold.
pub(super) fn write_weights<T: Real>(p: &Problem<T>, rule: Rule, weights: &Shared<T>) {
    let s = &p.s;
    let links = Links::of(p);
    let parts = forward_heads(s, size_of::<T>());
    tasks::runs(s.b * parts * s.nq, 4, &|task| {
        let heads = Heads::new(p, parts, task / s.nq);
        let i = task % s.nq;
        let n = links.pairs(i..i + 1).len();
        scratch::with([heads.n * n + BEHIND], |[scores]| {
            score_rows(p, &links, &heads, i..i + 1, scores, None);
            for (at, scores) in scores[..heads.n * n].chunks_exact_mut(n.max(1)).enumerate() {
                let h = heads.h + at;
                if rule == Rule::Softmax {
                    softmax(p, scores, false);
                } else {
                    scores.iter_mut().for_each(|score| *score = rule.weight(*score, T::ZERO));
                }
                // SAFETY: each row is one task's alone.
                let to = unsafe { weights.part(p.row(heads.b, h, i) * s.nk, s.nk) };
                for (n, &weight) in scores.iter().enumerate() {
                    let j = links.key(i, n);
                    to[j] = weight * keep(p, heads.b, h, i, j);
                }
            }
        });
    });
}

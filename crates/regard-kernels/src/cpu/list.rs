//! Forward by lists: a query, or a few, against a list of keys.
//!
//! A graph's query meets the keys of its edges: work and memory follow the number of edges. Few
//! queries against a long cache (decoding) are cut over the keys, so that every core reads a part
//! of the cache; query heads that share a key head read it once.

use super::additive::Form;
use super::problem::Problem;
use super::row::{self, List, Pairs, RowGather, RowScore, RowScores};
use super::shared::Shared;
use super::tile::{choose, gumbel, keep};
use super::weights::Rule;
use super::{Rows, SPLIT_KEYS, SPLIT_TASKS, scratch, split_forward};
use crate::random::{Draw, Stream};
use crate::spec::{Edges, Normaliser, Score};
use crate::{Real, View};
use rayon::prelude::*;
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

    /// Where a query's pairs lie among all, and its keys.
    pub(super) fn of_query(&self, i: usize) -> (Range<usize>, List) {
        match self {
            Self::Graph(edges) => {
                let keys = edges.of_query(i);
                let start = edges.start(i);
                (start..start + keys.len(), List::These(keys.as_ptr()))
            }
            Self::All { nk, .. } => (i * nk..(i + 1) * nk, List::From(0)),
        }
    }

    /// How many queries a key has, which, and where their pairs lie among all.
    pub(super) fn of_key(&self, j: usize) -> (usize, List, Pairs) {
        match self {
            Self::Graph(edges) => {
                let (queries, pairs) = edges.of_key(j);
                let list = List::These(queries.as_ptr());
                (queries.len(), list, Pairs::These(pairs.as_ptr()))
            }
            Self::All { nq, nk } => (*nq, List::From(0), Pairs::Every(j, *nk)),
        }
    }

    /// The key of a query's pair number `n`.
    pub(super) fn key(&self, i: usize, n: usize) -> usize {
        match self {
            Self::Graph(edges) => edges.of_query(i)[n] as usize,
            Self::All { .. } => n,
        }
    }

    /// The most keys a query has.
    pub(super) fn longest(&self) -> usize {
        match self {
            Self::Graph(edges) => {
                (0..edges.queries()).map(|i| edges.of_query(i).len()).max().unwrap_or(0)
            }
            Self::All { nk, .. } => *nk,
        }
    }
}

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
    /// How many parts the key heads are cut into, so that there are tasks enough.
    pub(super) fn parts<T: Real>(p: &Problem<T>, chunks: usize) -> usize {
        let want = SPLIT_TASKS.div_ceil(p.s.b * chunks).min(p.s.hk).max(1);
        (1..=want).rev().find(|parts| p.s.hk.is_multiple_of(*parts)).unwrap_or(1)
    }

    /// Part `n` of all batch items' parts.
    pub(super) fn new<T: Real>(p: &Problem<T>, parts: usize, n: usize) -> Self {
        let (b, part) = (n / parts, n % parts);
        let size = p.s.hk / parts;
        let hk = part * size;
        Self { b, h: hk * p.s.group(), hk, n: size * p.s.group() }
    }

    /// The rows of these key heads.
    pub(super) fn keys<T: Real>(&self, p: &Problem<T>, x: &View<T>) -> row::Rows<T> {
        row::Rows {
            base: p.rows(x, self.b, self.hk, 0, x.shape[2]),
            head: x.strides[1],
            row: x.strides[2],
        }
    }

    /// The rows of these query heads, from row `i` on.
    pub(super) fn queries<T: Real>(&self, p: &Problem<T>, x: &View<T>, i: usize) -> row::Rows<T> {
        row::Rows { base: p.rows(x, self.b, self.h, i, 1), head: x.strides[1], row: x.strides[2] }
    }
}

/// How these heads score a pair; none for a score of one's own.
pub(super) fn pair_score<T: Real>(p: &Problem<T>, heads: &Heads) -> Option<RowScore<T>> {
    match p.spec.score {
        Score::Dot { scale } => Some(RowScore::Dot(scale)),
        Score::Additive { w, .. } => {
            let w_head = if w.len() == p.s.dk { 0 } else { p.s.dk };
            // What is kept of q and k pays off for tiles only.
            let form = if p.form.is_direct() { p.form } else { Form::Tanh };
            Some(RowScore::Additive { form, w: w[heads.h * w_head..].as_ptr(), w_head })
        }
        Score::Own(_) => None,
    }
}

/// The scores of query `i` of some heads for its keys, bias and mask included: `[heads, keys]`.
pub(super) fn score_rows<T: Real>(
    p: &Problem<T>,
    links: &Links,
    heads: &Heads,
    i: usize,
    to: &mut [T],
) {
    let (range, keys) = links.of_query(i);
    let n = range.len();
    if n == 0 {
        return;
    }
    assert!(to.len() >= heads.n * n);
    match (pair_score(p, heads), p.spec.score) {
        (Some(score), _) => {
            // SAFETY: the keys are rows of k: edges were checked against the shape.
            unsafe {
                (p.kernels.row_scores)(RowScores {
                    score,
                    heads: heads.n,
                    group: p.s.group(),
                    q: heads.queries(p, &p.q, i),
                    k: heads.keys(p, &p.k),
                    keys,
                    n,
                    d: p.s.dk,
                    to: to.as_mut_ptr(),
                    to_head: n,
                });
            }
        }
        (None, Score::Own(own)) => {
            for (at, to) in to[..heads.n * n].iter_mut().enumerate() {
                let h = heads.h + at / n;
                let k = p.k.row(heads.b, p.key_head(h), links.key(i, at % n));
                *to = own.score(p.q.row(heads.b, h, i), k);
            }
        }
        (None, _) => {}
    }
    for (at, row) in to[..heads.n * n].chunks_exact_mut(n).enumerate() {
        finish_row(p, (heads.b, heads.h + at, i), row, |n| links.key(i, n));
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
    let masked = mask.causal
        || mask.window.is_some()
        || mask.key_lengths.is_some()
        || mask.segments.is_some()
        || mask.dense.is_some();
    if masked {
        for (n, score) in scores.iter_mut().enumerate() {
            if !mask.allows(&p.s, p.offset, b, h, i, key(n)) {
                *score = T::NEG_INFINITY;
            }
        }
    }
}

/// Scores become weights, before dropout, and the row's statistics are written. Hard attention
/// writes its output instead and gives false.
fn normalise<T: Real>(
    p: &Problem<T>,
    at @ (b, h, i): (usize, usize, usize),
    scores: &mut [T],
    key: impl Fn(usize) -> usize,
    rows: &Rows<T>,
) -> bool {
    let row = p.row(b, h, i);
    let normaliser = p.spec.normaliser;
    let hard = normaliser.is_hard();
    if normaliser == Normaliser::Softmax {
        // SAFETY: the slice is the scores.
        let lse = unsafe { (p.kernels.row_softmax)(scores.as_mut_ptr(), scores.len()) };
        rows.set_lse(row, lse);
        return true;
    }
    let lse = if hard || rows.lse.is_some() { lse(scores) } else { T::ZERO };
    rows.set_lse(row, lse);
    match normaliser {
        Normaliser::Sparsemax | Normaliser::Entmax15 => {
            let (largest, tau) = threshold(normaliser == Normaliser::Entmax15, scores);
            let half = T::of(if normaliser == Normaliser::Entmax15 { 0.5 } else { 1.0 });
            rows.set_threshold(row, tau + largest * half);
            for score in scores.iter_mut() {
                let above = ((*score - largest) * half - tau).max(T::ZERO);
                *score = if normaliser == Normaliser::Entmax15 { above * above } else { above };
            }
        }
        Normaliser::Argmax | Normaliser::Sample { .. } => {
            let draw = match normaliser {
                Normaliser::Sample { seed } => {
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
            choose(p, at, index, rows);
            return false;
        }
        Normaliser::Softmax | Normaliser::Sigmoid | Normaliser::None => {
            let rule = Rule::of(normaliser).unwrap_or(Rule::Plain);
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

/// Dropout on a row of weights, which are then written where they are wanted.
fn drop_row<T: Real>(
    p: &Problem<T>,
    (b, h, i): (usize, usize, usize),
    weights: &mut [T],
    key: impl Fn(usize) -> usize,
    rows: &Rows<T>,
) {
    if let Some(dropout) = p.spec.dropout {
        let factors = dropout.of_head::<T>(b * p.s.hq + h);
        for (n, weight) in weights.iter_mut().enumerate() {
            *weight *= factors.factor(i, key(n));
        }
    }
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
pub(super) const ROWS: usize = 64;

fn graph<T: Real>(p: &Problem<T>, edges: &Edges, rows: &Rows<T>) {
    let s = &p.s;
    let links = Links::Graph(edges);
    let longest = links.longest();
    let chunks = s.nq.div_ceil(ROWS);
    let parts = Heads::parts(p, chunks);
    (0..s.b * parts * chunks).into_par_iter().for_each(|task| {
        let heads = Heads::new(p, parts, task / chunks);
        let (b, chunk) = (heads.b, task % chunks);
        scratch::with([heads.n * longest], |[scores]| {
            for i in chunk * ROWS..((chunk + 1) * ROWS).min(s.nq) {
                let (range, keys) = links.of_query(i);
                let n = range.len();
                score_rows(p, &links, &heads, i, scores);
                let mut soft = true;
                for at in 0..heads.n {
                    let row = &mut scores[at * n..][..n];
                    let place = (b, heads.h + at, i);
                    soft = normalise(p, place, row, |n| links.key(i, n), rows);
                    if soft {
                        drop_row(p, place, row, |n| links.key(i, n), rows);
                    }
                }
                if !soft {
                    continue;
                }
                // SAFETY: these rows are this task's alone; edges were checked.
                unsafe {
                    for h in heads.h..heads.h + heads.n {
                        let out = rows.out.row(b, h, i);
                        std::slice::from_raw_parts_mut(out, s.dv).fill(T::ZERO);
                    }
                    (p.kernels.row_gather)(RowGather {
                        heads: heads.n,
                        group: s.group(),
                        weights: scores.as_ptr(),
                        weights_head: n,
                        v: heads.keys(p, &p.v),
                        keys,
                        n,
                        d: s.dv,
                        to: rows.out.row(b, heads.h, i),
                        to_head: rows.out.strides[1],
                    });
                }
            }
        });
    });
}

fn few<T: Real>(p: &Problem<T>, rows: &Rows<T>) {
    let s = &p.s;
    let tasks = s.b * s.hk;
    let splits = if p.spec.normaliser.has_threshold() {
        1
    } else {
        SPLIT_TASKS.div_ceil(tasks).min(s.nk / SPLIT_KEYS).max(1)
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
            let mut k = heads.keys(p, &p.k);
            k.head = 0;
            let mut run = |score, first: usize, heads: usize| {
                // SAFETY: `heads` rows of queries from `first` on, n rows of k.
                unsafe {
                    (p.kernels.row_scores)(RowScores {
                        score,
                        heads,
                        group: heads,
                        q: row::Rows { base: queries[first * s.dq..].as_ptr(), head: s.dq, row: 0 },
                        k,
                        keys: List::From(keys.start),
                        n,
                        d: s.dk,
                        to: scores[first * n..].as_mut_ptr(),
                        to_head: n,
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
        let mut soft = true;
        for row in 0..count {
            let scores = &mut scores[row * n..][..n];
            let key = |n: usize| keys.start + n;
            finish_row(p, at(row), scores, key);
            soft = normalise(p, at(row), scores, key, rows);
            if soft {
                drop_row(p, at(row), scores, key, rows);
            }
        }
        if !soft {
            return;
        }
        out.fill(T::ZERO);
        if n > 0 {
            // SAFETY: n rows of v, `count` rows of weights and of output.
            unsafe {
                let mut v = heads.keys(p, &p.v);
                v.head = 0;
                (p.kernels.row_gather)(RowGather {
                    heads: count,
                    group: count,
                    weights: scores.as_ptr(),
                    weights_head: n,
                    v,
                    keys: List::From(keys.start),
                    n,
                    d: s.dv,
                    to: out.as_mut_ptr(),
                    to_head: s.dv,
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

/// Writes all weights, whose places were zero, for the normalisers without a threshold.
pub(super) fn write_weights<T: Real>(p: &Problem<T>, rule: Rule, weights: &Shared<T>) {
    let s = &p.s;
    let links = Links::of(p);
    let all = Heads::parts(p, s.nq);
    (0..s.b * all * s.nq).into_par_iter().with_min_len(4).for_each(|task| {
        let heads = Heads::new(p, all, task / s.nq);
        let i = task % s.nq;
        let n = links.of_query(i).0.len();
        scratch::with([heads.n * n], |[scores]| {
            score_rows(p, &links, &heads, i, scores);
            for (at, scores) in scores.chunks_exact_mut(n.max(1)).enumerate() {
                let h = heads.h + at;
                if rule == Rule::Softmax {
                    // SAFETY: the slice is the scores.
                    unsafe { (p.kernels.row_softmax)(scores.as_mut_ptr(), n) };
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

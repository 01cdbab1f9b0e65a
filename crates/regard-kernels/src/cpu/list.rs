//! Forward by lists: a query, or a few, against a list of keys.
//!
//! A graph's query meets the keys of its edges: work and memory follow the number of edges. Few
//! queries against a long cache (decoding) are cut over the keys, so that every core reads a part
//! of the cache; query heads that share a key head read it once.

use super::additive::Form;
use super::problem::Problem;
use super::row::{Keys, RowGather, RowScore, RowScores};
use super::shared::Shared;
use super::tile::{choose, gumbel, keep};
use super::weights::Rule;
use super::{Rows, SPLIT_KEYS, SPLIT_TASKS, scratch, split_forward};
use crate::Real;
use crate::random::{Draw, Stream};
use crate::spec::{Edges, Normaliser, Score, w_of_head};
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
    pub(super) fn of_query(&self, i: usize) -> (Range<usize>, Keys) {
        match self {
            Self::Graph(edges) => {
                let keys = edges.of_query(i);
                let start = edges.start(i);
                (start..start + keys.len(), Keys::List(keys.as_ptr()))
            }
            Self::All { nk, .. } => (i * nk..(i + 1) * nk, Keys::From(0)),
        }
    }

    /// The key of a query's pair number `n`.
    pub(super) fn key(&self, i: usize, n: usize) -> usize {
        match self {
            Self::Graph(edges) => edges.of_query(i)[n] as usize,
            Self::All { .. } => n,
        }
    }

    /// Calls `f` with each query of a key and the place of that pair among all.
    pub(super) fn for_each_query(&self, j: usize, mut f: impl FnMut(usize, usize)) {
        match self {
            Self::Graph(edges) => edges.of_key(j).for_each(|(i, at)| f(i, at)),
            Self::All { nq, nk } => (0..*nq).for_each(|i| f(i, i * nk + j)),
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

/// The form of an additive score for pairs that stand alone.
pub(super) fn pair_form<T: Real>(p: &Problem<T>) -> Form {
    if p.form.is_direct() { p.form } else { Form::Tanh }
}

/// Raw scores of one query of one head for its keys.
pub(super) fn score_row<T: Real>(
    p: &Problem<T>,
    (b, h, i): (usize, usize, usize),
    keys: Keys,
    to: &mut [T],
) {
    let s = &p.s;
    let q = p.q.row(b, h, i);
    let score = match p.spec.score {
        Score::Dot { scale } => RowScore::Dot(scale),
        Score::Additive { w, .. } => {
            RowScore::Additive(pair_form(p), w_of_head(w, h, s.dk).as_ptr())
        }
        Score::Own(own) => {
            let links = Links::of(p);
            for (n, to) in to.iter_mut().enumerate() {
                let j = match keys {
                    Keys::From(first) => first + n,
                    Keys::List(_) => links.key(i, n),
                };
                *to = own.score(q, p.k.row(b, p.key_head(h), j));
            }
            return;
        }
    };
    // SAFETY: the keys are rows of k: edges were checked against the shape.
    unsafe {
        (p.kernels.row_scores)(RowScores {
            score,
            q: q.as_ptr(),
            q_row: 0,
            queries: 1,
            k: p.rows(&p.k, b, p.key_head(h), 0, s.nk),
            k_row: p.k.strides[2],
            keys,
            n: to.len(),
            d: s.dk,
            to: to.as_mut_ptr(),
            to_row: 0,
        });
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
    let longest = Links::Graph(edges).longest();
    let chunks = s.nq.div_ceil(ROWS);
    (0..s.b * s.hq * chunks).into_par_iter().for_each(|task| {
        let (head, chunk) = (task / chunks, task % chunks);
        let (b, h) = (head / s.hq, head % s.hq);
        let hk = p.key_head(h);
        scratch::with([longest], |[scores]| {
            for i in chunk * ROWS..((chunk + 1) * ROWS).min(s.nq) {
                let keys = edges.of_query(i);
                let scores = &mut scores[..keys.len()];
                let at = (b, h, i);
                let list = Keys::List(keys.as_ptr());
                score_row(p, at, list, scores);
                finish_row(p, at, scores, |n| keys[n] as usize);
                if !normalise(p, at, scores, |n| keys[n] as usize, rows) {
                    continue;
                }
                drop_row(p, at, scores, |n| keys[n] as usize, rows);
                // SAFETY: this row is this task's alone; edges were checked against the shape.
                unsafe {
                    let out = rows.out.row(b, h, i);
                    std::slice::from_raw_parts_mut(out, s.dv).fill(T::ZERO);
                    (p.kernels.row_gather)(RowGather {
                        weights: scores.as_ptr(),
                        weights_row: 0,
                        queries: 1,
                        v: p.rows(&p.v, b, hk, 0, s.nk),
                        v_row: p.v.strides[2],
                        keys: list,
                        n: keys.len(),
                        d: s.dv,
                        to: out,
                        to_row: 0,
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
    scratch::with([count * s.dq, count * n, count * s.dv], |[queries, scores, out]| {
        if n > 0 {
            if let Score::Dot { scale } = p.spec.score {
                for row in 0..count {
                    let (b, h, i) = at(row);
                    queries[row * s.dq..][..s.dq].copy_from_slice(p.q.row(b, h, i));
                }
                // SAFETY: `count` rows of queries, n rows of k.
                unsafe {
                    (p.kernels.row_scores)(RowScores {
                        score: RowScore::Dot(scale),
                        q: queries.as_ptr(),
                        q_row: s.dq,
                        queries: count,
                        k: p.rows(&p.k, b, hk, 0, s.nk),
                        k_row: p.k.strides[2],
                        keys: Keys::From(keys.start),
                        n,
                        d: s.dk,
                        to: scores.as_mut_ptr(),
                        to_row: n,
                    });
                }
            } else {
                for row in 0..count {
                    score_row(p, at(row), Keys::From(keys.start), &mut scores[row * n..][..n]);
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
                (p.kernels.row_gather)(RowGather {
                    weights: scores.as_ptr(),
                    weights_row: n,
                    queries: count,
                    v: p.rows(&p.v, b, hk, 0, s.nk),
                    v_row: p.v.strides[2],
                    keys: Keys::From(keys.start),
                    n,
                    d: s.dv,
                    to: out.as_mut_ptr(),
                    to_row: s.dv,
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
    (0..s.rows()).into_par_iter().with_min_len(16).for_each(|row| {
        let at @ (b, h, i) = (row / s.nq / s.hq, row / s.nq % s.hq, row % s.nq);
        let (range, keys) = links.of_query(i);
        scratch::with([range.len()], |[scores]| {
            score_row(p, at, keys, scores);
            finish_row(p, at, scores, |n| links.key(i, n));
            if rule == Rule::Softmax {
                // SAFETY: the slice is the scores.
                unsafe { (p.kernels.row_softmax)(scores.as_mut_ptr(), scores.len()) };
            } else {
                scores.iter_mut().for_each(|score| *score = rule.weight(*score, T::ZERO));
            }
            for (n, &weight) in scores.iter().enumerate() {
                let j = links.key(i, n);
                weights.set(row * s.nk + j, weight * keep(p, b, h, i, j));
            }
        });
    });
}

//! From the pairs of some queries to their weights: scores, normalizers, dropout.

use super::heads::Heads;
use super::links::Links;
use crate::cpu::attention::additive::Form;
use crate::cpu::attention::expression::Head;
use crate::cpu::attention::noise::PAIRS;
use crate::cpu::attention::problem::Problem;
use crate::cpu::attention::row::{BEHIND, RowScore, RowScores, Spans};
use crate::cpu::attention::rows::{Chosen, Rows};
use crate::cpu::attention::threshold::steps;
use crate::cpu::attention::tile::{gumbel, keep, positive, write_choice};
use crate::cpu::attention::weights::Rule;
use crate::random::{Draw, Stream};
use crate::spec::{Dropout, Normalizer, Score, w_of_head};
use crate::{Real, View};
use std::ops::Range;

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
pub(super) fn softmax<T: Real>(p: &Problem<T>, scores: &mut [T], asked: bool) -> T {
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
pub(super) unsafe fn normalize<T: Real>(
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
pub(super) unsafe fn put_row<T: Real>(
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

//! The queries of a graph, each along its edges.

use super::heads::{Heads, Near};
use super::links::Links;
use super::pair_scores::{each_row, factors, normalize, put_row, score_rows};
use super::{ROWS, forward_heads};
use crate::Real;
use crate::ViewMut;
use crate::cpu::attention::problem::Problem;
use crate::cpu::attention::row::{BEHIND, RowGather};
use crate::cpu::attention::rows::Rows;
use crate::cpu::scratch;
use crate::cpu::tasks;
use crate::spec::{Edges, Normalizer};
use std::ops::Range;

pub(super) fn attend_all<T: Real>(p: &Problem<T>, edges: &Edges, rows: &Rows<T>) {
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

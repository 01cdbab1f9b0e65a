//! Backward by lists.
//!
//! Once over the queries: weights and gradients of the scores, one number each per pair and head,
//! and the gradient of q. Then once over the keys, along the same pairs the other way, for the
//! gradients of k and v. No two tasks write to the same place, so the sums have one order.

use super::list::{Heads, Links, ROWS, pair_score, score_rows};
use super::problem::Problem;
use super::row::{KeyGrads, RowAdditiveGrads, RowGather, RowScore, RowScores};
use super::scratch;
use super::shared::Shared;
use super::tile::keep;
use super::tile_backward::add_heads;
use super::weights::Rule;
use crate::spec::{Backward, Score, w_of_head};
use crate::{Real, View};
use rayon::prelude::*;

pub(super) fn backward<T: Real>(p: &Problem<T>, pass: Backward<T>) {
    let Backward { grad_out, saved, gradients: g } = pass;
    let Some(rule) = Rule::of(p.spec.normaliser) else { return };
    let s = &p.s;
    let links = Links::of(p);
    let longest = links.longest();
    let chunks = s.nq.div_ceil(ROWS);
    let parts = Heads::parts(p, chunks);
    let own = match p.spec.score {
        Score::Own(own) => own.parameters(),
        _ => 0,
    };
    // Per batch item and pair, a number for every head.
    let mut weights = vec![T::ZERO; s.b * links.len() * s.hq];
    let mut grads = vec![T::ZERO; s.b * links.len() * s.hq];
    let heads = s.b * s.hq;
    let mut w_parts = vec![T::ZERO; if g.w.is_some() { heads * chunks * s.dk } else { 0 }];
    let mut own_parts = vec![T::ZERO; if g.own.is_some() { heads * chunks * own } else { 0 }];
    {
        let weights = Shared::new(&mut weights);
        let grads = Shared::new(&mut grads);
        let w_parts = Shared::new(&mut w_parts);
        let own_parts = Shared::new(&mut own_parts);
        (0..s.b * parts * chunks).into_par_iter().for_each(|task| {
            let heads = Heads::new(p, parts, task / chunks);
            let (b, chunk) = (heads.b, task % chunks);
            let room = heads.n * longest;
            let lengths =
                [heads.n * s.dq, s.dk, heads.n * s.dk, heads.n * own, room, room, room, room];
            scratch::with(
                lengths,
                |[dq, dk, dw, down, row_weights, row_grads, slopes, factors]| {
                    dw.fill(T::ZERO);
                    down.fill(T::ZERO);
                    for i in chunk * ROWS..((chunk + 1) * ROWS).min(s.nq) {
                        let (range, _) = links.of_query(i);
                        let n = range.len();
                        let row = Row {
                            weights: &mut row_weights[..heads.n * n],
                            grads: &mut row_grads[..heads.n * n],
                            slopes: &mut slopes[..n],
                            factors: &mut factors[..n],
                        };
                        row_gradients(p, rule, &links, &heads, i, &grad_out, saved.threshold, row);
                        for (e, pair) in range.enumerate() {
                            let to = (b * links.len() + pair) * s.hq + heads.h;
                            for h in 0..heads.n {
                                weights.set(to + h, row_weights[h * n + e]);
                                grads.set(to + h, row_grads[h * n + e]);
                            }
                        }
                        if g.q.is_some() || g.w.is_some() || g.own.is_some() {
                            dq.fill(T::ZERO);
                            query_gradients(p, &links, &heads, i, row_grads, dq, dk, dw, down);
                        }
                        if let Some(grad) = &g.q {
                            for (h, from) in dq.chunks_exact(s.dq.max(1)).enumerate() {
                                // SAFETY: these rows are this task's alone.
                                let to = unsafe {
                                    let to = grad.row(b, heads.h + h, i);
                                    std::slice::from_raw_parts_mut(to, s.dq)
                                };
                                to.copy_from_slice(from);
                            }
                        }
                    }
                    for h in 0..heads.n {
                        let at = (b * s.hq + heads.h + h) * chunks + chunk;
                        // SAFETY: the parts of these heads and rows are this task's alone.
                        unsafe {
                            if !w_parts.is_empty() {
                                let to = w_parts.part(at * s.dk, s.dk);
                                to.copy_from_slice(&dw[h * s.dk..][..s.dk]);
                            }
                            if !own_parts.is_empty() {
                                let to = own_parts.part(at * own, own);
                                to.copy_from_slice(&down[h * own..][..own]);
                            }
                        }
                    }
                },
            );
        });
    }
    if g.k.is_some() || g.v.is_some() {
        let chunks = s.nk.div_ceil(ROWS);
        let parts = Heads::parts(p, chunks);
        (0..s.b * parts * chunks).into_par_iter().for_each(|task| {
            let heads = Heads::new(p, parts, task / chunks);
            let (b, chunk) = (heads.b, task % chunks);
            let key_heads = heads.n / s.group();
            let lengths = [key_heads * s.dk, key_heads * s.dv, s.dq, own];
            scratch::with(lengths, |[dk, dv, dq, down]| {
                for j in chunk * ROWS..((chunk + 1) * ROWS).min(s.nk) {
                    dk.fill(T::ZERO);
                    dv.fill(T::ZERO);
                    let from = b * links.len() * s.hq + heads.h;
                    let wanted = [g.k.is_some(), g.v.is_some()];
                    let arrays = [&weights[from..], &grads[from..]];
                    key_gradients(p, &links, &heads, j, &grad_out, arrays, wanted, [dk, dv]);
                    if let (Score::Own(own), true) = (p.spec.score, g.k.is_some()) {
                        let (count, queries, pairs) = links.of_key(j);
                        for h in 0..heads.n {
                            let kh = h / s.group();
                            for e in 0..count {
                                // SAFETY: e is within the key's queries.
                                let (i, pair) = unsafe { (queries.at(e), pairs.at(e)) };
                                let grad = grads[from + pair * s.hq + h];
                                let q = p.q.row(b, heads.h + h, i);
                                let k = p.k.row(b, heads.hk + kh, j);
                                let to = &mut dk[kh * s.dk..][..s.dk];
                                own.backward(q, k, grad, dq, to, down);
                            }
                        }
                    }
                    for kh in 0..key_heads {
                        // SAFETY: these rows are this task's alone.
                        unsafe {
                            if let Some(grad) = &g.k {
                                let to = grad.row(b, heads.hk + kh, j);
                                std::slice::from_raw_parts_mut(to, s.dk)
                                    .copy_from_slice(&dk[kh * s.dk..][..s.dk]);
                            }
                            if let Some(grad) = &g.v {
                                let to = grad.row(b, heads.hk + kh, j);
                                std::slice::from_raw_parts_mut(to, s.dv)
                                    .copy_from_slice(&dv[kh * s.dv..][..s.dv]);
                            }
                        }
                    }
                }
            });
        });
    }
    if let Some(to) = g.w {
        add_heads(to, &w_parts, s.dk, s.hq, chunks);
    }
    if let Some(to) = g.own {
        add_heads(to, &own_parts, own, s.hq, chunks);
    }
    bias_gradients(p, &links, &grads, [g.key_bias, g.bias, g.relative]);
}

/// The numbers of one query's pairs: `[heads, keys]` twice, and room for one head's.
struct Row<'a, T> {
    weights: &'a mut [T],
    grads: &'a mut [T],
    slopes: &'a mut [T],
    factors: &'a mut [T],
}

/// The weights of one query, dropout included, and the gradients of its scores.
#[allow(clippy::too_many_arguments)]
fn row_gradients<T: Real>(
    p: &Problem<T>,
    rule: Rule,
    links: &Links,
    heads: &Heads,
    i: usize,
    grad_out: &View<T>,
    threshold: Option<&[T]>,
    row: Row<T>,
) {
    let (range, keys) = links.of_query(i);
    let n = range.len();
    if n == 0 {
        return;
    }
    score_rows(p, links, heads, i, row.weights);
    // SAFETY: the keys are rows of v: edges were checked against the shape.
    unsafe {
        (p.kernels.row_scores)(RowScores {
            score: RowScore::Dot(T::ONE),
            heads: heads.n,
            group: p.s.group(),
            q: heads.queries(p, grad_out, i),
            k: heads.keys(p, &p.v),
            keys,
            n,
            d: p.s.dv,
            to: row.grads.as_mut_ptr(),
            to_head: n,
        });
    }
    let (slopes, factors) = (row.slopes, row.factors);
    let both = row.weights.chunks_exact_mut(n).zip(row.grads.chunks_exact_mut(n));
    for (at, (weights, grads)) in both.enumerate() {
        let (b, h) = (heads.b, heads.h + at);
        if p.spec.dropout.is_some() {
            for e in 0..n {
                factors[e] = keep(p, b, h, i, links.key(i, e));
                grads[e] *= factors[e];
            }
        }
        if rule == Rule::Softmax {
            // SAFETY: the slice is the scores.
            unsafe { (p.kernels.row_softmax)(weights.as_mut_ptr(), n) };
            slopes.copy_from_slice(weights);
        } else {
            let stat = threshold.map_or(T::ZERO, |threshold| threshold[p.row(b, h, i)]);
            for (weight, slope) in weights.iter_mut().zip(slopes.iter_mut()) {
                let score = *weight;
                *weight = rule.weight(score, stat);
                *slope = rule.slope(score, *weight);
            }
        }
        let mut mean = T::ZERO;
        if rule.centres() {
            let total: T = slopes.iter().copied().sum();
            if total != T::ZERO {
                mean = slopes.iter().zip(grads.iter()).map(|(&s, &g)| s * g).sum::<T>() / total;
            }
        }
        for (grad, &slope) in grads.iter_mut().zip(slopes.iter()) {
            *grad = slope * (*grad - mean);
        }
        if p.spec.dropout.is_some() {
            weights.iter_mut().zip(factors.iter()).for_each(|(weight, &factor)| *weight *= factor);
        }
    }
}

/// One query's gradients `[heads, dq]`, and its part of those of the score's own parameters.
#[allow(clippy::too_many_arguments)]
fn query_gradients<T: Real>(
    p: &Problem<T>,
    links: &Links,
    heads: &Heads,
    i: usize,
    grads: &[T],
    dq: &mut [T],
    dk: &mut [T],
    dw: &mut [T],
    own_grads: &mut [T],
) {
    let s = &p.s;
    let (range, keys) = links.of_query(i);
    let n = range.len();
    if n == 0 {
        return;
    }
    match (p.spec.score, pair_score(p, heads)) {
        (Score::Dot { scale }, _) => {
            // SAFETY: the keys are rows of k: edges were checked against the shape.
            unsafe {
                (p.kernels.row_gather)(RowGather {
                    heads: heads.n,
                    group: s.group(),
                    weights: grads.as_ptr(),
                    weights_head: n,
                    v: heads.keys(p, &p.k),
                    keys,
                    n,
                    d: s.dq,
                    to: dq.as_mut_ptr(),
                    to_head: s.dq,
                });
            }
            dq.iter_mut().for_each(|x| *x *= scale);
        }
        (Score::Additive { w, .. }, Some(RowScore::Additive { form, .. })) => {
            // SAFETY: as above; dq and dw have a row for every head.
            unsafe {
                (p.kernels.row_additive_grads)(RowAdditiveGrads {
                    form,
                    heads: heads.n,
                    group: s.group(),
                    q: heads.queries(p, &p.q, i),
                    k: heads.keys(p, &p.k),
                    keys,
                    n,
                    d: s.dk,
                    grads: grads.as_ptr(),
                    grads_head: n,
                    slopes: dq.as_mut_ptr(),
                    values: dw.as_mut_ptr(),
                });
            }
            for (h, dq) in dq.chunks_exact_mut(s.dk.max(1)).enumerate() {
                for (x, &w) in dq.iter_mut().zip(w_of_head(w, heads.h + h, s.dk)) {
                    *x *= w;
                }
            }
        }
        (Score::Own(own), _) => {
            let parameters = own.parameters();
            for h in 0..heads.n {
                let q = p.q.row(heads.b, heads.h + h, i);
                for e in 0..n {
                    let k = p.k.row(heads.b, p.key_head(heads.h + h), links.key(i, e));
                    own.backward(
                        q,
                        k,
                        grads[h * n + e],
                        &mut dq[h * s.dq..][..s.dq],
                        dk,
                        &mut own_grads[h * parameters..][..parameters],
                    );
                }
            }
        }
        (Score::Additive { .. }, _) => {}
    }
}

/// Adds to the gradients `[key heads, dk]` and `[key heads, dv]` of one key and its value; a score
/// of one's own adds to the key's itself.
#[allow(clippy::too_many_arguments)]
fn key_gradients<T: Real>(
    p: &Problem<T>,
    links: &Links,
    heads: &Heads,
    j: usize,
    grad_out: &View<T>,
    [weights, grads]: [&[T]; 2],
    [wants_k, wants_v]: [bool; 2],
    [dk, dv]: [&mut [T]; 2],
) {
    let s = &p.s;
    let (n, queries, pairs) = links.of_key(j);
    let score = pair_score(p, heads);
    let null = std::ptr::null_mut();
    let mut k = heads.keys(p, &p.k);
    // SAFETY: row j exists; the queries are rows of q: edges were checked against the shape.
    unsafe {
        k.base = k.base.add(j * k.row);
        (p.kernels.key_grads)(KeyGrads {
            score: score.unwrap_or(RowScore::Dot(T::ONE)),
            heads: heads.n,
            group: s.group(),
            queries,
            pairs,
            n,
            q: heads.queries(p, &p.q, 0),
            k,
            grad_out: heads.queries(p, grad_out, 0),
            d: s.dk,
            dv: s.dv,
            weights: weights.as_ptr(),
            grads: grads.as_ptr(),
            pair: s.hq,
            grad_k: if wants_k && score.is_some() { dk.as_mut_ptr() } else { null },
            grad_v: if wants_v { dv.as_mut_ptr() } else { null },
        });
    }
}

/// Adds the pairs' gradients up into the biases'.
fn bias_gradients<T: Real>(
    p: &Problem<T>,
    links: &Links,
    grads: &[T],
    [mut key, mut full, mut relative]: [Option<&mut [T]>; 3],
) {
    let s = &p.s;
    if key.is_none() && full.is_none() && relative.is_none() {
        return;
    }
    for slice in [&mut key, &mut full, &mut relative].into_iter().flatten() {
        slice.fill(T::ZERO);
    }
    let bias = &p.spec.bias;
    for row in 0..s.rows() {
        let (b, h, i) = (row / s.nq / s.hq, row / s.nq % s.hq, row % s.nq);
        let (range, _) = links.of_query(i);
        for (n, pair) in range.enumerate() {
            let grad = grads[(b * links.len() + pair) * s.hq + h];
            let j = links.key(i, n);
            if let (Some(to), Some(bias)) = (&mut key, &bias.key) {
                to[bias.index(b, h, 0, j)] += grad;
            }
            if let (Some(to), Some(bias)) = (&mut full, &bias.full) {
                to[bias.index(b, h, i, j)] += grad;
            }
            if let (Some(to), Some(bias)) = (&mut relative, &bias.relative) {
                to[bias.index(h, j as isize - (i as isize + p.offset))] += grad;
            }
        }
    }
}

//! Backward by lists.
//!
//! Once over the queries: weights and gradients of the scores, one number each per pair, and the
//! gradient of q. Then once over the keys, along the same pairs the other way, for the gradients
//! of k and v. No two tasks write to the same place, so the sums have one order.

use super::list::{Links, ROWS, finish_row, pair_form, score_row};
use super::problem::Problem;
use super::row::{RowGather, RowScore, RowScores};
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
    let heads = s.b * s.hq;
    let chunks = s.nq.div_ceil(ROWS);
    let own = match p.spec.score {
        Score::Own(own) => own.parameters(),
        _ => 0,
    };
    let mut weights = vec![T::ZERO; heads * links.len()];
    let mut grads = vec![T::ZERO; heads * links.len()];
    let mut w_parts = vec![T::ZERO; if g.w.is_some() { heads * chunks * s.dk } else { 0 }];
    let mut own_parts = vec![T::ZERO; if g.own.is_some() { heads * chunks * own } else { 0 }];
    {
        let weights = Shared::new(&mut weights);
        let grads = Shared::new(&mut grads);
        let w_parts = Shared::new(&mut w_parts);
        let own_parts = Shared::new(&mut own_parts);
        (0..heads * chunks).into_par_iter().for_each(|task| {
            let (head, chunk) = (task / chunks, task % chunks);
            let (b, h) = (head / s.hq, head % s.hq);
            let lengths = [s.dq, s.dk, s.dk, own, longest, longest];
            scratch::with(lengths, |[dq, dk, dw, down, slopes, factors]| {
                dw.fill(T::ZERO);
                down.fill(T::ZERO);
                for i in chunk * ROWS..((chunk + 1) * ROWS).min(s.nq) {
                    let at = (b, h, i);
                    let (range, _) = links.of_query(i);
                    let from = head * links.len() + range.start;
                    // SAFETY: the pairs of this row are this task's alone.
                    let (weights, grads) =
                        unsafe { (weights.part(from, range.len()), grads.part(from, range.len())) };
                    let pairs = Pairs {
                        weights,
                        grads: &mut *grads,
                        slopes: &mut slopes[..range.len()],
                        factors: &mut factors[..range.len()],
                    };
                    row_grads(p, rule, &links, at, &grad_out, saved.threshold, pairs);
                    if g.q.is_some() || g.w.is_some() || g.own.is_some() {
                        dq.fill(T::ZERO);
                        query_grads(p, &links, at, grads, dq, dk, dw, down);
                    }
                    if let Some(grad) = &g.q {
                        // SAFETY: this row is this task's alone.
                        let to = unsafe { std::slice::from_raw_parts_mut(grad.row(b, h, i), s.dq) };
                        to.copy_from_slice(dq);
                    }
                }
                // SAFETY: the parts of this task are its alone.
                unsafe {
                    if !w_parts.is_empty() {
                        w_parts.part(task * s.dk, s.dk).copy_from_slice(dw);
                    }
                    if !own_parts.is_empty() {
                        own_parts.part(task * own, own).copy_from_slice(down);
                    }
                }
            });
        });
    }
    if g.k.is_some() || g.v.is_some() {
        let chunks = s.nk.div_ceil(ROWS);
        (0..s.b * s.hk * chunks).into_par_iter().for_each(|task| {
            let (head, chunk) = (task / chunks, task % chunks);
            let (b, hk) = (head / s.hk, head % s.hk);
            scratch::with([s.dk, s.dk, s.dq, own], |[dk, slopes, dq, down]| {
                for j in chunk * ROWS..((chunk + 1) * ROWS).min(s.nk) {
                    if let Some(grad) = &g.v {
                        // SAFETY: this row is this task's alone.
                        let to = unsafe {
                            let to = grad.row(b, hk, j);
                            std::slice::from_raw_parts_mut(to, s.dv).fill(T::ZERO);
                            to
                        };
                        for h in hk * s.group()..(hk + 1) * s.group() {
                            let from = (b * s.hq + h) * links.len();
                            links.for_each_query(j, |i, at| {
                                let x = grad_out.row(b, h, i).as_ptr();
                                // SAFETY: both rows have dv numbers.
                                unsafe { (p.kernels.axpy)(s.dv, weights[from + at], x, to) };
                            });
                        }
                    }
                    if let Some(grad) = &g.k {
                        dk.fill(T::ZERO);
                        for h in hk * s.group()..(hk + 1) * s.group() {
                            let from = (b * s.hq + h) * links.len();
                            let grads = &grads[from..from + links.len()];
                            key_grads(p, &links, (b, h, j), grads, dk, slopes, dq, down);
                        }
                        // SAFETY: this row is this task's alone.
                        let to =
                            unsafe { std::slice::from_raw_parts_mut(grad.row(b, hk, j), s.dk) };
                        to.copy_from_slice(dk);
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
    bias_grads(p, &links, &grads, [g.key_bias, g.bias, g.relative]);
}

/// One number each per pair of a row.
struct Pairs<'a, T> {
    weights: &'a mut [T],
    grads: &'a mut [T],
    slopes: &'a mut [T],
    factors: &'a mut [T],
}

/// The weights of one row, dropout included, and the gradients of its scores.
fn row_grads<T: Real>(
    p: &Problem<T>,
    rule: Rule,
    links: &Links,
    at @ (b, h, i): (usize, usize, usize),
    grad_out: &View<T>,
    threshold: Option<&[T]>,
    Pairs { weights, grads, slopes, factors }: Pairs<T>,
) {
    let s = &p.s;
    let n = weights.len();
    if n == 0 {
        return;
    }
    let (_, keys) = links.of_query(i);
    let stat = threshold.map_or(T::ZERO, |threshold| threshold[p.row(b, h, i)]);
    score_row(p, at, keys, weights);
    finish_row(p, at, weights, |n| links.key(i, n));
    let q = grad_out.row(b, h, i);
    // SAFETY: the keys are rows of v: edges were checked against the shape.
    unsafe {
        (p.kernels.row_scores)(RowScores {
            score: RowScore::Dot(T::ONE),
            q: q.as_ptr(),
            q_row: 0,
            queries: 1,
            k: p.rows(&p.v, b, p.key_head(h), 0, s.nk),
            k_row: p.v.strides[2],
            keys,
            n,
            d: s.dv,
            to: grads.as_mut_ptr(),
            to_row: 0,
        });
    }
    if p.spec.dropout.is_some() {
        for n in 0..n {
            factors[n] = keep(p, b, h, i, links.key(i, n));
            grads[n] *= factors[n];
        }
    }
    if rule == Rule::Softmax {
        // SAFETY: the slice is the scores.
        unsafe { (p.kernels.row_softmax)(weights.as_mut_ptr(), n) };
        slopes.copy_from_slice(weights);
    } else {
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

/// Adds one row's part of the gradients of q and of the score's own parameters.
#[allow(clippy::too_many_arguments)]
fn query_grads<T: Real>(
    p: &Problem<T>,
    links: &Links,
    (b, h, i): (usize, usize, usize),
    grads: &[T],
    dq: &mut [T],
    dk: &mut [T],
    dw: &mut [T],
    own_grads: &mut [T],
) {
    let s = &p.s;
    let (_, keys) = links.of_query(i);
    let hk = p.key_head(h);
    let q = p.q.row(b, h, i);
    match p.spec.score {
        Score::Dot { scale } => {
            // SAFETY: the keys are rows of k: edges were checked against the shape.
            unsafe {
                (p.kernels.row_gather)(RowGather {
                    weights: grads.as_ptr(),
                    weights_row: 0,
                    queries: 1,
                    v: p.rows(&p.k, b, hk, 0, s.nk),
                    v_row: p.k.strides[2],
                    keys,
                    n: grads.len(),
                    d: s.dq,
                    to: dq.as_mut_ptr(),
                    to_row: 0,
                });
            }
            dq.iter_mut().for_each(|x| *x *= scale);
        }
        Score::Additive { w, .. } => {
            let form = pair_form(p);
            for (n, &grad) in grads.iter().enumerate() {
                let k = p.k.row(b, hk, links.key(i, n)).as_ptr();
                // SAFETY: all have dk numbers.
                unsafe {
                    let (dq, dw) = (dq.as_mut_ptr(), dw.as_mut_ptr());
                    (p.kernels.row_additive_grad)(form, s.dk, q.as_ptr(), k, grad, dq, dw);
                }
            }
            for (x, &w) in dq.iter_mut().zip(w_of_head(w, h, s.dk)) {
                *x *= w;
            }
        }
        Score::Own(own) => {
            for (n, &grad) in grads.iter().enumerate() {
                if grad != T::ZERO {
                    let k = p.k.row(b, hk, links.key(i, n));
                    own.backward(q, k, grad, dq, dk, own_grads);
                }
            }
        }
    }
}

/// Adds one query head's part of the gradient of a key.
#[allow(clippy::too_many_arguments)]
fn key_grads<T: Real>(
    p: &Problem<T>,
    links: &Links,
    (b, h, j): (usize, usize, usize),
    grads: &[T],
    dk: &mut [T],
    slopes: &mut [T],
    dq: &mut [T],
    own_grads: &mut [T],
) {
    let s = &p.s;
    let k = p.k.row(b, p.key_head(h), j);
    match p.spec.score {
        Score::Dot { scale } => links.for_each_query(j, |i, at| {
            let q = p.q.row(b, h, i).as_ptr();
            // SAFETY: both rows have dk numbers.
            unsafe { (p.kernels.axpy)(s.dk, grads[at] * scale, q, dk.as_mut_ptr()) };
        }),
        Score::Additive { w, .. } => {
            let form = pair_form(p);
            slopes.fill(T::ZERO);
            links.for_each_query(j, |i, at| {
                let q = p.q.row(b, h, i).as_ptr();
                let (to, none) = (slopes.as_mut_ptr(), std::ptr::null_mut());
                // SAFETY: all have dk numbers; no values are asked for.
                unsafe {
                    (p.kernels.row_additive_grad)(form, s.dk, q, k.as_ptr(), grads[at], to, none);
                }
            });
            for ((x, &slope), &w) in dk.iter_mut().zip(slopes.iter()).zip(w_of_head(w, h, s.dk)) {
                *x += w * slope;
            }
        }
        Score::Own(own) => links.for_each_query(j, |i, at| {
            if grads[at] != T::ZERO {
                own.backward(p.q.row(b, h, i), k, grads[at], dq, dk, own_grads);
            }
        }),
    }
}

/// Adds the pairs' gradients up into the biases'.
fn bias_grads<T: Real>(
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
        let from = (b * s.hq + h) * links.len();
        for (n, &grad) in grads[from + range.start..from + range.end].iter().enumerate() {
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

//! Forward by lists: a query, or a few, against a list of keys.
//!
//! A graph's query meets the keys of its edges: work and memory follow the number of edges. Few
//! queries against a long cache (decoding) are cut over the keys, so that every core reads a part
//! of the cache; query heads that share a key head read it once.

mod backward;
mod few;
mod graph;
mod heads;
mod links;
mod pair_scores;

pub(super) use backward::backward;

use super::plan::{self, Phase};
use super::problem::Problem;
use super::row::BEHIND;
use super::rows::Rows;
use super::tile::keep;
use super::weights::Rule;
use crate::Real;
use crate::cpu::scratch;
use crate::cpu::shared::Shared;
use crate::cpu::tasks;
use crate::spec::{Shape, Spec};
use heads::Heads;
use links::Links;
use pair_scores::{score_rows, softmax};

/// Queries of a graph that make a task.
pub(super) const ROWS: usize = 32;

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

pub(super) fn forward<T: Real>(p: &Problem<T>, rows: &Rows<T>) {
    match Links::of(p) {
        Links::Graph(edges) => graph::attend_all(p, edges, rows),
        Links::All { .. } => few::attend_all(p, rows),
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

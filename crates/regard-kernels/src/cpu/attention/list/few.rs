//! Few queries against a long cache, which is cut over its keys.

use super::heads::Heads;
use super::pair_scores::{finish_row, normalize, pair_score, put_row};
use crate::Real;
use crate::cpu::attention::expression::Head;
use crate::cpu::attention::plan;
use crate::cpu::attention::problem::Problem;
use crate::cpu::attention::row::{self, List, RowGather, RowScore, RowScores, Spans};
use crate::cpu::attention::rows::Rows;
use crate::cpu::attention::split::{self, Portion, Tasks};
use crate::cpu::scratch;
use crate::spec::{Score, w_of_head};
use std::ops::Range;

pub(super) fn attend_all<T: Real>(p: &Problem<T>, rows: &Rows<T>) {
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

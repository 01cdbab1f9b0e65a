//! Backward by lists.
//!
//! Once over the queries: the weight and the gradient of the score of every pair, and the gradient
//! of q. Then once over the keys, along the same pairs the other way, for the gradients of k and v.
//! No two tasks write to the same place, so the sums have one order. Memory: two numbers per pair
//! and head, or per query and head where the second walk can do with those.

use super::heads::{Heads, Near, near_views, same, side_by_side};
use super::links::Links;
use super::pair_scores::{each_row, factors, pair_score, score_rows};
use super::{ROWS, backward_heads};
use crate::cpu::attention::additive::Form;
use crate::cpu::attention::choice::Choice;
use crate::cpu::attention::expression::{Head, Pair};
use crate::cpu::attention::partial::SlotParts;
use crate::cpu::attention::plan::{PARTS, Sharing};
use crate::cpu::attention::problem::Problem;
use crate::cpu::attention::row::{
    self, BEHIND, KeyGrads, RowAdditiveGrads, RowGather, RowScore, RowScores, RowsMut,
};
use crate::cpu::attention::row_softmax::RowSoftmaxGrads;
use crate::cpu::attention::weights::Rule;
use crate::cpu::scratch::{self, Large};
use crate::cpu::shared::Shared;
use crate::cpu::tasks;
use crate::spec::{Backward, Broadcast, Gradients, OwnGrads, OwnScore, Relative, Score, w_of_head};
use crate::{Real, View};
use std::ops::Range;
use std::ptr::null_mut;

pub(in crate::cpu::attention) fn backward<T: Real>(p: &Problem<T>, pass: Backward<T>) {
    let choice = Choice::of(p.spec.normalizer, &pass);
    let Backward { grad_out, grad_weights, grad_edge_weights, grad_lse, saved, .. } = pass;
    let g = pass.gradients;
    // Where a key was chosen, its probability is softmax's.
    let rule = Rule::of(p.spec.normalizer).unwrap_or(Rule::Softmax);
    let s = &p.s;
    let links = Links::of(p);
    let parts = backward_heads(s, size_of::<T>());
    let near = Near::of(p, parts);
    let mut near = near.problem(p);
    // The walk along the keys reads the queries' rows in no order.
    let copy = side_by_side(p, [&p.q, &grad_out], parts);
    let [q, grad_out] = near_views([p.q, grad_out], &copy);
    near.q = q;
    let p = &near;
    let mut pass = Pass {
        p,
        rule,
        choice,
        links,
        parts,
        grad_out,
        grad_weights,
        grad_edge_weights,
        grad_lse,
        lse: saved.lse,
        threshold: saved.threshold,
        recompute: false,
    };
    pass.recompute = pass.can_recompute();
    // `[B, Hq, pairs, 2]`: each pair's weight, and beside it the gradient of its score; or, where
    // those are computed again, `[B, Hq, Nq, 2]`: each row's log-sum-exp and mean gradient.
    let rows = if pass.recompute { s.nq } else { links.len() };
    let mut numbers = Large::new(2 * s.b * s.hq * rows);
    let mut parameters = pass.over_queries(&g, &mut numbers);
    pass.over_keys(&g, &numbers);

    let Gradients { w, own, key_bias, bias, relative, .. } = g;
    if let Some(to) = w {
        parameters.add_heads(to, s.hq);
    }
    if let Some(to) = own {
        parameters.add_own(p, to);
    }
    pass.biases(&numbers, [key_bias, bias, relative]);
}

struct Pass<'a, T: Real> {
    p: &'a Problem<'a, T>,
    rule: Rule,
    choice: Option<Choice<'a, T>>,
    links: Links<'a>,
    parts: usize,
    grad_out: View<'a, T>,
    grad_weights: Option<&'a [T]>,
    grad_edge_weights: Option<&'a [T]>,
    grad_lse: Option<&'a [T]>,
    lse: Option<&'a [T]>,
    threshold: Option<&'a [T]>,
    /// Whether the walk along the keys computes the pairs' weights and gradients again.
    recompute: bool,
}

/// The arrays a task over queries works in.
struct Work<'a, T> {
    /// `[heads, pairs]`, and [`BEHIND`] more: scores, then weights, dropout included.
    weights: &'a mut [T],
    /// As many: the gradients of the weights, then of the scores.
    grads: &'a mut [T],
    /// `[heads, parameters]`
    dw: &'a mut [T],
    /// Of one key, and of one query, where a score of one's own is asked.
    dk: &'a mut [T],
    dq: &'a mut [T],
    /// `[heads, queries]`, where the walk along the keys needs them: the mean gradients.
    means: &'a mut [T],
    /// `[heads, pairs]`, where there is dropout: its factors.
    drawn: &'a mut [T],
}

impl<'a, T> Work<'a, T> {
    fn new([weights, grads, dw, dk, dq, means, drawn]: [&'a mut [T]; 7]) -> Self {
        Self { weights, grads, dw, dk, dq, means, drawn }
    }
}

impl<T: Real> Pass<'_, T> {
    /// Whether a pair's weight and gradient follow from its rows and two numbers of its query:
    /// softmax of a score that nothing is done to, with rows of one register.
    fn can_recompute(&self) -> bool {
        let Self { p, .. } = self;
        let plain = self.rule == Rule::Softmax && self.choice.is_none() && self.lse.is_some();
        let alone = p.spec.dropout.is_none()
            && self.grad_weights.is_none()
            && self.grad_edge_weights.is_none()
            && self.grad_lse.is_none()
            && p.spec.bias.is_none()
            && !p.spec.mask.is_more_than_edges();
        let graph = matches!(self.links, Links::Graph(_));
        let narrow = p.s.group() == 1 && p.s.dk.max(p.s.dv) <= p.kernels.lanes;
        let score = match p.spec.score {
            Score::Dot { .. } => true,
            // The form of these does not depend on how large the inputs are.
            Score::Additive { activation, .. } => Form::of(activation, f64::NAN).is_narrow(),
            Score::Own { .. } | Score::Expression { .. } => false,
        };
        plain && alone && graph && narrow && score
    }

    /// Fills the array of pairs, writes the gradient of q, and gives the parts of the gradients
    /// of the score's parameters, a slot for each chunk of queries.
    fn over_queries(&self, g: &Gradients<T>, numbers: &mut [T]) -> SlotParts<T> {
        let Self { p, parts, .. } = self;
        let s = &p.s;
        let chunks = s.nq.div_ceil(ROWS);
        let mut parameters = SlotParts::of(s.b * s.hq, chunks, self.parameters());
        let slots = parameters.share();
        let numbers = Shared::new(numbers);
        tasks::each(s.b * parts * chunks, &|task| {
            let heads = Heads::new(p, *parts, task / chunks);
            let chunk = task % chunks;
            let queries = chunk * ROWS..((chunk + 1) * ROWS).min(s.nq);
            scratch::with(self.work_lengths(&heads, &queries), |arrays| {
                let mut work = Work::new(arrays);
                work.dw.fill(T::ZERO);
                if !work.weights.is_empty() {
                    if let Some(dropout) = p.spec.dropout {
                        factors(p, dropout, &self.links, &heads, queries.clone(), work.drawn);
                    }
                    self.pairs(&heads, &queries, &mut work);
                }
                self.queries(&heads, &queries, g, &mut work);
                // SAFETY: these pairs, rows, heads and chunks are this task's alone.
                unsafe {
                    self.keep(&heads, &queries, &work, &numbers);
                    let width = self.parameters();
                    for h in 0..heads.n {
                        slots
                            .slot(heads.b * s.hq + heads.h + h, chunk)
                            .copy_from_slice(&work.dw[h * width..][..width]);
                    }
                }
            });
        });
        parameters
    }

    /// How many parameters a score has.
    fn parameters(&self) -> usize {
        match self.p.spec.score {
            Score::Additive { .. } => self.p.s.dk,
            _ => self.p.own_parameters(),
        }
    }

    fn work_lengths(&self, heads: &Heads, queries: &Range<usize>) -> [usize; 7] {
        let s = &self.p.s;
        let pairs = heads.n * self.links.pairs(queries.clone()).len();
        let means = if self.recompute { heads.n * ROWS } else { 0 };
        let drawn = if self.p.spec.dropout.is_some() { pairs } else { 0 };
        let room = if pairs > 0 { pairs + BEHIND } else { 0 };
        [room, room, heads.n * self.parameters(), s.dk, s.dq, means, drawn]
    }

    /// Keeps what the walk along the keys needs of some queries.
    ///
    /// # Safety
    /// These queries are the calling task's alone.
    unsafe fn keep(
        &self,
        heads: &Heads,
        queries: &Range<usize>,
        work: &Work<T>,
        numbers: &Shared<T>,
    ) {
        let Self { p, links, .. } = self;
        let pairs = links.pairs(queries.clone());
        let n = pairs.len();
        for h in 0..heads.n {
            let head = heads.b * p.s.hq + heads.h + h;
            let (to, x, y) = if let (true, Some(lse)) = (self.recompute, self.lse) {
                let row = head * p.s.nq + queries.start;
                (row, &lse[row..][..queries.len()], &work.means[h * queries.len()..])
            } else {
                let to = head * links.len() + pairs.start;
                (to, &work.weights[h * n..][..n], &work.grads[h * n..])
            };
            // SAFETY: the caller's.
            let to = unsafe { numbers.part(2 * to, 2 * x.len()) }.as_chunks_mut::<2>().0;
            for (to, (&x, &y)) in to.iter_mut().zip(x.iter().zip(y)) {
                *to = [x, y];
            }
        }
    }

    /// The weights of some queries' pairs, dropout included, and the gradients of their scores.
    fn pairs(&self, heads: &Heads, queries: &Range<usize>, work: &mut Work<T>) {
        let Self { p, links, .. } = self;
        // Where keys are values too, one walk along them serves both.
        let one_walk = same(&p.k, &p.v) && pair_score(p, heads).is_some() && self.choice.is_none();
        let products = one_walk.then_some((&self.grad_out, &mut *work.grads));
        score_rows(p, links, heads, queries.clone(), work.weights, products);
        if let Some(choice) = &self.choice {
            let (spans, _) = links.by_query(queries.start);
            let to = work.weights.as_mut_ptr().wrapping_sub(links.first(queries.start));
            let n = links.pairs(queries.clone()).len();
            // SAFETY: scores of all pairs of all heads.
            unsafe { (p.kernels.row_softmax)(to, heads.n, n, queries.len(), spans, null_mut()) };
            return self.grads_of_choice(choice, heads, queries.clone(), work.weights, work.grads);
        }
        if !one_walk {
            self.grads_by_values(heads, queries, work.grads);
        }
        self.arriving(heads, queries, work);
        work.grads.iter_mut().zip(&*work.drawn).for_each(|(grad, factor)| *grad *= *factor);
        if self.rule == Rule::Softmax {
            self.softmax_grads(heads, queries, work);
            self.lse_grads(heads, queries, work);
        } else {
            let from =
                |at, i| self.threshold.map_or(T::ZERO, |x| x[p.row(heads.b, heads.h + at, i)]);
            let weights = &mut *work.weights;
            each_row(links, heads, queries.clone(), work.grads, |at, i, place, grads| {
                row_backward(self.rule, from(at, i), &mut weights[place..][..grads.len()], grads);
            });
        }
        work.weights.iter_mut().zip(&*work.drawn).for_each(|(weight, factor)| *weight *= *factor);
    }

    /// The gradients of some queries' weights by the output: products with the values.
    fn grads_by_values(&self, heads: &Heads, queries: &Range<usize>, grads: &mut [T]) {
        let Self { p, links, .. } = self;
        let (spans, keys) = links.by_query(queries.start);
        // SAFETY: the keys are rows of v: edges were checked against the shape; there is room for
        // all pairs, and behind them.
        unsafe {
            (p.kernels.row_scores)(RowScores {
                score: RowScore::Dot(T::ONE),
                heads: heads.n,
                group: p.s.group(),
                rows: queries.len(),
                spans,
                keys,
                q: heads.queries(p, &self.grad_out, queries.start),
                k: heads.keys(p, &p.v, 0),
                d: p.s.dv,
                to: grads.as_mut_ptr().wrapping_sub(links.first(queries.start)),
                to_head: links.pairs(queries.clone()).len(),
                products: None,
            });
        }
    }

    /// Adds what arrives at the weights themselves.
    fn arriving(&self, heads: &Heads, queries: &Range<usize>, work: &mut Work<T>) {
        let Self { p, links, .. } = self;
        if self.grad_weights.is_none() && self.grad_edge_weights.is_none() {
            return;
        }
        let scores = &*work.weights;
        each_row(links, heads, queries.clone(), work.grads, |at, i, from, row| {
            let head = heads.b * p.s.hq + heads.h + at;
            let to = (head * p.s.nq + i) * p.s.nk;
            let first = head * links.len() + links.pairs(i..i + 1).start;
            for (e, grad) in row.iter_mut().enumerate() {
                // What is masked has no weight, so nothing can arrive there.
                if scores[from + e] == T::NEG_INFINITY {
                    continue;
                }
                if let Some(grads) = self.grad_weights {
                    *grad += grads[to + links.key(i, e)];
                }
                if let Some(grads) = self.grad_edge_weights {
                    *grad += grads[first + e];
                }
            }
        });
    }

    /// Adds what arrives at the log-sum-exps, times the weights.
    fn lse_grads(&self, heads: &Heads, queries: &Range<usize>, work: &mut Work<T>) {
        let (Some(grad_lse), Some(lse)) = (self.grad_lse, self.lse) else { return };
        let weights = &*work.weights;
        each_row(&self.links, heads, queries.clone(), work.grads, |at, i, from, row| {
            let place = self.p.row(heads.b, heads.h + at, i);
            if lse[place] != T::NEG_INFINITY {
                let grad = grad_lse[place];
                row.iter_mut().zip(&weights[from..]).for_each(|(to, &p)| *to += grad * p);
            }
        });
    }

    /// Scores become softmax weights, and gradients of those the gradients of the scores.
    fn softmax_grads(&self, heads: &Heads, queries: &Range<usize>, work: &mut Work<T>) {
        let Self { p, links, .. } = self;
        let first = links.first(queries.start);
        // SAFETY: both arrays hold all pairs of all heads, `means` and the log-sum-exps a number
        // for each row.
        unsafe {
            (p.kernels.row_softmax_grads)(RowSoftmaxGrads {
                heads: heads.n,
                rows: queries.len(),
                spans: links.by_query(queries.start).0,
                scores: work.weights.as_mut_ptr().wrapping_sub(first),
                grads: work.grads.as_mut_ptr().wrapping_sub(first),
                head: links.pairs(queries.clone()).len(),
                lse: self.lse.filter(|_| self.recompute).map(|lse| {
                    let row = p.row(heads.b, heads.h, queries.start);
                    (lse[row..].as_ptr(), p.s.nq)
                }),
                means: if work.means.is_empty() { null_mut() } else { work.means.as_mut_ptr() },
            });
        }
    }

    /// The gradients of the scores where a key was chosen, g · ([j = z] − p), and the log-sum-exp's
    /// times p, from the softmax p.
    fn grads_of_choice(
        &self,
        choice: &Choice<T>,
        heads: &Heads,
        queries: Range<usize>,
        soft: &[T],
        grads: &mut [T],
    ) {
        let Self { p, links, .. } = self;
        each_row(links, heads, queries, grads, |at, i, from, row| {
            let place = p.row(heads.b, heads.h + at, i);
            let (of_chosen, of_all) = (choice.of_chosen(place), choice.of_all(place));
            for (e, (to, &p)) in row.iter_mut().zip(&soft[from..]).enumerate() {
                let chosen = links.key(i, e) as i64 == choice.index[place];
                *to = of_all * p + if chosen { of_chosen } else { T::ZERO };
            }
        });
    }

    /// The gradients of some queries, and their part of those of the score's parameters.
    fn queries(&self, heads: &Heads, queries: &Range<usize>, g: &Gradients<T>, work: &mut Work<T>) {
        let Self { p, links, .. } = self;
        let s = &p.s;
        let n = links.pairs(queries.clone()).len();
        let (spans, keys) = links.by_query(queries.start);
        let grads = work.grads.as_ptr().wrapping_sub(links.first(queries.start));
        let nowhere = RowsMut { base: null_mut(), head: 0, row: 0 };
        // SAFETY: these rows are this task's alone.
        let to = unsafe { g.q.as_ref().map_or(nowhere, |q| heads.results(q, queries.start)) };
        match (p.spec.score, pair_score(p, heads)) {
            (Score::Dot { scale }, _) if g.q.is_some() => {
                // SAFETY: the keys are rows of k: edges were checked against the shape.
                unsafe {
                    (p.kernels.row_gather)(RowGather {
                        heads: heads.n,
                        group: s.group(),
                        rows: queries.len(),
                        spans,
                        keys,
                        weights: grads,
                        weights_head: n,
                        v: heads.keys(p, &p.k, 0),
                        d: s.dq,
                        scale,
                        to,
                    });
                }
            }
            (_, Some(RowScore::Additive { form, w, w_head })) => {
                // SAFETY: as above; `dw` has a row for every head.
                unsafe {
                    (p.kernels.row_additive_grads)(RowAdditiveGrads {
                        form,
                        w,
                        w_head,
                        heads: heads.n,
                        group: s.group(),
                        rows: queries.len(),
                        spans,
                        keys,
                        q: heads.queries(p, &p.q, queries.start),
                        k: heads.keys(p, &p.k, 0),
                        d: s.dk,
                        grads,
                        grads_head: n,
                        grad_q: to,
                        grad_w: work.dw.as_mut_ptr(),
                    });
                }
            }
            (Score::Own { score, parameters }, _) => {
                self.own_queries((score, parameters), heads, queries, g, work);
            }
            (Score::Expression { .. }, _) => self.expression_queries(heads, queries, g, work),
            _ => {}
        }
    }

    /// As [`Self::queries`], by a score of one's own.
    fn own_queries(
        &self,
        (own, learned): (&dyn OwnScore<T>, &[T]),
        heads: &Heads,
        queries: &Range<usize>,
        g: &Gradients<T>,
        work: &mut Work<T>,
    ) {
        let Self { p, links, .. } = self;
        let Work { grads, dw, dk, dq, .. } = work;
        let count = own.parameters();
        each_row(links, heads, queries.clone(), grads, |at, i, _, grads| {
            let h = heads.h + at;
            let learned = w_of_head(learned, h, count);
            dq.fill(T::ZERO);
            for (e, &grad) in grads.iter().enumerate() {
                let k = p.k.row(heads.b, p.key_head(h), links.key(i, e));
                let parameters = &mut dw[at * count..][..count];
                let to = OwnGrads { q: dq, k: dk, parameters };
                own.backward(learned, p.q.row(heads.b, h, i), k, grad, to);
            }
            if let Some(to) = &g.q {
                // SAFETY: this row is this task's alone.
                unsafe { to.row(heads.b, h, i).copy_from(dq.as_ptr(), p.s.dq) };
            }
        });
    }

    /// As [`Self::queries`], by an expression.
    fn expression_queries(
        &self,
        heads: &Heads,
        queries: &Range<usize>,
        g: &Gradients<T>,
        work: &mut Work<T>,
    ) {
        let Self { p, links, .. } = self;
        let Work { grads, dw, .. } = work;
        let Some(programs) = p.programs else { return };
        let n = links.pairs(queries.clone()).len();
        let own = programs.own();
        for (at, h) in (heads.h..heads.h + heads.n).enumerate() {
            let pairs: Vec<Pair<T>> = queries
                .clone()
                .flat_map(|i| (0..links.pairs(i..i + 1).len()).map(move |e| (i, e)))
                .zip(&grads[at * n..])
                .map(|((i, e), &grad)| Pair { i, j: links.key(i, e), grad })
                .collect();
            // SAFETY: these rows are this task's alone.
            unsafe {
                if let Some(to) = &g.q {
                    for i in queries.clone() {
                        let row = to.row(heads.b, h, i);
                        std::slice::from_raw_parts_mut(row, p.s.dq).fill(T::ZERO);
                    }
                }
                let own = &mut dw[at * own..][..own];
                programs.query_grads(p, Head { b: heads.b, h }, &pairs, g.q.as_ref(), own);
            }
        }
    }

    /// Writes the gradients of k and v.
    fn over_keys(&self, g: &Gradients<T>, numbers: &[T]) {
        if g.k.is_none() && g.v.is_none() {
            return;
        }
        let Self { p, links, parts, .. } = self;
        let s = &p.s;
        let chunks = s.nk.div_ceil(ROWS);
        tasks::each(s.b * parts * chunks, &|task| {
            let heads = Heads::new(p, *parts, task / chunks);
            let chunk = task % chunks;
            let keys = chunk * ROWS..((chunk + 1) * ROWS).min(s.nk);
            let rows = if self.recompute { s.nq } else { links.len() };
            let from = (heads.b * s.hq + heads.h) * rows;
            let own = numbers[2 * from..].as_ptr();
            let stats = row::Rows { base: own, head: 2 * rows, row: 2 };
            let (spans, queries, pairs) = links.by_key(keys.start);
            let score = pair_score(p, &heads);
            let nowhere = RowsMut { base: null_mut(), head: 0, row: 0 };
            // SAFETY: these rows are this task's alone; the queries are rows of q: edges were
            // checked against the shape.
            unsafe {
                let results = |x| heads.key_results(x, keys.start);
                (p.kernels.key_grads)(KeyGrads {
                    score: score.unwrap_or(RowScore::Dot(T::ONE)),
                    heads: heads.n,
                    group: s.group(),
                    keys: keys.len(),
                    spans,
                    queries,
                    pairs,
                    q: heads.queries(p, &p.q, 0),
                    k: heads.keys(p, &p.k, keys.start),
                    v: heads.keys(p, &p.v, keys.start),
                    grad_out: heads.queries(p, &self.grad_out, 0),
                    d: s.dk,
                    dv: s.dv,
                    stats: self.recompute.then_some(stats),
                    numbers: own,
                    pair_head: links.len(),
                    grad_k: g.k.as_ref().filter(|_| score.is_some()).map_or(nowhere, results),
                    grad_v: g.v.as_ref().map_or(nowhere, results),
                });
            }
            match p.spec.score {
                Score::Own { .. } => self.own_keys(&heads, keys, numbers, g),
                Score::Expression { .. } => self.expression_keys(&heads, keys, numbers, g),
                _ => {}
            }
        });
    }

    /// The gradients of some keys by a score of one's own.
    fn own_keys(&self, heads: &Heads, keys: Range<usize>, numbers: &[T], g: &Gradients<T>) {
        let Self { p, links, .. } = self;
        let s = &p.s;
        let (Score::Own { score: own, parameters: learned }, Some(to)) = (p.spec.score, &g.k)
        else {
            return;
        };
        scratch::with([s.dk, s.dq, own.parameters()], |[dk, dq, parameters]| {
            for j in keys {
                for kh in 0..heads.n / s.group() {
                    dk.fill(T::ZERO);
                    for h in (heads.hk + kh) * s.group()..(heads.hk + kh + 1) * s.group() {
                        let learned = w_of_head(learned, h, own.parameters());
                        let k = p.k.row(heads.b, heads.hk + kh, j);
                        links.for_each_query(j, |i, pair| {
                            let grad = numbers[2 * ((heads.b * s.hq + h) * links.len() + pair) + 1];
                            let to = OwnGrads { q: dq, k: dk, parameters };
                            own.backward(learned, p.q.row(heads.b, h, i), k, grad, to);
                        });
                    }
                    // SAFETY: this row is this task's alone.
                    unsafe { to.row(heads.b, heads.hk + kh, j).copy_from(dk.as_ptr(), s.dk) };
                }
            }
        });
    }

    /// The gradients of some keys by an expression.
    fn expression_keys(&self, heads: &Heads, keys: Range<usize>, numbers: &[T], g: &Gradients<T>) {
        let Self { p, links, .. } = self;
        let s = &p.s;
        let (Some(programs), Some(to)) = (p.programs, &g.k) else { return };
        for j in keys.clone() {
            for hk in heads.hk..heads.hk + heads.n / s.group() {
                // SAFETY: this row is this task's alone.
                unsafe {
                    std::slice::from_raw_parts_mut(to.row(heads.b, hk, j), s.dk).fill(T::ZERO);
                }
            }
        }
        let mut pairs = Vec::new();
        for h in heads.h..heads.h + heads.n {
            pairs.clear();
            for j in keys.clone() {
                links.for_each_query(j, |i, pair| {
                    let grad = numbers[2 * ((heads.b * s.hq + h) * links.len() + pair) + 1];
                    pairs.push(Pair { i, j, grad });
                });
            }
            // SAFETY: these rows are this task's alone.
            unsafe { programs.key_grads(p, Head { b: heads.b, h }, &pairs, to) };
        }
    }

    /// Adds the pairs' gradients up into the biases'.
    fn biases(&self, numbers: &[T], [key, full, relative]: [Option<&mut [T]>; 3]) {
        let bias = &self.p.spec.bias;
        for (to, bias) in [(key, &bias.key), (full, &bias.full)] {
            let (Some(to), Some(bias)) = (to, bias) else { continue };
            to.fill(T::ZERO);
            // Queries that share numbers: each key's are added up by one task.
            if bias.strides()[2] > 0 {
                self.bias_of_queries(numbers, bias, to);
            } else {
                self.bias_of_keys(numbers, bias, to);
            }
        }
        if let (Some(to), Some(bias)) = (relative, &bias.relative) {
            self.relative_bias(numbers, bias, to);
        }
    }

    /// The gradient of a pair's score.
    fn grad(&self, numbers: &[T], (b, h): (usize, usize), pair: usize) -> T {
        numbers[2 * ((b * self.p.s.hq + h) * self.links.len() + pair) + 1]
    }

    fn bias_of_queries(&self, numbers: &[T], bias: &Broadcast<T>, to: &mut [T]) {
        let Self { p, links, .. } = self;
        let (sharing, chunks) = (Sharing::of(bias, &p.s), p.s.nq.div_ceil(ROWS));
        let to = Shared::new(to);
        tasks::each(sharing.rows() * chunks, &|task| {
            let (row, chunk) = (task / chunks, task % chunks);
            for (b, h) in sharing.heads(row) {
                for i in chunk * ROWS..((chunk + 1) * ROWS).min(p.s.nq) {
                    for (n, pair) in links.pairs(i..i + 1).enumerate() {
                        let at = bias.index(b, h, i, links.key(i, n));
                        // SAFETY: the numbers of these queries are this task's alone.
                        unsafe { to.part(at, 1)[0] += self.grad(numbers, (b, h), pair) };
                    }
                }
            }
        });
    }

    fn bias_of_keys(&self, numbers: &[T], bias: &Broadcast<T>, to: &mut [T]) {
        let Self { p, links, .. } = self;
        let sharing = Sharing::of(bias, &p.s);
        let own_keys = bias.strides()[3] > 0;
        let chunk = if own_keys { ROWS } else { p.s.nk };
        let chunks = p.s.nk.div_ceil(chunk);
        let to = Shared::new(to);
        tasks::each(sharing.rows() * chunks, &|task| {
            let (row, at) = (task / chunks, task % chunks);
            for (b, h) in sharing.heads(row) {
                for j in at * chunk..((at + 1) * chunk).min(p.s.nk) {
                    // SAFETY: the numbers of these keys are this task's alone.
                    let to = unsafe { &mut to.part(bias.index(b, h, 0, j), 1)[0] };
                    links.for_each_query(j, |_, pair| *to += self.grad(numbers, (b, h), pair));
                }
            }
        });
    }

    fn relative_bias(&self, numbers: &[T], bias: &Relative<T>, to: &mut [T]) {
        let Self { p, links, .. } = self;
        let s = &p.s;
        let heads = s.b * s.hq;
        let slots = PARTS.div_ceil(heads).min(s.nq.div_ceil(ROWS));
        let size = s.nq.div_ceil(slots);
        let max_distance = bias.max_distance as isize;
        let mut sums = SlotParts::of(heads, slots, 2 * bias.max_distance + 1);
        let shared = sums.share();
        tasks::each(heads * slots, &|task| {
            let (head, slot) = (task / slots, task % slots);
            // SAFETY: each task has a slot of its own.
            let to = unsafe { shared.slot(head, slot) };
            for i in slot * size..((slot + 1) * size).min(s.nq) {
                for (n, pair) in links.pairs(i..i + 1).enumerate() {
                    let distance = links.key(i, n) as isize - (i as isize + p.offset);
                    let distance = distance.clamp(-max_distance, max_distance);
                    to[(distance + max_distance) as usize] +=
                        self.grad(numbers, (head / s.hq, head % s.hq), pair);
                }
            }
        });
        sums.add_heads(to, s.hq);
    }
}

/// One row's scores become weights, and gradients of the weights those of the scores.
fn row_backward<T: Real>(rule: Rule, stat: T, weights: &mut [T], grads: &mut [T]) {
    let (mut total, mut weighted) = (T::ZERO, T::ZERO);
    for (&score, &grad) in weights.iter().zip(grads.iter()) {
        let slope = rule.slope(score, rule.weight(score, stat));
        total += slope;
        weighted += slope * grad;
    }
    let centers = rule.centers() && total != T::ZERO;
    let mean = if centers { weighted / total } else { T::ZERO };
    for (weight, grad) in weights.iter_mut().zip(grads) {
        let score = *weight;
        *weight = rule.weight(score, stat);
        *grad = rule.slope(score, *weight) * (*grad - mean);
    }
}

//! Backward by lists.
//!
//! Once over the queries: the weight and the gradient of the score of every pair, and the gradient
//! of q. Then once over the keys, along the same pairs the other way, for the gradients of k and v.
//! No two tasks write to the same place, so the sums have one order. Memory: two numbers per pair
//! and head, or per query and head where the second walk can do with those.

use super::additive::Form;
use super::choice::Choice;
use super::expression::{Head, Pair};
use super::list::{
    Heads, Links, Near, ROWS, each_row, factors, near_views, pair_score, same, score_rows,
    side_by_side,
};
use super::problem::Problem;
use super::row::{self, KeyGrads, RowAdditiveGrads, RowGather, RowScore, RowScores, RowsMut};
use super::row_softmax::RowSoftmaxGrads;
use super::scratch::{self, Large};
use super::shared::Shared;
use super::tasks;
use super::tile_backward::{add_heads, add_own};
use super::weights::Rule;
use crate::spec::{Backward, Gradients, Score};
use crate::{Real, View};
use std::ops::Range;
use std::ptr::null_mut;

pub(super) fn backward<T: Real>(p: &Problem<T>, pass: Backward<T>) {
    let Backward { grad_out, grad_weights, grad_log_prob, saved, gradients: g } = pass;
    let choice = saved.index.zip(grad_log_prob).map(|(index, grad)| Choice { index, grad });
    // Where a key was chosen, its probability is softmax's.
    let rule = Rule::of(p.spec.normalizer).unwrap_or(Rule::Softmax);
    let s = &p.s;
    let links = Links::of(p);
    let parts = Heads::parts(p, s.nk.max(s.nq), s.hq * s.dk.max(s.dv));
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
        lse: saved.lse,
        threshold: saved.threshold,
        recompute: false,
    };
    pass.recompute = pass.can_recompute();
    // `[B, Hq, pairs, 2]`: each pair's weight, and beside it the gradient of its score; or, where
    // those are computed again, `[B, Hq, Nq, 2]`: each row's log-sum-exp and mean gradient.
    let rows = if pass.recompute { s.nq } else { links.len() };
    let mut numbers = Large::new(2 * s.b * s.hq * rows);
    let parameters = pass.over_queries(&g, &mut numbers);
    pass.over_keys(&g, &numbers);

    let chunks = s.nq.div_ceil(ROWS);
    let Gradients { w, own, key_bias, bias, relative, .. } = g;
    if let Some(to) = w {
        add_heads(to, &parameters, s.dk, s.hq, chunks);
    }
    if let Some(to) = own {
        add_own(p, to, &parameters, p.own_parameters(), chunks);
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
    lse: Option<&'a [T]>,
    threshold: Option<&'a [T]>,
    /// Whether the walk along the keys computes the pairs' weights and gradients again.
    recompute: bool,
}

impl<T: Real> Pass<'_, T> {
    /// Whether a pair's weight and gradient follow from its rows and two numbers of its query:
    /// softmax of a score that nothing is done to, with rows of one register.
    fn can_recompute(&self) -> bool {
        let Self { p, .. } = self;
        let plain = self.rule == Rule::Softmax && self.choice.is_none() && self.lse.is_some();
        let alone = p.spec.dropout.is_none()
            && self.grad_weights.is_none()
            && p.spec.bias.is_none()
            && !p.spec.mask.is_more_than_edges();
        let graph = matches!(self.links, Links::Graph(_));
        let narrow = p.s.group() == 1 && p.s.dk.max(p.s.dv) <= p.kernels.lanes;
        let score = match p.spec.score {
            Score::Dot { .. } => true,
            // The form of these does not depend on how large the inputs are.
            Score::Additive { activation, .. } => Form::of(activation, f64::NAN).is_narrow(),
            Score::Own(_) | Score::Expression { .. } => false,
        };
        plain && alone && graph && narrow && score
    }

    /// Fills the array of pairs, writes the gradient of q, and gives the parts of the gradients
    /// of the score's parameters, `[B·Hq, chunks, parameters]`.
    fn over_queries(&self, g: &Gradients<T>, numbers: &mut [T]) -> Vec<T> {
        let Self { p, links, parts, .. } = self;
        let s = &p.s;
        let chunks = s.nq.div_ceil(ROWS);
        let width = match p.spec.score {
            Score::Additive { .. } => s.dk,
            _ => p.own_parameters(),
        };
        let mut parameters = vec![T::ZERO; s.b * s.hq * chunks * width];
        let parameters_shared = Shared::new(&mut parameters);
        let numbers = Shared::new(numbers);
        tasks::each(s.b * parts * chunks, &|task| {
            let heads = Heads::new(p, *parts, task / chunks);
            let chunk = task % chunks;
            let queries = chunk * ROWS..((chunk + 1) * ROWS).min(s.nq);
            let n = links.pairs(queries.clone()).len();
            let means = if self.recompute { heads.n * ROWS } else { 0 };
            let drawn = if p.spec.dropout.is_some() { heads.n * n } else { 0 };
            let lengths = [heads.n * n, heads.n * n, heads.n * width, s.dk, s.dq, means, drawn];
            scratch::with(lengths, |[row_weights, row_grads, dw, dk, dq, means, drawn]| {
                dw.fill(T::ZERO);
                if n > 0 {
                    if let Some(dropout) = p.spec.dropout {
                        factors(p, dropout, links, &heads, queries.clone(), drawn);
                    }
                    self.pairs(&heads, queries.clone(), row_weights, row_grads, means, drawn);
                }
                self.queries(&heads, queries.clone(), row_grads, g, dw, dk, dq);
                for h in 0..heads.n {
                    let head = heads.b * s.hq + heads.h + h;
                    let row = head * s.nq + queries.start;
                    let (to, x, y) = if let (true, Some(lse)) = (self.recompute, self.lse) {
                        (row, &lse[row..][..queries.len()], &means[h * queries.len()..])
                    } else {
                        let to = head * links.len() + links.pairs(queries.clone()).start;
                        (to, &row_weights[h * n..][..n], &row_grads[h * n..])
                    };
                    // SAFETY: these pairs, rows, heads and chunks are this task's alone.
                    unsafe {
                        let to = numbers.part(2 * to, 2 * x.len()).as_chunks_mut::<2>().0;
                        for (to, (&x, &y)) in to.iter_mut().zip(x.iter().zip(y)) {
                            *to = [x, y];
                        }
                        parameters_shared
                            .part((head * chunks + chunk) * width, width)
                            .copy_from_slice(&dw[h * width..][..width]);
                    }
                }
            });
        });
        parameters
    }

    /// The weights of some queries' pairs, dropout included, and the gradients of their scores,
    /// each `[heads, pairs]`; `means`, where there is room, gets `[heads, queries]`. `drawn` has
    /// the dropout factors.
    fn pairs(
        &self,
        heads: &Heads,
        queries: Range<usize>,
        weights: &mut [T],
        grads: &mut [T],
        means: &mut [T],
        drawn: &[T],
    ) {
        let Self { p, rule, links, .. } = self;
        let pairs = links.pairs(queries.clone());
        let n = pairs.len();
        let (spans, keys) = links.by_query(queries.start);
        let first = links.first(queries.start);
        // Where keys are values too, one walk along them serves both.
        let one_walk = same(&p.k, &p.v) && pair_score(p, heads).is_some() && self.choice.is_none();
        let products = one_walk.then_some((&self.grad_out, &mut *grads));
        score_rows(p, links, heads, queries.clone(), weights, products);
        if let Some(choice) = &self.choice {
            let (rows, to) = (queries.len(), weights.as_mut_ptr().wrapping_sub(first));
            // SAFETY: scores of all pairs of all heads.
            unsafe { (p.kernels.row_softmax)(to, heads.n, n, rows, spans, null_mut()) };
            return self.grads_of_choice(choice, heads, queries, weights, grads);
        }
        // SAFETY: the keys are rows of v: edges were checked against the shape.
        unsafe {
            if !one_walk {
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
                    to: grads.as_mut_ptr().wrapping_sub(first),
                    to_head: n,
                    products: None,
                });
            }
        }
        if let Some(grad_weights) = self.grad_weights {
            let scores = &*weights;
            each_row(links, heads, queries.clone(), grads, |at, i, from, row| {
                let to = p.row(heads.b, heads.h + at, i) * p.s.nk;
                for (e, grad) in row.iter_mut().enumerate() {
                    // What is masked has no weight, so nothing can arrive there.
                    if scores[from + e] != T::NEG_INFINITY {
                        *grad += grad_weights[to + links.key(i, e)];
                    }
                }
            });
        }
        grads.iter_mut().zip(drawn).for_each(|(grad, factor)| *grad *= *factor);
        if *rule == Rule::Softmax {
            // SAFETY: both arrays hold all pairs of all heads, `means` and the log-sum-exps a number
            // for each row.
            unsafe {
                (p.kernels.row_softmax_grads)(RowSoftmaxGrads {
                    heads: heads.n,
                    rows: queries.len(),
                    spans,
                    scores: weights.as_mut_ptr().wrapping_sub(first),
                    grads: grads.as_mut_ptr().wrapping_sub(first),
                    head: n,
                    lse: self.lse.filter(|_| self.recompute).map(|lse| {
                        let row = p.row(heads.b, heads.h, queries.start);
                        (lse[row..].as_ptr(), p.s.nq)
                    }),
                    means: if means.is_empty() { null_mut() } else { means.as_mut_ptr() },
                });
            }
        } else {
            for at in 0..heads.n {
                for i in queries.clone() {
                    let own = links.pairs(i..i + 1);
                    let place = at * n + own.start - pairs.start;
                    let stat = self
                        .threshold
                        .map_or(T::ZERO, |threshold| threshold[p.row(heads.b, heads.h + at, i)]);
                    let row = place..place + own.len();
                    row_backward(*rule, stat, &mut weights[row.clone()], &mut grads[row]);
                }
            }
        }
        weights.iter_mut().zip(drawn).for_each(|(weight, factor)| *weight *= *factor);
    }

    /// The gradients of the scores where a key was chosen, g · ([j = z] − p), from the softmax p.
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
            let (chosen, grad) = (choice.index[place], choice.grad(place));
            for (e, (to, &p)) in row.iter_mut().zip(&soft[from..]).enumerate() {
                let here = if links.key(i, e) as i64 == chosen { T::ONE } else { T::ZERO };
                *to = grad * (here - p);
            }
        });
    }

    /// The gradients of some queries, and their part of those of the score's parameters.
    #[allow(clippy::too_many_arguments)]
    fn queries(
        &self,
        heads: &Heads,
        queries: Range<usize>,
        grads: &[T],
        g: &Gradients<T>,
        parameters: &mut [T],
        dk: &mut [T],
        dq: &mut [T],
    ) {
        let Self { p, links, .. } = self;
        let s = &p.s;
        let pairs = links.pairs(queries.clone());
        let n = pairs.len();
        let (spans, keys) = links.by_query(queries.start);
        let from = grads.as_ptr().wrapping_sub(links.first(queries.start));
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
                        weights: from,
                        weights_head: n,
                        v: heads.keys(p, &p.k, 0),
                        d: s.dq,
                        scale,
                        to,
                    });
                }
            }
            (_, Some(RowScore::Additive { form, w, w_head })) => {
                // SAFETY: as above; `parameters` has a row for every head.
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
                        grads: from,
                        grads_head: n,
                        grad_q: to,
                        grad_w: parameters.as_mut_ptr(),
                    });
                }
            }
            (Score::Own(own), _) => {
                let count = own.parameters();
                for (at, h) in (heads.h..heads.h + heads.n).enumerate() {
                    for i in queries.clone() {
                        let row = links.pairs(i..i + 1);
                        dq.fill(T::ZERO);
                        for (e, pair) in row.enumerate() {
                            own.backward(
                                p.q.row(heads.b, h, i),
                                p.k.row(heads.b, p.key_head(h), links.key(i, e)),
                                grads[at * n + pair - pairs.start],
                                dq,
                                dk,
                                &mut parameters[at * count..][..count],
                            );
                        }
                        if let Some(to) = &g.q {
                            // SAFETY: this row is this task's alone.
                            unsafe { to.row(heads.b, h, i).copy_from(dq.as_ptr(), s.dq) };
                        }
                    }
                }
            }
            (Score::Expression { .. }, _) => {
                self.expression_queries(heads, queries, grads, g, parameters);
            }
            _ => {}
        }
    }

    /// The gradients of some queries and of the parameters by an expression.
    fn expression_queries(
        &self,
        heads: &Heads,
        queries: Range<usize>,
        grads: &[T],
        g: &Gradients<T>,
        parameters: &mut [T],
    ) {
        let Self { p, links, .. } = self;
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
                let own = &mut parameters[at * own..][..own];
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
                Score::Own(_) => self.own_keys(&heads, keys, numbers, g),
                Score::Expression { .. } => self.expression_keys(&heads, keys, numbers, g),
                _ => {}
            }
        });
    }

    /// The gradients of some keys by a score of one's own.
    fn own_keys(&self, heads: &Heads, keys: Range<usize>, numbers: &[T], g: &Gradients<T>) {
        let Self { p, links, .. } = self;
        let s = &p.s;
        let (Score::Own(own), Some(to)) = (p.spec.score, &g.k) else { return };
        scratch::with([s.dk, s.dq, own.parameters()], |[dk, dq, parameters]| {
            for j in keys {
                for kh in 0..heads.n / s.group() {
                    dk.fill(T::ZERO);
                    for h in (heads.hk + kh) * s.group()..(heads.hk + kh + 1) * s.group() {
                        links.for_each_query(j, |i, pair| {
                            own.backward(
                                p.q.row(heads.b, h, i),
                                p.k.row(heads.b, heads.hk + kh, j),
                                numbers[2 * ((heads.b * s.hq + h) * links.len() + pair) + 1],
                                dq,
                                dk,
                                parameters,
                            );
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
    fn biases(&self, numbers: &[T], [mut key, mut full, mut relative]: [Option<&mut [T]>; 3]) {
        let Self { p, links, .. } = self;
        let s = &p.s;
        if key.is_none() && full.is_none() && relative.is_none() {
            return;
        }
        for slice in [&mut key, &mut full, &mut relative].into_iter().flatten() {
            slice.fill(T::ZERO);
        }
        let bias = &p.spec.bias;
        for row in 0..s.rows() {
            let (b, h, i) = s.place(row);
            for (n, pair) in links.pairs(i..i + 1).enumerate() {
                let grad = numbers[2 * ((b * s.hq + h) * links.len() + pair) + 1];
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

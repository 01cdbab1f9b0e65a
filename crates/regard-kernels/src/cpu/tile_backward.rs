//! Backward by tiles.
//!
//! A task owns one key head, a chunk of its keys and a chunk of the queries. Per block of queries
//! and tile of keys it recomputes the scores, weighs them with the saved row statistics, and does
//! four more products: dP = V·dOᵀ, dV += P·dO, dK += dS·Q, dQ += dSᵀ·K. The gradients of its keys
//! stay in the task's own memory until it is done. How many chunks there are depends on the shape
//! alone, and their parts are added up in order, so any number of threads gives the same bits.
//! Memory: the chunks' parts, linear in the lengths.

use super::additive::AdditiveGrads;
use super::choice::Choice;
use super::gemm::Gemm;
use super::problem::{Block, Problem, tiles};
use super::scratch::{self, Large};
use super::shared::Shared;
use super::tile::{drop_tile, dropout_words_len, row_statistics};
use super::weights::Rule;
use super::{BLOCK, TILE, tasks};
use crate::spec::{Backward, Gradients, Score, w_of_head};
use crate::{Real, View, ViewMut};
use std::ops::Range;

/// Tasks a problem is cut into, about, where it is long enough.
const TASKS: usize = 16;
/// Keys or queries worth a task of their own.
const CHUNK: usize = 256;

pub(super) fn backward<T: Real>(p: &Problem<T>, pass: Backward<T>) {
    let Backward { grad_out, grad_weights, grad_log_prob, saved, mut gradients } = pass;
    let choice = saved.index.zip(grad_log_prob).map(|(index, grad)| Choice { index, grad });
    let mut context = Context {
        p,
        // Where a key was chosen, its probability is softmax's.
        rule: Rule::of(p.spec.normalizer).unwrap_or(Rule::Softmax),
        choice,
        grad_out,
        grad_weights,
        lse: saved.lse,
        threshold: saved.threshold,
        delta: Large::new(0),
    };
    context.delta = context.row_deltas(saved.out);
    if let Some(bias) = gradients.bias.take() {
        full_bias(&context, bias);
    }
    context.run(gradients);
}

struct Context<'a, T: Real> {
    p: &'a Problem<'a, T>,
    rule: Rule,
    choice: Option<Choice<'a, T>>,
    grad_out: View<'a, T>,
    grad_weights: Option<&'a [T]>,
    lse: Option<&'a [T]>,
    threshold: Option<&'a [T]>,
    /// Rows: what is subtracted from the gradients of a row's weights; where a key was chosen,
    /// what the probabilities are multiplied by.
    delta: Large<T>,
}

/// The arrays a block works in.
struct Tile<'a, T> {
    queries: &'a mut [T],
    grads: &'a mut [T],
    kept: &'a mut [T],
    stat: &'a mut [T],
    delta: &'a mut [T],
    weights: &'a mut [T],
    grad: &'a mut [T],
    words: &'a mut [T],
}

impl<'a, T: Real> Tile<'a, T> {
    fn lengths(p: &Problem<T>) -> [usize; 8] {
        let tile = TILE * BLOCK;
        [
            p.s.dq * BLOCK,
            p.s.dv * BLOCK,
            p.kept_keys(),
            BLOCK,
            BLOCK,
            tile,
            tile,
            dropout_words_len(p, TILE),
        ]
    }

    fn new([queries, grads, kept, stat, delta, weights, grad, words]: [&'a mut [T]; 8]) -> Self {
        Self { queries, grads, kept, stat, delta, weights, grad, words }
    }
}

impl<T: Real> Context<'_, T> {
    /// Gets a block's queries, gradients and row statistics ready.
    fn enter(&self, block: &Block, t: &mut Tile<T>) {
        let p = self.p;
        p.pack_queries(block, t.queries);
        if self.choice.is_none() {
            p.pack_rows(&self.grad_out, block, t.grads);
        }
        row_statistics(p, self.rule, block, self.lse, self.threshold, t.stat);
        t.delta.fill(T::ZERO);
        let from = p.row(block.b, block.h, block.i0);
        t.delta[..block.n].copy_from_slice(&self.delta[from..from + block.n]);
    }

    /// The weights, before dropout, and the gradients of the scores, each `[keys, BLOCK]`; false
    /// where the block sees none of the keys.
    fn grad_tile(&self, block: &Block, keys: &Range<usize>, t: &mut Tile<T>) -> bool {
        let p = self.p;
        if !p.score_tile(block, keys, t.queries, t.kept, t.weights) {
            return false;
        }
        if let Some(choice) = &self.choice {
            self.grad_of_choice(choice, block, keys, t);
            return true;
        }
        self.grad_of_weights(block, keys, t);
        // SAFETY: both tiles hold the keys' rows of BLOCK, stat and delta one.
        unsafe {
            (p.kernels.backward)(
                self.rule,
                t.weights.as_mut_ptr(),
                t.grad.as_mut_ptr(),
                keys.len(),
                block.width,
                t.stat.as_ptr(),
                t.delta.as_ptr(),
            );
        }
        true
    }

    /// The gradients of a tile's scores where a key was chosen: g · ([j = z] − p).
    fn grad_of_choice(
        &self,
        choice: &Choice<T>,
        block: &Block,
        keys: &Range<usize>,
        t: &mut Tile<T>,
    ) {
        let kernels = self.p.kernels;
        let rows = keys.len();
        let grad = &mut t.grad[..rows * BLOCK];
        grad.copy_from_slice(&t.weights[..rows * BLOCK]);
        // SAFETY: the tile holds the keys' rows of BLOCK, stat and delta one.
        unsafe {
            let grad = grad.as_mut_ptr();
            (kernels.weights)(self.rule, grad, rows, block.width, t.stat.as_ptr());
            (kernels.scale_columns)(grad, rows, block.width, t.delta.as_ptr());
        }
        let from = self.p.row(block.b, block.h, block.i0);
        for i in 0..block.n {
            let chosen = choice.index[from + i];
            if chosen >= 0 && keys.contains(&(chosen as usize)) {
                grad[(chosen as usize - keys.start) * BLOCK + i] += choice.grad(from + i);
            }
        }
    }

    /// The gradients of a tile's weights, dropout included, `[keys, BLOCK]`: v · grads, and what
    /// arrives at the weights themselves. The tile's scores are still there.
    fn grad_of_weights(&self, block: &Block, keys: &Range<usize>, t: &mut Tile<T>) {
        let p = self.p;
        let rows = keys.len();
        assert!(t.grads.len() >= p.s.dv * BLOCK && t.grad.len() >= rows * BLOCK);
        // SAFETY: `rows` rows of v, and the arrays as asserted.
        unsafe {
            (p.kernels.gemm)(Gemm {
                m: rows,
                n: block.width,
                k: p.s.dv,
                a: p.rows(&p.v, block.b, p.key_head(block.h), keys.start, rows),
                a_row: p.v.strides[2],
                a_column: 1,
                b: t.grads.as_ptr(),
                b_row: BLOCK,
                c: t.grad.as_mut_ptr(),
                c_row: BLOCK,
                add: false,
            });
        }
        if let Some(grad_weights) = self.grad_weights {
            for i in 0..block.n {
                let row = p.row(block.b, block.h, block.i0 + i) * p.s.nk;
                for (r, &grad) in grad_weights[row..][keys.clone()].iter().enumerate() {
                    let at = r * BLOCK + i;
                    // What is masked has no weight, so nothing can arrive there.
                    if t.weights[at] != T::NEG_INFINITY {
                        t.grad[at] += grad;
                    }
                }
            }
        }
        drop_tile(p, block, keys, t.grad, t.words);
    }

    /// Rows: what centers the gradients. For softmax Σ p·dp = dO · O, unless gradients arrive at
    /// the weights too; then, as for the others, a pass of its own adds it up.
    fn row_deltas(&self, out: Option<View<T>>) -> Large<T> {
        let p = self.p;
        let s = &p.s;
        let mut delta = Large::zeros(s.rows());
        if let Some(choice) = &self.choice {
            for (row, delta) in delta.iter_mut().enumerate() {
                *delta = -choice.grad(row);
            }
        } else if let (Rule::Softmax, None, Some(out)) = (self.rule, self.grad_weights, out) {
            let shared = Shared::new(&mut delta);
            tasks::runs(s.rows(), 64, &|row| {
                let (b, h, i) = s.place(row);
                let (x, y) = (self.grad_out.row(b, h, i), out.row(b, h, i));
                // SAFETY: both rows have dv numbers.
                shared.set(row, unsafe { (p.kernels.dot)(s.dv, x.as_ptr(), y.as_ptr()) });
            });
        } else if self.rule.centers() {
            let shared = Shared::new(&mut delta);
            tasks::each(s.b * s.hq * p.blocks(), &|n| {
                self.block_deltas(&p.block(n), &shared);
            });
        }
        delta
    }

    /// The means Σ slope·dp / Σ slope of a block's rows.
    fn block_deltas(&self, block: &Block, to: &Shared<T>) {
        let p = self.p;
        let [a0, a1, a2, a3, a4, a5, a6, a7] = Tile::lengths(p);
        let lengths = [a0, a1, a2, a3, a4, a5, a6, a7, 2 * BLOCK];
        scratch::with(lengths, |[t0, t1, t2, t3, t4, t5, t6, t7, sums]| {
            let mut t = Tile::new([t0, t1, t2, t3, t4, t5, t6, t7]);
            p.pack_queries(block, t.queries);
            p.pack_rows(&self.grad_out, block, t.grads);
            row_statistics(p, self.rule, block, self.lse, self.threshold, t.stat);
            sums.fill(T::ZERO);
            for keys in tiles(p.key_range(block.b, block.i0, block.i0 + block.n)) {
                if !p.score_tile(block, &keys, t.queries, t.kept, t.weights) {
                    continue;
                }
                self.grad_of_weights(block, &keys, &mut t);
                // SAFETY: both tiles hold the keys' rows of BLOCK, stat one, sums two.
                unsafe {
                    (p.kernels.delta_step)(
                        self.rule,
                        t.weights.as_ptr(),
                        t.grad.as_ptr(),
                        keys.len(),
                        block.width,
                        t.stat.as_ptr(),
                        sums.as_mut_ptr(),
                    );
                }
            }
            for i in 0..block.n {
                let total = sums[BLOCK + i];
                let mean = if total == T::ZERO { T::ZERO } else { sums[i] / total };
                to.set(p.row(block.b, block.h, block.i0 + i), mean);
            }
        });
    }

    fn run(&self, g: Gradients<T>) {
        let p = self.p;
        let s = &p.s;
        let want = TASKS.div_ceil(s.b * s.hk);
        // Cut both ways: parts of dQ are written once per chunk of keys, those of dK and dV once
        // per chunk of queries.
        let square = (want as f64).sqrt().ceil() as usize;
        let query_chunks = square.min(s.nq.div_ceil(CHUNK));
        let key_chunks = want.div_ceil(query_chunks).min(s.nk.div_ceil(CHUNK));
        let query_chunks = want.div_ceil(key_chunks).min(s.nq.div_ceil(CHUNK));
        let key_chunk = s.nk.div_ceil(key_chunks).next_multiple_of(8);
        let query_chunk = s.nq.div_ceil(query_chunks).next_multiple_of(BLOCK);
        let key_chunks = s.nk.div_ceil(key_chunk);
        let query_chunks = s.nq.div_ceil(query_chunk);
        let scale = match p.spec.score {
            Score::Dot { scale } => scale,
            _ => T::ONE,
        };

        let q_size = s.b * s.hq * s.nq * s.dq;
        let k_size = s.b * s.hk * s.nk * s.dk;
        let v_size = s.b * s.hk * s.nk * s.dv;
        let heads = s.b * s.hq;
        let parts = query_chunks * key_chunks;
        let zeros = |wanted: bool, n: usize| Large::<T>::zeros(if wanted { n } else { 0 });
        // Every number of these is written by its task.
        let room = |wanted: bool, n: usize| Large::<T>::new(if wanted { n } else { 0 });
        let mut q_parts = room(g.q.is_some() && key_chunks > 1, key_chunks * q_size);
        let mut k_parts = room(g.k.is_some() && query_chunks > 1, query_chunks * k_size);
        let mut v_parts = room(g.v.is_some() && query_chunks > 1, query_chunks * v_size);
        let mut w_parts = zeros(g.w.is_some(), heads * parts * s.dk);
        let own = p.own_parameters();
        let mut own_parts = zeros(g.own.is_some(), heads * parts * own);
        let mut key_bias_parts = zeros(g.key_bias.is_some(), heads * query_chunks * s.nk);
        let table = p.spec.bias.relative.map_or(0, |r| 2 * r.max_distance + 1);
        let mut relative_parts = zeros(g.relative.is_some(), heads * parts * table);

        let q_shared = Shared::new(&mut q_parts);
        let k_shared = Shared::new(&mut k_parts);
        let v_shared = Shared::new(&mut v_parts);
        let w_shared = Shared::new(&mut w_parts);
        let own_shared = Shared::new(&mut own_parts);
        let key_bias_shared = Shared::new(&mut key_bias_parts);
        let relative_shared = Shared::new(&mut relative_parts);
        let additive = matches!(p.spec.score, Score::Additive { .. });

        tasks::each(s.b * s.hk * parts, &|task| {
            let (head, part) = (task / parts, task % parts);
            let (qc, kc) = (part / key_chunks, part % key_chunks);
            let (b, hk) = (head / s.hk, head % s.hk);
            let chunk = kc * key_chunk..((kc + 1) * key_chunk).min(s.nk);
            let blocks =
                qc * query_chunk / BLOCK..((qc + 1) * query_chunk).min(s.nq).div_ceil(BLOCK);
            let n = chunk.len();
            let prepared = if additive && !p.form.is_direct() { BLOCK * s.dq } else { 0 };
            let [a0, a1, a2, a3, a4, a5, a6, a7] = Tile::lengths(p);
            let lengths = [
                a0,
                a1,
                a2,
                a3,
                a4,
                a5,
                a6,
                a7,
                n * s.dk,
                n * s.dv,
                BLOCK * s.dq,
                prepared,
                s.dk,
                2 * own,
            ];
            scratch::with(lengths, |[t0, t1, t2, t3, t4, t5, t6, t7, dk, dv, dq, qx, dw, down]| {
                let mut t = Tile::new([t0, t1, t2, t3, t4, t5, t6, t7]);
                dk.fill(T::ZERO);
                dv.fill(T::ZERO);
                for h in hk * s.group()..(hk + 1) * s.group() {
                    let at = (b * s.hq + h) * parts + part;
                    dw.fill(T::ZERO);
                    down.fill(T::ZERO);
                    for block in blocks.clone() {
                        let block = p.block_of(b, h, block);
                        let range = p.key_range(b, block.i0, block.i0 + block.n);
                        let keys = range.start.max(chunk.start)..range.end.min(chunk.end);
                        dq.fill(T::ZERO);
                        if keys.start < keys.end {
                            self.enter(&block, &mut t);
                            if prepared > 0 {
                                p.prepare(&p.q, (b, h, block.i0), block.n, qx);
                            }
                        }
                        for keys in tiles(keys.start..keys.end.max(keys.start)) {
                            if !self.grad_tile(&block, &keys, &mut t) {
                                continue;
                            }
                            if !relative_shared.is_empty() || !key_bias_shared.is_empty() {
                                // SAFETY: parts of this head and these chunks are this task's.
                                let (key_bias, relative) = unsafe {
                                    (
                                        key_bias_shared.part_or_empty(
                                            ((b * s.hq + h) * query_chunks + qc) * s.nk,
                                            s.nk,
                                        ),
                                        relative_shared.part_or_empty(at * table, table),
                                    )
                                };
                                self.bias_grads(&block, &keys, t.grad, key_bias, relative);
                            }
                            let from = keys.start - chunk.start;
                            let dk = &mut dk[from * s.dk..][..keys.len() * s.dk];
                            let dv = &mut dv[from * s.dv..][..keys.len() * s.dv];
                            self.score_grads(&block, &keys, &t, qx, dq, dk, dw, down);
                            if g.v.is_some() {
                                drop_again(p, &block, &keys, &mut t);
                                add_keys(p, &self.grad_out, &block, &keys, t.weights, dv);
                            }
                        }
                        if let Some(grad) = &g.q {
                            let d = s.dq;
                            for i in 0..block.n {
                                // SAFETY: these rows, or these parts, are this task's alone.
                                let to = unsafe {
                                    if key_chunks > 1 {
                                        let row = p.row(b, h, block.i0 + i);
                                        q_shared.part(kc * q_size + row * d, d)
                                    } else {
                                        std::slice::from_raw_parts_mut(
                                            grad.row(b, h, block.i0 + i),
                                            d,
                                        )
                                    }
                                };
                                scaled(&dq[i * d..][..d], scale, to);
                            }
                        }
                    }
                    // SAFETY: parts of this head and these chunks are this task's.
                    unsafe {
                        if g.w.is_some() {
                            w_shared.part(at * s.dk, s.dk).copy_from_slice(dw);
                        }
                        if g.own.is_some() {
                            own_shared.part(at * own, own).copy_from_slice(&down[..own]);
                        }
                    }
                }
                let flush =
                    |grad: &Option<ViewMut<T>>, shared: &Shared<T>, from: &[T], d, scale| {
                        let Some(grad) = grad else { return };
                        for (r, j) in chunk.clone().enumerate() {
                            // SAFETY: these rows, or these parts, are this task's alone.
                            let to = unsafe {
                                if query_chunks > 1 {
                                    let row = (qc * s.b * s.hk + head) * s.nk + j;
                                    shared.part(row * d, d)
                                } else {
                                    std::slice::from_raw_parts_mut(grad.row(b, hk, j), d)
                                }
                            };
                            scaled(&from[r * d..][..d], scale, to);
                        }
                    };
                flush(&g.k, &k_shared, dk, s.dk, scale);
                flush(&g.v, &v_shared, dv, s.dv, T::ONE);
            });
        });

        if key_chunks > 1 {
            add_parts(&g.q, &q_parts, key_chunks);
        }
        if query_chunks > 1 {
            add_parts(&g.k, &k_parts, query_chunks);
            add_parts(&g.v, &v_parts, query_chunks);
        }
        for (to, parts, width) in [(g.w, &*w_parts, s.dk), (g.relative, &*relative_parts, table)] {
            if let Some(to) = to {
                add_heads(to, parts, width, s.hq, parts.len() / (heads * width).max(1));
            }
        }
        if let Some(to) = g.own {
            add_own(p, to, &own_parts, own, parts);
        }
        if let (Some(to), Some(key)) = (g.key_bias, &p.spec.bias.key) {
            to.fill(T::ZERO);
            for (at, part) in key_bias_parts.chunks_exact(s.nk.max(1)).enumerate() {
                let head = at / query_chunks;
                let from = key.index(head / s.hq, head % s.hq, 0, 0);
                let step = key.strides()[3];
                for (j, &x) in part.iter().enumerate() {
                    to[from + j * step] += x;
                }
            }
        }
    }

    /// Adds a tile's part of the per-key and relative biases' gradients.
    fn bias_grads(
        &self,
        block: &Block,
        keys: &Range<usize>,
        grad: &[T],
        key_bias: &mut [T],
        relative: &mut [T],
    ) {
        let p = self.p;
        for (j, row) in keys.clone().zip(grad.chunks_exact(BLOCK)) {
            if !key_bias.is_empty() {
                key_bias[j] += row[..block.n].iter().copied().sum();
            }
            if let Some(table) = p.spec.bias.relative
                && !relative.is_empty()
            {
                let max_distance = table.max_distance as isize;
                let first = j as isize - (block.i0 as isize + p.offset);
                for (i, &x) in row[..block.n].iter().enumerate() {
                    let distance = (first - i as isize).clamp(-max_distance, max_distance);
                    relative[(distance + max_distance) as usize] += x;
                }
            }
        }
    }

    /// Adds a tile's part of the gradients of q, k and the score's own parameters.
    #[allow(clippy::too_many_arguments)]
    fn score_grads(
        &self,
        block: &Block,
        keys: &Range<usize>,
        t: &Tile<T>,
        prepared: &[T],
        dq: &mut [T],
        dk: &mut [T],
        dw: &mut [T],
        own_grads: &mut [T],
    ) {
        let p = self.p;
        let s = &p.s;
        let Block { b, h, i0, n, .. } = *block;
        let hk = p.key_head(h);
        let rows = keys.len();
        let k = p.rows(&p.k, b, hk, keys.start, rows);
        let q = p.rows(&p.q, b, h, i0, n);
        match p.spec.score {
            Score::Dot { .. } => {
                add_keys(p, &p.q, block, keys, t.grad, dk);
                // SAFETY: `rows` rows of k, n of q's gradient, and a tile of gradients.
                unsafe {
                    (p.kernels.gemm)(Gemm {
                        m: n,
                        n: s.dk,
                        k: rows,
                        a: t.grad.as_ptr(),
                        a_row: 1,
                        a_column: BLOCK,
                        b: k,
                        b_row: p.k.strides[2],
                        c: dq.as_mut_ptr(),
                        c_row: s.dq,
                        add: true,
                    });
                }
            }
            Score::Additive { w, .. } => {
                let direct = p.form.is_direct();
                // SAFETY: n rows of q and its gradient, `rows` of k and its gradient.
                unsafe {
                    (p.kernels.additive_grads)(AdditiveGrads {
                        form: p.form,
                        d: s.dk,
                        n,
                        rows,
                        q: if direct { q } else { prepared.as_ptr() },
                        q_row: if direct { p.q.strides[2] } else { s.dq },
                        k: if direct { k } else { t.kept.as_ptr() },
                        k_row: if direct { p.k.strides[2] } else { s.dk },
                        w: w_of_head(w, h, s.dk).as_ptr(),
                        grad: t.grad.as_ptr(),
                        grad_q: dq.as_mut_ptr(),
                        grad_k: dk.as_mut_ptr(),
                        grad_w: dw.as_mut_ptr(),
                    });
                }
            }
            Score::Own(own) => {
                // A key's part first: one long sum of small numbers would lose digits.
                let (own_grads, part) = own_grads.split_at_mut(own.parameters());
                for (r, j) in keys.clone().enumerate() {
                    part.fill(T::ZERO);
                    for i in 0..n {
                        let grad = t.grad[r * BLOCK + i];
                        if grad != T::ZERO {
                            own.backward(
                                p.q.row(b, h, i0 + i),
                                p.k.row(b, hk, j),
                                grad,
                                &mut dq[i * s.dq..][..s.dq],
                                &mut dk[r * s.dk..][..s.dk],
                                part,
                            );
                        }
                    }
                    own_grads.iter_mut().zip(&*part).for_each(|(to, x)| *to += *x);
                }
            }
            Score::Expression { .. } => {
                if let Some(programs) = p.programs {
                    programs.tile_grads(p, block, keys, t.queries, t.grad, dq, dk, own_grads);
                }
            }
        }
    }
}

/// Rows of keys `[keys, D]` += tile `[keys, BLOCK]` · the block's rows of x.
fn add_keys<T: Real>(
    p: &Problem<T>,
    x: &View<T>,
    block: &Block,
    keys: &Range<usize>,
    tile: &[T],
    to: &mut [T],
) {
    let d = x.shape[3];
    assert!(tile.len() >= keys.len() * BLOCK && to.len() >= keys.len() * d);
    // SAFETY: n rows of x, and the arrays as asserted.
    unsafe {
        (p.kernels.gemm)(Gemm {
            m: keys.len(),
            n: d,
            k: block.n,
            a: tile.as_ptr(),
            a_row: BLOCK,
            a_column: 1,
            b: p.rows(x, block.b, block.h, block.i0, block.n),
            b_row: x.strides[2],
            c: to.as_mut_ptr(),
            c_row: d,
            add: true,
        });
    }
}

/// Dropout on the weights, with the words that the gradients already drew.
fn drop_again<T: Real>(p: &Problem<T>, block: &Block, keys: &Range<usize>, t: &mut Tile<T>) {
    let Some(dropout) = p.spec.dropout else { return };
    let keep = dropout.of_head::<T>(block.b * p.s.hq + block.h);
    assert!(t.words.len() >= keys.len() * BLOCK && t.weights.len() >= keys.len() * BLOCK);
    // SAFETY: both arrays hold the keys' rows of BLOCK.
    unsafe {
        let words = t.words.as_ptr().cast::<u32>();
        let weights = t.weights.as_mut_ptr();
        (p.kernels.drop)(words, keep.below, keep.factor, weights, keys.len(), block.width);
    }
}

fn scaled<T: Real>(from: &[T], scale: T, to: &mut [T]) {
    for (to, &x) in to.iter_mut().zip(from) {
        *to = x * scale;
    }
}

/// Writes the sum of `count` parts, in order.
fn add_parts<T: Real>(to: &Option<ViewMut<T>>, parts: &[T], count: usize) {
    let Some(to) = to else { return };
    let [b, h, n, d] = to.shape;
    let size = parts.len() / count;
    tasks::runs(b * h * n, 16, &|row| {
        // SAFETY: each row is one task's alone.
        let to =
            unsafe { std::slice::from_raw_parts_mut(to.row(row / n / h, row / n % h, row % n), d) };
        to.copy_from_slice(&parts[row * d..][..d]);
        for part in 1..count {
            for (to, &x) in to.iter_mut().zip(&parts[part * size + row * d..][..d]) {
                *to += x;
            }
        }
    });
}

/// Adds the parts of all heads, `[B·Hq, count, width]`, into `[1 or Hq, width]`.
pub(super) fn add_heads<T: Real>(
    to: &mut [T],
    parts: &[T],
    width: usize,
    heads: usize,
    count: usize,
) {
    to.fill(T::ZERO);
    if width == 0 {
        return;
    }
    for (at, part) in parts.chunks_exact(width).enumerate() {
        let row = if to.len() == width { 0 } else { at / count % heads };
        for (to, &x) in to[row * width..].iter_mut().zip(part) {
            *to += x;
        }
    }
}

/// Adds the parts of all heads of the parameters of one's own score, or of an expression's.
pub(super) fn add_own<T: Real>(
    p: &Problem<T>,
    to: &mut [T],
    parts: &[T],
    width: usize,
    count: usize,
) {
    match p.programs {
        Some(programs) => programs.add_parameters(to, parts, count),
        None => add_heads(to, parts, width, p.s.hq, count),
    }
}

/// The gradient of a full bias: a pass of its own, cut so that each number is one task's, which
/// adds up the heads and batch items that share it in order.
fn full_bias<T: Real>(context: &Context<T>, to: &mut [T]) {
    let p = context.p;
    let s = &p.s;
    let Some(bias) = &p.spec.bias.full else { return };
    let [sb, sh, sq, sk] = bias.strides();
    to.fill(T::ZERO);
    let shared = Shared::new(to);
    // A task per shared head and block of queries, or tile of keys where queries share numbers.
    let by_queries = sq > 0;
    let (own_b, own_h) = (if sb > 0 { s.b } else { 1 }, if sh > 0 { s.hq } else { 1 });
    let cuts = match (by_queries, sk > 0) {
        (true, _) => p.blocks(),
        (false, true) => s.nk.div_ceil(TILE),
        (false, false) => 1,
    };
    tasks::each(own_b * own_h * cuts, &|task| {
        let (head, cut) = (task / cuts, task % cuts);
        let (b, h) = (head / own_h, head % own_h);
        let batch = if sb > 0 { b..b + 1 } else { 0..s.b };
        let heads = if sh > 0 { h..h + 1 } else { 0..s.hq };
        scratch::with(Tile::<T>::lengths(p), |arrays| {
            let mut t = Tile::new(arrays);
            for (b, h) in batch.flat_map(|b| heads.clone().map(move |h| (b, h))) {
                for block in if by_queries { cut..cut + 1 } else { 0..p.blocks() } {
                    let block = p.block_of(b, h, block);
                    let mut keys = p.key_range(b, block.i0, block.i0 + block.n);
                    if !by_queries && sk > 0 {
                        keys = keys.start.max(cut * TILE)..keys.end.min((cut + 1) * TILE);
                        keys.end = keys.end.max(keys.start);
                    }
                    context.enter(&block, &mut t);
                    for keys in tiles(keys) {
                        if !context.grad_tile(&block, &keys, &mut t) {
                            continue;
                        }
                        for (j, row) in keys.zip(t.grad.chunks_exact(BLOCK)) {
                            let from = bias.index(b, h, block.i0, j);
                            for (i, &x) in row[..block.n].iter().enumerate() {
                                // SAFETY: these numbers are this task's alone.
                                unsafe { shared.part(from + i * sq, 1)[0] += x };
                            }
                        }
                    }
                }
            }
        });
    });
}

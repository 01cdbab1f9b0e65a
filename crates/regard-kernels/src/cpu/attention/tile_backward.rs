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
use super::expression::TileGrads;
use super::gemm::Gemm;
use super::partial::{RowParts, RowSums, SlotParts, SlotSums};
use super::plan::{self, BiasCut, Chunk, Joining, Plan, Sharing, rows_at_once};
use super::problem::{Block, Problem, tiles};
use super::products::ROWS;
use super::tile::{drop_tile, dropout_words_len, row_statistics};
use super::weights::Rule;
use super::{BLOCK, TILE};
use crate::cpu::scratch::{self, Large};
use crate::cpu::shared::Shared;
use crate::cpu::tasks;
use crate::spec::{Backward, Bias, Broadcast, Gradients, OwnGrads, OwnScore, Score, w_of_head};
use crate::{Real, View};
use std::ops::Range;

/// Gives whether the gradients of q, k and v are finite.
pub(super) fn backward<T: Real>(p: &Problem<T>, pass: Backward<T>) -> bool {
    let choice = Choice::of(p.spec.normalizer, &pass);
    let Backward { grad_out, grad_weights, grad_lse, saved, mut gradients, .. } = pass;
    let mut context = Context {
        p,
        // Where a key was chosen, its probability is softmax's.
        rule: Rule::of(p.spec.normalizer).unwrap_or(Rule::Softmax),
        choice,
        grad_out,
        grad_weights,
        grad_lse,
        lse: saved.lse,
        threshold: saved.threshold,
        delta: Large::new(0),
    };
    context.delta = context.row_deltas(saved.out);
    // One whose queries share its numbers is a bias per key.
    let full = p.spec.bias.full.filter(|bias| bias.strides()[2] > 0);
    let full = full.and_then(|bias| {
        let to = gradients.bias.take()?;
        to.fill(T::ZERO);
        Some(FullBias { bias, to: Shared::new(to) })
    });
    context.run(gradients, full.as_ref())
}

/// A full bias whose queries have numbers of their own, and its gradient.
struct FullBias<'a, T> {
    bias: Broadcast<'a, T>,
    to: Shared<'a, T>,
}

struct Context<'a, T: Real> {
    p: &'a Problem<'a, T>,
    rule: Rule,
    choice: Option<Choice<'a, T>>,
    grad_out: View<'a, T>,
    grad_weights: Option<&'a [T]>,
    grad_lse: Option<&'a [T]>,
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
    stat: &'a mut [T],
    delta: &'a mut [T],
    weights: &'a mut [T],
    grad: &'a mut [T],
    words: &'a mut [T],
}

impl<'a, T: Real> Tile<'a, T> {
    fn lengths(p: &Problem<T>) -> [usize; 7] {
        let tile = TILE * BLOCK;
        [p.s.dq * BLOCK, p.s.dv * BLOCK, BLOCK, BLOCK, tile, tile, dropout_words_len(p, TILE)]
    }

    fn new([queries, grads, stat, delta, weights, grad, words]: [&'a mut [T]; 7]) -> Self {
        Self { queries, grads, stat, delta, weights, grad, words }
    }
}

/// The arrays a task works in.
struct Work<'a, T> {
    tile: Tile<'a, T>,
    /// `[keys, Dk]`
    dk: &'a mut [T],
    /// `[keys, Dv]`
    dv: &'a mut [T],
    /// `[BLOCK, Dq]`
    dq: &'a mut [T],
    /// The same, turned from columns.
    turned: &'a mut [T],
    dw: &'a mut [T],
    /// The gradients of an own score's parameters, and a key's part of them.
    own: &'a mut [T],
}

impl<'a, T: Real> Work<'a, T> {
    fn lengths(p: &Problem<T>, keys: usize) -> [usize; 13] {
        let s = &p.s;
        let by_unit = p.products.is_some();
        let turned = if by_unit { BLOCK * s.dq } else { 0 };
        let keys = if by_unit { keys + ROWS } else { keys };
        let own = [keys * s.dk, keys * s.dv, BLOCK * s.dq, turned, s.dk, 2 * p.own_parameters()];
        let tile = Tile::lengths(p);
        std::array::from_fn(|at| if at < 7 { tile[at] } else { own[at - 7] })
    }

    fn new(arrays: [&'a mut [T]; 13]) -> Self {
        let [t0, t1, t2, t3, t4, t5, t6, dk, dv, dq, turned, dw, own] = arrays;
        let tile = Tile::new([t0, t1, t2, t3, t4, t5, t6]);
        Self { tile, dk, dv, dq, turned, dw, own }
    }
}

/// What the tasks of all phases add up, until it is summed in order.
struct Partial<T> {
    q: RowParts<T>,
    k: RowParts<T>,
    v: RowParts<T>,
    w: SlotParts<T>,
    own: SlotParts<T>,
    /// Of the bias per key, and of a full one whose queries share its numbers.
    key_bias: SlotParts<T>,
    relative: SlotParts<T>,
}

/// [`Partial`], shared by tasks.
struct Sums<'a, T: Real> {
    plan: Plan,
    q: RowSums<'a, T>,
    k: RowSums<'a, T>,
    v: RowSums<'a, T>,
    w: SlotSums<'a, T>,
    own: SlotSums<'a, T>,
    key_bias: SlotSums<'a, T>,
    relative: SlotSums<'a, T>,
    /// Where the heads that share its numbers are one task's.
    full: Option<&'a FullBias<'a, T>>,
}

impl<T: Real> Partial<T> {
    /// Chunks that are joined have no parts of their own.
    fn of(p: &Problem<T>, plan: &Plan, g: &Gradients<T>, joining: Joining) -> Self {
        let heads = p.s.b * p.s.hq;
        let query_parts = if joining == Joining::Nothing { plan.query_parts } else { 1 };
        let key_parts = if joining == Joining::Heads { 1 } else { plan.key_parts };
        let slots = |wanted: bool, slots: usize, width: usize| {
            SlotParts::of(heads, slots, if wanted { width } else { 0 })
        };
        let table = p.spec.bias.relative.map_or(0, |r| 2 * r.max_distance + 1);
        Self {
            q: RowParts::of(&g.q, key_parts),
            k: RowParts::of(&g.k, query_parts),
            v: RowParts::of(&g.v, query_parts),
            w: slots(g.w.is_some(), plan.slots(), p.s.dk),
            own: slots(g.own.is_some(), plan.slots(), p.own_parameters()),
            key_bias: slots(g.key_bias.is_some() || g.bias.is_some(), plan.query_chunks(), p.s.nk),
            relative: slots(g.relative.is_some(), plan.slots(), table),
        }
    }

    fn share<'a>(
        &'a mut self,
        p: &Problem<T>,
        plan: &Plan,
        g: &'a Gradients<T>,
        full: Option<&'a FullBias<'a, T>>,
    ) -> Sums<'a, T> {
        let scale = match p.spec.score {
            Score::Dot { scale } => scale,
            _ => T::ONE,
        };
        Sums {
            plan: *plan,
            q: self.q.share(p, &g.q, scale),
            k: self.k.share(p, &g.k, scale),
            v: self.v.share(p, &g.v, T::ONE),
            w: self.w.share(),
            own: self.own.share(),
            key_bias: self.key_bias.share(),
            relative: self.relative.share(),
            full,
        }
    }

    fn add_up(&mut self, p: &Problem<T>, plan: &Plan, g: Gradients<T>) {
        self.q.add_up(p, &g.q, &|b, part, i| {
            let block = p.block_of(b, 0, i / BLOCK);
            plan.key_parts_of(&p.key_range(b, block.i0, block.i0 + block.n)).contains(&part)
        });
        let written = |b: usize, part: usize, j: usize| keys_of_part(p, plan, b, part).contains(&j);
        self.k.add_up(p, &g.k, &written);
        self.v.add_up(p, &g.v, &written);
        let Self { w, own, relative, .. } = self;
        for (to, parts) in [(g.w, w), (g.relative, relative)] {
            if let Some(to) = to {
                parts.add_heads(to, p.s.hq);
            }
        }
        if let Some(to) = g.own {
            own.add_own(p, to);
        }
        let Bias { key, full, .. } = &p.spec.bias;
        for (to, bias) in [(g.key_bias, key), (g.bias, full)] {
            if let (Some(to), Some(bias)) = (to, bias) {
                self.key_bias.add_keys(to, bias, &p.s);
            }
        }
    }
}

impl<T: Real> Context<'_, T> {
    /// Gets a block's queries, gradients and row statistics ready.
    fn enter(&self, block: &Block, t: &mut Tile<T>) {
        let p = self.p;
        p.pack_queries(block, t.queries);
        if self.choice.is_none() {
            self.pack_grads(block, t.grads);
        }
        row_statistics(p, self.rule, block, self.lse, self.threshold, t.stat);
        t.delta.fill(T::ZERO);
        let from = p.row(block.b, block.h, block.i0);
        t.delta[..block.n].copy_from_slice(&self.delta[from..from + block.n]);
    }

    /// The gradients of a block's output as [`Self::grad_of_weights`] reads them.
    fn pack_grads(&self, block: &Block, to: &mut [T]) {
        match &self.p.products {
            Some(products) => products.pack_grads(block, to),
            None => self.p.pack_rows(&self.grad_out, block, to),
        }
    }

    /// The weights, before dropout, and the gradients of the scores, each `[keys, BLOCK]`; false
    /// where the block sees none of the keys.
    fn grad_tile(&self, block: &Block, keys: &Range<usize>, t: &mut Tile<T>) -> bool {
        let p = self.p;
        if !p.score_tile(block, keys, t.queries, t.weights) {
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

    /// The gradients of a tile's scores where a key was chosen: g · ([j = z] − p), and the
    /// log-sum-exp's times p.
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
                grad[(chosen as usize - keys.start) * BLOCK + i] += choice.of_chosen(from + i);
            }
        }
    }

    /// The gradients of a tile's weights, dropout included, `[keys, BLOCK]`: v · grads, and what
    /// arrives at the weights themselves. The tile's scores are still there.
    fn grad_of_weights(&self, block: &Block, keys: &Range<usize>, t: &mut Tile<T>) {
        let p = self.p;
        let rows = keys.len();
        assert!(t.grads.len() >= p.s.dv * BLOCK && t.grad.len() >= rows * BLOCK);
        if let Some(products) = &p.products {
            products.grad_of_weights(block, keys, t.grads, t.grad);
        } else {
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

    /// Rows: what centers the gradients, ds = p · (dp − Δ). For softmax Δ = Σ p·dp = dO · O, unless
    /// gradients arrive at the weights too; then, as for the others, a pass of its own adds it up.
    /// What arrives at the log-sum-exp is taken off it.
    fn row_deltas(&self, out: Option<View<T>>) -> Large<T> {
        let p = self.p;
        let s = &p.s;
        let mut delta = Large::zeros(s.rows());
        let shared = Shared::new(&mut delta);
        if let Some(choice) = &self.choice {
            tasks::runs(s.rows(), 256, &|row| {
                // SAFETY: each task has rows of its own.
                unsafe { shared.set(row, choice.of_all(row)) };
            });
        } else if let (Rule::Softmax, None, Some(out)) = (self.rule, self.grad_weights, out) {
            tasks::runs(s.rows(), rows_at_once(s.dv), &|row| {
                let (b, h, i) = s.place(row);
                let (x, y) = (self.grad_out.row(b, h, i), out.row(b, h, i));
                // SAFETY: both rows have dv numbers, and each task has rows of its own.
                unsafe {
                    let mean = (p.kernels.dot)(s.dv, x.as_ptr(), y.as_ptr());
                    shared.set(row, mean - self.lse_grad(row));
                }
            });
        } else if self.rule.centers() {
            self.means(&shared);
        }
        delta
    }

    /// What arrives at a row's log-sum-exp; nothing at that of an empty row.
    fn lse_grad(&self, row: usize) -> T {
        let seen = |lse: &&[T]| lse[row] != T::NEG_INFINITY;
        let grad = self.grad_lse.filter(|_| self.lse.as_ref().is_some_and(seen));
        grad.map_or(T::ZERO, |grad| grad[row])
    }

    /// The means Σ slope·dp / Σ slope of all rows.
    fn means(&self, to: &Shared<T>) {
        let p = self.p;
        let (rows, blocks) = (p.s.rows(), plan::blocks(&p.s));
        let splits = plan::key_splits(p.spec, &p.s, blocks);
        let chunk = p.s.nk.div_ceil(splits).next_multiple_of(8);
        // Both sums of every row, for each range of keys.
        let mut sums = Large::<T>::new(2 * splits * rows);
        let shared = Shared::new(&mut sums);
        tasks::each(splits * blocks, &|task| {
            let (split, block) = (task / blocks, p.block(task % blocks));
            let keys = (split * chunk).min(p.s.nk)..((split + 1) * chunk).min(p.s.nk);
            self.block_sums(&block, keys, &shared.narrow(2 * split * rows, 2 * rows));
        });
        tasks::runs(rows, 256, &|row| {
            let sum = |at: usize| (0..splits).map(|x| sums[(2 * x + at) * rows + row]).sum::<T>();
            let (weighted, total) = (sum(0), sum(1));
            let mean = if total == T::ZERO { T::ZERO } else { weighted / total };
            // SAFETY: each task has rows of its own.
            unsafe { to.set(row, mean - self.lse_grad(row)) };
        });
    }

    /// Σ slope·dp and Σ slope over some keys, of a block's rows: `[2, rows]`.
    fn block_sums(&self, block: &Block, keys: Range<usize>, to: &Shared<T>) {
        let p = self.p;
        let keys = p.seen_keys(block, &keys);
        let tile = Tile::lengths(p);
        let lengths: [usize; 8] =
            std::array::from_fn(|at| if at < 7 { tile[at] } else { 2 * BLOCK });
        scratch::with(lengths, |[t0, t1, t2, t3, t4, t5, t6, sums]| {
            let mut t = Tile::new([t0, t1, t2, t3, t4, t5, t6]);
            p.pack_queries(block, t.queries);
            self.pack_grads(block, t.grads);
            row_statistics(p, self.rule, block, self.lse, self.threshold, t.stat);
            sums.fill(T::ZERO);
            for keys in tiles(keys) {
                if !p.score_tile(block, &keys, t.queries, t.weights) {
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
            let row = p.row(block.b, block.h, block.i0);
            for (at, sums) in sums.chunks_exact(BLOCK).enumerate() {
                // SAFETY: the rows of a block are its task's alone.
                let to = unsafe { to.part(at * p.s.rows() + row, block.n) };
                to.copy_from_slice(&sums[..block.n]);
            }
        });
    }

    /// The gradients of q, k and v, and of what scores and biases learn.
    fn run(&self, g: Gradients<T>, full: Option<&FullBias<T>>) -> bool {
        let p = self.p;
        let plan = Plan::of(&p.s);
        let threads = tasks::threads();
        let sharing = full
            .map(|full| Sharing::of_key_heads(&full.bias, &p.s))
            .filter(|sharing| plan.joins(sharing.rows(), threads));
        if let Some(full) = full.filter(|_| sharing.is_none()) {
            self.full_bias(full);
        }
        let joining = if sharing.is_some() { Joining::Heads } else { plan.joining(threads) };
        let mut partial = Partial::of(p, &plan, &g, joining);
        let shared = partial.share(p, &plan, &g, full.filter(|_| sharing.is_some()));
        let head = |head: usize| {
            for part in 0..plan.key_parts {
                self.group(head * plan.key_parts + part, &shared);
            }
        };
        match (joining, sharing) {
            (Joining::Heads, Some(sharing)) => tasks::each(sharing.rows(), &|row| {
                sharing.heads(row).for_each(|(b, hk)| head(b * p.s.hk + hk));
            }),
            (Joining::Heads, None) => tasks::each(plan.heads(), &head),
            (Joining::Keys, _) => tasks::each(plan.groups(), &|group| self.group(group, &shared)),
            (Joining::Nothing, _) => {
                for phase in 0..plan.phases {
                    let earlier = if phase == 0 { 0..0 } else { 0..p.s.nk };
                    tasks::each(plan.tasks(), &|task| {
                        let chunk = seen_chunk(p, &plan, plan.chunk(phase, task));
                        self.task(&chunk, &shared, std::slice::from_ref(&earlier));
                    });
                }
            }
        }
        let undefined = [&shared.q, &shared.k, &shared.v].iter().any(|sums| sums.is_undefined());
        partial.add_up(p, &plan, g);
        !undefined
    }

    /// All chunks of queries against one chunk of keys, whose gradients are added up as they come.
    fn group(&self, group: usize, to: &Sums<T>) {
        let (p, plan) = (self.p, &to.plan);
        let mut seen = Vec::with_capacity(plan.query_parts);
        let mut whole = None;
        for task in plan.tasks_of(group) {
            let chunk = plan.chunk(0, task);
            let (b, part) = (chunk.b, chunk.query_part);
            self.task(&seen_chunk(p, plan, chunk.clone()), to, &seen);
            seen.push(keys_of_part(p, plan, b, part));
            whole = Some(chunk);
        }
        let Some(Chunk { b, hk, keys, .. }) = whole else { return };
        for (keys, unseen) in stretches(keys, &seen) {
            if unseen {
                // SAFETY: a chunk of keys is one task's alone, and the chunks are joined.
                unsafe {
                    to.k.clear(b, hk, keys.clone());
                    to.v.clear(b, hk, keys);
                }
            }
        }
    }

    /// One chunk of queries against one chunk of keys, some of which had `earlier` chunks.
    fn task(&self, chunk: &Chunk, to: &Sums<T>, earlier: &[Range<usize>]) {
        let p = self.p;
        let s = &p.s;
        let Chunk { b, hk, .. } = *chunk;
        scratch::with(Work::lengths(p, chunk.keys.len()), |arrays| {
            let mut work = Work::new(arrays);
            work.dk.fill(T::ZERO);
            work.dv.fill(T::ZERO);
            for h in hk * s.group()..(hk + 1) * s.group() {
                work.dw.fill(T::ZERO);
                work.own.fill(T::ZERO);
                for block in chunk.blocks.clone() {
                    self.block(&p.block_of(b, h, block), chunk, &mut work, to);
                }
                let head = b * s.hq + h;
                // SAFETY: each task of a phase has a slot of its own in every head.
                unsafe {
                    add(to.w.slot(head, chunk.slot), work.dw);
                    add(to.own.slot(head, chunk.slot), work.own);
                }
            }
            for (keys, first) in stretches(chunk.keys.clone(), earlier) {
                let at = [b, hk, keys.start];
                let from = keys.start - chunk.keys.start;
                let rows = |d: usize| from * d..(from + keys.len()) * d;
                // SAFETY: in a phase, a chunk of keys and a part are one task's alone.
                unsafe {
                    to.k.add(chunk.query_part, at, &work.dk[rows(s.dk)], first);
                    to.v.add(chunk.query_part, at, &work.dv[rows(s.dv)], first);
                }
            }
        });
    }

    /// One block of queries against the keys of a chunk.
    fn block(&self, block: &Block, chunk: &Chunk, work: &mut Work<T>, to: &Sums<T>) {
        let p = self.p;
        let Block { b, h, i0, n, .. } = *block;
        let range = p.key_range(b, i0, i0 + n);
        let parts = to.plan.key_parts_of(&range);
        if !parts.contains(&chunk.key_part) {
            return;
        }
        let keys = p.seen_keys(block, &chunk.keys);
        work.dq.fill(T::ZERO);
        if !keys.is_empty() {
            self.enter(block, &mut work.tile);
        }
        for keys in tiles(keys) {
            if !self.grad_tile(block, &keys, &mut work.tile) {
                continue;
            }
            self.bias_grads(block, &keys, chunk, work.tile.grad, to);
            if let Some(full) = to.full {
                // SAFETY: the heads that share these numbers are this task's alone.
                unsafe { self.add_full_bias(full, block, &keys, work.tile.grad) };
            }
            let from = keys.start - chunk.keys.start;
            self.score_grads(block, &keys, from, work);
            if to.v.is_wanted() {
                drop_again(p, block, &keys, &mut work.tile);
                let (dv, t) = (&mut work.dv[from * p.s.dv..], &work.tile);
                match &p.products {
                    Some(products) => products.add_value_grads(&keys, t.weights, t.grads, dv),
                    None => add_keys(p, &self.grad_out, block, &keys, t.weights, dv),
                }
            }
        }
        let dq = if p.products.is_some() { self.rows_of_queries(n, work) } else { &work.dq[..] };
        let first = chunk.first && (to.q.is_apart() || chunk.key_part == parts.start);
        // SAFETY: in a phase, a chunk of queries and a part are one task's alone.
        unsafe { to.q.add(chunk.key_part, [b, h, i0], &dq[..n * p.s.dq], first) };
    }

    /// The gradients of a block's queries, added up as columns, as rows.
    fn rows_of_queries<'w>(&self, n: usize, work: &'w mut Work<T>) -> &'w [T] {
        let d = self.p.s.dq;
        let ones = [T::ONE; BLOCK];
        let (from, to) = (&*work.dq, &mut *work.turned);
        assert!(from.len() >= d * BLOCK && to.len() >= n * d);
        // SAFETY: d rows of BLOCK, and n rows of d, as asserted.
        unsafe { (self.p.kernels.unpack)(from.as_ptr(), d, n, ones.as_ptr(), to.as_mut_ptr(), d) };
        to
    }

    /// The gradient of a full bias in a pass of its own, cut so that each number is one task's, which
    /// adds up the heads and batch items that share it in order.
    fn full_bias(&self, full: &FullBias<T>) {
        let p = self.p;
        let cut = BiasCut::of(&full.bias, &p.s);
        tasks::each(cut.tasks(), &|task| {
            let (row, block, chunk) = cut.task(task);
            scratch::with(Tile::<T>::lengths(p), |arrays| {
                let mut t = Tile::new(arrays);
                for (b, h) in cut.sharing.heads(row) {
                    let block = p.block_of(b, h, block);
                    let keys = p.seen_keys(&block, &chunk);
                    self.enter(&block, &mut t);
                    for keys in tiles(keys) {
                        if self.grad_tile(&block, &keys, &mut t) {
                            // SAFETY: these numbers are this task's alone.
                            unsafe { self.add_full_bias(full, &block, &keys, t.grad) };
                        }
                    }
                }
            });
        });
    }

    /// Adds a tile's part of a full bias's gradient.
    ///
    /// # Safety
    /// The numbers of these queries and keys are the calling task's alone.
    unsafe fn add_full_bias(
        &self,
        full: &FullBias<T>,
        block: &Block,
        keys: &Range<usize>,
        grad: &[T],
    ) {
        let FullBias { bias, to } = full;
        let Block { b, h, i0, n, .. } = *block;
        let row = bias.strides()[2];
        if !bias.is_by_pair() {
            for (j, grads) in keys.clone().zip(grad.chunks_exact(BLOCK)) {
                let from = bias.index(b, h, i0, j);
                for (i, &x) in grads[..n].iter().enumerate() {
                    // SAFETY: the caller's.
                    unsafe { to.part(from + i * row, 1)[0] += x };
                }
            }
            return;
        }
        let kernels = self.p.kernels;
        assert!(grad.len() >= keys.len() * BLOCK);
        scratch::with([n * keys.len()], |[rows]| {
            let (ones, wide) = ([T::ONE; BLOCK], keys.len());
            let (from, at) = (grad.as_ptr(), rows.as_mut_ptr());
            // SAFETY: rows of BLOCK, as asserted, become n rows as long as the keys are many.
            unsafe { (kernels.unpack)(from, wide, n, ones.as_ptr(), at, wide) };
            for (i, row) in rows.chunks_exact(wide).enumerate() {
                // SAFETY: the caller's.
                let to = unsafe { to.part(bias.index(b, h, i0 + i, keys.start), wide) };
                // SAFETY: both have as many numbers as there are keys.
                unsafe { (kernels.axpy)(wide, T::ONE, row.as_ptr(), to.as_mut_ptr()) };
            }
        });
    }

    /// Adds a tile's part of the per-key and relative biases' gradients.
    fn bias_grads(
        &self,
        block: &Block,
        keys: &Range<usize>,
        chunk: &Chunk,
        grad: &[T],
        to: &Sums<T>,
    ) {
        let p = self.p;
        let head = block.b * p.s.hq + block.h;
        // SAFETY: in a phase, these keys of a chunk of queries, and each slot, are one task's alone.
        let (key_bias, relative) = unsafe {
            (
                to.key_bias.slot_part(head, chunk.query_chunk, keys),
                to.relative.slot(head, chunk.slot),
            )
        };
        let rows = || grad.chunks_exact(BLOCK).map(|row| &row[..block.n]);
        for (to, row) in key_bias.iter_mut().zip(rows()) {
            *to += row.iter().copied().sum();
        }
        let Some(table) = p.spec.bias.relative.filter(|_| !relative.is_empty()) else { return };
        let max_distance = table.max_distance as isize;
        for (j, row) in keys.clone().zip(rows()) {
            let first = j as isize - (block.i0 as isize + p.offset);
            for (i, &x) in row.iter().enumerate() {
                let distance = (first - i as isize).clamp(-max_distance, max_distance);
                relative[(distance + max_distance) as usize] += x;
            }
        }
    }

    /// Adds a tile's part of the gradients of q, k and the score's own parameters; the tile's keys
    /// are those from `from` on of the task's.
    fn score_grads(&self, block: &Block, keys: &Range<usize>, from: usize, work: &mut Work<T>) {
        let p = self.p;
        let s = &p.s;
        let Block { b, h, i0, n, .. } = *block;
        let Work { tile: t, dq, dk, dw, own: own_grads, .. } = work;
        let dk = &mut dk[from * s.dk..];
        if let Some(products) = &p.products {
            products.add_query_grads(block, keys, t.grad, dq);
            products.add_key_grads(keys, t.grad, t.queries, dk);
            return;
        }
        let dk = &mut dk[..keys.len() * s.dk];
        match p.spec.score {
            Score::Dot { .. } => {
                add_keys(p, &p.q, block, keys, t.grad, dk);
                add_queries(p, block, keys, t.grad, dq);
            }
            Score::Additive { w, .. } => {
                let ((q, k), rows) = (p.scored(), keys.len());
                // SAFETY: n rows of q and its gradient, `rows` of k and its gradient.
                unsafe {
                    (p.kernels.additive_grads)(AdditiveGrads {
                        form: p.form,
                        d: s.dk,
                        n,
                        rows,
                        q: p.rows(q, b, h, i0, n),
                        q_row: q.strides[2],
                        k: p.rows(k, b, p.key_head(h), keys.start, rows),
                        k_row: k.strides[2],
                        w: w_of_head(w, h, s.dk).as_ptr(),
                        grad: t.grad.as_ptr(),
                        grad_q: dq.as_mut_ptr(),
                        grad_k: dk.as_mut_ptr(),
                        grad_w: dw.as_mut_ptr(),
                    });
                }
            }
            Score::Own { score, parameters } => {
                let own = (score, w_of_head(parameters, h, score.parameters()));
                self.own_grads(own, block, keys, t.grad, [dq, dk, own_grads]);
            }
            Score::Expression { .. } => {
                if let Some(programs) = p.programs {
                    let to = TileGrads { q: dq, k: dk, own: own_grads };
                    programs.tile_grads(p, (block, keys), t.queries, t.grad, to);
                }
            }
        }
    }

    /// As [`Self::score_grads`], by a score of one's own, pair by pair: of q, k and the parameters.
    fn own_grads(
        &self,
        (own, learned): (&dyn OwnScore<T>, &[T]),
        block: &Block,
        keys: &Range<usize>,
        grad: &[T],
        [dq, dk, parameters]: [&mut [T]; 3],
    ) {
        let p = self.p;
        let s = &p.s;
        let Block { b, h, i0, n, .. } = *block;
        // A key's part first: one long sum of small numbers would lose digits.
        let (parameters, part) = parameters.split_at_mut(own.parameters());
        for (r, j) in keys.clone().enumerate() {
            part.fill(T::ZERO);
            let k = p.k.row(b, p.key_head(h), j);
            for (i, &grad) in grad[r * BLOCK..][..n].iter().enumerate() {
                if grad != T::ZERO {
                    let (dq, dk) = (&mut dq[i * s.dq..][..s.dq], &mut dk[r * s.dk..][..s.dk]);
                    let to = OwnGrads { q: dq, k: dk, parameters: part };
                    own.backward(learned, p.q.row(b, h, i0 + i), k, grad, to);
                }
            }
            add(parameters, part);
        }
    }
}

/// A chunk without the keys that none of its queries sees.
fn seen_chunk<T: Real>(p: &Problem<T>, plan: &Plan, chunk: Chunk) -> Chunk {
    let seen = keys_of_part(p, plan, chunk.b, chunk.query_part);
    let start = chunk.keys.start.max(seen.start);
    Chunk { keys: start..chunk.keys.end.min(seen.end).max(start), ..chunk }
}

/// The stretches of a range of keys of which all, or none, are in one of the `earlier` ranges, and
/// whether none is.
fn stretches(
    keys: Range<usize>,
    earlier: &[Range<usize>],
) -> impl Iterator<Item = (Range<usize>, bool)> {
    let mut from = keys.start;
    std::iter::from_fn(move || {
        let first = !earlier.iter().any(|range| range.contains(&from));
        let ends = earlier.iter().flat_map(|range| [range.start, range.end]);
        let end = ends.filter(|&end| end > from).fold(keys.end, usize::min);
        let stretch = from..end;
        from = end;
        (!stretch.is_empty()).then_some((stretch, first))
    })
}

/// The keys whose gradients a part of them has.
fn keys_of_part<T: Real>(p: &Problem<T>, plan: &Plan, b: usize, part: usize) -> Range<usize> {
    match plan.queries_of_part(part) {
        Some(queries) => p.key_range(b, queries.start, queries.end),
        None => 0..p.s.nk,
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

/// Rows of queries `[BLOCK, Dq]` += the transpose of a tile `[keys, BLOCK]` · the keys.
fn add_queries<T: Real>(
    p: &Problem<T>,
    block: &Block,
    keys: &Range<usize>,
    tile: &[T],
    to: &mut [T],
) {
    let (s, rows) = (&p.s, keys.len());
    assert!(tile.len() >= rows * BLOCK && to.len() >= block.n * s.dq);
    // SAFETY: `rows` rows of k, and the arrays as asserted.
    unsafe {
        (p.kernels.gemm)(Gemm {
            m: block.n,
            n: s.dk,
            k: rows,
            a: tile.as_ptr(),
            a_row: 1,
            a_column: BLOCK,
            b: p.rows(&p.k, block.b, p.key_head(block.h), keys.start, rows),
            b_row: p.k.strides[2],
            c: to.as_mut_ptr(),
            c_row: s.dq,
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

/// Adds number by number; nothing where nobody asked for it.
fn add<T: Real>(to: &mut [T], from: &[T]) {
    to.iter_mut().zip(from).for_each(|(to, &x)| *to += x);
}

//! One validated attention problem, and what every path asks of it: which keys a block of queries
//! sees, and the tile of their scores.

use super::additive::{AdditiveScores, Form};
use super::expression::Programs;
use super::gemm::Gemm;
use super::prepared::PreparedRows;
use super::products::TileProducts;
use super::{BLOCK, TILE, plan};
use crate::Activation;
use crate::cpu::kernels::Kernels;
use crate::cpu::scratch;
use crate::cpu::shared::Shared;
use crate::cpu::tasks;
use crate::spec::{Broadcast, OwnScore, Score, Shape, Spec, w_of_head};
use crate::{Real, View};
use std::ops::Range;

/// Keys a query may see by position: from `left` before it to `right` after it.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Band {
    left: isize,
    right: isize,
}

/// Further than any two positions are apart.
const FAR: isize = isize::MAX / 8;

#[derive(Clone, Copy)]
pub(in crate::cpu) struct Problem<'a, T: Real> {
    pub(in crate::cpu) spec: &'a Spec<'a, T>,
    pub(in crate::cpu) s: Shape,
    pub(in crate::cpu) offset: isize,
    pub(in crate::cpu) q: View<'a, T>,
    pub(in crate::cpu) k: View<'a, T>,
    pub(in crate::cpu) v: View<'a, T>,
    pub(in crate::cpu) kernels: &'static Kernels<T>,
    /// The products of tiles, where a unit has them from the numbers as they are stored.
    pub(in crate::cpu) products: Option<&'a dyn TileProducts<T>>,
    /// How an additive score is computed.
    pub(in crate::cpu) form: Form,
    /// What it keeps of q and k, by tiles, unless it reads them as they are.
    pub(in crate::cpu) prepared: Option<PreparedRows<'a, T>>,
    /// How an expression is computed.
    pub(in crate::cpu) programs: Option<&'a Programs<T>>,
    pub(in crate::cpu) band: Option<Band>,
}

/// Up to [`BLOCK`] queries of one head.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Block {
    pub(in crate::cpu) b: usize,
    pub(in crate::cpu) h: usize,
    pub(in crate::cpu) i0: usize,
    /// Queries in it.
    pub(in crate::cpu) n: usize,
    /// The same, rounded up to whole registers.
    pub(in crate::cpu) width: usize,
}

/// What a block sees of a tile of keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visibility {
    None,
    Partial,
    Full,
}

impl<'a, T: Real> Problem<'a, T> {
    pub(in crate::cpu) fn new(
        spec: &'a Spec<'a, T>,
        s: Shape,
        [q, k, v]: [View<'a, T>; 3],
        kernels: &'static Kernels<T>,
    ) -> Self {
        let form = match spec.score {
            // Only tanh is computed in ways that depend on how large its inputs are.
            Score::Additive { activation: Activation::Tanh, .. } => {
                Form::of(Activation::Tanh, max_abs(kernels, &q).max(max_abs(kernels, &k)))
            }
            Score::Additive { activation, .. } => Form::of(activation, 0.0),
            _ => Form::Leaky(1.0),
        };
        let mask = &spec.mask;
        let far = |n: usize| n.min(FAR as usize) as isize;
        let window = mask.window.map(|w| Band { left: far(w.left), right: far(w.right) });
        let band = match (window, mask.causal) {
            (Some(band), true) => Some(Band { right: 0, ..band }),
            (None, true) => Some(Band { left: FAR, right: 0 }),
            (band, false) => band,
        };
        Self {
            spec,
            s,
            offset: spec.position(&s),
            q,
            k,
            v,
            kernels,
            products: None,
            form,
            prepared: None,
            programs: None,
            band,
        }
    }

    /// The same, its products by a unit of the machine.
    pub(in crate::cpu) fn with(self, products: Option<&'a dyn TileProducts<T>>) -> Self {
        Self { products, ..self }
    }

    /// Blocks of queries per head.
    pub(in crate::cpu) fn blocks(&self) -> usize {
        self.s.nq.div_ceil(BLOCK)
    }

    /// Block `n` of all blocks of all heads.
    pub(in crate::cpu) fn block(&self, n: usize) -> Block {
        let per_head = self.blocks();
        let (head, at) = (n / per_head, n % per_head);
        self.block_of(head / self.s.hq, head % self.s.hq, at)
    }

    /// Block `at` of a head.
    pub(in crate::cpu) fn block_of(&self, b: usize, h: usize, at: usize) -> Block {
        self.block_at(b, h, at * BLOCK, BLOCK)
    }

    /// Block `n` of all blocks of [`plan::block_queries`] of all heads.
    pub(in crate::cpu) fn row_block(&self, n: usize) -> Block {
        let size = plan::block_queries(&self.s);
        let per_head = self.s.nq.div_ceil(size);
        let (head, at) = (n / per_head, n % per_head);
        self.block_at(head / self.s.hq, head % self.s.hq, at * size, size)
    }

    fn block_at(&self, b: usize, h: usize, i0: usize, size: usize) -> Block {
        let n = size.min(self.s.nq - i0);
        Block { b, h, i0, n, width: n.next_multiple_of(self.kernels.lanes) }
    }

    /// Where row (b, h, i) lies in an array of rows.
    pub(in crate::cpu) fn row(&self, b: usize, h: usize, i: usize) -> usize {
        (b * self.s.hq + h) * self.s.nq + i
    }

    /// The key head of a query head.
    pub(in crate::cpu) fn key_head(&self, h: usize) -> usize {
        h / self.s.group()
    }

    /// The keys that any of queries i0..i1 may see by position and length.
    pub(in crate::cpu) fn key_range(&self, b: usize, i0: usize, i1: usize) -> Range<usize> {
        let end = self.spec.mask.key_lengths.map_or(self.s.nk, |lengths| lengths[b]);
        let (mut low, mut high) = (0, end as isize);
        if let Some(Band { left, right }) = self.band
            && i0 < i1
        {
            low = (i0 as isize + self.offset - left).clamp(0, end as isize);
            high = ((i1 - 1) as isize + self.offset + right + 1).clamp(low, end as isize);
        }
        low as usize..high as usize
    }

    /// Of some keys those that any query of a block may see by position and length.
    pub(in crate::cpu) fn seen_keys(&self, block: &Block, keys: &Range<usize>) -> Range<usize> {
        let range = self.key_range(block.b, block.i0, block.i0 + block.n);
        let low = range.start.max(keys.start);
        low..range.end.min(keys.end).max(low)
    }

    /// Of the keys j0..j1, all within `key_range`, what a block sees.
    fn visibility(&self, block: &Block, keys: &Range<usize>) -> Visibility {
        let Block { b, h, i0, n, .. } = *block;
        let (j0, j1) = (keys.start as isize, keys.end as isize);
        let mut visibility = Visibility::Full;
        if let Some(Band { left, right }) = self.band {
            let (first, last) = (i0 as isize + self.offset, (i0 + n) as isize + self.offset - 1);
            if j1 - 1 > first + right || j0 < last - left {
                visibility = Visibility::Partial;
            }
        }
        if let Some(segments) = self.spec.mask.segments {
            let q = &segments.q[b * self.s.nq + i0..][..n];
            let k = &segments.k[b * self.s.nk + keys.start..][..keys.len()];
            let (q_low, q_high) = bounds(q);
            let (k_low, k_high) = bounds(k);
            if q_high < k_low || k_high < q_low {
                return Visibility::None;
            }
            if !(q_low == q_high && k_low == k_high && q_low == k_low) {
                visibility = Visibility::Partial;
            }
        }
        if let Some(dense) = &self.spec.mask.dense {
            let [_, _, sq, sk] = dense.strides();
            let (mut any, mut all) = (false, true);
            for i in i0..if sq == 0 { i0 + 1 } else { i0 + n } {
                let from = dense.index(b, h, i, keys.start);
                let seen = &dense.data[from..from + if sk == 0 { 1 } else { keys.len() }];
                any |= seen.contains(&true);
                all &= !seen.contains(&false);
            }
            if !any {
                return Visibility::None;
            }
            if !all {
                visibility = Visibility::Partial;
            }
        }
        visibility
    }

    /// −∞ where the block may not look.
    fn apply_mask(&self, block: &Block, keys: &Range<usize>, tile: &mut [T]) {
        let Block { b, h, i0, n, .. } = *block;
        let mask = &self.spec.mask;
        for (j, row) in keys.clone().zip(tile.chunks_exact_mut(BLOCK)) {
            if let Some(Band { left, right }) = self.band {
                // Queries at positions j − right ..= j + left see this key.
                let nearest = j as isize - self.offset - i0 as isize;
                let low = (nearest - right).clamp(0, n as isize) as usize;
                let high = (nearest + left + 1).clamp(low as isize, n as isize) as usize;
                row[..low].fill(T::NEG_INFINITY);
                row[high..n].fill(T::NEG_INFINITY);
            }
            if let Some(segments) = mask.segments {
                let own = segments.k[b * self.s.nk + j];
                let queries = &segments.q[b * self.s.nq + i0..][..n];
                for (score, &segment) in row.iter_mut().zip(queries) {
                    if segment != own {
                        *score = T::NEG_INFINITY;
                    }
                }
            }
            if let Some(dense) = &mask.dense {
                let step = dense.strides()[2];
                let from = dense.index(b, h, i0, j);
                for (i, score) in row[..n].iter_mut().enumerate() {
                    if !dense.data[from + i * step] {
                        *score = T::NEG_INFINITY;
                    }
                }
            }
        }
    }

    fn add_bias(&self, block: &Block, keys: &Range<usize>, tile: &mut [T]) {
        let Block { b, h, i0, n, .. } = *block;
        let bias = &self.spec.bias;
        let by_pair = bias.full.filter(Broadcast::is_by_pair);
        if let Some(full) = &by_pair {
            self.add_bias_of_pairs(full, block, keys, tile);
        }
        for (j, row) in keys.clone().zip(tile.chunks_exact_mut(BLOCK)) {
            let row = &mut row[..n];
            if let Some(key) = &bias.key {
                let x = key.at(b, h, 0, j);
                row.iter_mut().for_each(|score| *score += x);
            }
            if let Some(full) = bias.full.as_ref().filter(|_| by_pair.is_none()) {
                let step = full.strides()[2];
                let from = full.index(b, h, i0, j);
                for (i, score) in row.iter_mut().enumerate() {
                    *score += full.data[from + i * step];
                }
            }
            let first = j as isize - (i0 as isize + self.offset);
            if let Some(slopes) = bias.alibi {
                for (i, score) in row.iter_mut().enumerate() {
                    let distance = (first - i as isize).unsigned_abs();
                    *score -= slopes[h] * T::of(distance as f64);
                }
            }
            if let Some(relative) = &bias.relative {
                for (i, score) in row.iter_mut().enumerate() {
                    *score += relative.table[relative.index(h, first - i as isize)];
                }
            }
        }
    }

    /// Adds the numbers of a bias that has one for every pair: rows of keys, which become columns.
    fn add_bias_of_pairs(
        &self,
        bias: &Broadcast<T>,
        block: &Block,
        keys: &Range<usize>,
        tile: &mut [T],
    ) {
        let Block { b, h, i0, n, width } = *block;
        let row = bias.strides()[2];
        let from = &bias.data[bias.index(b, h, i0, keys.start)..];
        let tile = &mut tile[..keys.len() * BLOCK];
        assert!(from.len() >= (n - 1) * row + keys.len());
        scratch::with([tile.len()], |[columns]| {
            // SAFETY: n rows of so many numbers, as asserted; `columns` has as many rows of BLOCK, and
            // is as long as the tile.
            unsafe {
                let to = columns.as_mut_ptr();
                (self.kernels.pack)(from.as_ptr(), row, n, keys.len(), T::ONE, to, width);
                (self.kernels.axpy)(tile.len(), T::ONE, to, tile.as_mut_ptr());
            }
        });
    }

    /// The queries of a block as columns `[D, BLOCK]`, ready for [`Self::score_tile`].
    pub(in crate::cpu) fn pack_queries(&self, block: &Block, to: &mut [T]) {
        if let Some(products) = &self.products {
            return products.pack_queries(block, to);
        }
        let scale = match self.spec.score {
            Score::Dot { scale } => scale,
            Score::Additive { .. } | Score::Expression { .. } => T::ONE,
            Score::Own { .. } => return,
        };
        let Block { b, h, i0, n, width } = *block;
        assert!(to.len() >= self.s.dq * BLOCK);
        let (q, _) = self.scored();
        let from = self.rows(q, b, h, i0, n);
        // SAFETY: n rows of q, and `to` has dq rows of BLOCK.
        unsafe {
            (self.kernels.pack)(from, q.strides[2], n, self.s.dq, scale, to.as_mut_ptr(), width);
        }
    }

    /// The queries and keys as the kernels of scores read them.
    pub(in crate::cpu) fn scored(&self) -> (&View<'a, T>, &View<'a, T>) {
        self.prepared.as_ref().map_or((&self.q, &self.k), |rows| (&rows.q, &rows.k))
    }

    /// The rows of a block as columns `[D, BLOCK]`, as they are.
    pub(in crate::cpu) fn pack_rows(&self, x: &View<T>, block: &Block, to: &mut [T]) {
        let Block { b, h, i0, n, width } = *block;
        let d = x.shape[3];
        assert!(to.len() >= d * BLOCK);
        let from = self.rows(x, b, h, i0, n);
        // SAFETY: n rows of x, and `to` has d rows of BLOCK.
        unsafe { (self.kernels.pack)(from, x.strides[2], n, d, T::ONE, to.as_mut_ptr(), width) }
    }

    /// How many numbers a head has of the parameters of a score that is none of the kernels'.
    pub(in crate::cpu) fn own_parameters(&self) -> usize {
        match self.spec.score {
            Score::Own { score, .. } => score.parameters(),
            _ => self.programs.map_or(0, Programs::own),
        }
    }

    /// The start of `n` rows; checks that they exist.
    pub(in crate::cpu) fn rows(
        &self,
        x: &View<T>,
        b: usize,
        h: usize,
        from: usize,
        n: usize,
    ) -> *const T {
        assert!(b < x.shape[0] && h < x.shape[1] && n > 0);
        assert!(from <= x.shape[2] && n <= x.shape[2] - from);
        x.data[b * x.strides[0] + h * x.strides[1] + from * x.strides[2]..].as_ptr()
    }

    /// The scores of at most [`TILE`] keys for a block, bias added, −∞ where masked, as
    /// `[keys, BLOCK]`. Gives false, and computes nothing, where the block sees none of them.
    pub(in crate::cpu) fn score_tile(
        &self,
        block: &Block,
        keys: &Range<usize>,
        queries: &[T],
        tile: &mut [T],
    ) -> bool {
        let visibility = self.visibility(block, keys);
        if visibility == Visibility::None {
            return false;
        }
        assert!(keys.len() <= TILE && tile.len() >= keys.len() * BLOCK);
        match (self.spec.score, &self.products) {
            (Score::Dot { .. }, Some(products)) => products.scores(block, keys, queries, tile),
            (Score::Dot { .. }, None) => self.dot_tile(block, keys, queries, tile),
            (Score::Additive { w, .. }, _) => self.additive_tile(w, block, keys, queries, tile),
            (Score::Own { score, parameters }, _) => {
                self.own_tile((score, parameters), block, keys, tile);
            }
            (Score::Expression { .. }, _) => {
                if let Some(programs) = self.programs {
                    programs.score_tile(self, block, keys, queries, tile);
                }
            }
        }
        if !self.spec.bias.is_none() {
            self.add_bias(block, keys, tile);
        }
        if visibility == Visibility::Partial {
            self.apply_mask(block, keys, tile);
        }
        true
    }

    fn dot_tile(&self, block: &Block, keys: &Range<usize>, queries: &[T], tile: &mut [T]) {
        assert!(queries.len() >= self.s.dq * BLOCK);
        let rows = keys.len();
        // SAFETY: `rows` rows of k, `queries` as asserted, `tile` as the caller did.
        unsafe {
            (self.kernels.gemm)(Gemm {
                m: rows,
                n: block.width,
                k: self.s.dk,
                a: self.rows(&self.k, block.b, self.key_head(block.h), keys.start, rows),
                a_row: self.k.strides[2],
                a_column: 1,
                b: queries.as_ptr(),
                b_row: BLOCK,
                c: tile.as_mut_ptr(),
                c_row: BLOCK,
                add: false,
            });
        }
    }

    fn additive_tile(
        &self,
        w: &[T],
        block: &Block,
        keys: &Range<usize>,
        queries: &[T],
        tile: &mut [T],
    ) {
        assert!(queries.len() >= self.s.dq * BLOCK);
        let (_, k) = self.scored();
        let rows = keys.len();
        // SAFETY: `rows` rows of keys, `queries` as asserted, `tile` as the caller did, w checked.
        unsafe {
            (self.kernels.additive_scores)(AdditiveScores {
                form: self.form,
                d: self.s.dk,
                q: queries.as_ptr(),
                k: self.rows(k, block.b, self.key_head(block.h), keys.start, rows),
                k_row: k.strides[2],
                rows,
                width: block.width,
                w: w_of_head(w, block.h, self.s.dk).as_ptr(),
                to: tile.as_mut_ptr(),
            });
        }
    }

    fn own_tile(
        &self,
        (own, parameters): (&dyn OwnScore<T>, &[T]),
        block: &Block,
        keys: &Range<usize>,
        tile: &mut [T],
    ) {
        let Block { b, h, i0, n, width } = *block;
        let parameters = w_of_head(parameters, h, own.parameters());
        for (j, row) in keys.clone().zip(tile.chunks_exact_mut(BLOCK)) {
            let k = self.k.row(b, self.key_head(h), j);
            row[..width].fill(T::ZERO);
            for (i, score) in row[..n].iter_mut().enumerate() {
                *score = own.score(parameters, self.q.row(b, h, i0 + i), k);
            }
        }
    }
}

/// The tiles of a range of keys.
pub(in crate::cpu) fn tiles(keys: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    keys.clone().step_by(TILE).map(move |j| j..(j + TILE).min(keys.end))
}

fn bounds(x: &[i64]) -> (i64, i64) {
    x.iter().fold((i64::MAX, i64::MIN), |(low, high), &x| (low.min(x), high.max(x)))
}

/// The largest magnitude; ∞ where there is a NaN.
fn max_abs<T: Real>(kernels: &Kernels<T>, x: &View<T>) -> f64 {
    let [b, h, n, d] = x.shape;
    if d == 0 {
        return 0.0;
    }
    let rows = b * h * n;
    let at_once = 2 * plan::rows_at_once(d);
    let mut tops = vec![0.0; rows.div_ceil(at_once)];
    let (count, shared) = (tops.len(), Shared::new(&mut tops));
    tasks::each(count, &|part| {
        let from = part * at_once;
        let tops = (from..(from + at_once).min(rows)).map(|row| {
            let row = x.row(row / n / h, row / n % h, row % n);
            // SAFETY: a row of d numbers.
            match unsafe { (kernels.max_abs)(d, row.as_ptr()) } {
                [top, nothing] if nothing == T::ZERO => top.f64(),
                _ => f64::INFINITY,
            }
        });
        let top = tops.fold(0.0, f64::max);
        // SAFETY: each task has a place of its own.
        unsafe { shared.set(part, top) };
    });
    tops.into_iter().fold(0.0, f64::max)
}

//! Forward by tiles: a block of queries, a query per lane, against a tile of keys at a time.
//!
//! Per block: the queries are turned into columns once; each tile of at most `TILE` keys is scored
//! (`TILE × BLOCK` numbers, in the first-level cache), normalized online, and multiplied into the
//! output, which is kept as columns `[Dv, BLOCK]` until the block is done. Cost: 2·(Dk + Dv)
//! operations and one exponential per visible pair; memory: nothing that grows with Nq × Nk.
//! Sparsemax and entmax must see a whole row before they know its threshold, so for them a block's
//! scores `[Nk, BLOCK]` are kept.

use super::problem::{Block, Problem, tiles};
use super::rows::{Chosen, Rows};
use super::split::Portion;
use super::weights::Rule;
use super::{BLOCK, TILE};
use crate::Real;
use crate::cpu::scratch;
use crate::cpu::shared::Shared;
use crate::cpu::simd::prefetch_row;
use crate::random::{Draw, Stream, uniform};
use crate::spec::Normalizer;
use std::ops::Range;

/// Attends from one block to some ranges of keys, each by itself, and writes what their rows ask for.
pub(super) fn forward<T: Real>(p: &Problem<T>, block: &Block, portions: &[Portion<T>]) {
    let s = &p.s;
    scratch::with([s.dq * BLOCK], |[queries]| {
        p.pack_queries(block, queries);
        for Portion { keys, rows } in portions {
            let keys = p.seen_keys(block, keys);
            match p.spec.normalizer {
                Normalizer::Sparsemax | Normalizer::Entmax15 => {
                    by_threshold(p, block, keys, queries, rows);
                }
                Normalizer::Argmax | Normalizer::Sample { .. } => {
                    by_choice(p, block, keys, queries, rows);
                }
                _ => online(p, block, keys, queries, rows),
            }
        }
    });
}

/// out^T `[Dv, BLOCK]` (+)= v^T · weights `[keys, BLOCK]`.
fn add_values<T: Real>(
    p: &Problem<T>,
    block: &Block,
    keys: &Range<usize>,
    weights: &[T],
    out: &mut [T],
) {
    if let Some(products) = &p.products {
        return products.add_values(block, keys, weights, out);
    }
    let rows = keys.len();
    assert!(weights.len() >= rows * BLOCK && out.len() >= p.s.dv * BLOCK);
    // SAFETY: `rows` rows of v, and the tiles as asserted.
    unsafe {
        (p.kernels.gemm)(super::gemm::Gemm {
            m: p.s.dv,
            n: block.width,
            k: rows,
            a: p.rows(&p.v, block.b, p.key_head(block.h), keys.start, rows),
            a_row: 1,
            a_column: p.v.strides[2],
            b: weights.as_ptr(),
            b_row: BLOCK,
            c: out.as_mut_ptr(),
            c_row: BLOCK,
            add: true,
        });
    }
}

/// Multiplies a tile of weights, or of their gradients, by the dropout factors.
pub(super) fn drop_tile<T: Real>(
    p: &Problem<T>,
    block: &Block,
    keys: &Range<usize>,
    tile: &mut [T],
    words: &mut [T],
) {
    let Some(dropout) = p.spec.dropout else { return };
    let keep = dropout.of_head::<T>(block.b * p.s.hq + block.h);
    let rows = keys.len();
    assert!(tile.len() >= rows * BLOCK && words.len() >= rows * BLOCK);
    // SAFETY: a word is no larger than a T, and both arrays hold rows × BLOCK.
    unsafe {
        let words = words.as_mut_ptr().cast::<u32>();
        (p.kernels.words)(keep.draw, block.i0, block.width, keys.start, rows, words);
        let tile = tile.as_mut_ptr();
        (p.kernels.drop)(words, keep.below, keep.factor, tile, rows, block.width);
    }
}

/// Room for [`drop_tile`]'s words.
pub(super) fn dropout_words_len<T: Real>(p: &Problem<T>, rows: usize) -> usize {
    if p.spec.dropout.is_some() { rows * BLOCK } else { 0 }
}

/// Writes the block's output, columns times `factor`.
fn write_out<T: Real>(p: &Problem<T>, block: &Block, out: &[T], factor: &[T], rows: &Rows<T>) {
    let (dv, Block { b, h, i0, n, .. }) = (p.s.dv, *block);
    assert!(out.len() >= dv * BLOCK && factor.len() >= n);
    // SAFETY: rows i0..i0 + n of this head are this block's alone.
    unsafe {
        // Here it is near; afterwards it would be read from afar.
        if rows.undefined.is_some() && (p.kernels.max_abs)(dv * BLOCK, out.as_ptr())[1] != T::ZERO {
            rows.set_undefined();
        }
        let to = rows.out.row(b, h, i0);
        (p.kernels.unpack)(out.as_ptr(), dv, n, factor.as_ptr(), to, rows.out.strides[2]);
    }
}

/// Prefetches a share of the places of the block's output and of the queries of the next block, a
/// little with each tile: at once they would take as long as they do unasked.
fn prefetch_share<T: Real>(
    p: &Problem<T>,
    block: &Block,
    [step, steps]: [usize; 2],
    rows: &Rows<T>,
) {
    let Block { b, h, i0, n, .. } = *block;
    if p.products.is_some() {
        return;
    }
    for i in i0 + n * step / steps..i0 + n * (step + 1) / steps {
        // SAFETY: a row of this block.
        prefetch_row(unsafe { rows.out.row(b, h, i) }, p.s.dv);
        if i + BLOCK < p.s.nq {
            prefetch_row(p.q.row(b, h, i + BLOCK).as_ptr(), p.s.dq);
        }
    }
}

/// Softmax, and the normalizers that weigh each score by itself.
fn online<T: Real>(
    p: &Problem<T>,
    block: &Block,
    keys: Range<usize>,
    queries: &[T],
    rows: &Rows<T>,
) {
    let s = &p.s;
    let softmax = p.spec.normalizer == Normalizer::Softmax;
    let spare = if !softmax && rows.lse.is_some() { TILE * BLOCK } else { 0 };
    let lengths = [TILE * BLOCK, dropout_words_len(p, TILE), s.dv * BLOCK, 3 * BLOCK, spare];
    scratch::with(lengths, |[tile, words, out, state, spare]| {
        out.fill(T::ZERO);
        state[..BLOCK].fill(T::NEG_INFINITY);
        state[BLOCK..].fill(T::ZERO);
        let steps = keys.len().div_ceil(TILE);
        for (step, keys) in tiles(keys).enumerate() {
            prefetch_share(p, block, [step, steps], rows);
            if !p.score_tile(block, &keys, queries, tile) {
                continue;
            }
            let (n, width) = (keys.len(), block.width);
            if softmax {
                // SAFETY: tile and out hold n and dv rows of BLOCK, state three.
                unsafe {
                    if (p.kernels.softmax_step)(tile.as_mut_ptr(), n, width, state.as_mut_ptr()) {
                        let factor = state[2 * BLOCK..].as_ptr();
                        (p.kernels.scale_columns)(out.as_mut_ptr(), s.dv, width, factor);
                    }
                }
            } else {
                weigh_alone(p, block, n, [&mut *tile, &mut *spare, &mut *state]);
            }
            drop_tile(p, block, &keys, tile, words);
            add_values(p, block, &keys, tile, out);
        }
        let (largest, rest) = state.split_at_mut(BLOCK);
        let (total, factor) = rest.split_at_mut(BLOCK);
        for i in 0..block.n {
            let sum = total[i];
            let row = p.row(block.b, block.h, block.i0 + i);
            // SAFETY: the rows of a block are its task's alone.
            unsafe { rows.set_lse(row, || lse(largest[i], sum)) };
            factor[i] = match (softmax, sum == T::ZERO) {
                (true, true) => T::ZERO,
                (true, false) => T::ONE / sum,
                (false, _) => T::ONE,
            };
        }
        write_out(p, block, out, factor, rows);
    });
}

/// A tile of n keys' scores becomes weights, each score by itself; where there is a `spare` tile,
/// the state of the log-sum-exp takes them in.
fn weigh_alone<T: Real>(
    p: &Problem<T>,
    block: &Block,
    n: usize,
    [tile, spare, state]: [&mut [T]; 3],
) {
    let sigmoid = p.spec.normalizer == Normalizer::Sigmoid;
    let rule = if sigmoid { Rule::Sigmoid } else { Rule::Plain };
    // SAFETY: tile and spare hold n rows of BLOCK, state three.
    unsafe {
        if !spare.is_empty() {
            spare.copy_from_slice(tile);
            let state = state.as_mut_ptr();
            (p.kernels.softmax_step)(spare.as_mut_ptr(), n, block.width, state);
        }
        let unused = state[2 * BLOCK..].as_ptr();
        (p.kernels.weights)(rule, tile.as_mut_ptr(), n, block.width, unused);
    }
}

/// log of a sum of exponentials relative to the largest.
fn lse<T: Real>(largest: T, sum: T) -> T {
    if sum == T::ZERO { T::NEG_INFINITY } else { largest + sum.ln() }
}

/// Sparsemax and entmax: all scores of the block, then their thresholds.
fn by_threshold<T: Real>(
    p: &Problem<T>,
    block: &Block,
    keys: Range<usize>,
    queries: &[T],
    rows: &Rows<T>,
) {
    let s = &p.s;
    let entmax = p.spec.normalizer == Normalizer::Entmax15;
    let all = keys.len() * BLOCK;
    let spare = if rows.lse.is_some() { all } else { 0 };
    let lengths = [all, dropout_words_len(p, keys.len()), s.dv * BLOCK, 3 * BLOCK, spare];
    scratch::with(lengths, |[scores, words, out, state, spare]| {
        let width = block.width;
        out.fill(T::ZERO);
        for tile in tiles(keys.clone()) {
            let part = &mut scores[(tile.start - keys.start) * BLOCK..][..tile.len() * BLOCK];
            if !p.score_tile(block, &tile, queries, part) {
                part.fill(T::NEG_INFINITY);
            }
        }
        if rows.lse.is_some() {
            spare.copy_from_slice(scores);
            write_lse(p, block, spare, state, rows);
        }
        let (largest, rest) = state.split_at_mut(BLOCK);
        let (tau, factor) = rest.split_at_mut(BLOCK);
        // SAFETY: scores hold all rows of BLOCK, largest and tau one.
        unsafe {
            let (largest, tau) = (largest.as_mut_ptr(), tau.as_mut_ptr());
            (p.kernels.threshold)(entmax, scores.as_ptr(), keys.len(), width, largest, tau);
        }
        let half = T::of(if entmax { 0.5 } else { 1.0 });
        for i in 0..block.n {
            let row = p.row(block.b, block.h, block.i0 + i);
            // SAFETY: as above.
            unsafe { rows.set_threshold(row, tau[i] + largest[i] * half) };
        }
        // The weights relative to the largest score, which is exact where the threshold is not.
        for row in scores.chunks_exact_mut(BLOCK) {
            for i in 0..width {
                let above = positive((row[i] - largest[i]) * half - tau[i]);
                row[i] = if entmax { above * above } else { above };
            }
        }
        if !keys.is_empty() {
            drop_tile(p, block, &keys, scores, words);
            // SAFETY: the rows of a block are its task's alone.
            unsafe { write_tile(p, block, &keys, scores, rows.weights.as_ref()) };
            add_values(p, block, &keys, scores, out);
        }
        factor.fill(T::ONE);
        write_out(p, block, out, factor, rows);
    });
}

/// Writes the log-sum-exps of a block's scores `[keys, BLOCK]`, which are lost.
fn write_lse<T: Real>(
    p: &Problem<T>,
    block: &Block,
    scores: &mut [T],
    state: &mut [T],
    rows: &Rows<T>,
) {
    state[..BLOCK].fill(T::NEG_INFINITY);
    state[BLOCK..].fill(T::ZERO);
    let n = scores.len() / BLOCK;
    // SAFETY: n rows of BLOCK, state has three; the rows of a block are its task's alone.
    unsafe {
        (p.kernels.softmax_step)(scores.as_mut_ptr(), n, block.width, state.as_mut_ptr());
        for i in 0..block.n {
            let row = p.row(block.b, block.h, block.i0 + i);
            rows.set_lse(row, || lse(state[i], state[BLOCK + i]));
        }
    }
}

/// max(x, 0); NaN stays NaN.
pub(super) fn positive<T: Real>(x: T) -> T {
    if x < T::ZERO { T::ZERO } else { x }
}

/// Hard attention: the largest score, or the largest with Gumbel noise.
fn by_choice<T: Real>(
    p: &Problem<T>,
    block: &Block,
    keys: Range<usize>,
    queries: &[T],
    rows: &Rows<T>,
) {
    let s = &p.s;
    let Block { b, h, i0, n, width } = *block;
    let draw = match p.spec.normalizer {
        Normalizer::Sample { seed } => Some(Draw::new(seed, Stream::Sample, b * s.hq + h)),
        _ => None,
    };
    let lengths = [TILE * BLOCK, TILE * BLOCK, 3 * BLOCK];
    scratch::with(lengths, |[tile, words, state]| {
        let mut chosen = [Chosen::<T>::NONE; BLOCK];
        state[..BLOCK].fill(T::NEG_INFINITY);
        state[BLOCK..].fill(T::ZERO);
        for keys in tiles(keys) {
            if !p.score_tile(block, &keys, queries, tile) {
                continue;
            }
            let words = words.as_mut_ptr().cast::<u32>();
            if let Some(draw) = draw {
                // SAFETY: a word is no larger than a T; there is room for a tile of them.
                unsafe { (p.kernels.words)(draw, i0, width, keys.start, keys.len(), words) };
            }
            match draw {
                Some(_) => {
                    // SAFETY: written just above.
                    let noise = |at: usize| gumbel::<T>(unsafe { *words.add(at) });
                    for (r, j) in keys.clone().enumerate() {
                        for (i, chosen) in chosen[..n].iter_mut().enumerate() {
                            let score = tile[r * BLOCK + i];
                            let best = score + noise(r * BLOCK + i);
                            if best > chosen.best {
                                *chosen = Chosen { index: j as i64, best, score };
                            }
                        }
                    }
                }
                None => largest(tile, &keys, &mut chosen[..n]),
            }
            if rows.asks_lse() {
                // SAFETY: the tile holds its rows of BLOCK, state three.
                unsafe {
                    let state = state.as_mut_ptr();
                    (p.kernels.softmax_step)(tile.as_mut_ptr(), keys.len(), width, state);
                }
            }
        }
        for i in 0..n {
            let row = p.row(b, h, i0 + i);
            let lse = || lse(state[i], state[BLOCK + i]);
            // SAFETY: the rows of a block are its task's alone.
            unsafe {
                rows.set_lse(row, lse);
                rows.set_choice(row, chosen[i], lse);
                write_choice(p, (b, h, i0 + i), chosen[i].index, rows);
            }
        }
    });
}

/// The largest scores of a tile, where they are above those so far; of equal ones the first. Best scores and
/// their rows lie in arrays of their own, so that a row of the tile is compared without a branch.
fn largest<T: Real>(tile: &[T], keys: &Range<usize>, chosen: &mut [Chosen<T>]) {
    let (mut best, mut at) = ([T::NEG_INFINITY; BLOCK], [-1i32; BLOCK]);
    for (best, chosen) in best.iter_mut().zip(chosen.iter()) {
        *best = chosen.best;
    }
    for (r, row) in tile.chunks_exact(BLOCK).take(keys.len()).enumerate() {
        for ((score, best), at) in row.iter().zip(&mut best).zip(&mut at) {
            let better = *score > *best;
            *best = if better { *score } else { *best };
            *at = if better { r as i32 } else { *at };
        }
    }
    for ((chosen, best), at) in chosen.iter_mut().zip(best).zip(at) {
        if at >= 0 {
            *chosen = Chosen { index: (keys.start + at as usize) as i64, best, score: best };
        }
    }
}

/// Gumbel noise from a random word.
pub(super) fn gumbel<T: Real>(word: u32) -> T {
    let u = T::of(f64::from(uniform(word)));
    -(-u.ln()).ln()
}

/// Writes the value of the chosen key, dropout included, as a row's output.
///
/// # Safety
/// The row is the calling task's alone.
pub(super) unsafe fn write_choice<T: Real>(
    p: &Problem<T>,
    (b, h, i): (usize, usize, usize),
    index: i64,
    rows: &Rows<T>,
) {
    // SAFETY: the caller's.
    let out = unsafe { std::slice::from_raw_parts_mut(rows.out.row(b, h, i), p.s.dv) };
    out.fill(T::ZERO);
    if index >= 0 {
        let j = index as usize;
        let keep = keep(p, b, h, i, j);
        for (out, &v) in out.iter_mut().zip(p.v.row(b, p.key_head(h), j)) {
            *out = keep * v;
        }
    }
}

/// The dropout factor of one weight.
pub(super) fn keep<T: Real>(p: &Problem<T>, b: usize, h: usize, i: usize, j: usize) -> T {
    p.spec.dropout.map_or(T::ONE, |dropout| dropout.of_head::<T>(b * p.s.hq + h).factor(i, j))
}

/// The number a soft normalizer needs of each row to weigh its scores again.
pub(super) fn row_statistics<T: Real>(
    p: &Problem<T>,
    rule: Rule,
    block: &Block,
    lse: Option<&[T]>,
    threshold: Option<&[T]>,
    to: &mut [T],
) {
    to.fill(T::ZERO);
    let from = p.row(block.b, block.h, block.i0);
    if matches!(rule, Rule::Sparsemax | Rule::Entmax15) {
        if let Some(threshold) = threshold {
            to[..block.n].copy_from_slice(&threshold[from..from + block.n]);
        }
    } else if rule == Rule::Softmax
        && let Some(lse) = lse
    {
        for (to, &lse) in to.iter_mut().zip(&lse[from..from + block.n]) {
            // An empty row has no weight: exp(−∞ − 0) = 0.
            *to = if lse == T::NEG_INFINITY { T::ZERO } else { lse };
        }
    }
}

/// Writes a tile of weights where they are wanted.
///
/// # Safety
/// The block's rows are the calling task's alone.
unsafe fn write_tile<T: Real>(
    p: &Problem<T>,
    block: &Block,
    keys: &Range<usize>,
    tile: &[T],
    weights: Option<&Shared<T>>,
) {
    let Some(weights) = weights else { return };
    for i in 0..block.n {
        let from = p.row(block.b, block.h, block.i0 + i) * p.s.nk + keys.start;
        // SAFETY: the caller's.
        let to = unsafe { weights.part(from, keys.len()) };
        for (to, row) in to.iter_mut().zip(tile.chunks_exact(BLOCK)) {
            *to = row[i];
        }
    }
}

/// Writes a block's weights, whose rows were zero, for the normalizers without a threshold.
pub(super) fn write_weights<T: Real>(
    p: &Problem<T>,
    rule: Rule,
    block: &Block,
    weights: &Shared<T>,
) {
    let s = &p.s;
    let Block { b, i0, n, width, .. } = *block;
    let keys = p.key_range(b, i0, i0 + n);
    let lengths = [s.dq * BLOCK, TILE * BLOCK, dropout_words_len(p, TILE), 3 * BLOCK];
    scratch::with(lengths, |[queries, tile, words, state]| {
        p.pack_queries(block, queries);
        if rule == Rule::Softmax {
            // exp(s − lse) would carry the rounding of the log-sum-exp: find the largest score
            // and the sum again instead.
            state[..BLOCK].fill(T::NEG_INFINITY);
            state[BLOCK..].fill(T::ZERO);
            for keys in tiles(keys.clone()) {
                if p.score_tile(block, &keys, queries, tile) {
                    // SAFETY: the tile holds its rows of BLOCK, state three.
                    unsafe {
                        let state = state.as_mut_ptr();
                        (p.kernels.softmax_step)(tile.as_mut_ptr(), keys.len(), width, state);
                    }
                }
            }
            for i in 0..width {
                let empty = state[i] == T::NEG_INFINITY;
                state[i] = if empty { T::ZERO } else { state[i] };
                state[BLOCK + i] = if empty { T::ZERO } else { T::ONE / state[BLOCK + i] };
            }
        }
        for keys in tiles(keys) {
            if !p.score_tile(block, &keys, queries, tile) {
                continue;
            }
            // SAFETY: the tile holds its rows of BLOCK, state three.
            unsafe {
                let tile = tile.as_mut_ptr();
                (p.kernels.weights)(rule, tile, keys.len(), width, state.as_ptr());
                if rule == Rule::Softmax {
                    let factor = state[BLOCK..].as_ptr();
                    (p.kernels.scale_columns)(tile, keys.len(), width, factor);
                }
            }
            drop_tile(p, block, &keys, tile, words);
            // SAFETY: the rows of a block are its task's alone.
            unsafe { write_tile(p, block, &keys, tile, Some(weights)) };
        }
    });
}

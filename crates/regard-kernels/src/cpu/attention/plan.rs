//! How the passes are cut into parts: by the problem alone, never by the number of threads, so that
//! every sum has one order. Every phase has at least [`PARTS`] of them where it is long enough.

use super::{BLOCK, TILE};
use crate::spec::{Broadcast, Normalizer, Score, Shape, Spec};
use std::ops::Range;

/// Parts a phase is cut into, at least, where there are so many of a useful size.
pub(in crate::cpu) const PARTS: usize = 64;
/// Multiply-adds per query that are worth a part of their own.
const LEAST_WORK: usize = 1 << 16;
/// Keys of such a part, at least and at most.
const LEAST_KEYS: Range<usize> = 64..512;
/// Numbers that are only read and written once, worth a part of their own.
const LEAST_NUMBERS: usize = 1 << 11;
/// How many numbers are read or written while one is turned from a row into a column.
const TURNING: usize = 3;

/// Into how many ranges the keys are cut where there are only `tasks` without.
pub(in crate::cpu) fn key_splits<T>(spec: &Spec<T>, s: &Shape, tasks: usize) -> usize {
    let pair = match spec.score {
        Score::Dot { .. } => s.dk + s.dv,
        // An activation costs about as much as eight multiply-adds.
        _ => 8 * s.dk + s.dv,
    };
    let least = (LEAST_WORK / pair.max(1)).clamp(LEAST_KEYS.start, LEAST_KEYS.end);
    PARTS.div_ceil(tasks.max(1)).min(s.nk / least).max(1)
}

/// As [`key_splits`], for few queries that read a long cache: long stretches, as memory likes them.
pub(in crate::cpu) fn cache_splits(normalizer: Normalizer, s: &Shape) -> usize {
    if normalizer.has_threshold() {
        return 1;
    }
    PARTS.div_ceil((s.b * s.hk).max(1)).min(s.nk / LEAST_KEYS.end).max(1)
}

/// Blocks of queries of all heads.
pub(in crate::cpu) fn blocks(s: &Shape) -> usize {
    s.b * s.hq * s.nq.div_ceil(BLOCK)
}

/// Queries of a block where it must see all keys of its rows: fewer where there are few blocks.
pub(in crate::cpu) fn block_queries(s: &Shape) -> usize {
    let enough = |size: &usize| s.b * s.hq * s.nq.div_ceil(*size) >= PARTS;
    [BLOCK, BLOCK / 2].into_iter().find(enough).unwrap_or(BLOCK / 4)
}

/// Blocks of [`block_queries`] of all heads.
pub(in crate::cpu) fn row_blocks(s: &Shape) -> usize {
    s.b * s.hq * s.nq.div_ceil(block_queries(s))
}

/// How many rows of a width make a part where nothing is done but reading and writing them.
pub(in crate::cpu) fn rows_at_once(width: usize) -> usize {
    (LEAST_NUMBERS / width.max(1)).clamp(1, 32)
}

/// Into how many ranges of keys forward by tiles is cut.
pub(in crate::cpu) fn forward_splits<T>(spec: &Spec<T>, s: &Shape) -> usize {
    if spec.normalizer.has_threshold() { 1 } else { key_splits(spec, s, blocks(s)) }
}

/// The batch items and heads that share a row of a broadcast array.
#[derive(Clone, Copy, Debug)]
pub(in crate::cpu) struct Sharing {
    b: usize,
    hq: usize,
    own_b: bool,
    own_h: bool,
}

impl Sharing {
    pub(in crate::cpu) fn of<T>(array: &Broadcast<T>, s: &Shape) -> Self {
        let [sb, sh, ..] = array.strides();
        Self { b: s.b, hq: s.hq, own_b: sb > 0, own_h: sh > 0 }
    }

    /// The batch items and key heads whose query heads share a row.
    pub(in crate::cpu) fn of_key_heads<T>(array: &Broadcast<T>, s: &Shape) -> Self {
        Self { hq: s.hk, ..Self::of(array, s) }
    }

    /// How many rows there are of their own.
    pub(in crate::cpu) fn rows(&self) -> usize {
        (if self.own_b { self.b } else { 1 }) * (if self.own_h { self.hq } else { 1 })
    }

    /// The batch items and heads of one of the rows, in order.
    pub(in crate::cpu) fn heads(&self, row: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let of = |own: bool, at: usize, n: usize| if own { at..at + 1 } else { 0..n };
        let (b, h) = if self.own_h { (row / self.hq, row % self.hq) } else { (row, 0) };
        let heads = of(self.own_h, h, self.hq);
        of(self.own_b, b, self.b).flat_map(move |b| heads.clone().map(move |h| (b, h)))
    }
}

/// How the gradient of a full bias is cut where queries have numbers of their own: a task has a row
/// of heads that share them, a block of queries, and a range of keys.
#[derive(Clone, Copy, Debug)]
pub(in crate::cpu) struct BiasCut {
    pub(in crate::cpu) sharing: Sharing,
    blocks: usize,
    key_chunk: usize,
    key_chunks: usize,
    nk: usize,
}

impl BiasCut {
    pub(in crate::cpu) fn of<T>(bias: &Broadcast<T>, s: &Shape) -> Self {
        let sharing = Sharing::of(bias, s);
        let blocks = s.nq.div_ceil(BLOCK);
        let tasks = sharing.rows() * blocks;
        let own_keys = bias.strides()[3] > 0;
        let cuts = if own_keys { PARTS.div_ceil(tasks).min(s.nk.div_ceil(TILE)) } else { 1 };
        let key_chunk = s.nk.div_ceil(cuts).next_multiple_of(TILE);
        Self { sharing, blocks, key_chunk, key_chunks: s.nk.div_ceil(key_chunk), nk: s.nk }
    }

    pub(in crate::cpu) fn tasks(&self) -> usize {
        self.sharing.rows() * self.blocks * self.key_chunks
    }

    /// Row of heads, block of queries and keys of a task.
    pub(in crate::cpu) fn task(&self, task: usize) -> (usize, usize, Range<usize>) {
        let (at, chunk) = (task / self.key_chunks, task % self.key_chunks);
        let keys = chunk * self.key_chunk..((chunk + 1) * self.key_chunk).min(self.nk);
        (at / self.blocks, at % self.blocks, keys)
    }
}

/// Keys of a chunk of hard attention's values.
pub(in crate::cpu) fn value_chunk(s: &Shape) -> usize {
    let chunks = PARTS.div_ceil((s.b * s.hk).max(1)).min(s.nk.div_ceil(LEAST_KEYS.start));
    s.nk.div_ceil(chunks.max(1))
}

/// Chunks of queries by chunks of keys, for every batch item and key head.
///
/// The chunks meet in phases: a phase has so many of a query's chunks of keys as there are parts of
/// its gradient, and in the next phase others add to the same parts.
#[derive(Clone, Copy, Debug)]
pub(in crate::cpu) struct Plan {
    /// B · Hk
    heads: usize,
    nq: usize,
    nk: usize,
    hk: usize,
    /// Queries in a chunk, whole blocks.
    query_chunk: usize,
    /// Keys in a chunk.
    key_chunk: usize,
    pub(in crate::cpu) phases: usize,
    /// Parts of the keys' and values' gradients: chunks of queries that meet a key in one phase.
    pub(in crate::cpu) query_parts: usize,
    /// Parts of the queries' gradients: chunks of keys that meet a query in one phase.
    pub(in crate::cpu) key_parts: usize,
}

/// What a plan reads and writes besides what every plan does, for one batch item.
struct Traffic<'a> {
    s: &'a Shape,
    phases: usize,
    query_parts: usize,
    key_parts: usize,
}

impl Traffic<'_> {
    fn queries(&self) -> usize {
        self.s.hq * self.s.nq * self.s.dq
    }

    fn keys(&self) -> usize {
        self.s.hk * self.s.nk * (self.s.dk + self.s.dv)
    }

    /// Whether all parts are at most four times the gradients.
    fn is_within_memory(&self) -> bool {
        let apart = |parts: usize, n: usize| if parts > 1 { parts * n } else { 0 };
        let parts = apart(self.key_parts, self.queries()) + apart(self.query_parts, self.keys());
        parts <= 4 * (self.queries() + self.keys())
    }

    fn numbers(&self) -> usize {
        // Every chunk writes its part and all but the first read it too; then parts are added up.
        let sums = |parts: usize| {
            let chunks = self.phases * parts;
            2 * chunks - parts + if parts > 1 { parts + 1 } else { 0 }
        };
        // A block's queries and gradients are turned once for each chunk of keys.
        let turned = self.queries() + self.s.hq * self.s.nq * self.s.dv;
        self.queries() * sums(self.key_parts)
            + self.keys() * sums(self.query_parts)
            + TURNING * turned * self.phases * self.key_parts
    }
}

/// One task: a chunk of queries of the heads that share a key head, and a chunk of its keys.
#[derive(Clone, Debug)]
pub(in crate::cpu) struct Chunk {
    pub(in crate::cpu) b: usize,
    pub(in crate::cpu) hk: usize,
    /// Blocks of queries.
    pub(in crate::cpu) blocks: Range<usize>,
    pub(in crate::cpu) keys: Range<usize>,
    /// Which chunk of queries.
    pub(in crate::cpu) query_chunk: usize,
    /// Which part of the keys' and values' gradients it adds to.
    pub(in crate::cpu) query_part: usize,
    /// Which part of the queries' gradients it adds to.
    pub(in crate::cpu) key_part: usize,
    /// Its place among the tasks of a head in one phase.
    pub(in crate::cpu) slot: usize,
    /// Whether it is the first to add to its parts, and so writes over what is there.
    pub(in crate::cpu) first: bool,
}

impl Plan {
    pub(in crate::cpu) fn of(s: &Shape) -> Self {
        let want = PARTS.div_ceil((s.b * s.hk).max(1));
        // Narrow heads are done with a small chunk before a thread has woken up.
        let least = if s.dk + s.dv >= BLOCK { BLOCK } else { 2 * BLOCK };
        for chunk in [4 * BLOCK, 2 * BLOCK, BLOCK] {
            if chunk >= least
                && let Some(plan) = Self::with_chunks(s, want, chunk)
            {
                return plan;
            }
        }
        let (queries, keys) = (s.nq.div_ceil(least), s.nk.div_ceil(least));
        let query_parts = want.isqrt().max(want.div_ceil(keys)).min(queries);
        Self::cut(s, 1, query_parts, want.div_ceil(query_parts).min(keys))
    }

    /// Enough tasks of chunks no smaller than given, with as little reading and writing as possible;
    /// none where there is no such plan.
    fn with_chunks(s: &Shape, want: usize, chunk: usize) -> Option<Self> {
        let (queries, keys) = (s.nq.div_ceil(chunk), s.nk.div_ceil(chunk));
        let powers = |most: usize| (0..).map(|n| 1usize << n).take_while(move |&n| n <= most);
        let mut best: Option<(usize, Self)> = None;
        for query_parts in powers(want.min(queries)) {
            for key_parts in powers(want.min(keys)) {
                let phases = want.div_ceil(query_parts * key_parts);
                let traffic = Traffic { s, phases, query_parts, key_parts };
                if phases * query_parts <= queries
                    && phases * key_parts <= keys
                    && traffic.is_within_memory()
                    && best.is_none_or(|(least, _)| traffic.numbers() < least)
                {
                    let plan = Self::cut(s, phases, query_parts, key_parts);
                    best = Some((traffic.numbers(), plan));
                }
            }
        }
        best.map(|(_, plan)| plan)
    }

    /// At most so many parts: whole blocks may need fewer.
    fn cut(s: &Shape, phases: usize, query_parts: usize, key_parts: usize) -> Self {
        let query_chunk = s.nq.div_ceil(phases * query_parts).next_multiple_of(BLOCK);
        let key_chunk = s.nk.div_ceil(phases * key_parts).next_multiple_of(8);
        Self {
            heads: s.b * s.hk,
            nq: s.nq,
            nk: s.nk,
            hk: s.hk,
            query_chunk,
            key_chunk,
            phases,
            query_parts: s.nq.div_ceil(query_chunk).div_ceil(phases),
            key_parts: s.nk.div_ceil(key_chunk).div_ceil(phases),
        }
    }

    /// Which chunks are one task where there are so many threads.
    pub(in crate::cpu) fn joining(&self, threads: usize) -> Joining {
        if self.query_parts * self.key_parts > 1 && self.joins(self.heads, threads) {
            Joining::Heads
        } else if self.query_parts > 1 && self.joins(self.groups(), threads) {
            Joining::Keys
        } else {
            Joining::Nothing
        }
    }

    /// Whether so many tasks, each of whole heads or chunks of keys, keep the threads busy.
    pub(in crate::cpu) fn joins(&self, tasks: usize, threads: usize) -> bool {
        self.phases == 1 && tasks >= 4 * threads
    }

    /// The chunks of keys that give queries which see this range of keys a part of their gradient;
    /// the first gives zeros where they see none.
    pub(in crate::cpu) fn key_parts_of(&self, keys: &Range<usize>) -> Range<usize> {
        if self.phases > 1 || self.key_parts == 1 {
            return 0..self.key_parts;
        }
        let first = keys.start.min(self.nk - 1) / self.key_chunk;
        if keys.is_empty() { 0..1 } else { first..(keys.end - 1) / self.key_chunk + 1 }
    }

    /// Heads of keys of all batch items.
    pub(in crate::cpu) fn heads(&self) -> usize {
        self.heads
    }

    /// Chunks of keys of all heads.
    pub(in crate::cpu) fn groups(&self) -> usize {
        self.heads * self.key_parts
    }

    /// The tasks of a group, in the order of their queries.
    pub(in crate::cpu) fn tasks_of(&self, group: usize) -> impl Iterator<Item = usize> + use<> {
        let (head, key_part) = (group / self.key_parts, group % self.key_parts);
        let (slots, key_parts) = (self.slots(), self.key_parts);
        (0..self.query_chunks()).map(move |chunk| head * slots + chunk * key_parts + key_part)
    }

    /// The queries of a part of the keys' gradients, where a part has one chunk of them and other
    /// parts have the rest: of it, only the keys that these queries see are written.
    pub(in crate::cpu) fn queries_of_part(&self, part: usize) -> Option<Range<usize>> {
        let chunk = |at: usize| (at * self.query_chunk).min(self.nq);
        (self.phases == 1 && self.query_parts > 1).then(|| chunk(part)..chunk(part + 1))
    }

    /// Tasks of a phase.
    pub(in crate::cpu) fn tasks(&self) -> usize {
        self.heads * self.slots()
    }

    /// Tasks of a phase in one head.
    pub(in crate::cpu) fn slots(&self) -> usize {
        self.query_chunks() * self.key_parts
    }

    pub(in crate::cpu) fn query_chunks(&self) -> usize {
        self.phases * self.query_parts
    }

    /// The chunks of one task. In every phase each chunk of queries has one chunk of keys in each
    /// of its parts, and each chunk of keys one chunk of queries in each of its own; the last
    /// chunks may be empty.
    pub(in crate::cpu) fn chunk(&self, phase: usize, task: usize) -> Chunk {
        let (head, slot) = (task / self.slots(), task % self.slots());
        let (query_chunk, key_part) = (slot / self.key_parts, slot % self.key_parts);
        let key_chunk = key_part * self.phases + (query_chunk + phase) % self.phases;
        let within =
            |at: usize, size: usize, n: usize| (at * size).min(n)..((at + 1) * size).min(n);
        let queries = within(query_chunk, self.query_chunk, self.nq);
        Chunk {
            b: head / self.hk,
            hk: head % self.hk,
            blocks: queries.start / BLOCK..queries.end.div_ceil(BLOCK),
            keys: within(key_chunk, self.key_chunk, self.nk),
            query_chunk,
            query_part: query_chunk / self.phases,
            key_part,
            slot,
            first: phase == 0,
        }
    }
}

/// Chunks that are one task, which adds up their parts as it goes, in the order in which they would
/// be added up otherwise: where there are tasks enough without, that saves the memory of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cpu) enum Joining {
    Nothing,
    /// The chunks of queries that meet the same keys.
    Keys,
    /// All of a head.
    Heads,
}

/// A phase of a pass, and into how many parts it is cut. For tests.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Which.
    pub name: &'static str,
    /// Tasks that can run at the same time.
    pub parts: usize,
}

/// The phases by tiles: what the passes ask for, under names.
pub(in crate::cpu) fn tile_phases<T: Copy>(spec: &Spec<T>, s: &Shape) -> Vec<Phase> {
    let splits = forward_splits(spec, s);
    let threshold = spec.normalizer.has_threshold();
    let blocks = blocks(s);
    let runs = |rows: usize, width: usize| rows.div_ceil(2 * rows_at_once(width));
    let plan = Plan::of(s);
    let mut phases = vec![
        Phase { name: "forward", parts: if threshold { row_blocks(s) } else { splits * blocks } },
        Phase { name: "weights", parts: row_blocks(s) },
        Phase { name: "deltas by the output", parts: runs(s.rows(), s.dv) },
        Phase { name: "deltas by the keys", parts: blocks * key_splits(spec, s, blocks) },
        Phase { name: "backward", parts: plan.tasks() },
    ];
    if spec.normalizer.is_hard() {
        let chunks = s.nk.div_ceil(value_chunk(s).max(1));
        phases.push(Phase { name: "hard values", parts: s.b * s.hk * chunks });
    }
    if splits > 1 {
        phases.push(Phase { name: "merge", parts: runs(s.rows(), s.dv) });
    }
    if plan.key_parts > 1 {
        phases.push(Phase { name: "reduction of q", parts: runs(s.rows(), s.dq) });
    }
    if plan.query_parts > 1 {
        phases.push(Phase { name: "reduction of k", parts: runs(s.b * s.hk * s.nk, s.dk) });
    }
    if let Some(full) = spec.bias.full.filter(|full| full.strides()[2] > 0) {
        phases.push(Phase { name: "full bias", parts: BiasCut::of(&full, s).tasks() });
    }
    phases
}

//! How backward by tiles is cut into tasks: by the shape alone, never by the number of threads.

use super::BLOCK;
use crate::spec::Shape;
use std::ops::Range;

/// Tasks a problem is cut into, about, where it is long enough.
const TASKS: usize = 16;
/// Keys or queries worth a task of their own.
const CHUNK: usize = 256;

/// Chunks of queries by chunks of keys, for every batch item and key head.
///
/// The chunks meet in phases: a phase has so many of a query's chunks of keys as there are parts of
/// its gradient, and in the next phase others add to the same parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// B · Hk
    heads: usize,
    nq: usize,
    nk: usize,
    hk: usize,
    /// Queries in a chunk, whole blocks.
    query_chunk: usize,
    /// Keys in a chunk.
    key_chunk: usize,
    pub(super) phases: usize,
    /// Parts of the keys' and values' gradients: chunks of queries that meet a key in one phase.
    pub(super) query_parts: usize,
    /// Parts of the queries' gradients: chunks of keys that meet a query in one phase.
    pub(super) key_parts: usize,
}

/// One task: a chunk of queries of the heads that share a key head, and a chunk of its keys.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) b: usize,
    pub(super) hk: usize,
    /// Blocks of queries.
    pub(super) blocks: Range<usize>,
    pub(super) keys: Range<usize>,
    /// Which chunk of queries.
    pub(super) query_chunk: usize,
    /// Which part of the keys' and values' gradients it adds to.
    pub(super) query_part: usize,
    /// Which part of the queries' gradients it adds to.
    pub(super) key_part: usize,
    /// Its place among the tasks of a head in one phase.
    pub(super) slot: usize,
    /// Whether it is the first to add to its parts, and so writes over what is there.
    pub(super) first: bool,
}

impl Plan {
    pub(super) fn of(s: &Shape) -> Self {
        let want = TASKS.div_ceil(s.b * s.hk);
        // Cut both ways: parts of dQ are written once per chunk of keys, those of dK and dV once
        // per chunk of queries.
        let square = (want as f64).sqrt().ceil() as usize;
        let query_parts = square.min(s.nq.div_ceil(CHUNK));
        let key_parts = want.div_ceil(query_parts).min(s.nk.div_ceil(CHUNK));
        let query_parts = want.div_ceil(key_parts).min(s.nq.div_ceil(CHUNK));
        Self::cut(s, 1, query_parts, key_parts)
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

    /// Tasks of a phase.
    pub(super) fn tasks(&self) -> usize {
        self.heads * self.slots()
    }

    /// Tasks of a phase in one head.
    pub(super) fn slots(&self) -> usize {
        self.query_chunks() * self.key_parts
    }

    pub(super) fn query_chunks(&self) -> usize {
        self.phases * self.query_parts
    }

    /// The chunks of one task. In every phase each chunk of queries has one chunk of keys in each
    /// of its parts, and each chunk of keys one chunk of queries in each of its own; the last
    /// chunks may be empty.
    pub(super) fn chunk(&self, phase: usize, task: usize) -> Chunk {
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

//! Which keys each query has.

use crate::Real;
use crate::cpu::attention::problem::Problem;
use crate::cpu::attention::row::{List, Pairs, Spans};
use crate::spec::Edges;
use std::ops::Range;

/// Which keys each query has.
#[derive(Clone, Copy)]
pub(super) enum Links<'a> {
    Graph(&'a Edges),
    /// Every query every key.
    All {
        nq: usize,
        nk: usize,
    },
}

impl<'a> Links<'a> {
    pub(super) fn of<T: Real>(p: &Problem<'a, T>) -> Self {
        match p.spec.mask.edges {
            Some(edges) => Self::Graph(edges),
            None => Self::All { nq: p.s.nq, nk: p.s.nk },
        }
    }

    /// How many pairs there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Graph(edges) => edges.len(),
            Self::All { nq, nk } => nq * nk,
        }
    }

    /// Which pairs the queries from `i` on have, and their keys.
    pub(super) fn by_query(&self, i: usize) -> (Spans, List) {
        match self {
            Self::Graph(edges) => (
                Spans::Between(edges.starts()[i..].as_ptr()),
                List::These(edges.all_keys().as_ptr()),
            ),
            Self::All { nk, .. } => (Spans::Every(*nk), List::From(0)),
        }
    }

    /// Which entries the keys from `j` on have: queries, and the places of their pairs.
    pub(super) fn by_key(&self, j: usize) -> (Spans, List, Pairs) {
        match self {
            Self::Graph(edges) => {
                let (starts, queries, pairs) = edges.by_key();
                (
                    Spans::Between(starts[j..].as_ptr()),
                    List::These(queries.as_ptr()),
                    Pairs::These(pairs.as_ptr()),
                )
            }
            Self::All { nq, nk } => {
                (Spans::Every(*nq), List::From(0), Pairs::Every { first: j, step: *nk })
            }
        }
    }

    /// Calls `f` with each query of a key and the place of that pair.
    pub(super) fn for_each_query(&self, j: usize, mut f: impl FnMut(usize, usize)) {
        match self {
            Self::Graph(edges) => {
                let (starts, queries, pairs) = edges.by_key();
                for e in starts[j]..starts[j + 1] {
                    f(queries[e] as usize, pairs[e] as usize);
                }
            }
            Self::All { nq, nk } => (0..*nq).for_each(|i| f(i, i * nk + j)),
        }
    }

    /// The pairs of queries i0..i1, which follow each other.
    pub(super) fn pairs(&self, queries: Range<usize>) -> Range<usize> {
        match self {
            Self::Graph(edges) => edges.starts()[queries.start]..edges.starts()[queries.end],
            Self::All { nk, .. } => queries.start * nk..queries.end * nk,
        }
    }

    /// How the pairs of queries from `i` on are to be numbered for kernels that see only those:
    /// what to take off a pair's number. Numbers of a graph's pairs are its edges'.
    pub(super) fn first(&self, i: usize) -> usize {
        match self {
            Self::Graph(edges) => edges.starts()[i],
            Self::All { .. } => 0,
        }
    }

    /// What dropout is drawn by at a query's pair number `n`: its key, unless the same edge was there before.
    pub(super) fn draw(&self, i: usize, n: usize) -> u32 {
        match self {
            Self::Graph(edges) => edges.draws()[edges.starts()[i] + n],
            Self::All { .. } => n as u32,
        }
    }

    /// The key of a query's pair number `n`.
    pub(super) fn key(&self, i: usize, n: usize) -> usize {
        match self {
            Self::Graph(edges) => edges.of_query(i)[n] as usize,
            Self::All { .. } => n,
        }
    }
}

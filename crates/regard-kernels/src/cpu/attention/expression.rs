//! Expressions on both paths: the programs of a call, and the strips they run over.
//!
//! Tiles are cut into strips of a few keys. Lists are gathered, a pair to a lane, as many as a block
//! has queries.

use super::BLOCK;
use super::list;
use super::problem::{Block, Problem};
use super::program::{Arrangement, Output, Program, Slot, Source};
use super::strip::{BASES, Base, STRIP, Strip};
use crate::cpu::kernels::Kernels;
use crate::cpu::scratch;
use crate::expression::{Expression, Kind};
use crate::spec::Score;
use crate::{Real, ViewMut};
use std::ops::Range;
use std::sync::Arc;

/// Which gradients are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cpu) struct Wanted {
    pub(in crate::cpu) q: bool,
    pub(in crate::cpu) k: bool,
    pub(in crate::cpu) parameters: bool,
}

/// What an expression becomes for one kind of call; kept by the expression.
struct Compiled {
    score: Program,
    /// Gradients of everything by tiles, of q and the parameters by lists.
    grads: Program,
    /// Gradients of k by lists.
    key_grads: Program,
}

impl Compiled {
    fn new(
        expression: &Expression,
        slots: &[Slot],
        width: usize,
        arrangement: Arrangement,
        wanted: Wanted,
    ) -> Self {
        let kinds: Vec<Kind> = slots.iter().map(|slot| slot.kind).collect();
        let mut graph = expression.graph(&kinds);
        let (mut outputs, mut key_outputs) = (Vec::new(), Vec::new());
        if wanted != Wanted::default() {
            let by = graph.differentiate();
            outputs.extend(by.q.filter(|_| wanted.q).map(Output::QueryGrads));
            let list = arrangement == Arrangement::List;
            let keys = if list { &mut key_outputs } else { &mut outputs };
            keys.extend(by.k.filter(|_| wanted.k).map(Output::KeyGrads));
            for (node, &slot) in by.parameters.iter().zip(slots).filter(|_| wanted.parameters) {
                outputs.extend(node.map(|node| Output::ParameterGrads(node, slot)));
            }
        }
        let source = Source { graph: &graph, arrangement, parameters: slots, width };
        Self {
            score: Program::new(&source, &[Output::Score(graph.score())]),
            grads: Program::new(&source, &outputs),
            key_grads: Program::new(&source, &key_outputs),
        }
    }
}

/// A score's programs, and its parameters head by head.
pub(in crate::cpu) struct Programs<T> {
    compiled: Arc<Compiled>,
    /// The head width.
    d: usize,
    /// `[Hq, own]`
    parameters: Vec<T>,
    /// Numbers a head has of all parameters.
    own: usize,
    /// Of each parameter, how many heads there are and how wide it is.
    shapes: Vec<[usize; 2]>,
}

/// A pair of a list, and the gradient that arrives at its score.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Pair<T> {
    pub(in crate::cpu) i: usize,
    pub(in crate::cpu) j: usize,
    pub(in crate::cpu) grad: T,
}

/// The head that a list of pairs belongs to.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Head {
    pub(in crate::cpu) b: usize,
    pub(in crate::cpu) h: usize,
}

/// What a tile's gradients are added to.
pub(in crate::cpu) struct TileGrads<'a, T> {
    /// `[queries, D]`
    pub(in crate::cpu) q: &'a mut [T],
    /// `[keys, D]`
    pub(in crate::cpu) k: &'a mut [T],
    /// The head's parameters.
    pub(in crate::cpu) own: &'a mut [T],
}

impl<T: Real> Programs<T> {
    /// The programs of a problem whose score is an expression, for the gradients that are wanted.
    pub(in crate::cpu) fn of(p: &Problem<T>, wanted: Wanted) -> Option<Self> {
        let Score::Expression { expression, parameters } = p.spec.score else { return None };
        let mut own = 0;
        let mut slots = Vec::with_capacity(parameters.len());
        for parameter in parameters {
            slots.push(Slot { offset: own, kind: parameter.kind() });
            own += parameter.shape[1];
        }
        let arrangement = if list::serves(p) { Arrangement::List } else { Arrangement::Tile };
        let d = p.s.dk;
        let compiled = expression.cache().get((slots.clone(), d, arrangement, wanted), || {
            Compiled::new(expression, &slots, d, arrangement, wanted)
        });
        Some(Self {
            compiled,
            d,
            parameters: (0..p.s.hq)
                .flat_map(|h| parameters.iter().flat_map(move |x| x.of_head(h)).copied())
                .collect(),
            own,
            shapes: parameters.iter().map(|parameter| parameter.shape).collect(),
        })
    }

    /// Numbers a head has of all parameters.
    pub(in crate::cpu) fn own(&self) -> usize {
        self.own
    }

    fn parameters_of(&self, h: usize) -> &[T] {
        &self.parameters[h * self.own..][..self.own]
    }

    /// Runs a program over one strip.
    ///
    /// # Safety
    /// The bases that the program uses hold what [`Base`] says, for this many keys and queries.
    unsafe fn run(
        &self,
        program: &Program,
        kernels: &Kernels<T>,
        bases: [*mut T; BASES],
        keys: usize,
        width: usize,
    ) {
        for section in &program.sections {
            for (instructions, features) in [(&section.once, 1), (&section.each_feature, self.d)] {
                // SAFETY: passed on to the caller; the instructions outlive the call.
                unsafe {
                    (kernels.expression_strip)(Strip {
                        instructions: instructions.as_ptr(),
                        count: instructions.len(),
                        features,
                        bases,
                        keys,
                        width,
                    });
                }
            }
        }
    }

    /// The scores of some keys for a block, `[keys, BLOCK]`.
    pub(in crate::cpu) fn score_tile(
        &self,
        p: &Problem<T>,
        block: &Block,
        keys: &Range<usize>,
        queries: &[T],
        tile: &mut [T],
    ) {
        assert!(queries.len() >= self.d * BLOCK && tile.len() >= keys.len() * BLOCK);
        let program = &self.compiled.score;
        let lengths = [program.rows, program.pairs, self.d * BLOCK];
        scratch::with(lengths, |[rows, pairs, columns]| {
            for (keys, tile) in strips(keys).zip(tile.chunks_mut(STRIP * BLOCK)) {
                self.pack_keys(p, block, &keys, columns);
                let bases = bases([
                    (Base::Rows, &mut *rows),
                    (Base::Pairs, &mut *pairs),
                    (Base::Keys, &mut *columns),
                    (Base::Tile, &mut *tile),
                ]);
                let bases = reading(bases, Base::Queries, queries);
                let bases = reading(bases, Base::Parameters, self.parameters_of(block.h));
                // SAFETY: all arrays hold a strip; the arrays only read are not written: no program
                // writes to queries or parameters.
                unsafe { self.run(program, p.kernels, bases, keys.len(), block.width) };
            }
        });
        // What the queries that fill up a register give is nobody's.
        if block.n < block.width {
            for row in tile.chunks_exact_mut(BLOCK).take(keys.len()) {
                row[block.n..block.width].fill(T::ZERO);
            }
        }
    }

    /// Adds a tile's part of the gradients of q `[queries, D]`, k `[keys, D]` and the head's
    /// parameters; `grad` is the gradient of its scores.
    pub(in crate::cpu) fn tile_grads(
        &self,
        p: &Problem<T>,
        (block, keys): (&Block, &Range<usize>),
        queries: &[T],
        grad: &[T],
        to: TileGrads<T>,
    ) {
        let TileGrads { q: dq, k: dk, own } = to;
        let d = self.d;
        assert!(queries.len() >= d * BLOCK && grad.len() >= keys.len() * BLOCK);
        assert!(own.len() >= self.own);
        let program = &self.compiled.grads;
        if program.is_empty() {
            return;
        }
        let lengths = [program.rows, program.pairs, d * BLOCK, d * BLOCK, d * BLOCK];
        scratch::with(lengths, |[rows, pairs, columns, query_grads, key_grads]| {
            query_grads.fill(T::ZERO);
            for (n, keys) in strips(keys).enumerate() {
                self.pack_keys(p, block, &keys, columns);
                key_grads.fill(T::ZERO);
                let bases = bases([
                    (Base::Rows, &mut *rows),
                    (Base::Pairs, &mut *pairs),
                    (Base::Keys, &mut *columns),
                    (Base::QueryGrads, &mut *query_grads),
                    (Base::KeyGrads, &mut *key_grads),
                    (Base::ParameterGrads, &mut *own),
                ]);
                let bases = reading(bases, Base::Queries, queries);
                let bases = reading(bases, Base::Tile, &grad[n * STRIP * BLOCK..]);
                let bases = reading(bases, Base::Parameters, self.parameters_of(block.h));
                // SAFETY: as in `score_tile`; nor do programs of gradients write to the tile.
                unsafe { self.run(program, p.kernels, bases, keys.len(), block.width) };
                for (r, row) in dk[n * STRIP * d..].chunks_exact_mut(d.max(1)).enumerate() {
                    if r < keys.len() {
                        add_column(row, key_grads, r);
                    }
                }
            }
            for (i, row) in dq.chunks_exact_mut(d.max(1)).enumerate().take(block.n) {
                add_column(row, query_grads, i);
            }
        });
    }

    /// The keys of a strip as columns `[D, BLOCK]`.
    fn pack_keys(&self, p: &Problem<T>, block: &Block, keys: &Range<usize>, to: &mut [T]) {
        let n = keys.len();
        let from = p.rows(&p.k, block.b, p.key_head(block.h), keys.start, n);
        let width = n.next_multiple_of(p.kernels.lanes);
        // SAFETY: n rows of k, and `to` has D rows of BLOCK ≥ width.
        unsafe {
            (p.kernels.pack)(from, p.k.strides[2], n, self.d, T::ONE, to.as_mut_ptr(), width);
        }
    }

    /// The scores of a list of pairs of one head.
    pub(in crate::cpu) fn score_pairs(
        &self,
        p: &Problem<T>,
        head: Head,
        pairs: impl Iterator<Item = (usize, usize)>,
        to: &mut [T],
    ) {
        let mut pairs = pairs.map(|(i, j)| Pair { i, j, grad: T::ZERO });
        let program = &self.compiled.score;
        let lengths = [program.rows, program.pairs, self.d * BLOCK, self.d * BLOCK, BLOCK];
        scratch::with(lengths, |[rows, spare, queries, keys, scores]| {
            for to in to.chunks_mut(BLOCK) {
                let width = self.gather(p, head, pairs.by_ref().take(to.len()), queries, keys);
                let bases = bases([
                    (Base::Rows, &mut *rows),
                    (Base::Pairs, &mut *spare),
                    (Base::Queries, &mut *queries),
                    (Base::Keys, &mut *keys),
                    (Base::Tile, &mut *scores),
                ]);
                let bases = reading(bases, Base::Parameters, self.parameters_of(head.h));
                // SAFETY: all arrays hold a strip of one row; no program writes to the parameters.
                unsafe { self.run(program, p.kernels, bases, 1, width) };
                to.copy_from_slice(&scores[..to.len()]);
            }
        });
    }

    /// Adds the gradients of q and of the head's parameters by a list of pairs.
    ///
    /// # Safety
    /// No other task uses these queries' rows of `grad_q`.
    pub(in crate::cpu) unsafe fn query_grads(
        &self,
        p: &Problem<T>,
        head: Head,
        pairs: &[Pair<T>],
        grad_q: Option<&ViewMut<T>>,
        own: &mut [T],
    ) {
        assert!(own.len() >= self.own);
        self.pair_grads(p, head, &self.compiled.grads, pairs, own, |pairs, query_grads, _| {
            let Some(to) = grad_q else { return };
            for (lane, pair) in pairs.iter().enumerate() {
                // SAFETY: the caller's rows.
                let row = unsafe {
                    std::slice::from_raw_parts_mut(to.row(head.b, head.h, pair.i), self.d)
                };
                add_column(row, query_grads, lane);
            }
        });
    }

    /// Adds the gradients of k by a list of pairs.
    ///
    /// # Safety
    /// No other task uses these keys' rows of `grad_k`.
    pub(in crate::cpu) unsafe fn key_grads(
        &self,
        p: &Problem<T>,
        head: Head,
        pairs: &[Pair<T>],
        grad_k: &ViewMut<T>,
    ) {
        self.pair_grads(
            p,
            head,
            &self.compiled.key_grads,
            pairs,
            &mut [],
            |pairs, _, key_grads| {
                for (lane, pair) in pairs.iter().enumerate() {
                    // SAFETY: the caller's rows.
                    let row = unsafe {
                        let row = grad_k.row(head.b, p.key_head(head.h), pair.j);
                        std::slice::from_raw_parts_mut(row, self.d)
                    };
                    add_column(row, key_grads, lane);
                }
            },
        );
    }

    /// Runs a program of gradients over a list, and gives `f` the gradients of q and k of as many
    /// pairs as a strip has, `[D, BLOCK]`.
    fn pair_grads(
        &self,
        p: &Problem<T>,
        head: Head,
        program: &Program,
        pairs: &[Pair<T>],
        own: &mut [T],
        f: impl Fn(&[Pair<T>], &[T], &[T]),
    ) {
        if program.is_empty() {
            return;
        }
        let columns = self.d * BLOCK;
        let lengths = [program.rows, program.pairs, columns, columns, BLOCK, columns, columns];
        scratch::with(lengths, |[rows, spare, queries, keys, grads, query_grads, key_grads]| {
            for pairs in pairs.chunks(BLOCK) {
                let width = self.gather(p, head, pairs.iter().copied(), queries, keys);
                grads.fill(T::ZERO);
                grads.iter_mut().zip(pairs).for_each(|(to, pair)| *to = pair.grad);
                query_grads.fill(T::ZERO);
                key_grads.fill(T::ZERO);
                let bases = bases([
                    (Base::Rows, &mut *rows),
                    (Base::Pairs, &mut *spare),
                    (Base::Queries, &mut *queries),
                    (Base::Keys, &mut *keys),
                    (Base::Tile, &mut *grads),
                    (Base::QueryGrads, &mut *query_grads),
                    (Base::KeyGrads, &mut *key_grads),
                    (Base::ParameterGrads, &mut *own),
                ]);
                let bases = reading(bases, Base::Parameters, self.parameters_of(head.h));
                // SAFETY: as in `score_pairs`; `own` has room where the program writes to it.
                unsafe { self.run(program, p.kernels, bases, 1, width) };
                f(pairs, query_grads, key_grads);
            }
        });
    }

    /// The rows of at most BLOCK pairs as columns `[D, BLOCK]`; gives how many columns there are,
    /// filled up to whole registers.
    fn gather(
        &self,
        p: &Problem<T>,
        head: Head,
        pairs: impl Iterator<Item = Pair<T>>,
        queries: &mut [T],
        keys: &mut [T],
    ) -> usize {
        let put = |row: &[T], columns: &mut [T], at: usize| {
            for (to, &x) in columns.iter_mut().skip(at).step_by(BLOCK).zip(row) {
                *to = x;
            }
        };
        let mut n = 0;
        for pair in pairs {
            put(p.q.row(head.b, head.h, pair.i), queries, n);
            put(p.k.row(head.b, p.key_head(head.h), pair.j), keys, n);
            n += 1;
        }
        let width = n.next_multiple_of(p.kernels.lanes);
        for columns in [queries, keys] {
            columns.chunks_exact_mut(BLOCK).for_each(|row| row[n..width].fill(T::ZERO));
        }
        width
    }

    /// Adds the parts of all heads, `[B·Hq, count, own]`, into the parameters' gradients, one after
    /// another, each in its shape.
    pub(in crate::cpu) fn add_parameters(&self, to: &mut [T], parts: &[T], count: usize) {
        to.fill(T::ZERO);
        let heads = self.parameters.len().checked_div(self.own).unwrap_or(0);
        for (at, part) in parts.chunks_exact(self.own.max(1)).enumerate() {
            let h = at / count % heads;
            let (mut to, mut part) = (&mut *to, part);
            for &[own_heads, width] in &self.shapes {
                let (here, rest) = std::mem::take(&mut to).split_at_mut(own_heads * width);
                let (x, others) = part.split_at(width);
                let row = if own_heads == 1 { 0 } else { h * width };
                here[row..].iter_mut().zip(x).for_each(|(to, x)| *to += *x);
                (to, part) = (rest, others);
            }
        }
    }
}

/// The strips of a range of keys.
fn strips(keys: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    let end = keys.end;
    keys.clone().step_by(STRIP).map(move |j| j..(j + STRIP).min(end))
}

/// Adds a column of `[D, BLOCK]` to a row.
fn add_column<T: Real>(row: &mut [T], columns: &[T], at: usize) {
    for (to, x) in row.iter_mut().zip(columns.iter().skip(at).step_by(BLOCK)) {
        *to += *x;
    }
}

/// Pointers to arrays by their bases.
fn bases<T, const N: usize>(arrays: [(Base, &mut [T]); N]) -> [*mut T; BASES] {
    let mut bases = [std::ptr::null_mut(); BASES];
    for (base, array) in arrays {
        bases[base as usize] = array.as_mut_ptr();
    }
    bases
}

/// The same with an array that is only read.
fn reading<T>(mut bases: [*mut T; BASES], base: Base, array: &[T]) -> [*mut T; BASES] {
    bases[base as usize] = array.as_ptr().cast_mut();
    bases
}

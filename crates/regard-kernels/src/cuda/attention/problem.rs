//! One attention problem as the kernels read it; numbers of eight bytes, in the order of
//! `text/problem.cu`.

use super::edges::KeptEdges;
use super::options_at::{EdgesAt, OptionsAt, PARAMETERS};
use crate::cuda::device::Device;
use crate::cuda::memory::Memory;
use crate::error::{Error, ensure};
use crate::spec::{Bias, Broadcast, Edges, Mask, Normalizer, Relative, Score, Shape, Spec};
use crate::{Element, Real, View};
use std::sync::Arc;

/// A four-dimensional array, by address and strides.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cuda) struct Array {
    pub(in crate::cuda) data: u64,
    pub(in crate::cuda) strides: [i64; 3],
}

/// Rows to read: the host's, which are copied, or some that lie on the device already.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct Rows<'a, E> {
    /// Their shape and strides; and their numbers, unless they lie on the device.
    pub(in crate::cuda) view: View<'a, E>,
    pub(in crate::cuda) at: Option<u64>,
}

impl<'a, E> From<View<'a, E>> for Rows<'a, E> {
    fn from(view: View<'a, E>) -> Self {
        Self { view, at: None }
    }
}

impl<E> Rows<'_, E> {
    /// Whether sixteen bytes of the first row are one load. What is copied always is.
    pub(in crate::cuda) fn is_aligned(&self) -> bool {
        self.at.is_none_or(|at| at.is_multiple_of(16))
    }

    fn are(&self, other: &Self) -> bool {
        let (a, b) = (&self.view, &other.view);
        (a.strides, a.shape, self.at) == (b.strides, b.shape, other.at)
            && std::ptr::eq(a.data, b.data)
    }
}

/// Numbers to read, if any: the host's, or some that lie on the device already.
#[derive(Clone, Copy)]
pub(in crate::cuda) enum Source<'a, X> {
    Host(Option<&'a [X]>),
    Device(Option<u64>),
}

impl<X> Source<'_, X> {
    pub(in crate::cuda) fn is_none(&self) -> bool {
        matches!(self, Self::Host(None) | Self::Device(None))
    }
}

/// An array broadcast to `[B, Hq, Nq, Nk]`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cuda) struct Spread {
    data: u64,
    strides: [i64; 4],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cuda) struct Parameter {
    data: u64,
    head: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cuda) struct Problem {
    sizes: [i64; 7],
    pub(in crate::cuda) q: Array,
    pub(in crate::cuda) k: Array,
    pub(in crate::cuda) v: Array,
    scale: f64,
    offset: i64,
    causal: i64,
    windowed: i64,
    left: i64,
    right: i64,
    lengths: u64,
    q_segments: u64,
    k_segments: u64,
    dense: Spread,
    row_start: u64,
    row_keys: u64,
    column_start: u64,
    column_queries: u64,
    column_edges: u64,
    row_draws: u64,
    edges: i64,
    key_bias: Spread,
    full_bias: Spread,
    alibi: u64,
    relative: u64,
    relative_head: i64,
    max_distance: i64,
    normalizer: i64,
    sample_seed: u64,
    dropped: i64,
    dropout_seed: u64,
    dropped_below: u64,
    kept: f64,
    parameters: [Parameter; PARAMETERS],
}

impl Problem {
    /// Whether a query can have keys that it does not see, graphs and dense masks aside; a bias by distance of −∞
    /// hides too.
    pub(in crate::cuda) fn hides(&self) -> bool {
        let ranged = self.causal + self.windowed > 0 || self.lengths != 0;
        ranged || self.q_segments != 0 || self.relative != 0
    }
}

/// A problem, and the memory it stands in.
pub(in crate::cuda) struct Uploaded {
    pub(in crate::cuda) problem: Problem,
    device: Arc<Device>,
    memory: Vec<Memory>,
    /// What the edges' addresses are of.
    _edges: Option<Arc<KeptEdges>>,
}

impl Uploaded {
    /// Copies everything a specification and its arrays name that does not lie on the device.
    pub(in crate::cuda) fn of<E: Element>(
        device: &Arc<Device>,
        spec: &Spec<E::Compute>,
        s: &Shape,
        [q, k, v]: [&Rows<E>; 3],
        options: OptionsAt,
    ) -> Result<Self, Error> {
        let sizes = [s.b, s.hq, s.hk, s.nq, s.nk, s.dk, s.dv].map(|n| n as i64);
        let problem = Problem { sizes, offset: spec.position(s) as i64, ..Problem::default() };
        let mut up = Self { problem, device: device.clone(), memory: Vec::new(), _edges: None };
        up.problem.q = up.array(q)?;
        up.problem.k = up.array(k)?;
        // Keys that are the values too are read once.
        up.problem.v = if k.are(v) { up.problem.k } else { up.array(v)? };
        up.score(&spec.score, s, &options)?;
        up.mask(&spec.mask, &options)?;
        up.bias(&spec.bias, &options)?;
        up.weights(spec);
        Ok(up)
    }

    /// Copies a slice, and keeps it as long as the problem.
    pub(in crate::cuda) fn slice<X: Copy>(&mut self, data: &[X]) -> Result<u64, Error> {
        let memory = Memory::of(&self.device, data)?;
        let at = memory.at;
        self.memory.push(memory);
        Ok(at)
    }

    /// Where a slice lies on the device, or its copy there.
    fn placed<X: Copy>(&mut self, data: &[X], at: Option<u64>) -> Result<u64, Error> {
        at.map_or_else(|| self.slice(data), Ok)
    }

    /// A slice's address, or 0 where there is none.
    pub(in crate::cuda) fn optional<X: Copy>(&mut self, data: Option<&[X]>) -> Result<u64, Error> {
        data.map_or(Ok(0), |data| self.slice(data))
    }

    /// Where some numbers lie, or 0.
    pub(in crate::cuda) fn source<X: Copy>(&mut self, source: Source<X>) -> Result<u64, Error> {
        match source {
            Source::Host(data) => self.optional(data),
            Source::Device(at) => Ok(at.unwrap_or(0)),
        }
    }

    pub(in crate::cuda) fn array<E: Element>(&mut self, rows: &Rows<E>) -> Result<Array, Error> {
        let Rows { view, at } = rows;
        let [b, h, n, d] = view.shape;
        let strides = view.strides;
        if let Some(data) = *at {
            return Ok(Array { data, strides: strides.map(|stride| stride as i64) });
        }
        // Only as far as the view reaches.
        let end = match [b, h, n, d].contains(&0) {
            true => 0,
            false => (b - 1) * strides[0] + (h - 1) * strides[1] + (n - 1) * strides[2] + d,
        };
        let data = self.slice(&view.data[..end])?;
        Ok(Array { data, strides: strides.map(|stride| stride as i64) })
    }

    fn spread<X: Copy>(&mut self, array: &Broadcast<X>, at: Option<u64>) -> Result<Spread, Error> {
        let data = self.placed(array.data, at)?;
        Ok(Spread { data, strides: array.strides().map(|stride| stride as i64) })
    }

    fn score<T: Real>(&mut self, score: &Score<T>, s: &Shape, at: &OptionsAt) -> Result<(), Error> {
        let per_head = |len: usize, width: usize| if len == width { 0 } else { width as i64 };
        match score {
            Score::Dot { scale } => self.problem.scale = scale.f64(),
            Score::Additive { w, .. } => {
                let data = self.placed(w, at.w)?;
                self.problem.parameters[0] = Parameter { data, head: per_head(w.len(), s.dk) };
            }
            Score::Expression { parameters, .. } => {
                ensure!(
                    parameters.len() <= PARAMETERS,
                    "the score has {} parameters; on a GPU it may have {PARAMETERS}",
                    parameters.len()
                );
                for (to, parameter) in parameters.iter().enumerate() {
                    let [heads, width] = parameter.shape;
                    let data = self.placed(parameter.data, at.parameters[to])?;
                    let head = if heads == 1 { 0 } else { width as i64 };
                    self.problem.parameters[to] = Parameter { data, head };
                }
            }
            Score::Own { .. } => {}
        }
        Ok(())
    }

    fn mask(&mut self, mask: &Mask, at: &OptionsAt) -> Result<(), Error> {
        self.problem.causal = i64::from(mask.causal);
        if let Some(window) = mask.window {
            // A window that reaches anywhere reaches no further than any sequence.
            let within = |n: usize| n.min(1 << 40) as i64;
            self.problem.windowed = 1;
            (self.problem.left, self.problem.right) = (within(window.left), within(window.right));
        }
        if let Some(lengths) = mask.key_lengths {
            let lengths: Vec<i64> = lengths.iter().map(|&n| n as i64).collect();
            self.problem.lengths = self.placed(&lengths, at.key_lengths)?;
        }
        if let Some(segments) = mask.segments {
            self.problem.q_segments = self.placed(segments.q, at.q_segments)?;
            self.problem.k_segments = self.placed(segments.k, at.k_segments)?;
        }
        if let Some(dense) = &mask.dense {
            self.problem.dense = self.spread(dense, at.dense)?;
        }
        if let Some(edges) = mask.edges {
            self.edges(edges, at.edges.as_ref())?;
        }
        Ok(())
    }

    fn edges(&mut self, edges: &Edges, at: Option<&EdgesAt>) -> Result<(), Error> {
        self.problem.edges = edges.len() as i64;
        if let Some(at) = at {
            self.problem.row_start = at.row_start;
            self.problem.row_keys = at.row_keys;
            self.problem.column_start = at.column_start;
            self.problem.column_queries = at.column_queries;
            self.problem.column_edges = at.column_edges;
            self.problem.row_draws = at.row_draws.unwrap_or(0);
            return Ok(());
        }
        let kept = edges.on_gpu.of(&self.device, edges)?;
        let [row_start, row_keys, column_start, column_queries, column_edges, row_draws] = kept.at;
        self.problem.row_start = row_start;
        self.problem.row_keys = row_keys;
        self.problem.column_start = column_start;
        self.problem.column_queries = column_queries;
        self.problem.column_edges = column_edges;
        self.problem.row_draws = row_draws;
        self._edges = Some(kept);
        Ok(())
    }

    fn bias<T: Real>(&mut self, bias: &Bias<T>, at: &OptionsAt) -> Result<(), Error> {
        if let Some(key) = &bias.key {
            self.problem.key_bias = self.spread(key, at.key_bias)?;
        }
        if let Some(full) = &bias.full {
            self.problem.full_bias = self.spread(full, at.bias)?;
        }
        if let Some(slopes) = bias.alibi {
            self.problem.alibi = self.placed(slopes, at.alibi)?;
        }
        if let Some(Relative { table, max_distance }) = bias.relative {
            self.problem.relative = self.placed(table, at.relative)?;
            let width = 2 * max_distance + 1;
            self.problem.relative_head = if table.len() == width { 0 } else { width as i64 };
            self.problem.max_distance = max_distance as i64;
        }
        Ok(())
    }

    fn weights<T: Real>(&mut self, spec: &Spec<T>) {
        let problem = &mut self.problem;
        problem.normalizer = spec.normalizer.number() as i64;
        if let Normalizer::Sample { seed } = spec.normalizer {
            problem.sample_seed = seed;
        }
        if let Some(dropout) = spec.dropout {
            let keep = dropout.of_head::<T>(0);
            problem.dropped = 1;
            problem.dropout_seed = dropout.seed;
            problem.dropped_below = u64::from(keep.below);
            problem.kept = keep.factor.f64();
        }
    }
}

impl Normalizer {
    /// As `text/problem.cu` numbers them.
    pub(in crate::cuda) fn number(self) -> usize {
        match self {
            Self::Softmax => 0,
            Self::Sparsemax => 1,
            Self::Entmax15 => 2,
            Self::Sigmoid => 3,
            Self::None => 4,
            Self::Argmax => 5,
            Self::Sample { .. } => 6,
        }
    }
}

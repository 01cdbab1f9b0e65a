//! Which kernels a problem goes to.

use super::additive::Padded;
use super::decode;
use super::dot;
use super::dot_tiles::DotTiles;
use super::graph::{self, GraphSizes};
use super::problem::Rows;
use super::source::{Stored, Variant};
use super::split;
use super::tensor_map::EVEN;
use super::tile_sizes::{self, TileSizes};
use crate::cuda::HOPPER;
use crate::error::Error;
use crate::spec::{Normalizer, Score, Shape, Spec};
use crate::{Activation, Element, Real};

/// The forms there are kernels for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cuda) enum Form {
    /// Everything, by plain means.
    Generic,
    /// Softmax over the edges of a graph, additive scores.
    Graph(GraphSizes),
    /// Softmax of additive scores with tanh, tile by tile.
    Additive,
    /// Softmax of dot products of 16-bit numbers, on Hopper's tensor cores.
    Dot,
    /// The same with a learned bias by distance.
    DotBias,
    /// The same under sparsemax or entmax.
    DotThreshold,
    /// Softmax of dot products of 16-bit numbers, few queries over many keys.
    Decode,
    /// Softmax of dot products of f32 numbers, in parts, on Hopper's tensor cores.
    DotSplit,
    /// Dot products under every mask, bias and dropout, on any GPU's tensor cores.
    Tile(TileSizes),
}

/// Queries that the generic kernels have sooner than tiles.
const FEW_QUERIES: usize = 8;
/// The widest value that the additive tiles have registers for.
const WIDEST_VALUE: usize = 256;

impl Form {
    /// The form of a forward pass that is asked for nothing but the output and its log-sum-exp, of q, k
    /// and v, and of the output where it lies on the device, on a GPU of this compute capability.
    pub(in crate::cuda) fn of_forward<E: Element>(
        spec: &Spec<E::Compute>,
        s: &Shape,
        rows: &[Rows<E>],
        capability: (i32, i32),
    ) -> Self {
        if is_decode(spec, s, rows) {
            return Self::Decode;
        }
        if let Some(form) = dot_form(spec, s, rows, capability) {
            return form;
        }
        if is_split::<E>(spec, s, capability) {
            return Self::DotSplit;
        }
        if let Some(sizes) = graph_sizes(spec, s, rows) {
            return Self::Graph(sizes);
        }
        if Stored::of::<E>() != Stored::F32 || !is_plain(spec) {
            return Self::Generic;
        }
        match is_additive(spec, s) && are_values_even(s, rows) {
            true => Self::Additive,
            false => Self::Generic,
        }
    }

    /// The form of a backward pass at which nothing arrives but the gradients of the output and
    /// its log-sum-exp; of q, k, v, the output's gradient and the output, and of those gradients that lie
    /// on the device.
    pub(in crate::cuda) fn of_backward<E: Element>(
        spec: &Spec<E::Compute>,
        s: &Shape,
        rows: &[Rows<E>],
        capability: (i32, i32),
    ) -> Self {
        if let Some(form) = dot_form(spec, s, rows, capability) {
            return form;
        }
        if is_split::<E>(spec, s, capability) {
            return Self::DotSplit;
        }
        if let Some(sizes) = graph_sizes(spec, s, rows) {
            return Self::Graph(sizes);
        }
        if Stored::of::<E>() != Stored::F32 || !is_plain(spec) {
            return Self::Generic;
        }
        let fits = s.hq == s.hk && s.dk <= WIDEST_VALUE && are_values_even(s, rows);
        match is_additive(spec, s) && fits {
            true => Self::Additive,
            false => Self::Generic,
        }
    }

    /// This form, or the generic one where a block would need more shared memory than the GPU has for it.
    pub(in crate::cuda) fn within(self, s: &Shape, shared_memory: usize, backward: bool) -> Self {
        let needed = match self {
            Self::Additive => Padded::of(s, backward).shared(backward),
            Self::Decode => decode::shared(s),
            _ => 0,
        };
        if needed > shared_memory { Self::Generic } else { self }
    }

    /// This form, or the general tiles where it is the generic one and they have what the problem asks for.
    ///
    /// `rows` are as the pass has them; `backward` and `arriving`, whether gradients arrive at the weights, as
    /// [`TileSizes`] takes them.
    pub(in crate::cuda) fn or_tile<E: Element>(
        self,
        spec: &Spec<E::Compute>,
        s: &Shape,
        rows: &[Rows<E>],
        [backward, arriving]: [bool; 2],
        shared_memory: usize,
    ) -> Self {
        if self != Self::Generic || !is_tile::<E>(spec, s) {
            return self;
        }
        let aligned = rows.iter().all(is_copied_evenly);
        let stored = Stored::of::<E>();
        TileSizes::of(spec, s, stored, [aligned, backward, arriving], shared_memory)
            .map_or(self, Self::Tile)
    }

    /// What tests and people call it.
    pub(in crate::cuda) fn name(self) -> String {
        match self {
            Self::Tile(_) => "Tile".into(),
            Self::Graph(_) => "Graph".into(),
            other => format!("{other:?}"),
        }
    }

    /// The text for a pass over a problem of this form.
    pub(in crate::cuda) fn variant<E: Element>(
        self,
        spec: &Spec<E::Compute>,
        s: &Shape,
        backward: bool,
    ) -> Result<Variant, Error> {
        match (self, &spec.score) {
            (Self::Graph(sizes), Score::Additive { activation, .. }) => {
                Ok(Variant::graph(*activation, sizes, Stored::of::<E>()))
            }
            (Self::Additive, _) => {
                let padded = Padded::of(s, backward);
                Ok(Variant::additive(padded.width, padded.value_width, backward))
            }
            (Self::DotSplit, _) => Ok(Variant::split(backward)),
            (Self::Tile(sizes), _) => Ok(Variant::tile(sizes, Stored::of::<E>())),
            (Self::Decode, _) => {
                let [width, value_width] = decode::padded(s);
                Ok(Variant::decode(width, value_width, Stored::of::<E>()))
            }
            (Self::Dot | Self::DotBias | Self::DotThreshold, _) => {
                Ok(Variant::dot(DotTiles::of(s, spec, backward), Stored::of::<E>()))
            }
            _ => Variant::generic(spec, s, Stored::of::<E>()).ok_or_else(|| {
                Error::new(
                    "a score of the caller's own code runs on the CPU alone; on a GPU, write it \
                     as an expression",
                )
            }),
        }
    }
}

/// Whether four numbers of a row are one load, wherever it stands.
fn is_even<E>(rows: &Rows<E>) -> bool {
    rows.is_aligned() && rows.view.shape[3].is_multiple_of(4) && are_strides_multiples(rows, 4)
}

/// The stride of an axis that has one entry leads nowhere, whatever it is.
fn are_strides_multiples<E>(rows: &Rows<E>, of: usize) -> bool {
    let view = &rows.view;
    view.strides.iter().zip(&view.shape).all(|(n, &size)| size == 1 || n.is_multiple_of(of))
}

/// Whether a graph's kernels have four numbers of every row at once, or, where a head of the queries and keys
/// has one number, that.
fn is_read_by_graphs<E>(rows: &Rows<E>) -> bool {
    rows.view.shape[3] == 1 || is_even(rows)
}

/// The additive tiles have the values, the output and their gradients four numbers at a time, and queries
/// and keys number by number; of the same width they are not told apart.
fn are_values_even<E>(s: &Shape, rows: &[Rows<E>]) -> bool {
    rows.iter().enumerate().all(|(n, x)| n < 2 || x.view.shape[3] != s.dv || is_even(x))
}

/// Softmax, and nothing but score and mask.
fn is_plain<T: Real>(spec: &Spec<T>) -> bool {
    spec.normalizer == Normalizer::Softmax && spec.bias.is_none() && spec.dropout.is_none()
}

/// Dot products of few queries under a mask that leaves each a range of keys.
fn is_decode<E: Element>(spec: &Spec<E::Compute>, s: &Shape, rows: &[Rows<E>]) -> bool {
    let mask = &spec.mask;
    is_scaled_dot(spec, s, rows) && is_plain(spec) && mask.segments.is_none() && decode::fits(s)
}

/// Dot products of f32 numbers under a mask that leaves each query a range of keys, on a Hopper.
fn is_split<E: Element>(spec: &Spec<E::Compute>, s: &Shape, capability: (i32, i32)) -> bool {
    Stored::of::<E>() == Stored::F32
        && capability == HOPPER
        && is_ranged_dot(spec, s)
        && is_plain(spec)
        && spec.mask.segments.is_none()
        && (1..=split::WIDEST).contains(&s.dk)
        && (1..=split::WIDEST).contains(&s.dv)
}

/// Dot products of 16-bit numbers, of rows that are copied sixteen bytes at a time and as wide as the tensor
/// cores' tiles at most.
fn is_scaled_dot<E: Element>(spec: &Spec<E::Compute>, s: &Shape, rows: &[Rows<E>]) -> bool {
    matches!(Stored::of::<E>(), Stored::Bf16 | Stored::F16)
        && is_ranged_dot(spec, s)
        && s.dk <= dot::WIDEST
        && s.dv <= dot::WIDEST
        && rows.iter().all(is_mapped)
}

/// Dot products under a normalizer whose weights need no threshold and no choice; no edges.
fn is_tile<E: Element>(spec: &Spec<E::Compute>, s: &Shape) -> bool {
    let normalizers = [Normalizer::Softmax, Normalizer::Sigmoid, Normalizer::None];
    let within = |n: usize| (1..=tile_sizes::WIDEST).contains(&n);
    Stored::of::<E>() != Stored::F64
        && matches!(spec.score, Score::Dot { .. })
        && normalizers.contains(&spec.normalizer)
        && spec.mask.edges.is_none()
        && within(s.dk)
        && within(s.dv)
        && is_counted(s)
        && spec.position(s).unsigned_abs() < MOST
}

/// Whether a row is copied sixteen bytes at a time.
fn is_copied_evenly<E>(rows: &Rows<E>) -> bool {
    let even = 16 / size_of::<E>();
    rows.is_aligned()
        && rows.view.shape[3].is_multiple_of(even)
        && are_strides_multiples(rows, even)
}

/// Blocks, rows and columns are counted in 32 bits.
const MOST: usize = 1 << 30;

/// Whether there are some, and not too many.
fn is_counted(s: &Shape) -> bool {
    let heads = s.b.saturating_mul(s.hq);
    let few = |n: usize| n > 0 && heads.saturating_mul(n) < MOST;
    few(s.nq) && few(s.nk)
}

/// Dot products, neither edges nor a dense mask, no dropout.
fn is_ranged_dot<T: Real>(spec: &Spec<T>, s: &Shape) -> bool {
    // The largest score is found before it is scaled.
    let Score::Dot { scale } = spec.score else { return false };
    scale > T::ZERO
        && scale.f64().is_finite()
        && spec.dropout.is_none()
        && spec.mask.edges.is_none()
        && spec.mask.dense.is_none()
        && is_counted(s)
}

/// Dot products under a mask that leaves each query a range of keys, or its segment, on a Hopper.
fn dot_form<E: Element>(
    spec: &Spec<E::Compute>,
    s: &Shape,
    rows: &[Rows<E>],
    capability: (i32, i32),
) -> Option<Form> {
    let by_distance = spec.bias.key.is_none()
        && spec.bias.full.is_none()
        && spec.bias.alibi.is_none()
        && spec.bias.relative.is_some_and(|x| (1..=dot::FURTHEST).contains(&x.max_distance));
    let form = match spec.normalizer {
        Normalizer::Softmax if spec.bias.is_none() => Some(Form::Dot),
        Normalizer::Softmax => by_distance.then_some(Form::DotBias),
        _ => (spec.normalizer.has_threshold() && spec.bias.is_none()).then_some(Form::DotThreshold),
    };
    let fits = capability == HOPPER && is_scaled_dot(spec, s, rows);
    form.filter(|_| fits)
}

/// Whether copies of tiles reach every row: 16 bytes at a time, and none twice.
fn is_mapped<E>(rows: &Rows<E>) -> bool {
    let view = &rows.view;
    rows.is_aligned()
        && view.shape[3] > 0
        && view.shape[3].is_multiple_of(EVEN)
        && are_strides_multiples(rows, EVEN)
        && view.strides.iter().zip(&view.shape).all(|(&stride, &size)| stride > 0 || size == 1)
}

/// Additive scores with tanh under a mask that leaves each query a range of keys.
fn is_additive<T: Real>(spec: &Spec<T>, s: &Shape) -> bool {
    let mask = &spec.mask;
    // A tile has 64 queries: of few it would be mostly empty.
    matches!(spec.score, Score::Additive { activation: Activation::Tanh, .. })
        && s.nq > FEW_QUERIES
        && mask.edges.is_none()
        && mask.dense.is_none()
        && mask.segments.is_none()
        && s.dv.is_multiple_of(4)
        && s.dv <= WIDEST_VALUE
}

/// How a warp has the heads of a query, where the graph kernels know the problem.
fn graph_sizes<E: Element>(
    spec: &Spec<E::Compute>,
    s: &Shape,
    rows: &[Rows<E>],
) -> Option<GraphSizes> {
    let Score::Additive { activation, .. } = spec.score else { return None };
    let piecewise = matches!(
        activation,
        Activation::LeakyRelu { .. } | Activation::Relu | Activation::Identity
    );
    let fits = piecewise
        && Stored::of::<E>() != Stored::F64
        && spec.normalizer == Normalizer::Softmax
        && spec.bias.is_none()
        && spec.mask.edges.is_some()
        && !spec.mask.is_more_than_edges()
        && s.hq == s.hk
        && (s.dk == s.dv || s.dk == 1)
        && (1..=graph::WIDEST).contains(&s.dv);
    let aligned = s.dv.is_multiple_of(4) && rows.iter().all(is_read_by_graphs);
    fits.then(|| GraphSizes::of(s, [aligned, spec.dropout.is_some()]))
}

//! Which kernels a problem goes to.

use super::additive::Padded;
use super::source::{Stored, Variant};
use crate::error::Error;
use crate::spec::{Normalizer, Score, Shape, Spec};
use crate::{Activation, Element, Real, View};

/// The forms there are kernels for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Everything, by plain means.
    Generic,
    /// Softmax over the edges of a graph, additive scores, heads that fit in a warp together.
    Graph,
    /// Softmax of additive scores with tanh, tile by tile.
    Additive,
}

/// The widest value that the additive tiles have registers for.
const WIDEST_VALUE: usize = 256;

impl Form {
    /// The form of a forward pass that is asked for nothing but the output and its log-sum-exp.
    pub(super) fn of_forward<E: Element>(spec: &Spec<E::Compute>, s: &Shape, v: &View<E>) -> Self {
        if Stored::of::<E>() != Stored::F32 || !is_plain(spec) {
            return Self::Generic;
        }
        if is_graph(spec, s) && is_even(v) {
            return Self::Graph;
        }
        match is_additive(spec, s) && is_even(v) {
            true => Self::Additive,
            false => Self::Generic,
        }
    }

    /// The form of a backward pass at which nothing arrives but the gradients of the output and
    /// its log-sum-exp.
    pub(super) fn of_backward<E: Element>(
        spec: &Spec<E::Compute>,
        s: &Shape,
        rows: [&View<E>; 3],
    ) -> Self {
        let plain = Stored::of::<E>() == Stored::F32 && is_plain(spec);
        if !plain || !rows.into_iter().all(is_even) {
            return Self::Generic;
        }
        if is_graph(spec, s) {
            return Self::Graph;
        }
        match is_additive(spec, s) && s.hq == s.hk && s.dk <= WIDEST_VALUE {
            true => Self::Additive,
            false => Self::Generic,
        }
    }

    /// The text for a pass over a problem of this form.
    pub(super) fn variant<E: Element>(
        self,
        spec: &Spec<E::Compute>,
        s: &Shape,
        backward: bool,
    ) -> Result<Variant, Error> {
        match (self, &spec.score) {
            (Self::Graph, Score::Additive { activation, .. }) => Ok(Variant::graph(*activation, s)),
            (Self::Additive, _) => {
                let padded = Padded::of(s, backward);
                Ok(Variant::additive(padded.width, padded.value_width, backward))
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
fn is_even<E>(view: &View<E>) -> bool {
    view.strides.iter().chain(&view.shape[3..]).all(|n| n.is_multiple_of(4))
}

/// Softmax, and nothing but score and mask.
fn is_plain<T: Real>(spec: &Spec<T>) -> bool {
    spec.normalizer == Normalizer::Softmax && spec.bias.is_none() && spec.dropout.is_none()
}

/// Additive scores with tanh under a mask that leaves each query a range of keys.
fn is_additive<T: Real>(spec: &Spec<T>, s: &Shape) -> bool {
    let mask = &spec.mask;
    matches!(spec.score, Score::Additive { activation: Activation::Tanh, .. })
        && mask.edges.is_none()
        && mask.dense.is_none()
        && mask.segments.is_none()
        && s.dv.is_multiple_of(4)
        && s.dv <= WIDEST_VALUE
}

fn is_graph<T: Real>(spec: &Spec<T>, s: &Shape) -> bool {
    let Score::Additive { activation, .. } = spec.score else { return false };
    let piecewise = matches!(
        activation,
        Activation::LeakyRelu { .. } | Activation::Relu | Activation::Identity
    );
    let lanes = s.hq * s.dv / 4;
    piecewise
        && spec.mask.edges.is_some()
        && !spec.mask.is_more_than_edges()
        && s.hq == s.hk
        && (s.dk == s.dv || s.dk == 1)
        && s.dv.is_multiple_of(4)
        && (s.dv / 4).is_power_of_two()
        && lanes.is_power_of_two()
        && (4..=32).contains(&lanes)
}

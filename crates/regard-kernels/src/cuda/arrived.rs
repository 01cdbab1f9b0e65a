//! What a backward pass reads besides the specification.

use super::problem::{Rows, Source};
use crate::spec::{Backward, Normalizer};
use crate::{Element, View};

/// Arrays that arrive at a backward pass, and what forward left: slices of the host, or addresses on the device.
#[derive(Clone)]
pub(super) struct Arrived<'a, E: Element> {
    /// q, k, v, the output's gradient; then what forward put out, and gradients that lie on the device.
    pub(super) rows: Vec<Rows<'a, E>>,
    pub(super) has_out: bool,
    pub(super) grad_weights: Source<'a, E::Compute>,
    pub(super) grad_edge_weights: Source<'a, E::Compute>,
    pub(super) grad_log_prob: Source<'a, E::Compute>,
    pub(super) grad_lse: Source<'a, E::Compute>,
    pub(super) lse: Source<'a, E::Compute>,
    pub(super) threshold: Source<'a, E::Compute>,
    pub(super) index: Source<'a, i64>,
}

impl<'a, E: Element> Arrived<'a, E> {
    /// The host's.
    pub(super) fn of([q, k, v]: [View<'a, E>; 3], pass: &Backward<'a, E>) -> Self {
        let rows = [Some(q), Some(k), Some(v), Some(pass.grad_out), pass.saved.out];
        Self {
            rows: rows.into_iter().flatten().map(Rows::from).collect(),
            has_out: pass.saved.out.is_some(),
            grad_weights: Source::Host(pass.grad_weights),
            grad_edge_weights: Source::Host(pass.grad_edge_weights),
            grad_log_prob: Source::Host(pass.grad_log_prob),
            grad_lse: Source::Host(pass.grad_lse),
            lse: Source::Host(pass.saved.lse),
            threshold: Source::Host(pass.saved.threshold),
            index: Source::Host(pass.saved.index),
        }
    }

    /// Whether nothing arrives but what the general tiles know of, and softmax has its output.
    pub(super) fn is_of_tiles(&self, normalizer: Normalizer) -> bool {
        let softmax = normalizer == Normalizer::Softmax;
        let nothing = [&self.grad_edge_weights, &self.grad_log_prob].iter().all(|x| x.is_none());
        nothing && if softmax { self.has_out } else { self.grad_lse.is_none() }
    }

    /// Whether nothing arrives but what the fast forms know of.
    pub(super) fn is_plain(&self) -> bool {
        self.grad_weights.is_none() && self.grad_edge_weights.is_none()
    }
}

//! What a backward pass reads besides the specification.

use super::options_at::OptionsAt;
use super::problem::{Rows, Source};
use crate::spec::{Backward, Normalizer};
use crate::{Element, View};

/// Arrays that arrive at a backward pass, and what forward left: slices of the host, or addresses on the device.
#[derive(Clone)]
pub(in crate::cuda) struct Arrived<'a, E: Element> {
    /// q, k, v, the output's gradient; then what forward put out, and gradients that lie on the device.
    pub(in crate::cuda) rows: Vec<Rows<'a, E>>,
    pub(in crate::cuda) has_out: bool,
    pub(in crate::cuda) grad_weights: Source<'a, E::Compute>,
    pub(in crate::cuda) grad_edge_weights: Source<'a, E::Compute>,
    pub(in crate::cuda) grad_log_prob: Source<'a, E::Compute>,
    pub(in crate::cuda) grad_lse: Source<'a, E::Compute>,
    pub(in crate::cuda) lse: Source<'a, E::Compute>,
    pub(in crate::cuda) threshold: Source<'a, E::Compute>,
    pub(in crate::cuda) index: Source<'a, i64>,
    /// What of the specification lies on the device.
    pub(in crate::cuda) options: OptionsAt,
}

impl<'a, E: Element> Arrived<'a, E> {
    /// The host's.
    pub(in crate::cuda) fn of([q, k, v]: [View<'a, E>; 3], pass: &Backward<'a, E>) -> Self {
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
            options: OptionsAt::default(),
        }
    }

    /// Whether nothing arrives but what the general tiles know of, and softmax has its output.
    pub(in crate::cuda) fn is_of_tiles(&self, normalizer: Normalizer) -> bool {
        let softmax = normalizer == Normalizer::Softmax;
        let nothing = [&self.grad_edge_weights, &self.grad_log_prob].iter().all(|x| x.is_none());
        nothing && if softmax { self.has_out } else { self.grad_lse.is_none() }
    }

    /// Whether nothing arrives but what the fast forms know of.
    pub(in crate::cuda) fn is_plain(&self) -> bool {
        self.grad_weights.is_none() && self.grad_edge_weights.is_none()
    }
}

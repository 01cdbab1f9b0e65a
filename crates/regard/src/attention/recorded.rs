//! What the attentions of a model give while it computes, kept for whoever looks inside: means of
//! heads, and heads that are put into another computation.

use super::intervention::Here;
use super::{Attended, Site};
use regard_tensor::Tensor;
use std::cell::RefCell;

/// What an attention that a model names gave in one call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// Which attention.
    pub site: Site,
    /// The layer, from 0.
    pub layer: usize,
    /// The row that the first query stands for: a model that writes asks for one row after another.
    pub row: usize,
    /// The heads' outputs, `[B, H, Nq, Dv]`.
    pub out: Tensor,
    /// Their weights, `[B, H, Nq, Nk]`; none along the edges of a graph.
    pub weights: Option<Tensor>,
}

thread_local! {
    static CALLS: RefCell<Option<Vec<Recorded>>> = const { RefCell::new(None) };
}

/// Runs `f` and keeps what the named attentions give meanwhile on this thread, in their order.
///
/// ```
/// use regard::attention::{Site, recorded};
/// use regard::prelude::*;
/// let model = TransformerEncoder::new(&Parameters::new(DType::F64, 1), &TransformerConfig::new(8, 2, 3), 8)?;
/// let x = Random::new(1).normal(&[1, 4, 8], 0.0, 1.0, DType::F64)?;
/// let (_, calls) = recorded(|| model.forward(&x, None, Mode::Infer));
/// assert_eq!(calls.iter().map(|one| (one.site, one.layer)).last(), Some((Site::Encoder, 2)));
/// assert_eq!(calls[0].out.shape(), [1, 2, 4, 4]);
/// # Ok::<(), regard::Error>(())
/// ```
pub fn recorded<R>(f: impl FnOnce() -> R) -> (R, Vec<Recorded>) {
    /// Puts back what was there, also where the closure panics.
    struct Restore(Option<Vec<Recorded>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CALLS.replace(self.0.take());
        }
    }
    let _restore = Restore(CALLS.replace(Some(Vec::new())));
    let result = f();
    (result, CALLS.take().unwrap_or_default())
}

/// Whether somebody keeps what attention gives.
pub(super) fn is_on() -> bool {
    CALLS.with_borrow(Option::is_some)
}

/// Keeps what was given, where somebody wants it.
pub(super) fn keep(here: Here, attended: &Attended) {
    CALLS.with_borrow_mut(|calls| {
        if let Some(calls) = calls {
            calls.push(of_call(here, attended));
        }
    });
}

/// What was given in a call, without its gradients.
pub(super) fn of_call(here: Here, attended: &Attended) -> Recorded {
    let Here { site, layer, row } = here;
    let weights = attended.weights.as_ref().map(Tensor::detach);
    Recorded { site, layer, row, out: attended.out.detach(), weights }
}

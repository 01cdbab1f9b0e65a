//! Gradients of attention weights: what attention × gradient is made of.

use super::intervention::Here;
use super::{Attended, Recorded, recorded::of_call};
use regard_tensor::{Gradients, Parameter, Result, Tensor, ensure};
use std::cell::RefCell;

/// What an attention that a model names gave in one call, and where its gradient is found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Traced {
    /// What it gave.
    pub call: Recorded,
    /// Zero, added to the heads' outputs: it has their gradient.
    added: Parameter,
    /// The values that the weights multiplied, `[B, Hv, Nk, Dv]`.
    v: Tensor,
}

thread_local! {
    static CALLS: RefCell<Option<Vec<Traced>>> = const { RefCell::new(None) };
}

/// Runs `f` and keeps what the named attentions give meanwhile on this thread, as
/// [`recorded`](super::recorded()) does, each with the gradient of its weights.
///
/// ```
/// use regard::attention::traced;
/// use regard::prelude::*;
/// let model = TransformerEncoder::new(&Parameters::new(DType::F64, 1), &TransformerConfig::new(8, 2, 3), 8)?;
/// let x = Random::new(1).normal(&[1, 4, 8], 0.0, 1.0, DType::F64)?;
/// let (y, calls) = traced(|| model.forward(&x, None, Mode::Infer)?.narrow(1, 0, 1)?.sum_all());
/// let gradients = y?.backward()?;
/// assert_eq!(calls[0].gradient(&gradients)?.unwrap().shape(), [1, 2, 4, 4]);
/// # Ok::<(), regard::Error>(())
/// ```
pub fn traced<R>(f: impl FnOnce() -> R) -> (R, Vec<Traced>) {
    /// Puts back what was there, also where the closure panics.
    struct Restore(Option<Vec<Traced>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CALLS.replace(self.0.take());
        }
    }
    let _restore = Restore(CALLS.replace(Some(Vec::new())));
    let result = f();
    (result, CALLS.take().unwrap_or_default())
}

impl Traced {
    /// The derivative by each weight, `[B, H, Nq, Nk]`, as it passes through the output of the heads: the
    /// gradient of a head's output times its values. None where nothing depends on the output.
    ///
    /// Refuses values whose heads do not divide those of the output.
    pub fn gradient(&self, gradients: &Gradients) -> Result<Option<Tensor>> {
        let Some(g) = gradients.get(&self.added) else { return Ok(None) };
        let ([heads, queries, width], [own, keys]) =
            ([g.shape()[1], g.shape()[2], g.shape()[3]], [self.v.shape()[1], self.v.shape()[2]]);
        ensure!(
            own > 0 && heads.is_multiple_of(own),
            "v has {own} heads, the output {heads}, which are no multiple of them"
        );
        // Heads that share values stand beside each other.
        let batch = g.shape()[0];
        let g = g.contiguous()?.reshape(&[batch, own, heads / own, queries, width])?;
        let v = self.v.contiguous()?.reshape(&[self.v.shape()[0], own, 1, keys, width])?;
        let found = g.matmul(&v.to_dtype(g.dtype())?.transpose(-1, -2)?)?;
        found.contiguous()?.reshape(&[batch, heads, queries, keys]).map(Some)
    }
}

/// Whether somebody wants the gradients.
pub(super) fn is_on() -> bool {
    CALLS.with_borrow(Option::is_some)
}

/// Keeps what was given, where somebody wants it: the output then has a gradient of its own.
pub(super) fn keep(here: Here, attended: Attended, v: &Tensor) -> Result<Attended> {
    if !is_on() {
        return Ok(attended);
    }
    let zeros = Tensor::zeros(attended.out.shape(), attended.out.dtype())?;
    let added = Parameter::new("attended", zeros.to_device(attended.out.device())?)?;
    let out = attended.out.add(&added.tensor())?;
    let one = Traced { call: of_call(here, &attended), added, v: v.detach() };
    CALLS.with_borrow_mut(|calls| calls.iter_mut().for_each(|calls| calls.push(one.clone())));
    Ok(Attended { out, ..attended })
}

//! One query after another over the same keys and values, as a recurrent decoder asks them.
//!
//! The gradient of keys and values is a sum over all steps. Made step by step it is an array as
//! large as they are, written and added up at each; here each step leaves its query and the
//! gradient of its output, and one call over all of them makes the sum at the end of backward.

use super::request::PreparedQueries;
use super::{Keys, Mechanism, Request, Weighting};
use crate::attention::axes::lift;
use crate::attention::intervention;
use crate::{Attention, Bias, Mask, Mode, Need, Score};
use regard_kernels::Normalizer;
use regard_tensor::{DType, Parameter, Result, Tensor, with_gradients};
use std::sync::{Arc, Mutex};

/// Keys and values for one query after another.
pub(crate) struct StepwiseAttention<'a> {
    mechanism: &'a Mechanism,
    normalizer: Normalizer,
    mask: &'a Mask,
    /// Off the tape: their gradient is made at the end.
    keys: Keys,
    values: Tensor,
    /// Stands for keys and values on the tape; being older than all steps it runs after the last.
    whole: Tensor,
    asked: Arc<Mutex<Vec<StepGradient>>>,
}

/// What a step leaves: its query as the kernels score it, and the gradient of its output.
struct StepGradient {
    q: Tensor,
    grad: Tensor,
}

impl Mechanism {
    /// Keys and values for one query after another; none where the weighting draws, drops or
    /// chooses, which all steps together would do otherwise than each alone.
    pub(crate) fn steps<'a>(
        &'a self,
        keys: &Keys,
        values: &Tensor,
        mask: &'a Mask,
        mode: Mode,
    ) -> Result<Option<StepwiseAttention<'a>>> {
        let normalizer = match self.config.weighting {
            Weighting::Softmax => Normalizer::Softmax,
            Weighting::Sparsemax => Normalizer::Sparsemax,
            Weighting::Entmax15 => Normalizer::Entmax15,
            _ => return Ok(None),
        };
        let drops = mode.is_training() && self.config.dropout > 0.0;
        if drops || intervention::active().is_some() {
            return Ok(None);
        }
        let score = match self.scorer.score(1.0)? {
            Score::Additive { activation, w } => Score::Additive { activation, w: w.detach() },
            Score::Own { score, parameters } => {
                Score::Own { score, parameters: parameters.detach() }
            }
            Score::Expression { expression, parameters, shapes } => {
                Score::Expression { expression, parameters: parameters.detach(), shapes }
            }
            dot @ (Score::ScaledDot | Score::Dot { .. }) => dot,
        };
        let mut attention = Attention { normalizer, ..Attention::new(score) };
        let off = Keys {
            k: keys.k.detach(),
            bias: keys.bias.as_ref().map(Tensor::detach),
            center: keys.center.clone(),
            shape: keys.shape.clone(),
        };
        let values = &lift(values)?;
        let asked = Arc::<Mutex<Vec<StepGradient>>>::default();
        let nothing = Tensor::zeros(&[0], DType::F32)?;
        let inputs = [&keys.k, values, keys.bias.as_ref().unwrap_or(&nothing)];
        let (all, plain, v) = (asked.clone(), off.clone(), values.detach());
        let all_see = mask.clone();
        let whole = nothing.detach().record("attention in steps", &inputs, move |_, to| {
            let all = std::mem::take(&mut *all.lock().unwrap_or_else(|e| e.into_inner()));
            let (q, grads): (Vec<_>, Vec<_>) = all.into_iter().map(|a| (a.q, a.grad)).unzip();
            let (q, grad) = (Tensor::cat(&q, 2)?, Tensor::cat(&grads, 2)?);
            let k = Parameter::new("keys", plain.k)?;
            let v = Parameter::new("values", v)?;
            let bias = plain.bias.map(|bias| Parameter::new("bias", bias)).transpose()?;
            attention.bias.key = bias.as_ref().map(Parameter::tensor);
            let out = with_gradients(|| attention.forward(&q, &k.tensor(), &v.tensor(), &all_see))?;
            let mut back = out.backward_with(&grad)?;
            for (input, parameter) in [Some(k), Some(v), bias].into_iter().enumerate() {
                if let Some(grad) = parameter.and_then(|parameter| back.take(&parameter)) {
                    to.add(input, grad)?;
                }
            }
            Ok(())
        });
        let values = values.detach();
        Ok(Some(StepwiseAttention {
            mechanism: self,
            normalizer,
            mask,
            keys: off,
            values,
            whole,
            asked,
        }))
    }
}

impl StepwiseAttention<'_> {
    /// The next query `[B, 1, Dq]` → `[B, 1, Dv]`.
    pub(crate) fn step(&self, q: &Tensor) -> Result<Tensor> {
        let request = Request {
            q: &lift(q)?,
            keys: &self.keys,
            v: &self.values,
            mask: self.mask,
            mode: Mode::Infer,
            need: Need::OUTPUT,
            bias: &Bias::default(),
        };
        let PreparedQueries { attention, q } =
            self.mechanism.prepare(&request, self.normalizer, 1.0)?;
        let out = attention.forward(&q, &self.keys.k, &self.values, self.mask)?;
        let (asked, q) = (self.asked.clone(), q.detach());
        let out = out.detach().record("attention step", &[&out, &self.whole], move |grad, to| {
            let left = StepGradient { q, grad: grad.clone() };
            asked.lock().unwrap_or_else(|e| e.into_inner()).push(left);
            to.add(0, grad)?;
            to.add(1, Tensor::zeros(&[0], DType::F32)?)
        });
        out.squeeze(1)
    }
}

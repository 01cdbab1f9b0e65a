//! A step of an optimizer, a kernel for each parameter.

use super::{CudaBackend, at, maybe_at, real, whole};
use crate::backend::{Move, Moved};
use crate::optim::UpdateRule;
use crate::{Error, Result};
use regard_kernels::cuda::step::{Argument, Launch};

impl CudaBackend {
    pub(super) fn step_there(&self, one: &mut Moved, by: &Move) -> Result<()> {
        let Move { rule, learning_rate, step, gradient_scale } = *by;
        let count = one.value.numel();
        let text = real(one.value);
        let launch = Launch::of_numbers(count);
        let [scale, rate] = [gradient_scale, learning_rate].map(Argument::Number);
        match rule {
            UpdateRule::Adam { betas, eps, weight_decay }
            | UpdateRule::AdamW { betas, eps, weight_decay } => {
                let [m, v] = &one.moments[..] else {
                    return Err(Error::new("Adam keeps two moments for a parameter"));
                };
                let correction = |beta: f64| 1.0 - beta.powf(step as f64);
                let numbers = [betas.0, betas.1, eps, weight_decay].map(Argument::Number);
                let decoupled = matches!(rule, UpdateRule::AdamW { .. });
                let last = [
                    Argument::Whole(i64::from(decoupled)),
                    Argument::Number(correction(betas.0)),
                    Argument::Number(correction(betas.1).sqrt()),
                ];
                let tensors = [at(one.value)?, at(one.gradient)?, at(m)?, at(v)?, whole(count)];
                let arguments = [&tensors[..], &[scale, rate], &numbers, &last].concat();
                self.launch(text, "adam", launch, &arguments)
            }
            UpdateRule::Sgd { momentum, nesterov, weight_decay } => {
                let arguments = [
                    at(one.value)?,
                    at(one.gradient)?,
                    maybe_at(one.moments.first())?,
                    whole(count),
                    scale,
                    rate,
                    Argument::Number(momentum),
                    Argument::Number(weight_decay),
                    Argument::Whole(i64::from(nesterov)),
                ];
                self.launch(text, "sgd", launch, &arguments)
            }
        }
    }
}

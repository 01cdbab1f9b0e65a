//! A step of an optimizer, by the fused kernels.

use crate::backend::{Clip, Move, Moved};
use crate::dtype::{Float, floats};
use crate::optim::UpdateRule;
use crate::{Error, Result, Scalar, Tensor, parallel};
use regard_kernels::Cpu;
use regard_kernels::step::{Adam, AdamTensor, Sgd, SgdTensor};

pub(super) fn step(all: &mut [Moved], by: &Move) -> Result<()> {
    let Some(first) = all.first() else { return Ok(()) };
    floats!(first.value.dtype(), "step", T => step_in::<T>(all, by))
}

pub(super) fn lerp(all: &mut [(&mut Tensor, Tensor)], weight: f64) -> Result<()> {
    let Some((first, _)) = all.first() else { return Ok(()) };
    floats!(first.dtype(), "lerp_all", T => {
        let weight = <T as Scalar>::from_f64(weight);
        for (x, target) in all {
            let target = target.as_slice::<T>("lerp_all")?;
            parallel::pieces(x.as_mut_slice::<T>()?, |from, x| {
                for (x, &target) in x.iter_mut().zip(&target[from..]) {
                    *x = (target - *x) * weight + *x;
                }
            });
        }
        Ok(())
    })
}

fn step_in<T: Float>(all: &mut [Moved], by: &Move) -> Result<()> {
    let Move { rule, learning_rate: lr, step, clip } = *by;
    let grad_scale = match clip {
        Some(Clip { most, norm }) => (most / (norm.item()? + 1e-6)).min(1.0),
        None => 1.0,
    };
    match rule {
        UpdateRule::Adam { betas, eps, weight_decay }
        | UpdateRule::AdamW { betas, eps, weight_decay } => {
            let mut tensors = Vec::with_capacity(all.len());
            for Moved { value, gradient, moments } in all {
                let [m, v] = &mut moments[..] else {
                    return Err(Error::new("Adam keeps two moments for a parameter"));
                };
                let (m, v) = (m.as_mut_slice::<T>()?, v.as_mut_slice::<T>()?);
                let grad = gradient.as_slice::<T>("step")?;
                tensors.push(AdamTensor { param: value.own_slice_mut::<T>()?, grad, m, v });
            }
            let decoupled = matches!(rule, UpdateRule::AdamW { .. });
            let (beta1, beta2) = betas;
            let adam = Adam { lr, beta1, beta2, eps, weight_decay, decoupled, step, grad_scale };
            Cpu::best().adam(&mut tensors, &adam)?;
        }
        UpdateRule::Sgd { momentum, nesterov, weight_decay } => {
            let mut tensors = Vec::with_capacity(all.len());
            for Moved { value, gradient, moments } in all {
                let momentum = match &mut moments[..] {
                    [kept] => kept.as_mut_slice::<T>()?,
                    _ => &mut [],
                };
                let grad = gradient.as_slice::<T>("step")?;
                tensors.push(SgdTensor { param: value.own_slice_mut::<T>()?, grad, momentum });
            }
            let sgd = Sgd { lr, momentum, nesterov, weight_decay, grad_scale };
            Cpu::best().sgd(&mut tensors, &sgd)?;
        }
    }
    Ok(())
}

//! What `regard-kernels` does in one pass.

use super::elementwise::maybe;
use crate::dtype::floats;
use crate::{DType, Result, Tensor};
use regard_kernels::step::{LayerNorm, LayerNormGrads};
use regard_kernels::{Activation, Cpu, CrossEntropy};

/// Room for a gradient that is wanted.
pub(super) fn room(want: bool, shape: &[usize], dtype: DType) -> Result<Option<Tensor>> {
    want.then(|| Tensor::uninit(shape, dtype)).transpose()
}

pub(super) fn dropout(x: &Tensor, share: f64, key: u64) -> Result<Tensor> {
    floats!(x.dtype(), "dropout", T => {
        let from = x.as_slice::<T>("dropout")?;
        Tensor::try_build(x.shape(), |to: &mut [T]| {
            Ok(Cpu::best().dropout(from, share, key, to)?)
        })
    })
}

pub(super) fn activation(x: &Tensor, bias: Option<&Tensor>, f: Activation) -> Result<Tensor> {
    const OP: &str = "activation";
    floats!(x.dtype(), OP, T => {
        let (from, bias) = (x.as_slice::<T>(OP)?, maybe(bias)?);
        Tensor::try_build(x.shape(), |to| Ok(Cpu::best().pointwise(from, bias, f, to)?))
    })
}

pub(super) fn activation_backward(
    x: &Tensor,
    bias: Option<&Tensor>,
    f: Activation,
    g: &Tensor,
    want: [bool; 2],
) -> Result<[Option<Tensor>; 2]> {
    const OP: &str = "activation";
    let mut grad_x = room(want[0], x.shape(), x.dtype())?;
    let mut grad_bias = bias.map(|b| room(want[1], b.shape(), b.dtype())).transpose()?.flatten();
    floats!(x.dtype(), OP, T => {
        Cpu::best().pointwise_backward(
            x.as_slice::<T>(OP)?,
            maybe(bias)?,
            f,
            g.as_slice::<T>(OP)?,
            grad_x.as_mut().map(Tensor::as_mut_slice).transpose()?,
            grad_bias.as_mut().map(Tensor::as_mut_slice).transpose()?,
        )?;
        Ok([grad_x, grad_bias])
    })
}

/// The size of the last axis.
fn width(x: &Tensor) -> usize {
    x.shape().last().copied().unwrap_or(1)
}

pub(super) fn softmax(op: &str, x: &Tensor, log: bool) -> Result<Tensor> {
    let (cpu, width) = (Cpu::best(), width(x));
    floats!(x.dtype(), op, T => {
        let from = x.as_slice::<T>(op)?;
        Tensor::try_build(x.shape(), |to| Ok(match log {
            true => cpu.log_softmax(from, width, to),
            false => cpu.softmax(from, width, to),
        }?))
    })
}

pub(super) fn softmax_backward(y: &Tensor, g: &Tensor, log: bool) -> Result<Tensor> {
    const OP: &str = "softmax";
    let (cpu, width) = (Cpu::best(), width(y));
    floats!(y.dtype(), OP, T => {
        let (from, g) = (y.as_slice::<T>(OP)?, g.as_slice::<T>(OP)?);
        Tensor::try_build(y.shape(), |to| Ok(match log {
            true => cpu.log_softmax_backward(from, width, g, to),
            false => cpu.softmax_backward(from, width, g, to),
        }?))
    })
}

const NORM: &str = "layer_norm";

pub(super) fn layer_norm(
    x: &Tensor,
    gamma: &Tensor,
    beta: &Tensor,
    eps: f64,
) -> Result<(Tensor, Tensor)> {
    let width = width(x);
    let mut saved = Tensor::uninit(&[x.numel() / width, 2], x.dtype())?;
    let out = floats!(x.dtype(), NORM, T => {
        let (gamma, beta) = (Some(gamma.as_slice::<T>(NORM)?), Some(beta.as_slice::<T>(NORM)?));
        let norm = LayerNorm { width, gamma, beta, eps };
        let (from, saved) = (x.as_slice::<T>(NORM)?, saved.as_mut_slice::<T>()?);
        Tensor::try_build(x.shape(), |to| Ok(Cpu::best().layer_norm(from, &norm, to, saved)?))
    })?;
    Ok((out, saved))
}

pub(super) fn layer_norm_backward(
    x: &Tensor,
    gamma: &Tensor,
    saved: &Tensor,
    g: &Tensor,
    want: [bool; 3],
) -> Result<[Option<Tensor>; 3]> {
    let width = width(x);
    let mut grads = [
        room(want[0], x.shape(), x.dtype())?,
        room(want[1], &[width], x.dtype())?,
        room(want[2], &[width], x.dtype())?,
    ];
    floats!(x.dtype(), NORM, T => {
        let [x_room, gamma_room, beta_room] = &mut grads;
        let room = LayerNormGrads {
            x: x_room.as_mut().map(Tensor::as_mut_slice).transpose()?,
            gamma: gamma_room.as_mut().map(Tensor::as_mut_slice).transpose()?,
            beta: beta_room.as_mut().map(Tensor::as_mut_slice).transpose()?,
        };
        let (x, g) = (x.as_slice::<T>(NORM)?, g.as_slice::<T>(NORM)?);
        // The backward pass reads neither beta nor eps: both are in what was saved.
        let norm = LayerNorm { width, gamma: Some(gamma.as_slice::<T>(NORM)?), beta: None, eps: 0.0 };
        Cpu::best().layer_norm_backward(x, &norm, saved.as_slice::<T>(NORM)?, g, room)?;
        Ok(grads)
    })
}

const LOSS: &str = "cross_entropy";

pub(super) fn cross_entropy(
    logits: &Tensor,
    targets: &Tensor,
    rule: &CrossEntropy,
) -> Result<(Tensor, Tensor)> {
    let n = logits.shape()[0];
    let mut lse = Tensor::uninit(&[n], logits.dtype())?;
    let targets = targets.as_slice::<i64>(LOSS)?;
    let out = floats!(logits.dtype(), LOSS, T => {
        let (logits, lse) = (logits.as_slice::<T>(LOSS)?, lse.as_mut_slice::<T>()?);
        Tensor::try_build(&[n], |to| Ok(Cpu::best().cross_entropy(logits, targets, rule, to, lse)?))
    })?;
    Ok((out, lse))
}

pub(super) fn cross_entropy_backward(
    logits: &Tensor,
    targets: &Tensor,
    rule: &CrossEntropy,
    lse: &Tensor,
    g: &Tensor,
) -> Result<Tensor> {
    let targets = targets.as_slice::<i64>(LOSS)?;
    floats!(logits.dtype(), LOSS, T => {
        let (lse, g) = (lse.as_slice::<T>(LOSS)?, g.as_slice::<T>(LOSS)?);
        let from = logits.as_slice::<T>(LOSS)?;
        Tensor::try_build(logits.shape(), |to| {
            Ok(Cpu::best().cross_entropy_backward(from, targets, rule, lse, g, to)?)
        })
    })
}

pub(super) fn reciprocal_count(
    targets: &Tensor,
    ignored: Option<i64>,
    dtype: DType,
) -> Result<Tensor> {
    let targets = targets.as_slice::<i64>(LOSS)?;
    let count = targets.iter().filter(|&&target| Some(target) != ignored).count();
    Tensor::full(&[], 1.0 / count.max(1) as f64, dtype)
}

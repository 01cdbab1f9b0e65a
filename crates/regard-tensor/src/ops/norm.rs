//! Layer normalization, by the fused kernel.

use crate::dtype::floats;
use crate::ops::same_dtype;
use crate::{Result, Tensor, ensure};
use regard_kernels::Cpu;
use regard_kernels::step::{LayerNorm, LayerNormGrads};

const OP: &str = "layer_norm";

impl Tensor {
    /// (x − mean) / √(variance + eps) over the last axis, times `gamma` plus `beta`, both
    /// `[width]`.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// let x = Tensor::from_vec(vec![1f32, 3.0], &[1, 2])?;
    /// let one = Tensor::full(&[2], 1.0, DType::F32)?;
    /// let y = x.layer_norm(&one, &one.scale(0.0)?, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn layer_norm(&self, gamma: &Tensor, beta: &Tensor, eps: f64) -> Result<Tensor> {
        let width = self.shape().last().copied().unwrap_or(0);
        ensure!(
            width > 0 && gamma.shape() == [width] && beta.shape() == [width],
            "layer_norm: {:?} with gamma {:?} and beta {:?}; both need the last axis' size",
            self.shape(),
            gamma.shape(),
            beta.shape()
        );
        same_dtype(OP, ("the input is", self), ("gamma", gamma))?;
        same_dtype(OP, ("the input is", self), ("beta", beta))?;
        let plain = |x: &Tensor| x.detach().contiguous();
        let (x, gain, shift) = (plain(self)?, plain(gamma)?, plain(beta)?);
        let mut saved = Tensor::uninit(&[self.numel() / width, 2], self.dtype())?;
        let out = floats!(x.dtype(), OP, T => {
            let norm = LayerNorm {
                width,
                gamma: Some(gain.as_slice::<T>(OP)?),
                beta: Some(shift.as_slice::<T>(OP)?),
                eps,
            };
            let from = x.as_slice::<T>(OP)?;
            let mean_rstd = saved.as_mut_slice::<T>()?;
            Tensor::try_build(x.shape(), |to| Ok(Cpu::best().layer_norm(from, &norm, to, mean_rstd)?))
        })?;
        Ok(out.record(OP, &[self, gamma, beta], move |g, to| {
            let g = g.contiguous()?;
            floats!(x.dtype(), OP, T => {
                let mut grads = [to.uninit(0)?, to.uninit(1)?, to.uninit(2)?];
                let [x_room, gamma_room, beta_room] = &mut grads;
                let room = LayerNormGrads {
                    x: x_room.as_mut().map(Tensor::as_mut_slice).transpose()?,
                    gamma: gamma_room.as_mut().map(Tensor::as_mut_slice).transpose()?,
                    beta: beta_room.as_mut().map(Tensor::as_mut_slice).transpose()?,
                };
                let norm = LayerNorm {
                    width,
                    gamma: Some(gain.as_slice::<T>(OP)?),
                    beta: Some(shift.as_slice::<T>(OP)?),
                    eps,
                };
                Cpu::best().layer_norm_backward(
                    x.as_slice::<T>(OP)?,
                    &norm,
                    saved.as_slice::<T>(OP)?,
                    g.as_slice::<T>(OP)?,
                    room,
                )?;
                to.add_all(grads)
            })
        }))
    }
}

//! Layer normalization, by the fused kernel.

use crate::backend;
use crate::ops::same_dtype;
use crate::{Result, Tensor, ensure};

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
        let device = backend::meeting(&[self, gamma, beta]);
        let plain = |x: &Tensor| x.constant_on(device)?.detach().contiguous();
        let (x, gain, shift) = (plain(self)?, plain(gamma)?, plain(beta)?);
        let backend = backend::together(OP, &[&x, &gain, &shift])?;
        let (out, saved) = backend.layer_norm(&x, &gain, &shift, eps)?;
        Ok(out.record(OP, &[self, gamma, beta], move |g, to| {
            let want = [0, 1, 2].map(|input| to.want(input));
            to.add_all(backend.layer_norm_backward(&x, &gain, &saved, &g.contiguous()?, want)?)
        }))
    }
}

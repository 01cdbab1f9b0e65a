//! Layer normalization, by the fused kernel, and RMS normalization.

use crate::backend;
use crate::ops::{check_float, in_f32, same_dtype};
use crate::{Result, Tensor, ensure};

const OP: &str = "layer_norm";

impl Tensor {
    /// (x − mean) / √(variance + eps) over the last axis, times `gamma` plus `beta`, both
    /// `[width]`.
    /// Refuses parameters of another width or type, a width of 0, and an `eps` below 0.
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
        if self.dtype().is_half() {
            return in_f32([self, gamma, beta], |[x, gamma, beta]| x.layer_norm(gamma, beta, eps));
        }
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

    /// x / √(mean of x² + eps) over the last axis, times `gamma`, which is `[width]`
    /// (Zhang and Sennrich 2019).
    /// Refuses parameters of another width or type, a width of 0, and an `eps` below 0.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from([[3f64, 4.0], [0.0, 0.0]]);
    /// let y = x.rms_norm(&Tensor::from([1f64, 2.0]), 1e-12)?.to_vec::<f64>()?;
    /// let root = 12.5f64.sqrt();
    /// assert!((y[0] - 3.0 / root).abs() < 1e-9 && (y[1] - 8.0 / root).abs() < 1e-9);
    /// assert_eq!(y[2..], [0.0, 0.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn rms_norm(&self, gamma: &Tensor, eps: f64) -> Result<Tensor> {
        const OP: &str = "rms_norm";
        let width = self.shape().last().copied().unwrap_or(0);
        ensure!(
            width > 0 && gamma.shape() == [width],
            "{OP}: {:?} with gamma {:?}; it needs the last axis' size",
            self.shape(),
            gamma.shape()
        );
        ensure!((0.0..f64::INFINITY).contains(&eps), "{OP}: eps {eps} is not a number from 0 up");
        same_dtype(OP, ("the input is", self), ("gamma", gamma))?;
        if self.dtype().is_half() {
            return in_f32([self, gamma], |[x, gamma]| x.rms_norm(gamma, eps));
        }
        check_float(OP, self)?;
        let device = backend::meeting(&[self, gamma]);
        let (x, gain) = (self.constant_on(device)?.detach(), gamma.constant_on(device)?.detach());
        backend::together(OP, &[&x, &gain])?;
        let inverse = x.square()?.mean_keepdim(-1)?.shift(eps)?.powf(-0.5)?;
        let out = x.mul(&inverse)?.mul(&gain)?;
        Ok(out.record(OP, &[self, gamma], move |g, to| {
            let normal = x.mul(&inverse)?;
            if to.want(0) {
                // Along the row itself the output does not change.
                let scaled = g.mul(&gain)?;
                let along = scaled.mul(&normal)?.mean_keepdim(-1)?;
                to.add(0, scaled.sub(&normal.mul(&along)?)?.mul(&inverse)?)?;
            }
            if to.want(1) {
                to.add(1, g.mul(&normal)?.sum_to(gain.dims())?)?;
            }
            Ok(())
        }))
    }
}

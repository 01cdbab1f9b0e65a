//! Softmax and its logarithm, by the fused kernels.

use crate::dtype::floats;
use crate::layout::axis;
use crate::{Result, Tensor};
use regard_kernels::Cpu;

impl Tensor {
    /// eˣ / Σ eˣ along an axis.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![0f32, 0.0], &[2])?;
    /// assert_eq!(x.softmax(0)?.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn softmax(&self, at: isize) -> Result<Tensor> {
        self.along("softmax", at, |x| {
            let width = x.shape().last().copied().unwrap_or(1);
            let plain = x.detach();
            let out = floats!(plain.dtype(), "softmax", T => {
                let from = plain.numbers::<T>("softmax")?;
                Tensor::try_build(plain.shape(), |to| Ok(Cpu::best().softmax(from, width, to)?))
            })?;
            let saved = out.detach();
            Ok(out.record("softmax", &[x], move |g, to| {
                let g = g.contiguous()?;
                let grad = floats!(g.dtype(), "softmax", T => {
                    let (y, g) = (saved.numbers::<T>("softmax")?, g.numbers::<T>("softmax")?);
                    Tensor::try_build(saved.shape(), |to| {
                        Ok(Cpu::best().softmax_backward(y, width, g, to)?)
                    })
                })?;
                to.add(0, grad)
            }))
        })
    }

    /// x − ln Σ eˣ along an axis.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![5f32], &[1])?;
    /// assert_eq!(x.log_softmax(0)?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn log_softmax(&self, at: isize) -> Result<Tensor> {
        self.along("log_softmax", at, |x| {
            let width = x.shape().last().copied().unwrap_or(1);
            let plain = x.detach();
            let out = floats!(plain.dtype(), "log_softmax", T => {
                let from = plain.numbers::<T>("log_softmax")?;
                Tensor::try_build(plain.shape(), |to| Ok(Cpu::best().log_softmax(from, width, to)?))
            })?;
            let saved = out.detach();
            Ok(out.record("log_softmax", &[x], move |g, to| {
                let g = g.contiguous()?;
                let grad = floats!(g.dtype(), "log_softmax", T => {
                    let (y, g) = (saved.numbers::<T>("log_softmax")?, g.numbers::<T>("log_softmax")?);
                    Tensor::try_build(saved.shape(), |to| {
                        Ok(Cpu::best().log_softmax_backward(y, width, g, to)?)
                    })
                })?;
                to.add(0, grad)
            }))
        })
    }

    /// Runs an operation on the last axis along another one.
    fn along(&self, op: &str, at: isize, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let (at, last) = (axis(op, at, self.shape())? as isize, self.rank() as isize - 1);
        f(&self.transpose(at, last)?.contiguous()?)?.transpose(at, last)
    }
}

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
        self.softmax_or_log("softmax", at, false)
    }

    /// x − ln Σ eˣ along an axis.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![5f32], &[1])?;
    /// assert_eq!(x.log_softmax(0)?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn log_softmax(&self, at: isize) -> Result<Tensor> {
        self.softmax_or_log("log_softmax", at, true)
    }

    /// The kernels work along the last axis; another one is brought there and back.
    fn softmax_or_log(&self, op: &'static str, at: isize, log: bool) -> Result<Tensor> {
        let (at, last) = (axis(op, at, self.shape())? as isize, self.rank() as isize - 1);
        let x = self.transpose(at, last)?.contiguous()?;
        let width = x.shape().last().copied().unwrap_or(1);
        let cpu = Cpu::best();
        let out = floats!(x.dtype(), op, T => {
            let from = x.as_slice::<T>(op)?;
            Tensor::try_build(x.shape(), |to| Ok(match log {
                true => cpu.log_softmax(from, width, to),
                false => cpu.softmax(from, width, to),
            }?))
        })?;
        let saved = out.detach();
        let out = out.record(op, &[&x], move |g, to| {
            let g = g.contiguous()?;
            let grad = floats!(g.dtype(), op, T => {
                let (y, g) = (saved.as_slice::<T>(op)?, g.as_slice::<T>(op)?);
                Tensor::try_build(saved.shape(), |to| Ok(match log {
                    true => cpu.log_softmax_backward(y, width, g, to),
                    false => cpu.softmax_backward(y, width, g, to),
                }?))
            })?;
            to.add(0, grad)
        });
        out.transpose(at, last)
    }
}

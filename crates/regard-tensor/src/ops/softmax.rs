//! Softmax and its logarithm, by the fused kernels.

use crate::layout::axis;
use crate::ops::in_f32;
use crate::{Result, Tensor};

impl Tensor {
    /// eˣ / Σ eˣ along an axis.
    /// Refuses an axis that is not there, whole numbers and bools.
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
    /// Refuses an axis that is not there, whole numbers and bools.
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
        if self.dtype().is_half() {
            return in_f32([self], |[x]| x.softmax_or_log(op, at, log));
        }
        let (at, last) = (axis(op, at, self.shape())? as isize, self.rank() as isize - 1);
        let x = self.transpose(at, last)?.contiguous()?;
        let out = x.backend().softmax(op, &x.detach(), log)?;
        let saved = out.detach();
        let out = out.record(op, &[&x], move |g, to| {
            to.add(0, g.backend().softmax_backward(&saved, &g.contiguous()?, log)?)
        });
        out.transpose(at, last)
    }
}

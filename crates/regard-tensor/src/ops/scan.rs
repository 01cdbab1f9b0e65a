//! Running sums.

use crate::layout::axis;
use crate::ops::in_f32;
use crate::{Result, Tensor};

impl Tensor {
    /// The sums of what comes first along an axis: `out[i] = x[0] + … + x[i]`.
    /// Refuses an axis that is not there, whole numbers and bools.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from([[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(x.cumsum(1)?.to_vec::<f32>()?, [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn cumsum(&self, at: isize) -> Result<Tensor> {
        if self.dtype().is_half() {
            return in_f32([self], |[x]| x.cumsum(at));
        }
        let at = axis("cumsum", at, self.shape())?;
        let out = self.backend().cumsum(&self.detach().contiguous()?, at, false)?;
        // x[i] is in every sum from i on.
        Ok(out.record("cumsum", &[self], move |g, to| {
            to.add(0, g.backend().cumsum(&g.contiguous()?, at, true)?)
        }))
    }
}

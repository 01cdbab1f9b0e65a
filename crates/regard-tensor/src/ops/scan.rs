//! Running sums.

use crate::layout::axis;
use crate::{Result, Tensor};

impl Tensor {
    /// The sums of what comes first along an axis: `out[i] = x[0] + … + x[i]`.
    /// Refuses an axis that is not there, and numbers that are not f32 or f64.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from([[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(x.cumsum(1)?.to_vec::<f32>()?, [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn cumsum(&self, at: isize) -> Result<Tensor> {
        let at = axis("cumsum", at, self.shape())?;
        let out = self.backend().cumsum(&self.detach().contiguous()?, at, false)?;
        // x[i] is in every sum from i on.
        Ok(out.record("cumsum", &[self], move |g, to| {
            to.add(0, g.backend().cumsum(&g.contiguous()?, at, true)?)
        }))
    }
}

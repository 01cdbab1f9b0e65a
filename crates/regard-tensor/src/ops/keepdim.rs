//! Reductions whose axis stays, with size 1, so that the result broadcasts against what it came of.

use crate::backend::Extreme;
use crate::layout::axis;
use crate::{Result, Tensor};

/// The place of an axis from the front: counted from the back it would be another one when it comes again.
fn kept(op: &str, at: isize, x: &Tensor) -> Result<isize> {
    Ok(axis(op, at, x.shape())? as isize)
}

impl Tensor {
    /// As [`Tensor::sum`]; the axis stays, with size 1.
    /// Refuses what [`Tensor::sum`] refuses.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from([[1f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.sum_keepdim(1)?.shape(), [2, 1]);
    /// assert_eq!(x.div(&x.sum_keepdim(0)?)?.to_vec::<f32>()?, [0.25, 1.0 / 3.0, 0.75, 2.0 / 3.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn sum_keepdim(&self, at: isize) -> Result<Tensor> {
        self.summed("sum_keepdim", at)?.unsqueeze(kept("sum_keepdim", at, self)?)
    }

    /// As [`Tensor::mean`]; the axis stays, with size 1.
    /// Refuses what [`Tensor::mean`] refuses.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from([[1f32, 3.0], [3.0, 4.0]]);
    /// assert_eq!(x.sub(&x.mean_keepdim(-1)?)?.to_vec::<f32>()?, [-1.0, 1.0, -0.5, 0.5]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn mean_keepdim(&self, at: isize) -> Result<Tensor> {
        self.averaged("mean_keepdim", at)?.unsqueeze(kept("mean_keepdim", at, self)?)
    }

    /// As [`Tensor::max`]; the axis stays in both, with size 1.
    /// Refuses what [`Tensor::max`] refuses.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from([[1f32, 3.0], [5.0, 4.0]]);
    /// let (largest, index) = x.max_keepdim(1)?;
    /// assert_eq!((largest.shape(), index.shape()), (&[2, 1][..], &[2, 1][..]));
    /// assert_eq!(x.gather(1, &index)?.to_vec::<f32>()?, [3.0, 5.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn max_keepdim(&self, at: isize) -> Result<(Tensor, Tensor)> {
        let (largest, index) = self.extreme("max_keepdim", at, Extreme::Largest)?;
        let at = kept("max_keepdim", at, self)?;
        Ok((largest.unsqueeze(at)?, index.unsqueeze(at)?))
    }

    /// As [`Tensor::min`]; the axis stays in both, with size 1.
    /// Refuses what [`Tensor::max`] refuses.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from([[1f32, 3.0], [5.0, 4.0]]);
    /// assert_eq!(x.sub(&x.min_keepdim(1)?.0)?.to_vec::<f32>()?, [0.0, 2.0, 1.0, 0.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn min_keepdim(&self, at: isize) -> Result<(Tensor, Tensor)> {
        let (smallest, index) = self.extreme("min_keepdim", at, Extreme::Smallest)?;
        let at = kept("min_keepdim", at, self)?;
        Ok((smallest.unsqueeze(at)?, index.unsqueeze(at)?))
    }
}

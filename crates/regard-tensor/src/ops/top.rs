//! The largest numbers along an axis.

use crate::layout::axis;
use crate::{DType, Result, Tensor, ensure};

impl Tensor {
    /// The `k` largest numbers along an axis, the largest first, and their indices: the axis has size
    /// `k` in both. Among equals the first comes first; a NaN comes before any number, as in
    /// [`Tensor::max`]. The gradient goes to the chosen. Refuses a `k` larger than the
    /// axis, whole numbers and bools.
    ///
    /// On a GPU more than 64 are found by the CPU, between two copies.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from([[1f32, 5.0, 3.0], [2.0, 2.0, 4.0]]);
    /// let (largest, index) = x.topk(2, 1)?;
    /// assert_eq!(largest.to_vec::<f32>()?, [5.0, 3.0, 4.0, 2.0]);
    /// assert_eq!(index.to_vec::<i64>()?, [1, 2, 2, 0]);
    /// let error = x.topk(4, 1).unwrap_err();
    /// assert_eq!(error.to_string(), "topk: 4 of axis 1 of [2, 3], which has 3");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn topk(&self, k: usize, at: isize) -> Result<(Tensor, Tensor)> {
        let at = axis("topk", at, self.shape())?;
        let n = self.shape()[at];
        ensure!(k <= n, "topk: {k} of axis {at} of {:?}, which has {n}", self.shape());
        let x = match self.dtype().is_half() {
            true => self.detach().to_dtype(DType::F32)?,
            false => self.detach(),
        };
        let index = self.backend().top_k(&x.contiguous()?, at, k)?;
        Ok((self.gather(at as isize, &index)?, index))
    }
}

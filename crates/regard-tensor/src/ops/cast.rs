//! From one type of numbers to another.

use crate::{DType, Result, Tensor, ensure};

impl Tensor {
    /// The same numbers in another type. Between types of fractions a gradient flows back in the
    /// first type; whole numbers and bools carry none, so a tensor that has one is refused there.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// let x = Tensor::from_vec(vec![1.5f32, -2.0], &[2])?;
    /// assert_eq!(x.to_dtype(DType::F64)?.to_vec::<f64>()?, [1.5, -2.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        let before = self.dtype();
        ensure!(
            !self.has_gradient() || dtype.is_differentiable(),
            "to_dtype: {dtype} carries no gradient; detach() the tensor of shape {:?} first",
            self.shape()
        );
        let out = self.backend().cast(self, dtype)?;
        Ok(out.record("to_dtype", &[self], move |g, to| to.add(0, g.to_dtype(before)?)))
    }
}

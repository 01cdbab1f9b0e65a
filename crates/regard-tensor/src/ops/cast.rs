//! From one type of numbers to another.

use crate::dtype::scalars;
use crate::walk::map;
use crate::{DType, Result, Scalar, Tensor, ensure};

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
        let out = scalars!(before, A => {
            let from = self.data::<A>("to_dtype")?;
            scalars!(dtype, R => Tensor::build(self.shape(), |to: &mut [R]| {
                map((from, &self.layout), to, |x: A| <R as Scalar>::from_f64(x.to_f64()));
            }))
        })?;
        Ok(out.record("to_dtype", &[self], move |g, to| to.add(0, g.to_dtype(before)?)))
    }
}

//! Losses.

use crate::backend;
use crate::ops::same_dtype;
use crate::{Result, Tensor, ensure};
use regard_kernels::CrossEntropy;

const OP: &str = "cross_entropy";

impl Tensor {
    /// −ln p(target) of each row, p the softmax of its logits: logits `[N, C]` and targets `[N]`
    /// give `[N]`, 0 where the target is the ignored one.
    ///
    /// ```
    /// use regard_tensor::{CrossEntropy, Tensor};
    /// let logits = Tensor::from_vec(vec![0f32, 0.0, 1.0, 1.0], &[2, 2])?;
    /// let targets = Tensor::from_vec(vec![1i64, -1], &[2])?;
    /// let rule = CrossEntropy { ignore_index: Some(-1), ..CrossEntropy::default() };
    /// let loss = logits.cross_entropy_rows(&targets, rule)?.to_vec::<f32>()?;
    /// assert!((loss[0] - 2f32.ln()).abs() < 1e-6 && loss[1] == 0.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn cross_entropy_rows(&self, targets: &Tensor, rule: CrossEntropy) -> Result<Tensor> {
        ensure!(
            self.rank() == 2 && targets.rank() == 1 && targets.shape()[0] == self.shape()[0],
            "cross_entropy: logits of shape {:?} and targets of shape {:?}; [N, C] and [N] fit",
            self.shape(),
            targets.shape()
        );
        let x = self.detach().contiguous()?;
        let targets = targets.as_indices(OP)?.to_device(self.device())?;
        let backend = backend::together(OP, &[&x, &targets])?;
        let (out, lse) = backend.cross_entropy(&x, &targets, &rule)?;
        Ok(out.record(OP, &[self], move |g, to| {
            let g = g.contiguous()?;
            to.add(0, backend.cross_entropy_backward(&x, &targets, &rule, &lse, &g)?)
        }))
    }

    /// The mean of [`Tensor::cross_entropy_rows`] over the rows that are not ignored; 0 where all
    /// are.
    ///
    /// ```
    /// use regard_tensor::{CrossEntropy, Tensor};
    /// let logits = Tensor::from_vec(vec![0f32, 0.0], &[1, 2])?;
    /// let targets = Tensor::from_vec(vec![1i64], &[1])?;
    /// let loss = logits.cross_entropy(&targets, CrossEntropy::default())?.item()?;
    /// assert!((loss - 2f64.ln()).abs() < 1e-6);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn cross_entropy(&self, targets: &Tensor, rule: CrossEntropy) -> Result<Tensor> {
        let targets = targets.as_indices(OP)?.to_device(self.device())?;
        let weight =
            targets.backend().reciprocal_count(&targets, rule.ignore_index, self.dtype())?;
        self.cross_entropy_rows(&targets, rule)?.sum(0)?.mul(&weight)
    }

    /// The mean of the squared differences.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let a = Tensor::from_vec(vec![1f32, 2.0], &[2])?;
    /// let b = Tensor::from_vec(vec![1f32, 4.0], &[2])?;
    /// assert_eq!(a.squared_error(&b)?.item()?, 2.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn squared_error(&self, target: &Tensor) -> Result<Tensor> {
        ensure!(
            self.shape() == target.shape(),
            "squared_error: shapes {:?} and {:?} differ",
            self.shape(),
            target.shape()
        );
        same_dtype("squared_error", ("the tensor is", self), ("the target", target))?;
        self.sub(target)?.square()?.mean_all()
    }
}

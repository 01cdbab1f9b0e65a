//! Losses.

use crate::dtype::floats;
use crate::ops::same_dtype;
use crate::{Result, Tensor, ensure};
use regard_kernels::Cpu;
use regard_kernels::step::CrossEntropy;

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
        let n = self.shape()[0];
        let x = self.detach().contiguous()?;
        let targets = targets.to_indices(OP)?;
        let mut lse = Tensor::uninit(&[n], x.dtype())?;
        let out = floats!(x.dtype(), OP, T => {
            let logits = x.as_slice::<T>(OP)?;
            let lse = lse.as_mut_slice::<T>()?;
            Tensor::try_build(&[n], |to| {
                Ok(Cpu::best().cross_entropy(logits, &targets, &rule, to, lse)?)
            })
        })?;
        Ok(out.record(OP, &[self], move |g, to| {
            let g = g.contiguous()?;
            let grad = floats!(x.dtype(), OP, T => {
                let (logits, lse) = (x.as_slice::<T>(OP)?, lse.as_slice::<T>(OP)?);
                let g = g.as_slice::<T>(OP)?;
                Tensor::try_build(x.shape(), |to| {
                    Ok(Cpu::best().cross_entropy_backward(logits, &targets, &rule, lse, g, to)?)
                })
            })?;
            to.add(0, grad)
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
        let ids = targets.to_indices(OP)?;
        let counted = ids.iter().filter(|&&t| Some(t) != rule.ignore_index).count();
        let targets = Tensor::from_vec(ids, targets.shape())?;
        self.cross_entropy_rows(&targets, rule)?.sum(0)?.scale(1.0 / counted.max(1) as f64)
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

//! Losses.

use crate::backend;
use crate::ops::{check_float, in_f32, same_dtype};
use crate::{Result, Tensor, ensure};
use regard_kernels::CrossEntropy;

const OP: &str = "cross_entropy";

impl Tensor {
    /// −ln p(target) of each row, p the softmax of its logits: logits `[N, C]` and targets `[N]`
    /// give `[N]`, 0 where the target is the ignored one.
    /// Refuses logits that are not `[N, C]`, targets that are not `[N]` or no classes, and whole numbers as logits.
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
        if self.dtype().is_half() {
            return in_f32([self], |[x]| x.cross_entropy_rows(targets, rule));
        }
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
    /// Refuses logits that are not `[N, C]`, targets that are not `[N]` or no classes, and whole numbers as logits.
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
        if self.dtype().is_half() {
            return in_f32([self], |[x]| x.cross_entropy(targets, rule));
        }
        check_float(OP, self)?;
        let targets = targets.as_indices(OP)?.to_device(self.device())?;
        let weight =
            targets.backend().reciprocal_count(&targets, rule.ignore_index, self.dtype())?;
        self.cross_entropy_rows(&targets, rule)?.sum(0)?.mul(&weight)
    }

    /// The mean of the squared differences.
    /// Refuses two shapes, and two types.
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
        if self.dtype().is_half() {
            return in_f32([self, target], |[x, target]| x.squared_error(target));
        }
        check_float("squared_error", self)?;
        ensure!(self.numel() > 0, "squared_error: {:?} has no numbers", self.shape());
        self.sub(target)?.square()?.mean_all()
    }

    /// Binary cross entropy of each number: −t ln σ(x) − (1 − t) ln(1 − σ(x)), where x is a logit, σ the
    /// sigmoid, and t the target, a probability of the same shape. It is computed as
    /// max(x, 0) − x t + ln(1 + e^−|x|), which neither overflows nor loses the small ones. Both have
    /// gradients. Refuses targets that are not within 0..=1.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let logits = Tensor::from([0f64, 800.0, -800.0]);
    /// let loss = logits.binary_cross_entropy_elements(&Tensor::from([1f64, 1.0, 1.0]))?;
    /// let loss = loss.to_vec::<f64>()?;
    /// assert!((loss[0] - 2f64.ln()).abs() < 1e-15 && loss[1..] == [0.0, 800.0]);
    /// let error = logits.binary_cross_entropy(&Tensor::from([1f64, 2.0, 0.0])).unwrap_err();
    /// assert_eq!(error.to_string(), "binary_cross_entropy: a target of 2 is not within 0..=1");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn binary_cross_entropy_elements(&self, target: &Tensor) -> Result<Tensor> {
        const OP: &str = "binary_cross_entropy";
        ensure!(
            self.shape() == target.shape(),
            "{OP}: shapes {:?} and {:?} differ",
            self.shape(),
            target.shape()
        );
        same_dtype(OP, ("the logits are", self), ("the targets", target))?;
        if self.dtype().is_half() {
            return in_f32([self, target], |[x, target]| x.binary_cross_entropy_elements(target));
        }
        check_float(OP, self)?;
        let device = backend::meeting(&[self, target]);
        let (x, t) = (self.constant_on(device)?.detach(), target.constant_on(device)?.detach());
        backend::together(OP, &[&x, &t])?;
        if t.numel() > 0 {
            let flat = t.reshape(&[t.numel()])?;
            for end in [flat.min(0)?.0.item()?, flat.max(0)?.0.item()?] {
                ensure!((0.0..=1.0).contains(&end), "{OP}: a target of {end} is not within 0..=1");
            }
        }
        let out = x.relu()?.sub(&x.mul(&t)?)?.add(&ln_1p(&x.abs()?.scale(-1.0)?.exp()?)?)?;
        Ok(out.record(OP, &[self, target], move |g, to| {
            if to.want(0) {
                to.add(0, x.sigmoid()?.sub(&t)?.mul(&g)?)?;
            }
            if to.want(1) {
                to.add(1, x.scale(-1.0)?.mul(&g)?)?;
            }
            Ok(())
        }))
    }

    /// The mean of [`Tensor::binary_cross_entropy_elements`]: what PyTorch calls
    /// `binary_cross_entropy_with_logits`.
    /// Refuses two shapes, two types, and targets that are not within 0..=1.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let loss = Tensor::from([0f64, 0.0]).binary_cross_entropy(&Tensor::from([1f64, 0.0]))?;
    /// assert!((loss.item()? - 2f64.ln()).abs() < 1e-15);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn binary_cross_entropy(&self, target: &Tensor) -> Result<Tensor> {
        ensure!(self.numel() > 0, "binary_cross_entropy: {:?} has no numbers", self.shape());
        self.binary_cross_entropy_elements(target)?.mean_all()
    }
}

/// ln(1 + e) for e within 0..=1, with all the digits of a small e: the rounding of 1 + e is divided out
/// again (Kahan).
fn ln_1p(e: &Tensor) -> Result<Tensor> {
    let sum = e.shift(1.0)?;
    let rounded = sum.shift(-1.0)?;
    let lost = rounded.eq(&Tensor::full(&[], 0.0, e.dtype())?)?;
    // Where nothing is left of e beside 1, its logarithm is e; the quotient there is not looked at.
    lost.where_(e, &sum.ln()?.mul(e)?.div(&rounded)?)
}

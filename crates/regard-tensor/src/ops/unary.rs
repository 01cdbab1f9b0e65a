//! One tensor, element by element.

use crate::backend::Unary;
use crate::ops::in_f32;
use crate::{Result, Tensor, ensure};

impl Tensor {
    /// y = f(x), and its gradient.
    fn unary(&self, op: &'static str, f: Unary) -> Result<Tensor> {
        if self.dtype().is_half() {
            return in_f32([self], |[x]| x.unary(op, f));
        }
        let x = self.detach();
        let out = self.backend().unary(op, f, &x)?;
        let y = out.detach();
        Ok(out.record(op, &[self], move |g, to| {
            to.add(0, g.backend().unary_backward(f, &x, &y, &g)?)
        }))
    }

    /// x · factor.
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(3f32)?.scale(2.0)?.item()?, 6.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn scale(&self, factor: f64) -> Result<Tensor> {
        if self.dtype().is_half() {
            return in_f32([self], |[x]| x.scale(factor));
        }
        let out = self.backend().unary("scale", Unary::Scale(factor), self)?;
        Ok(out.record("scale", &[self], move |g, to| to.add(0, g.scale(factor)?)))
    }

    /// x + term.
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(3f32)?.shift(2.0)?.item()?, 5.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn shift(&self, term: f64) -> Result<Tensor> {
        if self.dtype().is_half() {
            return in_f32([self], |[x]| x.shift(term));
        }
        let out = self.backend().unary("shift", Unary::Shift(term), self)?;
        Ok(out.record("shift", &[self], |g, to| to.add(0, g)))
    }

    /// eˣ.
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(0f32)?.exp()?.item()?, 1.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn exp(&self) -> Result<Tensor> {
        self.unary("exp", Unary::Exp)
    }

    /// The natural logarithm.
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(1f32)?.ln()?.item()?, 0.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn ln(&self) -> Result<Tensor> {
        self.unary("ln", Unary::Ln)
    }

    /// √x.
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(9f32)?.sqrt()?.item()?, 3.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn sqrt(&self) -> Result<Tensor> {
        self.unary("sqrt", Unary::Sqrt)
    }

    /// x².
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(-3f32)?.square()?.item()?, 9.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn square(&self) -> Result<Tensor> {
        self.unary("square", Unary::Square)
    }

    /// |x|; its gradient at 0 is 0.
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(-3f32)?.abs()?.item()?, 3.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn abs(&self) -> Result<Tensor> {
        self.unary("abs", Unary::Abs)
    }

    /// x to a power; NaN where x is below 0 and the power is not whole.
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(2f32)?.powf(3.0)?.item()?, 8.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn powf(&self, power: f64) -> Result<Tensor> {
        self.unary("powf", Unary::Powf(power))
    }

    /// x, no smaller than `least` and no larger than `most`; no gradient passes where it was. Refuses
    /// bounds in the wrong order, and NaN.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from([-2f32, 0.5, 3.0]);
    /// assert_eq!(x.clamp(-1.0, 1.0)?.to_vec::<f32>()?, [-1.0, 0.5, 1.0]);
    /// assert_eq!(x.clamp(1.0, -1.0).unwrap_err().to_string(), "clamp: from 1 to -1");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn clamp(&self, least: f64, most: f64) -> Result<Tensor> {
        ensure!(least <= most, "clamp: from {least} to {most}");
        self.unary("clamp", Unary::Clamp(least, most))
    }
}

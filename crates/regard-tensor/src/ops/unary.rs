//! One tensor, element by element.

use crate::dtype::floats;
use crate::walk::{map, zip};
use crate::{Result, Tensor, ensure};

/// y = f(x), with dy/dx from x and y.
macro_rules! unary {
    ($op:literal, $x:expr, |$a:ident| $f:expr, |$u:ident, $y:ident| $derivative:expr) => {{
        let x = $x;
        let out = floats!(x.dtype(), $op, T => {
            let from = x.data::<T>($op)?;
            Tensor::build(x.shape(), |to: &mut [T]| map((from, &x.layout), to, |$a| $f))
        })?;
        let (before, after) = (x.detach(), out.detach());
        Ok(out.record($op, &[x], move |g, to| {
            let slope = floats!(before.dtype(), $op, T => {
                let shape = before.dims();
                let x = (before.data::<T>($op)?, &before.layout);
                let y = (after.data::<T>($op)?, &after.layout);
                Tensor::build(shape, |to: &mut [T]| zip(shape, x, y, to, |$u: T, $y: T| $derivative))
            })?;
            to.add(0, g.mul(&slope)?)
        }))
    }};
}

impl Tensor {
    /// x · factor.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(3f32)?.scale(2.0)?.item()?, 6.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn scale(&self, factor: f64) -> Result<Tensor> {
        let out = floats!(self.dtype(), "scale", T => {
            let from = self.data::<T>("scale")?;
            let factor = factor as T;
            Tensor::build(self.shape(), |to: &mut [T]| map((from, &self.layout), to, |x| x * factor))
        })?;
        Ok(out.record("scale", &[self], move |g, to| to.add(0, g.scale(factor)?)))
    }

    /// x + term.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(3f32)?.shift(2.0)?.item()?, 5.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn shift(&self, term: f64) -> Result<Tensor> {
        let out = floats!(self.dtype(), "shift", T => {
            let from = self.data::<T>("shift")?;
            let term = term as T;
            Tensor::build(self.shape(), |to: &mut [T]| map((from, &self.layout), to, |x| x + term))
        })?;
        Ok(out.record("shift", &[self], |g, to| to.add(0, g)))
    }

    /// eˣ.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(0f32)?.exp()?.item()?, 1.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn exp(&self) -> Result<Tensor> {
        unary!("exp", self, |x| x.exp(), |_x, y| y)
    }

    /// The natural logarithm.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(1f32)?.ln()?.item()?, 0.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn ln(&self) -> Result<Tensor> {
        unary!("ln", self, |x| x.ln(), |x, _y| 1.0 / x)
    }

    /// √x.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(9f32)?.sqrt()?.item()?, 3.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn sqrt(&self) -> Result<Tensor> {
        unary!("sqrt", self, |x| x.sqrt(), |_x, y| 0.5 / y)
    }

    /// x².
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(-3f32)?.square()?.item()?, 9.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn square(&self) -> Result<Tensor> {
        unary!("square", self, |x| x * x, |x, _y| 2.0 * x)
    }

    /// |x|; its gradient at 0 is 0.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(-3f32)?.abs()?.item()?, 3.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn abs(&self) -> Result<Tensor> {
        unary!("abs", self, |x| x.abs(), |x, _y| if x == 0.0 { 0.0 } else { x.signum() })
    }

    /// x to a power; NaN where x is below 0 and the power is not whole.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(2f32)?.powf(3.0)?.item()?, 8.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn powf(&self, power: f64) -> Result<Tensor> {
        // x⁰ is 1 everywhere, at 0 too, where the formula of the slope has 0 · ∞.
        unary!("powf", self, |x| x.powf(power as T), |x, _y| {
            if power == 0.0 { 0.0 } else { power as T * x.powf(power as T - 1.0) }
        })
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
        unary!("clamp", self, |x| x.clamp(least as T, most as T), |x, y| {
            match x == y {
                true => 1.0,
                false if x.is_nan() => x,
                false => 0.0,
            }
        })
    }
}

//! Activations, with the bias added on the way, by the fused kernel.

use crate::backend;
use crate::ops::{check_float, in_f32, same_dtype};
use crate::{Result, Tensor, ensure};
use regard_kernels::Activation;

impl Tensor {
    /// f(x), element by element.
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// use regard_tensor::{Activation, Tensor};
    /// let x = Tensor::from_vec(vec![-1f32, 2.0], &[2])?;
    /// assert_eq!(x.activate(Activation::Relu)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn activate(&self, f: Activation) -> Result<Tensor> {
        self.activated("activate", f)
    }

    /// As [`Tensor::activate`], by the name of who asked.
    fn activated(&self, op: &str, f: Activation) -> Result<Tensor> {
        if f == Activation::Identity {
            return Ok(self.clone());
        }
        if self.dtype().is_half() {
            return in_f32([self], |[x]| x.activated(op, f));
        }
        check_float(op, self)?;
        self.fused_activation(None, f)
    }

    /// max(x, 0).
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(-1f32)?.relu()?.item()?, 0.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn relu(&self) -> Result<Tensor> {
        self.activated("relu", Activation::Relu)
    }

    /// x · Φ(x), with the error function.
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(0f32)?.gelu()?.item()?, 0.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn gelu(&self) -> Result<Tensor> {
        self.activated("gelu", Activation::Gelu)
    }

    /// x / (1 + e⁻ˣ).
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(0f32)?.silu()?.item()?, 0.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn silu(&self) -> Result<Tensor> {
        self.activated("silu", Activation::Silu)
    }

    /// The hyperbolic tangent.
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(0f32)?.tanh()?.item()?, 0.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn tanh(&self) -> Result<Tensor> {
        self.activated("tanh", Activation::Tanh)
    }

    /// 1 / (1 + e⁻ˣ).
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(0f32)?.sigmoid()?.item()?, 0.5);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn sigmoid(&self) -> Result<Tensor> {
        self.activated("sigmoid", Activation::Sigmoid)
    }

    /// x where x > 0, alpha · (eˣ − 1) elsewhere.
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(2f32)?.elu(1.0)?.item()?, 2.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn elu(&self, alpha: f64) -> Result<Tensor> {
        self.activated("elu", Activation::Elu { alpha })
    }

    /// f(x + bias), the bias along the last axis: one pass instead of two.
    /// Refuses a bias that is not `[width]`, another type than the tensor's, and whole numbers.
    ///
    /// ```
    /// use regard_tensor::{Activation, Tensor};
    /// let x = Tensor::from_vec(vec![-1f32, 2.0], &[1, 2])?;
    /// let bias = Tensor::from_vec(vec![3f32, -4.0], &[2])?;
    /// assert_eq!(x.activate_with(&bias, Activation::Relu)?.to_vec::<f32>()?, [2.0, 0.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn activate_with(&self, bias: &Tensor, f: Activation) -> Result<Tensor> {
        ensure!(
            bias.rank() == 1 && self.shape().last() == Some(&bias.shape()[0]),
            "activate_with: a bias of shape {:?} for a tensor of shape {:?}",
            bias.shape(),
            self.shape()
        );
        same_dtype("activate_with", ("the tensor is", self), ("the bias", bias))?;
        if self.dtype().is_half() {
            return in_f32([self, bias], |[x, bias]| x.activate_with(bias, f));
        }
        check_float("activate_with", self)?;
        self.fused_activation(Some(bias), f)
    }

    fn fused_activation(&self, bias: Option<&Tensor>, f: Activation) -> Result<Tensor> {
        const OP: &str = "activation";
        let device = backend::meeting(&[self, bias.unwrap_or(self)]);
        let plain = |x: &Tensor| x.constant_on(device)?.detach().contiguous();
        let x = plain(self)?;
        let b = bias.map(plain).transpose()?;
        let backend = backend::together(OP, &[&x, b.as_ref().unwrap_or(&x)])?;
        let out = backend.activation(&x, b.as_ref(), f)?;
        let nothing = self.detach();
        let inputs = [self, bias.unwrap_or(&nothing)];
        Ok(out.record(OP, &inputs, move |g, to| {
            let want = [0, 1].map(|input| to.want(input));
            to.add_all(backend.activation_backward(&x, b.as_ref(), f, &g.contiguous()?, want)?)
        }))
    }
}

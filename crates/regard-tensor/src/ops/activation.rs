//! Activations, with the bias added on the way, by the fused kernel.

use crate::dtype::floats;
use crate::ops::same_dtype;
use crate::{Result, Tensor, ensure};
use regard_kernels::{Activation, Cpu};

impl Tensor {
    /// f(x), element by element.
    ///
    /// ```
    /// use regard_tensor::{Activation, Tensor};
    /// let x = Tensor::from_vec(vec![-1f32, 2.0], &[2])?;
    /// assert_eq!(x.activate(Activation::Relu)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn activate(&self, f: Activation) -> Result<Tensor> {
        if f == Activation::Identity {
            return Ok(self.clone());
        }
        self.fused_activation(None, f)
    }

    /// f(x + bias), the bias along the last axis: one pass instead of two.
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
        self.fused_activation(Some(bias), f)
    }

    fn fused_activation(&self, bias: Option<&Tensor>, f: Activation) -> Result<Tensor> {
        const OP: &str = "activation";
        let x = self.detach().contiguous()?;
        let b = bias.map(|b| b.detach().contiguous()).transpose()?;
        let out = floats!(x.dtype(), OP, T => {
            let from = x.as_slice::<T>(OP)?;
            let b = b.as_ref().map(|b| b.as_slice::<T>(OP)).transpose()?;
            Tensor::try_build(x.shape(), |to| Ok(Cpu::best().pointwise(from, b, f, to)?))
        })?;
        let nothing = Tensor::zeros(&[0], self.dtype())?;
        let inputs = [self, bias.unwrap_or(&nothing)];
        Ok(out.record(OP, &inputs, move |g, to| {
            let g = g.contiguous()?;
            floats!(x.dtype(), OP, T => {
                let numbers = x.as_slice::<T>(OP)?;
                let bias = b.as_ref().map(|b| b.as_slice::<T>(OP)).transpose()?;
                let (mut grad_x, mut grad_b) = (to.uninit(0)?, to.uninit(1)?);
                Cpu::best().pointwise_backward(
                    numbers,
                    bias,
                    f,
                    g.as_slice::<T>(OP)?,
                    grad_x.as_mut().map(Tensor::as_mut_slice).transpose()?,
                    grad_b.as_mut().map(Tensor::as_mut_slice).transpose()?,
                )?;
                to.add_all([grad_x, grad_b])
            })
        }))
    }
}

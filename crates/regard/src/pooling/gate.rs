//! Each vector gated by itself.

use crate::Linear;
use regard_tensor::{Parameters, Pointwise, Result, Tensor};

/// y = σ(W x) ∘ x: saliency without a query, for each vector on its own. `[…, width]` →
/// `[…, width]`.
///
/// ```
/// use regard::{DType, Gate, Parameters, Tensor};
/// let gate = Gate::new(&Parameters::new(DType::F32, 1), 2)?;
/// gate.weight.weight.set(&Tensor::zeros(&[2, 2], DType::F32)?)?;
/// let y = gate.forward(&Tensor::from_vec(vec![4f32, -6.0], &[1, 2])?)?;
/// assert_eq!(y.to_vec::<f32>()?, [2.0, -3.0]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gate {
    /// W `[width, width]`, without a bias.
    pub weight: Linear,
}

impl Gate {
    /// New, with Glorot's weights.
    pub fn new(parameters: &Parameters, width: usize) -> Result<Self> {
        Ok(Self { weight: Linear::new(parameters, width, width, false)? })
    }

    /// σ(W x) ∘ x
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.weight.forward(x)?.activate(Pointwise::Sigmoid)?.mul(x)
    }
}

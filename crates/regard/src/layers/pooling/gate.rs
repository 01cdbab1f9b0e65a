//! Each vector gated by itself.

use crate::Linear;
use regard_tensor::{Activation, Parameters, Result, Tensor};

/// y = σ(W x) ∘ x: saliency without a query, for each vector on its own. `[…, width]` →
/// `[…, width]`.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::Gate;
/// let gate = Gate::new(&Parameters::new(DType::F32, 1), 2)?;
/// gate.weight.weight.set(&Tensor::zeros(&[2, 2], DType::F32)?)?;
/// let y = gate.forward(&Tensor::from_vec(vec![4f32, -6.0], &[1, 2])?)?;
/// assert_eq!(y.to_vec::<f32>()?, [2.0, -3.0]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Gate {
    /// W `[width, width]`, without a bias.
    pub weight: Linear,
}

impl Gate {
    /// New, with Glorot's weights.
    /// Refuses sizes that no memory holds, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::Gate;
    /// let gate = Gate::new(&Parameters::new(DType::F32, 1), 3)?;
    /// assert_eq!(gate.weight.weight.tensor().shape(), [3, 3]);
    /// assert!(gate.weight.bias.is_none());
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, width: usize) -> Result<Self> {
        Ok(Self { weight: Linear::new(parameters, width, width, false)? })
    }

    /// σ(W x) ∘ x
    /// Refuses an input of another width or type.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::Gate;
    /// let gate = Gate::new(&Parameters::new(DType::F32, 1), 3)?;
    /// let x = Random::new(1).normal(&[5, 3], 0.0, 1.0, DType::F32)?;
    /// let y = gate.forward(&x)?.to_vec::<f32>()?;
    /// // a gate makes smaller, and keeps the sign
    /// assert!(y.iter().zip(x.to_vec::<f32>()?).all(|(y, x)| y.abs() < x.abs() && y * x > 0.0));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.openness(x)?.mul(x)
    }

    /// σ(W x): how far the gate is open for each feature, from 0 to 1.
    /// Refuses an input of another width or type.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::Gate;
    /// let gate = Gate::new(&Parameters::new(DType::F32, 1), 2)?;
    /// gate.weight.weight.set(&Tensor::zeros(&[2, 2], DType::F32)?)?;
    /// let open = gate.openness(&Tensor::from_vec(vec![4f32, -6.0], &[1, 2])?)?;
    /// assert_eq!(open.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn openness(&self, x: &Tensor) -> Result<Tensor> {
        self.weight.forward(x)?.activate(Activation::Sigmoid)
    }
}

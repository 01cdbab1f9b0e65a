//! A feed-forward layer with a gate.

use super::Linear;
use crate::Mode;
use crate::mode::check_dropout;
use regard_tensor::{Parameters, Result, Tensor};

/// W_down (silu(W_gate x) ⊙ W_up x), for each vector on its own: `[…, width]` → `[…, width]` (Shazeer
/// 2020). The parameters have the names of Llama's: `gate_proj`, `up_proj` and `down_proj`, without
/// biases.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::SwiGlu;
/// let feed = SwiGlu::new(&Parameters::new(DType::F32, 1), 8, 20, 0.1)?;
/// let y = feed.forward(&Tensor::zeros(&[2, 5, 8], DType::F32)?, Mode::Infer)?;
/// assert_eq!(y.shape(), [2, 5, 8]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SwiGlu {
    /// `[inner, width]`
    pub gate_proj: Linear,
    /// `[inner, width]`
    pub up_proj: Linear,
    /// `[width, inner]`
    pub down_proj: Linear,
    /// The share of inner numbers left out during training.
    pub dropout: f64,
}

impl SwiGlu {
    /// New.
    /// Refuses sizes that no memory holds, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::SwiGlu;
    /// let parameters = Parameters::new(DType::F32, 1);
    /// SwiGlu::new(&parameters, 8, 20, 0.0)?;
    /// assert_eq!(parameters.tensors()["gate_proj.weight"].shape(), [20, 8]);
    /// assert_eq!(parameters.tensors()["down_proj.weight"].shape(), [8, 20]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, width: usize, inner: usize, dropout: f64) -> Result<Self> {
        check_dropout(dropout)?;
        let linear = |name: &str, from, to| Linear::new(&parameters.at(name), from, to, false);
        Ok(Self {
            gate_proj: linear("gate_proj", width, inner)?,
            up_proj: linear("up_proj", width, inner)?,
            down_proj: linear("down_proj", inner, width)?,
            dropout,
        })
    }

    /// For each vector on its own.
    /// Refuses an input of another width or type.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::SwiGlu;
    /// let feed = SwiGlu::new(&Parameters::new(DType::F64, 1), 4, 6, 0.0)?;
    /// let x = Random::new(1).normal(&[3, 4], 0.0, 1.0, DType::F64)?;
    /// let gate = feed.gate_proj.forward(&x)?.silu()?;
    /// let by_hand = feed.down_proj.forward(&gate.mul(&feed.up_proj.forward(&x)?)?)?;
    /// assert_eq!(feed.forward(&x, Mode::Infer)?.to_vec::<f64>()?, by_hand.to_vec::<f64>()?);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let inner = self.gate_proj.forward(x)?.silu()?.mul(&self.up_proj.forward(x)?)?;
        self.down_proj.forward(&mode.dropout(&inner, self.dropout)?)
    }
}

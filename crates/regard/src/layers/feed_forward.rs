//! Two linear layers with a nonlinearity between.

use super::{Activation, Linear};
use crate::Mode;
use crate::mode::check_dropout;
use regard_tensor::{Parameters, Result, Tensor};

/// W₂ f(W₁ x + b₁) + b₂, for each vector on its own: `[…, width]` → `[…, width]`.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::FeedForward;
/// let parameters = Parameters::new(DType::F32, 1);
/// let feed = FeedForward::new(&parameters, 8, 32, Activation::Gelu, 0.1)?;
/// let y = feed.forward(&Tensor::zeros(&[2, 8], DType::F32)?, Mode::Infer)?;
/// assert_eq!(y.shape(), [2, 8]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FeedForward {
    /// `[inner, width]`
    pub linear1: Linear,
    /// `[width, inner]`
    pub linear2: Linear,
    /// Between the two.
    pub activation: Activation,
    /// The share of inner numbers left out during training.
    pub dropout: f64,
}

impl FeedForward {
    /// New, with parameters `linear1` and `linear2`.
    /// Refuses sizes that no memory holds, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::FeedForward;
    /// let parameters = Parameters::new(DType::F32, 1);
    /// FeedForward::new(&parameters, 8, 32, Activation::Gelu, 0.1)?;
    /// assert_eq!(parameters.tensors()["linear1.weight"].shape(), [32, 8]);
    /// assert_eq!(parameters.tensors()["linear2.weight"].shape(), [8, 32]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(
        parameters: &Parameters,
        width: usize,
        inner: usize,
        activation: Activation,
        dropout: f64,
    ) -> Result<Self> {
        check_dropout(dropout)?;
        Ok(Self {
            linear1: Linear::new(&parameters.at("linear1"), width, inner, true)?,
            linear2: Linear::new(&parameters.at("linear2"), inner, width, true)?,
            activation,
            dropout,
        })
    }

    /// For each vector on its own.
    /// Refuses an input of another width or type.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::FeedForward;
    /// let parameters = Parameters::new(DType::F64, 1);
    /// let feed = FeedForward::new(&parameters, 8, 32, Activation::Gelu, 0.1)?;
    /// let x = Random::new(1).normal(&[5, 8], 0.0, 1.0, DType::F64)?;
    /// let alone = feed.forward(&x.narrow(0, 2, 1)?, Mode::Infer)?;
    /// let among = feed.forward(&x, Mode::Infer)?.narrow(0, 2, 1)?;
    /// assert!(alone.squared_error(&among)?.item()? < 1e-20);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let inner = self.linear1.activated(x, self.activation)?;
        self.linear2.forward(&mode.dropout(&inner, self.dropout)?)
    }
}

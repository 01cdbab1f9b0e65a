//! What a CNN over sequences is made of.

use crate::mode::check_dropout;
use crate::{Activation, Position};
use regard_tensor::{Result, ensure};

/// What a [`Convolution`](crate::Convolution) is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::ConvolutionConfig;
/// let error = ConvolutionConfig { kernel: 4, ..ConvolutionConfig::default() }.check().unwrap_err();
/// assert_eq!(error.to_string(), "a kernel of 4 has no middle; it wants an odd one");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct ConvolutionConfig {
    /// Width of the vectors.
    pub width: usize,
    /// Layers, each over the one before.
    pub layers: usize,
    /// How many vectors a layer sees at once; odd.
    pub kernel: usize,
    /// After each layer.
    pub activation: Activation,
    /// The share of each layer's input left out during training.
    pub dropout: f64,
    /// Positions added to the input: none, sinusoidal or learned.
    pub position: Position,
    /// The longest sequence that learned positions serve.
    pub longest: usize,
}

impl Default for ConvolutionConfig {
    fn default() -> Self {
        Self {
            width: 64,
            layers: 2,
            kernel: 3,
            activation: Activation::Relu,
            dropout: 0.0,
            position: Position::Sinusoidal,
            longest: 512,
        }
    }
}

impl ConvolutionConfig {
    /// Of this width, all else as usual.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::ConvolutionConfig;
    /// assert_eq!(ConvolutionConfig::new(16), ConvolutionConfig { width: 16, ..Default::default() });
    /// ```
    pub fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// Refuses what cannot be built, by name.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::ConvolutionConfig;
    /// let config = ConvolutionConfig { position: Position::Rotary, ..ConvolutionConfig::new(16) };
    /// let error = config.check().unwrap_err().to_string();
    /// assert_eq!(error, "Rotary positions act within attention; a convolution has none");
    /// ```
    pub fn check(&self) -> Result<()> {
        ensure!(self.width > 0, "a convolution of width 0");
        ensure!(self.layers > 0, "a convolution of 0 layers");
        ensure!(
            self.kernel % 2 == 1,
            "a kernel of {} has no middle; it wants an odd one",
            self.kernel
        );
        check_dropout(self.dropout)?;
        ensure!(
            matches!(self.position, Position::None | Position::Sinusoidal | Position::Learned),
            "{:?} positions act within attention; a convolution has none",
            self.position
        );
        Ok(())
    }
}

//! One network over a whole sequence of a fixed length: every vector is joined to every other.

use super::{Activation, Linear};
use crate::mode::check_dropout;
use crate::{Mode, length};
use regard_tensor::{Parameters, Result, Tensor, ensure};

/// What a [`FullyConnected`] encoder is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::FullyConnectedConfig;
/// let config: FullyConnectedConfig = serde_json::from_str(r#"{ "longest": 20 }"#).unwrap();
/// assert_eq!((config.longest, config.width), (20, 64));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct FullyConnectedConfig {
    /// Width of the vectors it gives.
    pub width: usize,
    /// Width of the layer between all vectors it reads and all it gives.
    pub hidden: usize,
    /// The length that it is made for: shorter sequences are filled up, longer ones refused.
    pub longest: usize,
    /// The share left out inside during training.
    pub dropout: f64,
}

impl Default for FullyConnectedConfig {
    fn default() -> Self {
        Self { width: 64, hidden: 256, longest: 100, dropout: 0.0 }
    }
}

/// All vectors of a sequence side by side, a hidden layer with ReLU, and all vectors of the output
/// side by side: what a sequence of a fixed length can be read with where nothing is shared between
/// places. It has longest · (input + width) · hidden weights.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{FullyConnected, FullyConnectedConfig};
/// let config = FullyConnectedConfig { width: 6, hidden: 12, longest: 5, dropout: 0.0 };
/// let network = FullyConnected::new(&Parameters::new(DType::F32, 1), &config, 4)?;
/// let x = Random::new(1).normal(&[2, 3, 4], 0.0, 1.0, DType::F32)?;
/// assert_eq!(network.forward(&x, Some(&[3, 2]), Mode::Infer)?.shape(), [2, 3, 6]);
/// let long = Tensor::zeros(&[1, 6, 4], DType::F32)?;
/// let error = network.forward(&long, None, Mode::Infer).unwrap_err().to_string();
/// assert_eq!(error, "a sequence of 6 vectors; the fully connected network is made for 5");
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FullyConnected {
    config: FullyConnectedConfig,
    hidden: Linear,
    out: Linear,
}

impl FullyConnected {
    /// New, for vectors of width `input`.
    /// Refuses a configuration that does not fit together, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{FullyConnected, FullyConnectedConfig};
    /// let config = FullyConnectedConfig { longest: 0, ..FullyConnectedConfig::default() };
    /// let error = FullyConnected::new(&Parameters::new(DType::F32, 1), &config, 4).unwrap_err();
    /// assert_eq!(error.to_string(), "a fully connected network of width 64, hidden width 256 and length 0");
    /// ```
    pub fn new(
        parameters: &Parameters,
        config: &FullyConnectedConfig,
        input: usize,
    ) -> Result<Self> {
        let FullyConnectedConfig { width, hidden, longest, dropout } = *config;
        ensure!(
            width > 0 && hidden > 0 && longest > 0,
            "a fully connected network of width {width}, hidden width {hidden} and length {longest}"
        );
        check_dropout(dropout)?;
        Ok(Self {
            config: config.clone(),
            hidden: Linear::new(
                &parameters.at("hidden"),
                longest.saturating_mul(input),
                hidden,
                true,
            )?,
            out: Linear::new(&parameters.at("out"), hidden, longest.saturating_mul(width), true)?,
        })
    }

    /// How it was made.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{FullyConnected, FullyConnectedConfig};
    /// let config = FullyConnectedConfig::default();
    /// let network = FullyConnected::new(&Parameters::new(DType::F32, 1), &config, 4)?;
    /// assert_eq!(network.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &FullyConnectedConfig {
        &self.config
    }

    /// x `[B, N, input]`, of these lengths, gives `[B, N, width]`, 0 past a length.
    /// Refuses an input of another width or type, and lengths that are not one for each sequence or beyond N.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{FullyConnected, FullyConnectedConfig};
    /// let network =
    ///     FullyConnected::new(&Parameters::new(DType::F32, 1), &FullyConnectedConfig::default(), 4)?;
    /// let x = Tensor::full(&[1, 3, 4], 1.0, DType::F32)?;
    /// let y = network.forward(&x, Some(&[2]), Mode::Infer)?;
    /// assert!(y.select(1, 2)?.to_vec::<f32>()?.iter().all(|&y| y == 0.0));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor, lengths: Option<&[usize]>, mode: Mode) -> Result<Tensor> {
        let FullyConnectedConfig { width, longest, dropout, .. } = self.config;
        let (b, n, d) = (x.shape()[0], x.shape()[1], x.shape()[2]);
        ensure!(
            n <= longest,
            "a sequence of {n} vectors; the fully connected network is made for {longest}"
        );
        let keep = length::keep(lengths, n, x.device())?;
        let x = length::without_padding(x, keep.as_ref())?;
        let rest = Tensor::zeros(&[b, longest - n, d], self.dtype())?.to_device(x.device())?;
        let filled = Tensor::cat(&[x, rest], 1)?;
        let hidden =
            self.hidden.activated(&filled.reshape(&[b, longest * d])?, Activation::Relu)?;
        let out = self.out.forward(&mode.dropout(&hidden, dropout)?)?;
        let out = out.reshape(&[b, longest, width])?.narrow(1, 0, n)?;
        length::without_padding(&out, keep.as_ref())
    }

    fn dtype(&self) -> regard_tensor::DType {
        self.out.weight.tensor().dtype()
    }
}

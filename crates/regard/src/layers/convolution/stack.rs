//! Layers of convolutions over whole sequences.

use super::ConvolutionConfig;
use crate::layers::PositionalEncoding;
use crate::{Linear, Mode, length};
use regard_tensor::{Init, Parameter, Parameters, Result, Tensor, ensure};

/// Layers of 1-D convolutions, each as long as its input and added to it:
/// x ← (x + f(conv(x))) · √½, which keeps the variance (Gehring and others 2017).
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{Convolution, ConvolutionConfig};
/// let parameters = Parameters::new(DType::F32, 1);
/// let network = Convolution::new(&parameters, &ConvolutionConfig::new(16), 8)?;
/// let x = Random::new(1).normal(&[2, 7, 8], 0.0, 1.0, DType::F32)?;
/// assert_eq!(network.forward(&x, Some(&[7, 3]), Mode::Infer)?.shape(), [2, 7, 16]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Convolution {
    config: ConvolutionConfig,
    input: Linear,
    places: PositionalEncoding,
    /// `[width, width, kernel]` and `[width]`.
    layers: Vec<(Parameter, Parameter)>,
}

impl Convolution {
    /// New, for vectors of width `input`.
    /// Refuses a configuration that does not fit together, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Convolution, ConvolutionConfig};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// Convolution::new(&parameters, &ConvolutionConfig::new(16), 8)?;
    /// // brought to the width, then two layers that see three vectors at once
    /// assert_eq!(parameters.numel(), 16 * 8 + 16 + 2 * (16 * 16 * 3 + 16));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &ConvolutionConfig, input: usize) -> Result<Self> {
        config.check()?;
        ensure!(input > 0, "a convolution over vectors of width 0");
        let c = config;
        let layers = (0..c.layers).map(|layer| {
            let at = parameters.at("layers").at(layer);
            let weight = at.parameter("weight", &[c.width, c.width, c.kernel], Init::Glorot)?;
            Ok((weight, at.parameter("bias", &[c.width], Init::Zeros)?))
        });
        Ok(Self {
            config: *c,
            layers: layers.collect::<Result<_>>()?,
            input: Linear::new(&parameters.at("input"), input, c.width, true)?,
            places: PositionalEncoding::new(parameters, c.position, c.longest, c.width)?,
        })
    }

    /// How it was made.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Convolution, ConvolutionConfig};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let network = Convolution::new(&parameters, &ConvolutionConfig::new(16), 8)?;
    /// assert_eq!(network.config(), &ConvolutionConfig::new(16));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &ConvolutionConfig {
        &self.config
    }

    /// x `[B, N, input]`, of these lengths → `[B, N, width]`, 0 past a sequence's length. A padded
    /// batch gives the same numbers as each sequence alone.
    /// Refuses an input of another width or type, and lengths that are not one for each sequence or beyond N.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Convolution, ConvolutionConfig};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let network = Convolution::new(&parameters, &ConvolutionConfig::new(4), 8)?;
    /// let y = network.forward(&Tensor::zeros(&[1, 3, 8], DType::F32)?, Some(&[2]), Mode::Infer)?;
    /// assert_eq!(y.shape(), [1, 3, 4]);
    /// assert_eq!(y.select(1, 2)?.to_vec::<f32>()?, [0.0; 4]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor, lengths: Option<&[usize]>, mode: Mode) -> Result<Tensor> {
        let input = self.input.weight.tensor().shape()[1];
        ensure!(
            x.rank() == 3 && x.shape()[2] == input,
            "a convolution over {:?}; it wants [B, N, {input}]",
            x.shape()
        );
        let (b, n) = (x.shape()[0], x.shape()[1]);
        length::check("a convolution", lengths, b, n)?;
        let keep = length::keep(lengths, n, x.device())?;
        let x = self.places.add(&self.input.forward(x)?, 0)?;
        let mut x = length::without_padding(&x, keep.as_ref())?;
        if n == 0 {
            return Ok(x);
        }
        for (weight, bias) in &self.layers {
            let columns = mode.dropout(&x, self.config.dropout)?.transpose(1, 2)?;
            let y = columns.conv1d(&weight.tensor(), None, 1, self.config.kernel / 2, 1)?;
            let y = y.transpose(1, 2)?;
            let y = y.activate_with(&bias.tensor(), self.config.activation)?;
            let sum = x.add(&y)?.scale(0.5f64.sqrt())?;
            x = length::without_padding(&sum, keep.as_ref())?;
        }
        Ok(x)
    }
}

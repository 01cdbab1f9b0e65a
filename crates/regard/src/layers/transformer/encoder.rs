//! The Transformer's encoder.

use super::TransformerConfig;
use crate::attention::{Site, intervention};
use crate::layers::Places;
use crate::{Encoded, EncoderBlock, LayerNorm, Linear, Mask, Mode, Need, length};
use regard_tensor::{Parameters, Result, Tensor, ensure};

/// Blocks of self-attention over whole sequences. Parameters are named as in PyTorch's
/// `nn.TransformerEncoder`: `layers.0.self_attn…`, and `norm` after the last block where blocks
/// normalize their input.
///
/// ```
/// use regard::prelude::*;
/// let config = TransformerConfig { window: Some(2), ..TransformerConfig::new(16, 4, 2) };
/// let encoder = TransformerEncoder::new(&Parameters::new(DType::F32, 1), &config, 8)?;
/// let x = Random::new(1).normal(&[2, 7, 8], 0.0, 1.0, DType::F32)?;
/// let encoded = encoder.encode(&x, Some(&[7, 3]), Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(encoded.out.shape(), [2, 7, 16]);
/// assert_eq!((encoded.weights.len(), encoded.weights[0].shape()), (2, &[2, 4, 7, 7][..]));
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TransformerEncoder {
    config: TransformerConfig,
    wide: usize,
    /// Brings vectors of another width to that of the blocks.
    input: Option<Linear>,
    places: Places,
    /// After the places, where the configuration asks for it: `input_norm`.
    input_norm: Option<LayerNorm>,
    blocks: Vec<EncoderBlock>,
    norm: Option<LayerNorm>,
}

impl TransformerEncoder {
    /// New, for vectors of width `input`.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = TransformerConfig { window: Some(1), ..TransformerConfig::new(16, 4, 2) };
    /// # let parameters = Parameters::new(DType::F64, 1);
    /// # let x = Random::new(1).normal(&[2, 7, 8], 0.0, 1.0, DType::F64)?;
    /// TransformerEncoder::new(&parameters, &config, 8)?;
    /// // vectors of width 8 are brought to 16
    /// assert_eq!(parameters.tensors()["input.weight"].shape(), [16, 8]);
    /// assert_eq!(parameters.tensors()["layers.1.norm1.weight"].shape(), [16]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &TransformerConfig, input: usize) -> Result<Self> {
        config.check()?;
        ensure!(input > 0, "a Transformer over vectors of width 0");
        let c = config;
        let block =
            |layer: usize| EncoderBlock::new(&parameters.at("layers").at(layer), &c.block());
        let linear = || Linear::new(&parameters.at("input"), input, c.width, true);
        let norm = |name: &str| {
            Ok::<_, crate::Error>(LayerNorm::new(&parameters.at(name), c.width)?.with_eps(c.eps))
        };
        Ok(Self {
            wide: input,
            input: (input != c.width).then(linear).transpose()?,
            places: Places::new(parameters, c.position, c.longest, c.width)?,
            blocks: (0..c.layers).map(block).collect::<Result<_>>()?,
            input_norm: c.norm_input.then(|| norm("input_norm")).transpose()?,
            norm: c.norm_first.then(|| norm("norm")).transpose()?,
            config: c.clone(),
        })
    }

    /// How it was made.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = TransformerConfig { window: Some(1), ..TransformerConfig::new(16, 4, 2) };
    /// # let parameters = Parameters::new(DType::F64, 1);
    /// # let x = Random::new(1).normal(&[2, 7, 8], 0.0, 1.0, DType::F64)?;
    /// assert_eq!(TransformerEncoder::new(&parameters, &config, 8)?.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &TransformerConfig {
        &self.config
    }

    /// x `[B, N, input]`, of these lengths → `[B, N, width]`, 0 past a sequence's length. A padded
    /// batch gives the same numbers as each sequence alone.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = TransformerConfig { window: Some(1), ..TransformerConfig::new(16, 4, 2) };
    /// # let parameters = Parameters::new(DType::F64, 1);
    /// # let x = Random::new(1).normal(&[2, 7, 8], 0.0, 1.0, DType::F64)?;
    /// let encoder = TransformerEncoder::new(&parameters, &config, 8)?;
    /// let y = encoder.forward(&x, Some(&[7, 3]), Mode::Infer)?;
    /// assert_eq!(y.shape(), [2, 7, 16]);
    /// assert_eq!(y.select(0, 1)?.select(0, 3)?.to_vec::<f64>()?, [0.0; 16]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor, lengths: Option<&[usize]>, mode: Mode) -> Result<Tensor> {
        Ok(self.blocks(x, lengths, mode, Need::OUTPUT)?.out)
    }

    /// As [`TransformerEncoder::forward`], with the mean of each sequence, and the weights
    /// `[B, H, N, N]` of each block where they are needed.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = TransformerConfig { window: Some(1), ..TransformerConfig::new(16, 4, 2) };
    /// # let parameters = Parameters::new(DType::F64, 1);
    /// # let x = Random::new(1).normal(&[2, 7, 8], 0.0, 1.0, DType::F64)?;
    /// let encoder = TransformerEncoder::new(&parameters, &config, 8)?;
    /// let weights = encoder.encode(&x, None, Mode::Infer, Need::WEIGHTS)?.weights;
    /// // with a window of 1 the first vector sees two
    /// let first = weights[0].select(0, 0)?.select(0, 0)?.select(0, 0)?.to_vec::<f64>()?;
    /// assert!(first[1] > 0.0 && first[2..] == [0.0; 5]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn encode(
        &self,
        x: &Tensor,
        lengths: Option<&[usize]>,
        mode: Mode,
        need: Need,
    ) -> Result<Encoded> {
        let Blocks { out, weights } = self.blocks(x, lengths, mode, need)?;
        let summary = length::mean(&out, lengths)?;
        Ok(Encoded { out, summary, state: None, weights })
    }

    fn blocks(
        &self,
        x: &Tensor,
        lengths: Option<&[usize]>,
        mode: Mode,
        need: Need,
    ) -> Result<Blocks> {
        ensure!(
            x.rank() == 3 && x.shape()[2] == self.wide,
            "a Transformer over {:?}; it wants [B, N, {}]",
            x.shape(),
            self.wide
        );
        let (b, n) = (x.shape()[0], x.shape()[1]);
        length::check("a Transformer", lengths, b, n)?;
        let keep = length::keep(lengths, n, x.device())?;
        let x = length::without_padding(x, keep.as_ref())?;
        let x = match &self.input {
            Some(input) => input.forward(&x)?,
            None => x,
        };
        let mut mask = self.config.window.map_or_else(Mask::none, Mask::within);
        mask.key_lengths = keep.as_ref().and(lengths).map(<[usize]>::to_vec);
        let x = self.places.add(&x, 0)?;
        let x = match &self.input_norm {
            Some(norm) => norm.forward(&x)?,
            None => x,
        };
        let mut x = mode.dropout(&x, self.config.dropout)?;
        let mut weights = Vec::new();
        for (layer, block) in self.blocks.iter().enumerate() {
            let attended =
                intervention::at(Site::Encoder, layer, 0, || block.attend(&x, &mask, mode, need))?;
            x = attended.out;
            weights.extend(attended.weights);
        }
        if let Some(norm) = &self.norm {
            x = norm.forward(&x)?;
        }
        Ok(Blocks { out: length::without_padding(&x, keep.as_ref())?, weights })
    }
}

/// What the blocks give.
struct Blocks {
    out: Tensor,
    /// One for each block, where they are needed.
    weights: Vec<Tensor>,
}

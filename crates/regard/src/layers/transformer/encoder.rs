//! The Transformer's encoder.

use super::TransformerConfig;
use crate::attention::{Site, intervention};
use crate::layers::PositionalEncoding;
use crate::{
    Decoded, Encoded, EncoderBlock, KeyValueCache, LayerNorm, Linear, Mask, Mode, Need, length,
};
use regard_tensor::{Parameters, Result, Tensor, ensure, without_gradients};

/// Blocks of self-attention over whole sequences; with [`TransformerConfig::causal`], those of a
/// decoder-only model, which also go on place by place ([`TransformerEncoder::extend`]). Parameters are named as in PyTorch's
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
    places: PositionalEncoding,
    /// After the places, where the configuration asks for it: `input_norm`.
    input_norm: Option<LayerNorm>,
    blocks: Vec<EncoderBlock>,
    norm: Option<LayerNorm>,
}

/// What a causal [`TransformerEncoder`] keeps between the steps of decoding: the keys and values of each
/// block.
///
/// ```
/// use regard::prelude::*;
/// let config = TransformerConfig { causal: true, ..TransformerConfig::new(16, 4, 2) };
/// let encoder = TransformerEncoder::new(&Parameters::new(DType::F64, 1), &config, 16)?;
/// let mut cache = encoder.start()?;
/// let x = Random::new(1).normal(&[2, 3, 16], 0.0, 1.0, DType::F64)?;
/// encoder.extend(&x, &mut cache, Need::OUTPUT)?;
/// assert_eq!(cache.len(), 3);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct EncoderCache {
    blocks: Vec<KeyValueCache>,
}

impl EncoderCache {
    /// How many places it holds.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = TransformerConfig { causal: true, ..TransformerConfig::new(16, 4, 2) };
    /// # let encoder = TransformerEncoder::new(&Parameters::new(DType::F64, 1), &config, 16)?;
    /// assert_eq!(encoder.start()?.len(), 0);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.blocks.first().map_or(0, KeyValueCache::len)
    }

    /// Whether it holds none.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = TransformerConfig { causal: true, ..TransformerConfig::new(16, 4, 2) };
    /// # let encoder = TransformerEncoder::new(&Parameters::new(DType::F64, 1), &config, 16)?;
    /// assert!(encoder.start()?.is_empty());
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps and repeats batch items: what a beam does when its hypotheses change places.
    /// Refuses an item that is not there.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = TransformerConfig { causal: true, ..TransformerConfig::new(16, 4, 2) };
    /// # let encoder = TransformerEncoder::new(&Parameters::new(DType::F64, 1), &config, 16)?;
    /// let mut cache = encoder.start()?;
    /// encoder.extend(&Tensor::zeros(&[2, 3, 16], DType::F64)?, &mut cache, Need::OUTPUT)?;
    /// cache.reorder(&[1, 1, 0])?;
    /// let three = Tensor::zeros(&[3, 1, 16], DType::F64)?;
    /// assert_eq!(encoder.extend(&three, &mut cache, Need::OUTPUT)?.out.shape(), [3, 1, 16]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn reorder(&mut self, items: &[usize]) -> Result<()> {
        self.blocks.iter_mut().try_for_each(|block| block.reorder(items))
    }
}

impl TransformerEncoder {
    /// New, for vectors of width `input`.
    /// Refuses a configuration that does not fit together, and names that are taken.
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
            places: PositionalEncoding::new(parameters, c.position, c.longest, c.width)?,
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
    /// Refuses an input of another width or type, lengths beyond N, and more places than there are positions.
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
        Ok(self.blocks(x, lengths, &Mask::none(), mode, Need::OUTPUT)?.out)
    }

    /// As [`TransformerEncoder::forward`], with the mean of each sequence, and the weights
    /// `[B, H, N, N]` of each block where they are needed.
    /// Refuses an input of another width or type, lengths beyond N, and more places than there are positions.
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
        self.encode_masked(x, lengths, &Mask::none(), mode, need)
    }

    /// As [`TransformerEncoder::encode`], where vectors see only what a mask allows beside what the
    /// configuration does.
    /// Refuses an input of another width or type, lengths beyond N, and more places than there are positions.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::attention::Segments;
    /// # let config = TransformerConfig::new(16, 4, 2);
    /// # let parameters = Parameters::new(DType::F64, 1);
    /// # let x = Random::new(1).normal(&[2, 3, 16], 0.0, 1.0, DType::F64)?;
    /// let encoder = TransformerEncoder::new(&parameters, &config, 16)?;
    /// let documents = Segments { q: vec![0, 0, 1, 0, 1, 1], k: vec![0, 0, 1, 0, 1, 1] };
    /// let mask = Mask { segments: Some(documents), ..Mask::default() };
    /// let weights = encoder.encode_masked(&x, None, &mask, Mode::Infer, Need::WEIGHTS)?.weights;
    /// // the first vector sees the second, of its own document, and not the third
    /// let first = weights[0].i((0, 0, 0))?.to_vec::<f64>()?;
    /// assert!(first[1] > 0.0 && first[2] == 0.0);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn encode_masked(
        &self,
        x: &Tensor,
        lengths: Option<&[usize]>,
        mask: &Mask,
        mode: Mode,
        need: Need,
    ) -> Result<Encoded> {
        let Blocks { out, weights } = self.blocks(x, lengths, mask, mode, need)?;
        let summary = length::mean(&out, lengths)?;
        Ok(Encoded { out, summary, state: None, weights })
    }

    fn blocks(
        &self,
        x: &Tensor,
        lengths: Option<&[usize]>,
        mask: &Mask,
        mode: Mode,
        need: Need,
    ) -> Result<Blocks> {
        self.check(x)?;
        let (b, n) = (x.shape()[0], x.shape()[1]);
        length::check("a Transformer", lengths, b, n)?;
        let keep = length::keep(lengths, n, x.device())?;
        let x = length::without_padding(x, keep.as_ref())?;
        let padding = keep.as_ref().and(lengths).map_or_else(Mask::none, Mask::lengths);
        let mask = self.mask().and(&padding)?.and(mask)?;
        let mut x = mode.dropout(&self.bring(x, 0)?, self.config.dropout)?;
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

    /// What decoding place by place starts with. Refuses an encoder that is not causal: what it gives at
    /// a place depends on what comes after it.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let error = TransformerEncoder::new(&parameters, &TransformerConfig::new(16, 4, 2), 16)?
    ///     .start()
    ///     .unwrap_err();
    /// assert_eq!(error.to_string(), "an encoder that is not causal is not decoded place by place");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn start(&self) -> Result<EncoderCache> {
        ensure!(self.config.causal, "an encoder that is not causal is not decoded place by place");
        Ok(EncoderCache { blocks: vec![KeyValueCache::default(); self.blocks.len()] })
    }

    /// As [`TransformerEncoder::forward`] for the next places only, x `[B, N, input]`, with what was kept
    /// of those before; positions go on where the cache ends. The weights of each block, where they are
    /// needed, are `[B, H, N, all so far]`. No gradient passes: what is kept is a constant.
    ///
    /// All sequences of a batch are equally long here. Those that begin with prompts of different lengths
    /// are begun each on its own, or together, place by place, by whoever takes each next place from the
    /// prompt as long as there is one.
    /// Refuses a cache of another number of blocks, an input of another width, type or batch than its own, and more
    /// places than there are positions.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let config = TransformerConfig { causal: true, ..TransformerConfig::new(16, 4, 2) };
    /// let encoder = TransformerEncoder::new(&Parameters::new(DType::F64, 1), &config, 16)?;
    /// let x = Random::new(1).normal(&[2, 5, 16], 0.0, 1.0, DType::F64)?;
    /// let whole = encoder.forward(&x, None, Mode::Infer)?;
    /// let mut cache = encoder.start()?;
    /// for (start, places) in [(0, 3), (3, 1), (4, 1)] {
    ///     let next = encoder.extend(&x.narrow(1, start, places)?, &mut cache, Need::OUTPUT)?.out;
    ///     assert!(next.squared_error(&whole.narrow(1, start, places)?)?.item()? < 1e-20);
    /// }
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn extend(&self, x: &Tensor, cache: &mut EncoderCache, need: Need) -> Result<Decoded> {
        self.check(x)?;
        ensure!(
            cache.blocks.len() == self.blocks.len(),
            "a cache of {} blocks for an encoder of {}",
            cache.blocks.len(),
            self.blocks.len()
        );
        without_gradients(|| {
            let (place, mask) = (cache.len(), self.mask());
            let mut x = self.bring(x.clone(), place)?;
            let mut weights = Vec::new();
            for (layer, (block, cache)) in self.blocks.iter().zip(&mut cache.blocks).enumerate() {
                let extend = || block.extend(&x, cache, &mask, need);
                let attended = intervention::at(Site::Encoder, layer, place, extend)?;
                x = attended.out;
                weights.extend(attended.weights);
            }
            if let Some(norm) = &self.norm {
                x = norm.forward(&x)?;
            }
            Ok(Decoded { out: x, weights, log_prob: None })
        })
    }

    fn check(&self, x: &Tensor) -> Result<()> {
        ensure!(
            x.rank() == 3 && x.shape()[2] == self.wide,
            "a Transformer over {:?}; it wants [B, N, {}]",
            x.shape(),
            self.wide
        );
        Ok(())
    }

    fn mask(&self) -> Mask {
        let mask = self.config.window.map_or_else(Mask::none, Mask::within);
        Mask { causal: self.config.causal, ..mask }
    }

    /// What the first block is given: x as wide as the blocks, with its places from `place` on.
    fn bring(&self, x: Tensor, place: usize) -> Result<Tensor> {
        let x = match &self.input {
            Some(input) => input.forward(&x)?,
            None => x,
        };
        let x = self.places.add(&x, place)?;
        match &self.input_norm {
            Some(norm) => norm.forward(&x),
            None => Ok(x),
        }
    }
}

/// What the blocks give.
struct Blocks {
    out: Tensor,
    /// One for each block, where they are needed.
    weights: Vec<Tensor>,
}

//! The Transformer's decoder.

use super::TransformerConfig;
use crate::attention::{Site, intervention};
use crate::layers::PositionalEncoding;
use crate::{DecoderBlock, DecoderCache, LayerNorm, Linear, Mask, MechanismConfig, Mode, Need};
use regard_tensor::{Parameters, Result, Tensor, ensure};

/// Blocks of causal self-attention and attention to a memory. Parameters are named as in PyTorch's
/// `nn.TransformerDecoder`: `layers.0.self_attn…`, and `norm` after the last block where blocks
/// normalize their input.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::TransformerDecoder;
/// let parameters = Parameters::new(DType::F32, 1);
/// let config = TransformerConfig::new(16, 4, 2);
/// let decoder = TransformerDecoder::new(&parameters, &config, None, 8, 12)?;
/// let random = Random::new(1);
/// let x = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F32)?;
/// let memory = random.normal(&[2, 7, 12], 0.0, 1.0, DType::F32)?;
/// let whole = decoder.decode(&x, &memory, &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(whole.out.shape(), [2, 5, 16]);
/// assert_eq!(whole.weights[1].shape(), [2, 4, 5, 7]);
/// // One place at a time, with what was kept of those before.
/// let mut cache = decoder.start(&memory)?;
/// let first = decoder.extend(&x.narrow(1, 0, 1)?, &mut cache, &Mask::none(), Need::OUTPUT)?.out;
/// let (a, b) = (first.to_vec::<f32>()?, whole.out.narrow(1, 0, 1)?.to_vec::<f32>()?);
/// assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5));
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TransformerDecoder {
    config: TransformerConfig,
    wide: usize,
    /// Brings vectors of another width to that of the blocks.
    input: Option<Linear>,
    /// The same for the memory.
    memory: Option<Linear>,
    places: PositionalEncoding,
    blocks: Vec<DecoderBlock>,
    norm: Option<LayerNorm>,
}

/// What a [`TransformerDecoder`] gives, and a causal
/// [`TransformerEncoder`](crate::layers::TransformerEncoder) place by place.
///
/// ```
/// # use regard::prelude::*;
/// # use regard::layers::TransformerDecoder;
/// # let config = TransformerConfig::new(16, 4, 2);
/// # let decoder = TransformerDecoder::new(&Parameters::new(DType::F64, 1), &config, None, 8, 12)?;
/// # let random = Random::new(1);
/// # let x = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
/// # let memory = random.normal(&[2, 7, 12], 0.0, 1.0, DType::F64)?;
/// let decoded = decoder.decode(&x, &memory, &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(decoded.out.shape(), [2, 5, 16]);
/// assert_eq!((decoded.weights.len(), decoded.weights[0].shape()), (2, &[2, 4, 5, 7][..]));
/// // soft attention makes no choice
/// assert!(decoded.log_prob.is_none());
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Decoded {
    /// `[B, N, width]`
    pub out: Tensor,
    /// The weights on the memory `[B, H, N, M]`, or on all places so far where there is none, block by block, where they were asked for.
    pub weights: Vec<Tensor>,
    /// The log-probability of what hard attention chose, all blocks together: `[B, N]`.
    pub log_prob: Option<Tensor>,
}

/// What a [`TransformerDecoder`] keeps between the steps of decoding.
///
/// ```
/// # use regard::prelude::*;
/// # use regard::layers::TransformerDecoder;
/// # let config = TransformerConfig::new(16, 4, 2);
/// # let decoder = TransformerDecoder::new(&Parameters::new(DType::F64, 1), &config, None, 8, 12)?;
/// # let random = Random::new(1);
/// # let x = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
/// # let memory = random.normal(&[2, 7, 12], 0.0, 1.0, DType::F64)?;
/// let mut cache = decoder.start(&memory)?;
/// let same = x.narrow(1, 0, 1)?;
/// let first = decoder.extend(&same, &mut cache, &Mask::none(), Need::OUTPUT)?.out;
/// // the cache knows that the same vector now stands at the second place
/// let second = decoder.extend(&same, &mut cache, &Mask::none(), Need::OUTPUT)?.out;
/// assert!(first.squared_error(&second)?.item()? > 1e-6);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TransformerCache {
    blocks: Vec<DecoderCache>,
    place: usize,
}

impl TransformerCache {
    /// Keeps and repeats batch items: what a beam does when its hypotheses change places.
    /// Refuses an item that is not there.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::TransformerDecoder;
    /// # let config = TransformerConfig::new(16, 4, 2);
    /// # let decoder = TransformerDecoder::new(&Parameters::new(DType::F64, 1), &config, None, 8, 12)?;
    /// # let random = Random::new(1);
    /// # let x = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// # let memory = random.normal(&[2, 7, 12], 0.0, 1.0, DType::F64)?;
    /// let mut cache = decoder.start(&memory)?;
    /// cache.reorder(&[1, 1, 0])?;
    /// let three = random.normal(&[3, 1, 8], 0.0, 1.0, DType::F64)?;
    /// assert_eq!(decoder.extend(&three, &mut cache, &Mask::none(), Need::OUTPUT)?.out.shape(), [3, 1, 16]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn reorder(&mut self, items: &[usize]) -> Result<()> {
        self.blocks.iter_mut().try_for_each(|block| block.reorder(items))
    }

    /// As [`TransformerCache::reorder`] among items of the same memory, which then stays.
    pub(crate) fn reorder_own(&mut self, items: &[usize]) -> Result<()> {
        self.blocks.iter_mut().try_for_each(|block| block.reorder_own(items))
    }
}

impl TransformerDecoder {
    /// New, for vectors of width `input` and a memory of width `memory`; with a mechanism, blocks
    /// attend to the memory by it in place of heads.
    /// Refuses a configuration that does not fit together, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::TransformerDecoder;
    /// let config = TransformerConfig { window: Some(2), ..TransformerConfig::new(16, 4, 2) };
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let error = TransformerDecoder::new(&parameters, &config, None, 8, 12).unwrap_err().to_string();
    /// assert_eq!(error, "a window of 2 is for an encoder; a decoder sees all that came before");
    /// ```
    pub fn new(
        parameters: &Parameters,
        config: &TransformerConfig,
        mechanism: Option<&MechanismConfig>,
        input: usize,
        memory: usize,
    ) -> Result<Self> {
        config.check()?;
        ensure!(
            config.window.is_none(),
            "a window of {} is for an encoder; a decoder sees all that came before",
            config.window.unwrap_or_default()
        );
        ensure!(input > 0 && memory > 0, "a Transformer over vectors of width 0");
        let c = config;
        let block = |layer: usize| {
            let at = parameters.at("layers").at(layer);
            match mechanism {
                Some(mechanism) => DecoderBlock::with_mechanism(&at, &c.block(), mechanism),
                None => DecoderBlock::new(&at, &c.block()),
            }
        };
        let linear = |name: &str, from: usize| {
            let new = || Linear::new(&parameters.at(name), from, c.width, true);
            (from != c.width).then(new).transpose()
        };
        let norm = || {
            Ok::<_, crate::Error>(LayerNorm::new(&parameters.at("norm"), c.width)?.with_eps(c.eps))
        };
        Ok(Self {
            wide: input,
            input: linear("input", input)?,
            memory: linear("memory", memory)?,
            places: PositionalEncoding::new(parameters, c.position, c.longest, c.width)?,
            blocks: (0..c.layers).map(block).collect::<Result<_>>()?,
            norm: c.norm_first.then(norm).transpose()?,
            config: c.clone(),
        })
    }

    /// How it was made.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::TransformerDecoder;
    /// # let config = TransformerConfig::new(16, 4, 2);
    /// # let decoder = TransformerDecoder::new(&Parameters::new(DType::F64, 1), &config, None, 8, 12)?;
    /// # let random = Random::new(1);
    /// # let x = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// # let memory = random.normal(&[2, 7, 12], 0.0, 1.0, DType::F64)?;
    /// assert_eq!(decoder.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &TransformerConfig {
        &self.config
    }

    /// x `[B, N, input]` over a memory `[B, M, memory]` → `[B, N, width]`; each place sees itself
    /// and those before it.
    /// Refuses an input or a memory of another width or type, more places than there are positions, and a mask
    /// of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::TransformerDecoder;
    /// # let config = TransformerConfig::new(16, 4, 2);
    /// # let decoder = TransformerDecoder::new(&Parameters::new(DType::F64, 1), &config, None, 8, 12)?;
    /// # let random = Random::new(1);
    /// # let x = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// # let memory = random.normal(&[2, 7, 12], 0.0, 1.0, DType::F64)?;
    /// let whole = decoder.forward(&x, &memory, &Mask::none(), Mode::Infer)?;
    /// // what comes after a place does not change it
    /// let two = decoder.forward(&x.narrow(1, 0, 2)?, &memory, &Mask::none(), Mode::Infer)?;
    /// assert!(whole.narrow(1, 0, 2)?.squared_error(&two)?.item()? < 1e-20);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(
        &self,
        x: &Tensor,
        memory: &Tensor,
        memory_mask: &Mask,
        mode: Mode,
    ) -> Result<Tensor> {
        Ok(self.decode(x, memory, memory_mask, mode, Need::OUTPUT)?.out)
    }

    /// As [`TransformerDecoder::forward`], with the weights on the memory `[B, H, N, M]` of each
    /// block where they are needed.
    /// Refuses an input or a memory of another width or type, more places than there are positions, and a mask
    /// of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::TransformerDecoder;
    /// # let config = TransformerConfig::new(16, 4, 2);
    /// # let decoder = TransformerDecoder::new(&Parameters::new(DType::F64, 1), &config, None, 8, 12)?;
    /// # let random = Random::new(1);
    /// # let x = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// # let memory = random.normal(&[2, 7, 12], 0.0, 1.0, DType::F64)?;
    /// let decoded = decoder.decode(&x, &memory, &Mask::lengths(&[7, 3]), Mode::Infer, Need::WEIGHTS)?;
    /// let last = decoded.weights[1].select(0, 1)?.select(0, 0)?.select(0, 0)?.to_vec::<f64>()?;
    /// assert_eq!(last[3..], [0.0; 4]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn decode(
        &self,
        x: &Tensor,
        memory: &Tensor,
        memory_mask: &Mask,
        mode: Mode,
        need: Need,
    ) -> Result<Decoded> {
        let memory = self.bring_memory(memory)?;
        let mut x = mode.dropout(&self.bring(x, 0)?, self.config.dropout)?;
        let (mut weights, mut log_prob) = (Vec::new(), None::<Tensor>);
        for (layer, block) in self.blocks.iter().enumerate() {
            let attended = intervention::at(Site::Cross, layer, 0, || {
                block.attend(&x, &memory, &Mask::causal(), memory_mask, mode, need)
            })?;
            x = attended.out;
            weights.extend(attended.weights);
            // The choices of a block's heads are independent, and so are the blocks'.
            let chosen = attended.log_prob.map(|of_heads| of_heads.sum(1)).transpose()?;
            log_prob = match (log_prob, chosen) {
                (Some(sum), Some(more)) => Some(sum.add(&more)?),
                (sum, more) => sum.or(more),
            };
        }
        Ok(Decoded { out: self.normed(x)?, weights, log_prob })
    }

    /// The weights of x over itself `[B, H, N, N]`, block by block, as [`TransformerDecoder::decode`]
    /// computes them in use.
    /// Refuses an input or a memory of another width or type, more places than there are positions, and a mask
    /// of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::TransformerDecoder;
    /// # let config = TransformerConfig::new(16, 4, 2);
    /// # let decoder = TransformerDecoder::new(&Parameters::new(DType::F64, 1), &config, None, 8, 12)?;
    /// # let random = Random::new(1);
    /// # let x = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// # let memory = random.normal(&[2, 7, 12], 0.0, 1.0, DType::F64)?;
    /// let own = decoder.self_attention_weights(&x, &memory, &Mask::none())?;
    /// assert_eq!((own.len(), own[0].shape()), (2, &[2, 4, 5, 5][..]));
    /// // the first place sees itself alone
    /// assert_eq!(own[1].to_vec::<f64>()?[..5], [1.0, 0.0, 0.0, 0.0, 0.0]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn self_attention_weights(
        &self,
        x: &Tensor,
        memory: &Tensor,
        memory_mask: &Mask,
    ) -> Result<Vec<Tensor>> {
        let (memory, mut x) = (self.bring_memory(memory)?, self.bring(x, 0)?);
        let mut weights = Vec::new();
        for (layer, block) in self.blocks.iter().enumerate() {
            x = intervention::at(Site::Cross, layer, 0, || {
                let own = block.attend_self(&x, &Mask::causal(), Mode::Infer, Need::WEIGHTS)?;
                weights.extend(own.weights);
                block.attend_memory(&own.out, &memory, memory_mask, Mode::Infer, Need::OUTPUT)
            })?
            .out;
        }
        Ok(weights)
    }

    /// What decoding over a memory `[B, M, memory]` starts with.
    /// Refuses a memory of another width or type.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::TransformerDecoder;
    /// # let config = TransformerConfig::new(16, 4, 2);
    /// # let decoder = TransformerDecoder::new(&Parameters::new(DType::F64, 1), &config, None, 8, 12)?;
    /// # let random = Random::new(1);
    /// # let x = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// # let memory = random.normal(&[2, 7, 12], 0.0, 1.0, DType::F64)?;
    /// let mut cache = decoder.start(&memory)?;
    /// let decoded = decoder.extend(&x.narrow(1, 0, 1)?, &mut cache, &Mask::none(), Need::WEIGHTS)?;
    /// // one place on the seven of the memory
    /// assert_eq!(decoded.weights[1].shape(), [2, 4, 1, 7]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn start(&self, memory: &Tensor) -> Result<TransformerCache> {
        let memory = self.bring_memory(memory)?;
        let blocks = self.blocks.iter().map(|block| block.start(&memory));
        Ok(TransformerCache { blocks: blocks.collect::<Result<_>>()?, place: 0 })
    }

    /// As [`TransformerDecoder::decode`] for the next places only, with what was kept of those
    /// before.
    /// Refuses an input of another width, type or batch than the cache's, and more places than there are positions.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::TransformerDecoder;
    /// # let config = TransformerConfig::new(16, 4, 2);
    /// # let decoder = TransformerDecoder::new(&Parameters::new(DType::F64, 1), &config, None, 8, 12)?;
    /// # let random = Random::new(1);
    /// # let x = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// # let memory = random.normal(&[2, 7, 12], 0.0, 1.0, DType::F64)?;
    /// let mut cache = decoder.start(&memory)?;
    /// decoder.extend(&x.narrow(1, 0, 4)?, &mut cache, &Mask::none(), Need::OUTPUT)?;
    /// let last = decoder.extend(&x.narrow(1, 4, 1)?, &mut cache, &Mask::none(), Need::OUTPUT)?.out;
    /// let whole = decoder.forward(&x, &memory, &Mask::none(), Mode::Infer)?;
    /// assert!(last.squared_error(&whole.narrow(1, 4, 1)?)?.item()? < 1e-20);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn extend(
        &self,
        x: &Tensor,
        cache: &mut TransformerCache,
        memory_mask: &Mask,
        need: Need,
    ) -> Result<Decoded> {
        ensure!(
            cache.blocks.len() == self.blocks.len(),
            "a cache of {} blocks for a decoder of {}",
            cache.blocks.len(),
            self.blocks.len()
        );
        let mut x = self.bring(x, cache.place)?;
        let mut weights = Vec::new();
        let place = cache.place;
        for (layer, (block, cache)) in self.blocks.iter().zip(&mut cache.blocks).enumerate() {
            let attended = intervention::at(Site::Cross, layer, place, || {
                block.extend(&x, cache, memory_mask, need)
            })?;
            x = attended.out;
            weights.extend(attended.weights);
        }
        cache.place += x.shape()[1];
        Ok(Decoded { out: self.normed(x)?, weights, log_prob: None })
    }

    fn bring(&self, x: &Tensor, place: usize) -> Result<Tensor> {
        ensure!(
            x.rank() == 3 && x.shape()[2] == self.wide,
            "a Transformer over {:?}; it wants [B, N, {}]",
            x.shape(),
            self.wide
        );
        match &self.input {
            Some(input) => self.places.add(&input.forward(x)?, place),
            None => self.places.add(x, place),
        }
    }

    fn bring_memory(&self, memory: &Tensor) -> Result<Tensor> {
        match &self.memory {
            Some(linear) => linear.forward(memory),
            None => Ok(memory.clone()),
        }
    }

    fn normed(&self, x: Tensor) -> Result<Tensor> {
        match &self.norm {
            Some(norm) => norm.forward(&x),
            None => Ok(x),
        }
    }
}

//! The blocks of a Transformer: attention, then a feed-forward layer, each around a shortcut.

use super::{
    Activation, FeedForward, KeyValueCache, LayerNorm, Linear, MultiHeadAttention, MultiHeadConfig,
    Position,
};
use crate::attention::{Site, intervention};
use crate::{
    Attended, Mask, Mechanism, MechanismConfig, Memory, Mode, Need, ScoreConfig, Weighting,
};
use regard_tensor::{Parameters, Result, Tensor, ensure, without_gradients};

/// What a block is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::BlockConfig;
/// let config: BlockConfig = serde_json::from_str(r#"{ "width": 32, "norm_first": false }"#).unwrap();
/// assert_eq!((config.heads, config.feed_forward, config.norm_first), (4, 256, false));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct BlockConfig {
    /// Width of the vectors.
    pub width: usize,
    /// Heads; they divide the width, unless both of their widths are given.
    pub heads: usize,
    /// Key and value heads; as many where none are given.
    pub key_heads: Option<usize>,
    /// Dk: width of a head's queries and keys; the width over the heads where none is given.
    pub head_key_width: Option<usize>,
    /// Dv: width of a head's values; the width over the heads where none is given.
    pub head_value_width: Option<usize>,
    /// Whether the projections of attention have biases.
    pub bias: bool,
    /// Inner width of the feed-forward layer.
    pub feed_forward: usize,
    /// Its nonlinearity.
    pub activation: Activation,
    /// The score of each head of self-attention and of attention to a memory.
    pub score: ScoreConfig,
    /// How scores become weights; not by sampling, which learns from a log-probability that blocks
    /// do not give.
    pub weighting: Weighting,
    /// The share left out during training: of weights, inner numbers and each part's output.
    pub dropout: f64,
    /// Whether each part normalizes its input (true) or its output.
    pub norm_first: bool,
    /// Positions within attention; see [`MultiHeadConfig`].
    pub position: Position,
    /// The longest distance that relative positions tell apart.
    pub max_distance: usize,
    /// What keeps normalization from dividing by 0.
    pub eps: f64,
}

impl Default for BlockConfig {
    fn default() -> Self {
        Self {
            width: 64,
            heads: 4,
            key_heads: None,
            head_key_width: None,
            head_value_width: None,
            bias: true,
            feed_forward: 256,
            activation: Activation::Gelu,
            score: ScoreConfig::ScaledDot,
            weighting: Weighting::Softmax,
            dropout: 0.1,
            norm_first: true,
            position: Position::None,
            max_distance: 32,
            eps: 1e-5,
        }
    }
}

impl BlockConfig {
    /// Heads of a width, with a feed-forward layer four times as wide; all else as usual.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::BlockConfig;
    /// let config = BlockConfig::new(32, 8);
    /// assert_eq!((config.width, config.heads, config.feed_forward), (32, 8, 128));
    /// ```
    pub fn new(width: usize, heads: usize) -> Self {
        Self { width, heads, feed_forward: width.saturating_mul(4), ..Self::default() }
    }

    fn attention(&self, position: Position) -> MultiHeadConfig {
        MultiHeadConfig {
            width: self.width,
            heads: self.heads,
            key_heads: self.key_heads,
            head_key_width: self.head_key_width,
            head_value_width: self.head_value_width,
            bias: self.bias,
            score: self.score.clone(),
            weighting: self.weighting,
            dropout: self.dropout,
            position,
            max_distance: self.max_distance,
            ..MultiHeadConfig::default()
        }
    }

    /// Refuses what cannot be built, by name.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::BlockConfig;
    /// let error = BlockConfig { feed_forward: 0, ..BlockConfig::default() }.check().unwrap_err();
    /// assert_eq!(error.to_string(), "a feed-forward layer of width 0");
    /// ```
    pub fn check(&self) -> Result<()> {
        self.attention(self.position).check()?;
        ensure!(
            self.weighting != Weighting::Sample,
            "sampling within a block, which gives no log-probability to learn it from; \
             straight-through and gumbel-hard choose and need none"
        );
        ensure!(self.feed_forward > 0, "a feed-forward layer of width 0");
        ensure!(
            self.eps.is_finite() && self.eps > 0.0,
            "normalization with an eps of {}",
            self.eps
        );
        Ok(())
    }
}

/// Self-attention, then a feed-forward layer. Parameters have the names of PyTorch's
/// `nn.TransformerEncoderLayer`.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{BlockConfig, EncoderBlock};
/// let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
/// let block = EncoderBlock::new(&Parameters::new(DType::F32, 1), &config)?;
/// let x = Tensor::zeros(&[2, 5, 8], DType::F32)?;
/// assert_eq!(block.forward(&x, &Mask::none(), Mode::Infer)?.shape(), [2, 5, 8]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct EncoderBlock {
    /// Self-attention.
    pub self_attn: MultiHeadAttention,
    feed: FeedForward,
    norm1: LayerNorm,
    norm2: LayerNorm,
    dropout: f64,
    norm_first: bool,
}

impl EncoderBlock {
    /// New.
    /// Refuses a configuration that does not fit together, and names that are taken.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{BlockConfig, EncoderBlock};
    /// # let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// # let parameters = Parameters::new(DType::F32, 1);
    /// EncoderBlock::new(&parameters, &config)?;
    /// assert_eq!(parameters.tensors()["self_attn.in_proj_weight"].shape(), [24, 8]);
    /// assert_eq!(parameters.tensors()["linear1.weight"].shape(), [16, 8]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &BlockConfig) -> Result<Self> {
        config.check()?;
        let c = config;
        Ok(Self {
            self_attn: MultiHeadAttention::new(
                &parameters.at("self_attn"),
                &c.attention(c.position),
            )?,
            feed: FeedForward::new(parameters, c.width, c.feed_forward, c.activation, c.dropout)?,
            norm1: LayerNorm::new(&parameters.at("norm1"), c.width)?.with_eps(c.eps),
            norm2: LayerNorm::new(&parameters.at("norm2"), c.width)?.with_eps(c.eps),
            dropout: c.dropout,
            norm_first: c.norm_first,
        })
    }

    /// `[B, N, width]` → `[B, N, width]`.
    /// Refuses an input of another width or type, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{BlockConfig, EncoderBlock};
    /// # let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// # let parameters = Parameters::new(DType::F32, 1);
    /// let block = EncoderBlock::new(&parameters, &config)?;
    /// let x = Random::new(1).normal(&[2, 5, 8], 0.0, 1.0, DType::F32)?;
    /// assert_eq!(block.forward(&x, &Mask::none(), Mode::Infer)?.shape(), [2, 5, 8]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor, mask: &Mask, mode: Mode) -> Result<Tensor> {
        Ok(self.attend(x, mask, mode, Need::OUTPUT)?.out)
    }

    /// As [`EncoderBlock::forward`], with the weights `[B, H, N, N]` where they are needed.
    /// Refuses an input of another width or type, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{BlockConfig, EncoderBlock};
    /// # let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// # let parameters = Parameters::new(DType::F32, 1);
    /// let block = EncoderBlock::new(&parameters, &config)?;
    /// let x = Random::new(1).normal(&[2, 5, 8], 0.0, 1.0, DType::F32)?;
    /// let attended = block.attend(&x, &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
    /// assert_eq!(attended.weights.unwrap().shape(), [2, 2, 5, 5]);
    /// assert!(block.attend(&x, &Mask::none(), Mode::Infer, Need::OUTPUT)?.weights.is_none());
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn attend(&self, x: &Tensor, mask: &Mask, mode: Mode, need: Need) -> Result<Attended> {
        let part = Part { norm_first: self.norm_first, dropout: self.dropout, mode };
        let attended =
            part.attend(x, &self.norm1, |x| self.self_attn.attend(x, x, x, mask, mode, need))?;
        let out = part.around(&attended.out, &self.norm2, |x| self.feed.forward(x, mode))?;
        Ok(Attended { out, ..attended })
    }

    /// As [`EncoderBlock::attend`] with a causal mask, for the next places only: what was kept of those
    /// before is in the cache, and theirs is added to it. Rotary and relative positions go on where the
    /// cache ends. The weights are `[B, H, N, all so far]`. `mask` allows less than that, a window for one.
    /// No gradient passes: what is kept is a constant.
    /// Refuses an input of another width, type or batch than the cache's.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{BlockConfig, EncoderBlock, KeyValueCache};
    /// let config = BlockConfig { position: Position::Rotary, ..BlockConfig::new(8, 2) };
    /// let block = EncoderBlock::new(&Parameters::new(DType::F64, 1), &config)?;
    /// let x = Random::new(1).normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// let mut cache = KeyValueCache::default();
    /// block.extend(&x.narrow(1, 0, 4)?, &mut cache, &Mask::none(), Need::OUTPUT)?;
    /// let fifth = block.extend(&x.narrow(1, 4, 1)?, &mut cache, &Mask::none(), Need::OUTPUT)?.out;
    /// let whole = block.forward(&x, &Mask::causal(), Mode::Infer)?;
    /// assert!(fifth.squared_error(&whole.narrow(1, 4, 1)?)?.item()? < 1e-20);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn extend(
        &self,
        x: &Tensor,
        cache: &mut KeyValueCache,
        mask: &Mask,
        need: Need,
    ) -> Result<Attended> {
        let part = Part { norm_first: self.norm_first, dropout: 0.0, mode: Mode::Infer };
        let mask = &Mask { causal: true, ..mask.clone() };
        without_gradients(|| {
            let attend = |x: &Tensor| self.self_attn.extend(x, cache, mask, need);
            let attended = part.attend(x, &self.norm1, attend)?;
            let feed = |x: &Tensor| self.feed.forward(x, Mode::Infer);
            let out = part.around(&attended.out, &self.norm2, feed)?;
            Ok(Attended { out, ..attended })
        })
    }
}

/// Causal self-attention, attention to a memory, then a feed-forward layer. Parameters have the
/// names of PyTorch's `nn.TransformerDecoderLayer`.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{BlockConfig, DecoderBlock};
/// let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
/// let block = DecoderBlock::new(&Parameters::new(DType::F32, 1), &config)?;
/// let (x, memory) = (Tensor::zeros(&[2, 3, 8], DType::F32)?, Tensor::zeros(&[2, 5, 8], DType::F32)?);
/// let attended =
///     block.attend(&x, &memory, &Mask::causal(), &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(attended.out.shape(), [2, 3, 8]);
/// assert_eq!(attended.weights.unwrap().shape(), [2, 2, 3, 5]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DecoderBlock {
    /// Self-attention.
    pub self_attn: MultiHeadAttention,
    cross: Cross,
    feed: FeedForward,
    norm1: LayerNorm,
    norm2: LayerNorm,
    norm3: LayerNorm,
    dropout: f64,
    norm_first: bool,
}

/// Attention to the memory: with heads, or one mechanism and a projection.
#[derive(Clone, Debug)]
enum Cross {
    Heads(Box<MultiHeadAttention>),
    One { mechanism: Mechanism, out: Linear },
}

/// What a [`DecoderBlock`] keeps between the steps of decoding.
///
/// ```
/// # use regard::prelude::*;
/// # use regard::layers::{BlockConfig, DecoderBlock};
/// # let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
/// # let block = DecoderBlock::new(&Parameters::new(DType::F64, 1), &config)?;
/// # let random = Random::new(1);
/// # let x = random.normal(&[2, 3, 8], 0.0, 1.0, DType::F64)?;
/// # let memory = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
/// let mut cache = block.start(&memory)?;
/// let first = x.narrow(1, 0, 1)?;
/// let second = x.narrow(1, 1, 1)?;
/// let alone = block.extend(&second, &mut cache.clone(), &Mask::none(), Need::OUTPUT)?.out;
/// block.extend(&first, &mut cache, &Mask::none(), Need::OUTPUT)?;
/// // the second place sees the first
/// let after = block.extend(&second, &mut cache, &Mask::none(), Need::WEIGHTS)?;
/// assert!(alone.squared_error(&after.out)?.item()? > 1e-6);
/// assert_eq!(after.weights.unwrap().shape(), [2, 2, 1, 5]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DecoderCache {
    own: KeyValueCache,
    memory: Memory,
}

impl DecoderCache {
    /// Keeps and repeats batch items: what a beam does when its hypotheses change places.
    /// Refuses an item that is not there.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{BlockConfig, DecoderBlock};
    /// # let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// # let block = DecoderBlock::new(&Parameters::new(DType::F64, 1), &config)?;
    /// # let random = Random::new(1);
    /// # let x = random.normal(&[2, 3, 8], 0.0, 1.0, DType::F64)?;
    /// # let memory = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// let mut cache = block.start(&memory)?;
    /// cache.reorder(&[1, 1, 0])?;
    /// let three = random.normal(&[3, 1, 8], 0.0, 1.0, DType::F64)?;
    /// let out = block.extend(&three, &mut cache, &Mask::none(), Need::OUTPUT)?.out;
    /// assert_eq!(out.shape(), [3, 1, 8]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn reorder(&mut self, items: &[usize]) -> Result<()> {
        self.memory = self.memory.reorder(items)?;
        self.own.reorder(items)
    }

    /// As [`DecoderCache::reorder`] among items of the same memory, which then stays.
    pub(crate) fn reorder_own(&mut self, items: &[usize]) -> Result<()> {
        self.own.reorder(items)
    }
}

impl DecoderBlock {
    /// New.
    /// Refuses a configuration that does not fit together, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{BlockConfig, DecoderBlock};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// DecoderBlock::new(&parameters, &config)?;
    /// assert_eq!(parameters.tensors()["multihead_attn.in_proj_weight"].shape(), [24, 8]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &BlockConfig) -> Result<Self> {
        config.check()?;
        // Distances between two sequences mean nothing, so no positions here.
        let heads = config.attention(Position::None);
        let cross = MultiHeadAttention::new(&parameters.at("multihead_attn"), &heads)?;
        Self::around(parameters, config, Cross::Heads(Box::new(cross)))
    }

    /// New, with a mechanism of one head in place of the heads that attend to the memory:
    /// `attention` in place of `multihead_attn`, and a projection `out_proj` within it.
    /// Refuses a configuration that does not fit together, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{BlockConfig, DecoderBlock};
    /// let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// let additive = MechanismConfig::new(ScoreConfig::Additive { hidden: 8 });
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let block = DecoderBlock::with_mechanism(&parameters, &config, &additive)?;
    /// let (x, memory) = (Tensor::zeros(&[2, 3, 8], DType::F32)?, Tensor::zeros(&[2, 5, 8], DType::F32)?);
    /// let attended =
    ///     block.attend(&x, &memory, &Mask::causal(), &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
    /// assert_eq!(attended.weights.unwrap().shape(), [2, 1, 3, 5]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn with_mechanism(
        parameters: &Parameters,
        config: &BlockConfig,
        mechanism: &MechanismConfig,
    ) -> Result<Self> {
        config.check()?;
        let (at, width) = (parameters.at("attention"), config.width);
        let cross = Cross::One {
            mechanism: Mechanism::new(&at, mechanism, width, width)?,
            out: Linear::new(&at.at("out_proj"), width, width, true)?,
        };
        Self::around(parameters, config, cross)
    }

    fn around(parameters: &Parameters, config: &BlockConfig, cross: Cross) -> Result<Self> {
        let c = config;
        let at = |name: &str| parameters.at(name);
        Ok(Self {
            self_attn: MultiHeadAttention::new(&at("self_attn"), &c.attention(c.position))?,
            cross,
            feed: FeedForward::new(parameters, c.width, c.feed_forward, c.activation, c.dropout)?,
            norm1: LayerNorm::new(&at("norm1"), c.width)?.with_eps(c.eps),
            norm2: LayerNorm::new(&at("norm2"), c.width)?.with_eps(c.eps),
            norm3: LayerNorm::new(&at("norm3"), c.width)?.with_eps(c.eps),
            dropout: c.dropout,
            norm_first: c.norm_first,
        })
    }

    /// x `[B, N, width]`, memory `[B, M, width]` → `[B, N, width]`, with the weights on the memory
    /// `[B, H, N, M]` where they are needed, and all else that attention to the memory gives.
    /// `mask` is for x itself and should be causal.
    /// Refuses an input or a memory of another width or type, and masks of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{BlockConfig, DecoderBlock};
    /// # let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// # let block = DecoderBlock::new(&Parameters::new(DType::F64, 1), &config)?;
    /// # let random = Random::new(1);
    /// # let x = random.normal(&[2, 3, 8], 0.0, 1.0, DType::F64)?;
    /// # let memory = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// let attended =
    ///     block.attend(&x, &memory, &Mask::causal(), &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
    /// assert_eq!(attended.out.shape(), [2, 3, 8]);
    /// assert_eq!(attended.weights.unwrap().shape(), [2, 2, 3, 5]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn attend(
        &self,
        x: &Tensor,
        memory: &Tensor,
        mask: &Mask,
        memory_mask: &Mask,
        mode: Mode,
        need: Need,
    ) -> Result<Attended> {
        let x = self.attend_self(x, mask, mode, Need::OUTPUT)?.out;
        self.attend_memory(&x, memory, memory_mask, mode, need)
    }

    /// The first part of [`DecoderBlock::attend`]: x over itself, with the weights `[B, H, N, N]`
    /// where they are needed.
    pub(crate) fn attend_self(
        &self,
        x: &Tensor,
        mask: &Mask,
        mode: Mode,
        need: Need,
    ) -> Result<Attended> {
        let part = Part { norm_first: self.norm_first, dropout: self.dropout, mode };
        part.attend(x, &self.norm1, |x| {
            let attend = || self.self_attn.attend(x, x, x, mask, mode, need);
            intervention::moved(|here| here.site = Site::Decoder, attend)
        })
    }

    /// What comes after it: x over the memory, and the feed-forward network.
    pub(crate) fn attend_memory(
        &self,
        x: &Tensor,
        memory: &Tensor,
        memory_mask: &Mask,
        mode: Mode,
        need: Need,
    ) -> Result<Attended> {
        let part = Part { norm_first: self.norm_first, dropout: self.dropout, mode };
        let attended = part.attend(x, &self.norm2, |x| match &self.cross {
            Cross::Heads(heads) => heads.attend(x, memory, memory, memory_mask, mode, need),
            Cross::One { mechanism, out } => {
                let attended = mechanism.attend(x, memory, memory, memory_mask, mode, need)?;
                joined_one(attended, out)
            }
        })?;
        let out = part.around(&attended.out, &self.norm3, |x| self.feed.forward(x, mode))?;
        Ok(Attended { out, ..attended })
    }

    /// What decoding over a memory starts with.
    /// Refuses a memory of another width or type.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{BlockConfig, DecoderBlock};
    /// # let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// # let block = DecoderBlock::new(&Parameters::new(DType::F64, 1), &config)?;
    /// # let random = Random::new(1);
    /// # let x = random.normal(&[2, 3, 8], 0.0, 1.0, DType::F64)?;
    /// # let memory = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// let mut cache = block.start(&memory)?;
    /// let weights = block.extend(&x, &mut cache, &Mask::none(), Need::WEIGHTS)?.weights;
    /// // three places on the five of the memory
    /// assert_eq!(weights.unwrap().shape(), [2, 2, 3, 5]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn start(&self, memory: &Tensor) -> Result<DecoderCache> {
        let memory = match &self.cross {
            Cross::Heads(heads) => heads.remember(memory)?,
            Cross::One { mechanism, .. } => {
                Memory { keys: mechanism.keys(memory)?, values: memory.clone() }
            }
        };
        Ok(DecoderCache { own: KeyValueCache::default(), memory })
    }

    /// As [`DecoderBlock::attend`] for the next places only, with what was kept of those before, off the tape.
    /// Refuses an input of another width, type or batch than the cache's.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{BlockConfig, DecoderBlock};
    /// # let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// # let block = DecoderBlock::new(&Parameters::new(DType::F64, 1), &config)?;
    /// # let random = Random::new(1);
    /// # let x = random.normal(&[2, 3, 8], 0.0, 1.0, DType::F64)?;
    /// # let memory = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// let mut cache = block.start(&memory)?;
    /// block.extend(&x.narrow(1, 0, 2)?, &mut cache, &Mask::none(), Need::OUTPUT)?;
    /// let third = block.extend(&x.narrow(1, 2, 1)?, &mut cache, &Mask::none(), Need::OUTPUT)?.out;
    /// let whole =
    ///     block.attend(&x, &memory, &Mask::causal(), &Mask::none(), Mode::Infer, Need::OUTPUT)?.out;
    /// assert!(third.squared_error(&whole.narrow(1, 2, 1)?)?.item()? < 1e-20);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn extend(
        &self,
        x: &Tensor,
        cache: &mut DecoderCache,
        memory_mask: &Mask,
        need: Need,
    ) -> Result<Attended> {
        without_gradients(|| self.extended(x, cache, memory_mask, need))
    }

    fn extended(
        &self,
        x: &Tensor,
        cache: &mut DecoderCache,
        memory_mask: &Mask,
        need: Need,
    ) -> Result<Attended> {
        let part = Part { norm_first: self.norm_first, dropout: 0.0, mode: Mode::Infer };
        let DecoderCache { own, memory } = cache;
        let x = part.around(x, &self.norm1, |x| {
            let extend = || self.self_attn.extend(x, own, &Mask::causal(), Need::OUTPUT);
            Ok(intervention::moved(|here| here.site = Site::Decoder, extend)?.out)
        })?;
        let attended = part.attend(&x, &self.norm2, |x| match &self.cross {
            Cross::Heads(heads) => heads.recall(x, memory, memory_mask, need),
            Cross::One { mechanism, out } => {
                let Memory { keys, values } = &*memory;
                let mode = Mode::Infer;
                let attended = mechanism.attend_keys(x, keys, values, memory_mask, mode, need)?;
                joined_one(attended, out)
            }
        })?;
        let out = part.around(&attended.out, &self.norm3, |x| self.feed.forward(x, Mode::Infer))?;
        Ok(Attended { out, ..attended })
    }
}

/// What one head gave, in the shapes of several: `[B, 1, N, …]`.
fn joined_one(attended: Attended, out: &Linear) -> Result<Attended> {
    let out = out.forward(&attended.out)?;
    attended.changed(out, |x| x.unsqueeze(1))
}

/// A part of a block: what it computes is added to what it was given.
struct Part<'a> {
    norm_first: bool,
    dropout: f64,
    mode: Mode<'a>,
}

impl Part<'_> {
    fn around(
        &self,
        x: &Tensor,
        norm: &LayerNorm,
        f: impl FnOnce(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        self.after(x, &f(&self.before(x, norm)?)?, norm)
    }

    /// As [`Part::around`], with what attention gives beside its output.
    fn attend(
        &self,
        x: &Tensor,
        norm: &LayerNorm,
        f: impl FnOnce(&Tensor) -> Result<Attended>,
    ) -> Result<Attended> {
        let attended = f(&self.before(x, norm)?)?;
        let out = self.after(x, &attended.out, norm)?;
        Ok(Attended { out, ..attended })
    }

    fn before(&self, x: &Tensor, norm: &LayerNorm) -> Result<Tensor> {
        if self.norm_first { norm.forward(x) } else { Ok(x.clone()) }
    }

    fn after(&self, x: &Tensor, y: &Tensor, norm: &LayerNorm) -> Result<Tensor> {
        let sum = x.add(&self.mode.dropout(y, self.dropout)?)?;
        if self.norm_first { Ok(sum) } else { norm.forward(&sum) }
    }
}

//! The blocks of a Transformer: attention, then a feed-forward layer, each around a shortcut.

use super::{
    Activation, FeedForward, KeyValueCache, LayerNorm, Linear, MultiHeadAttention, MultiHeadConfig,
    Position,
};
use crate::{Keys, Mask, Mechanism, MechanismConfig, Mode};
use regard_tensor::{Parameters, Result, Tensor, ensure};
use serde::{Deserialize, Serialize};

/// What a block is made of.
///
/// ```
/// use regard::prelude::*;
/// let config: BlockConfig = serde_json::from_str(r#"{ "width": 32, "norm_first": false }"#).unwrap();
/// assert_eq!((config.heads, config.feed_forward, config.norm_first), (4, 256, false));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlockConfig {
    /// Width of the vectors.
    pub width: usize,
    /// Heads; they divide the width.
    pub heads: usize,
    /// Key and value heads; as many where none are given.
    pub key_heads: Option<usize>,
    /// Inner width of the feed-forward layer.
    pub feed_forward: usize,
    /// Its nonlinearity.
    pub activation: Activation,
    /// The share left out while learning: of weights, inner numbers and each part's output.
    pub dropout: f64,
    /// Whether each part normalizes its input (true) or its output.
    pub norm_first: bool,
    /// Positions within attention; see [`MultiHeadConfig`].
    pub position: Position,
    /// The longest distance that relative positions tell apart.
    pub max_distance: usize,
}

impl Default for BlockConfig {
    fn default() -> Self {
        Self {
            width: 64,
            heads: 4,
            key_heads: None,
            feed_forward: 256,
            activation: Activation::Gelu,
            dropout: 0.1,
            norm_first: true,
            position: Position::None,
            max_distance: 32,
        }
    }
}

impl BlockConfig {
    fn attention(&self, position: Position) -> MultiHeadConfig {
        MultiHeadConfig {
            width: self.width,
            heads: self.heads,
            key_heads: self.key_heads,
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
    /// let error = BlockConfig { feed_forward: 0, ..BlockConfig::default() }.check().unwrap_err();
    /// assert_eq!(error.to_string(), "a feed-forward layer of width 0");
    /// ```
    pub fn check(&self) -> Result<()> {
        self.attention(self.position).check()?;
        ensure!(self.feed_forward > 0, "a feed-forward layer of width 0");
        Ok(())
    }
}

/// Self-attention, then a feed-forward layer. Parameters have the names of PyTorch's
/// `nn.TransformerEncoderLayer`.
///
/// ```
/// use regard::prelude::*;
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
    ///
    /// ```
    /// # use regard::prelude::*;
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
            norm1: LayerNorm::new(&parameters.at("norm1"), c.width)?,
            norm2: LayerNorm::new(&parameters.at("norm2"), c.width)?,
            dropout: c.dropout,
            norm_first: c.norm_first,
        })
    }

    /// `[B, N, width]` → `[B, N, width]`.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// # let parameters = Parameters::new(DType::F32, 1);
    /// let block = EncoderBlock::new(&parameters, &config)?;
    /// let x = Random::new(1).normal(&[2, 5, 8], 0.0, 1.0, DType::F32)?;
    /// assert_eq!(block.forward(&x, &Mask::none(), Mode::Infer)?.shape(), [2, 5, 8]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor, mask: &Mask, mode: Mode) -> Result<Tensor> {
        Ok(self.attend(x, mask, mode, false)?.0)
    }

    /// As [`EncoderBlock::forward`], with the weights `[B, H, N, N]` where they are asked for.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// # let parameters = Parameters::new(DType::F32, 1);
    /// let block = EncoderBlock::new(&parameters, &config)?;
    /// let x = Random::new(1).normal(&[2, 5, 8], 0.0, 1.0, DType::F32)?;
    /// let (_, weights) = block.attend(&x, &Mask::none(), Mode::Infer, true)?;
    /// assert_eq!(weights.unwrap().shape(), [2, 2, 5, 5]);
    /// assert!(block.attend(&x, &Mask::none(), Mode::Infer, false)?.1.is_none());
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn attend(
        &self,
        x: &Tensor,
        mask: &Mask,
        mode: Mode,
        weights: bool,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let mut seen = None;
        let part = Part { norm_first: self.norm_first, dropout: self.dropout, mode };
        let x = part.around(x, &self.norm1, |x| {
            let attended = self.self_attn.attend(x, x, x, mask, mode, weights)?;
            seen = attended.weights;
            Ok(attended.out)
        })?;
        let x = part.around(&x, &self.norm2, |x| self.feed.forward(x, mode))?;
        Ok((x, seen))
    }
}

/// Causal self-attention, attention to a memory, then a feed-forward layer. Parameters have the
/// names of PyTorch's `nn.TransformerDecoderLayer`.
///
/// ```
/// use regard::prelude::*;
/// let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
/// let block = DecoderBlock::new(&Parameters::new(DType::F32, 1), &config)?;
/// let (x, memory) = (Tensor::zeros(&[2, 3, 8], DType::F32)?, Tensor::zeros(&[2, 5, 8], DType::F32)?);
/// let (y, weights) = block.attend(&x, &memory, &Mask::causal(), &Mask::none(), Mode::Infer, true)?;
/// assert_eq!(y.shape(), [2, 3, 8]);
/// assert_eq!(weights.unwrap().shape(), [2, 2, 3, 5]);
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
    Heads(MultiHeadAttention),
    One { mechanism: Mechanism, out: Linear },
}

/// What attention to the memory let be seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// `[B, H, N, M]`
    pub(crate) weights: Option<Tensor>,
    /// `[B, N]`, hard attention's.
    pub(crate) log_prob: Option<Tensor>,
}

/// What a [`DecoderBlock`] keeps between the steps of decoding.
///
/// ```
/// # use regard::prelude::*;
/// # let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
/// # let block = DecoderBlock::new(&Parameters::new(DType::F64, 1), &config)?;
/// # let random = Random::new(1);
/// # let x = random.normal(&[2, 3, 8], 0.0, 1.0, DType::F64)?;
/// # let memory = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
/// let mut cache = block.start(&memory)?;
/// let first = x.narrow(1, 0, 1)?;
/// let (a, _) = block.extend(&first, &mut cache, &Mask::none(), false)?;
/// // the same vector again is the second place, and sees the first
/// let (b, weights) = block.extend(&first, &mut cache, &Mask::none(), true)?;
/// assert_eq!((a.shape(), b.shape()), (&[2, 1, 8][..], &[2, 1, 8][..]));
/// assert_eq!(weights.unwrap().shape(), [2, 2, 1, 5]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DecoderCache {
    own: KeyValueCache,
    memory: Memory,
}

/// A memory made ready for attention, once for all steps.
#[derive(Clone, Debug)]
enum Memory {
    Heads(Tensor, Tensor),
    One(Box<Keys>, Tensor),
}

impl DecoderCache {
    /// Keeps and repeats batch items: what a beam does when its hypotheses change places.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// # let block = DecoderBlock::new(&Parameters::new(DType::F64, 1), &config)?;
    /// # let random = Random::new(1);
    /// # let x = random.normal(&[2, 3, 8], 0.0, 1.0, DType::F64)?;
    /// # let memory = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// let mut cache = block.start(&memory)?;
    /// cache.reorder(&[1, 1, 0])?;
    /// let three = random.normal(&[3, 1, 8], 0.0, 1.0, DType::F64)?;
    /// assert_eq!(block.extend(&three, &mut cache, &Mask::none(), false)?.0.shape(), [3, 1, 8]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn reorder(&mut self, items: &[usize]) -> Result<()> {
        self.memory = match &self.memory {
            Memory::Heads(k, v) => Memory::Heads(k.pick(items)?, v.pick(items)?),
            Memory::One(keys, v) => Memory::One(Box::new(keys.reorder(items)?), v.pick(items)?),
        };
        self.own.reorder(items)
    }

    /// As [`DecoderCache::reorder`] among items of the same memory, which then stays.
    pub(crate) fn reorder_own(&mut self, items: &[usize]) -> Result<()> {
        self.own.reorder(items)
    }
}

impl DecoderBlock {
    /// New.
    ///
    /// ```
    /// use regard::prelude::*;
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
        Self::around(parameters, config, Cross::Heads(cross))
    }

    /// New, with a mechanism of one head in place of the heads that attend to the memory:
    /// `attention` in place of `multihead_attn`, and a projection `out_proj` within it.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// let additive = MechanismConfig::new(ScoreConfig::Additive { hidden: 8 });
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let block = DecoderBlock::with_mechanism(&parameters, &config, &additive)?;
    /// let (x, memory) = (Tensor::zeros(&[2, 3, 8], DType::F32)?, Tensor::zeros(&[2, 5, 8], DType::F32)?);
    /// let (_, weights) = block.attend(&x, &memory, &Mask::causal(), &Mask::none(), Mode::Infer, true)?;
    /// assert_eq!(weights.unwrap().shape(), [2, 1, 3, 5]);
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
            norm1: LayerNorm::new(&at("norm1"), c.width)?,
            norm2: LayerNorm::new(&at("norm2"), c.width)?,
            norm3: LayerNorm::new(&at("norm3"), c.width)?,
            dropout: c.dropout,
            norm_first: c.norm_first,
        })
    }

    /// x `[B, N, width]`, memory `[B, M, width]` → `[B, N, width]`, and the weights on the memory
    /// `[B, H, N, M]` where they are asked for. `mask` is for x itself and should be causal.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// # let block = DecoderBlock::new(&Parameters::new(DType::F64, 1), &config)?;
    /// # let random = Random::new(1);
    /// # let x = random.normal(&[2, 3, 8], 0.0, 1.0, DType::F64)?;
    /// # let memory = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// let (y, weights) = block.attend(&x, &memory, &Mask::causal(), &Mask::none(), Mode::Infer, true)?;
    /// assert_eq!(y.shape(), [2, 3, 8]);
    /// assert_eq!(weights.unwrap().shape(), [2, 2, 3, 5]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn attend(
        &self,
        x: &Tensor,
        memory: &Tensor,
        mask: &Mask,
        memory_mask: &Mask,
        mode: Mode,
        weights: bool,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let (x, seen) = self.decode(x, memory, mask, memory_mask, mode, weights)?;
        Ok((x, seen.weights))
    }

    /// As [`DecoderBlock::attend`], with all that was seen.
    pub(crate) fn decode(
        &self,
        x: &Tensor,
        memory: &Tensor,
        mask: &Mask,
        memory_mask: &Mask,
        mode: Mode,
        weights: bool,
    ) -> Result<(Tensor, Seen)> {
        let part = Part { norm_first: self.norm_first, dropout: self.dropout, mode };
        let x = part.around(x, &self.norm1, |x| self.self_attn.forward(x, x, x, mask, mode))?;
        let mut seen = Seen::default();
        let x = part.around(&x, &self.norm2, |x| {
            let (y, what) = match &self.cross {
                Cross::Heads(to) => {
                    let attended = to.attend(x, memory, memory, memory_mask, mode, weights)?;
                    (attended.out, Seen { weights: attended.weights, log_prob: None })
                }
                Cross::One { mechanism, .. } => {
                    self.one(x, &mechanism.keys(memory)?, memory, memory_mask, mode, weights)?
                }
            };
            seen = what;
            Ok(y)
        })?;
        let x = part.around(&x, &self.norm3, |x| self.feed.forward(x, mode))?;
        Ok((x, seen))
    }

    /// Attention to the memory by one mechanism.
    fn one(
        &self,
        x: &Tensor,
        keys: &Keys,
        memory: &Tensor,
        mask: &Mask,
        mode: Mode,
        weights: bool,
    ) -> Result<(Tensor, Seen)> {
        let Cross::One { mechanism, out } = &self.cross else {
            return Err(crate::Error::new("this block attends with heads"));
        };
        let attended = mechanism.attend_keys(x, keys, memory, mask, mode, weights)?;
        let weights = attended.weights.filter(|_| weights).map(|w| w.unsqueeze(1)).transpose()?;
        Ok((out.forward(&attended.out)?, Seen { weights, log_prob: attended.log_prob }))
    }

    /// What decoding over a memory starts with.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// # let block = DecoderBlock::new(&Parameters::new(DType::F64, 1), &config)?;
    /// # let random = Random::new(1);
    /// # let x = random.normal(&[2, 3, 8], 0.0, 1.0, DType::F64)?;
    /// # let memory = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// let mut cache = block.start(&memory)?;
    /// let (_, weights) = block.extend(&x, &mut cache, &Mask::none(), true)?;
    /// // three places on the five of the memory
    /// assert_eq!(weights.unwrap().shape(), [2, 2, 3, 5]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn start(&self, memory: &Tensor) -> Result<DecoderCache> {
        let memory = match &self.cross {
            Cross::Heads(heads) => {
                let (k, v) = heads.remember(memory)?;
                Memory::Heads(k, v)
            }
            Cross::One { mechanism, .. } => {
                Memory::One(Box::new(mechanism.keys(memory)?), memory.clone())
            }
        };
        Ok(DecoderCache { own: KeyValueCache::default(), memory })
    }

    /// As [`DecoderBlock::attend`] for the next places only, with what was kept of those before.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = BlockConfig { width: 8, heads: 2, feed_forward: 16, ..BlockConfig::default() };
    /// # let block = DecoderBlock::new(&Parameters::new(DType::F64, 1), &config)?;
    /// # let random = Random::new(1);
    /// # let x = random.normal(&[2, 3, 8], 0.0, 1.0, DType::F64)?;
    /// # let memory = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// let mut cache = block.start(&memory)?;
    /// block.extend(&x.narrow(1, 0, 2)?, &mut cache, &Mask::none(), false)?;
    /// let (third, _) = block.extend(&x.narrow(1, 2, 1)?, &mut cache, &Mask::none(), false)?;
    /// let (whole, _) = block.attend(&x, &memory, &Mask::causal(), &Mask::none(), Mode::Infer, false)?;
    /// assert!(third.squared_error(&whole.narrow(1, 2, 1)?)?.item()? < 1e-20);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn extend(
        &self,
        x: &Tensor,
        cache: &mut DecoderCache,
        memory_mask: &Mask,
        weights: bool,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let part = Part { norm_first: self.norm_first, dropout: 0.0, mode: Mode::Infer };
        let own = &mut cache.own;
        let x = part.around(x, &self.norm1, |x| {
            Ok(self.self_attn.extend(x, own, &Mask::causal(), false)?.out)
        })?;
        let mut seen = None;
        let x = part.around(&x, &self.norm2, |x| {
            let (y, weights) = match (&self.cross, &cache.memory) {
                (Cross::Heads(heads), Memory::Heads(k, v)) => {
                    let memory = (k.clone(), v.clone());
                    let attended = heads.recall(x, &memory, memory_mask, weights)?;
                    (attended.out, attended.weights)
                }
                (Cross::One { .. }, Memory::One(keys, v)) => {
                    let (y, seen) = self.one(x, keys, v, memory_mask, Mode::Infer, weights)?;
                    (y, seen.weights)
                }
                _ => return Err(crate::Error::new("the cache is that of another block")),
            };
            seen = weights;
            Ok(y)
        })?;
        let x = part.around(&x, &self.norm3, |x| self.feed.forward(x, Mode::Infer))?;
        Ok((x, seen))
    }
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
        if self.norm_first {
            x.add(&self.mode.dropout(&f(&norm.forward(x)?)?, self.dropout)?)
        } else {
            norm.forward(&x.add(&self.mode.dropout(&f(x)?, self.dropout)?)?)
        }
    }
}

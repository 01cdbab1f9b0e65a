//! The blocks of a Transformer: attention, then a feed-forward layer, each around a shortcut.

use super::{
    FeedForward, KeyValueCache, LayerNorm, MultiHeadAttention, MultiHeadConfig, Nonlinearity,
    Position,
};
use crate::{Mask, Mode};
use regard_tensor::{Parameters, Result, Tensor, ensure};
use serde::{Deserialize, Serialize};

/// What a block is made of.
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
    pub activation: Nonlinearity,
    /// The share left out while learning: of weights, inner numbers and each part's output.
    pub dropout: f64,
    /// Whether each part normalises its input (true) or its output.
    pub norm_first: bool,
    /// Positions within attention; see [`MultiHeadConfig`].
    pub position: Position,
    /// The longest distance that relative positions tell apart.
    pub reach: usize,
}

impl Default for BlockConfig {
    fn default() -> Self {
        Self {
            width: 64,
            heads: 4,
            key_heads: None,
            feed_forward: 256,
            activation: Nonlinearity::Gelu,
            dropout: 0.1,
            norm_first: true,
            position: Position::None,
            reach: 32,
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
            reach: self.reach,
            ..MultiHeadConfig::default()
        }
    }

    /// Refuses what cannot be built, by name.
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
/// use regard::{BlockConfig, DType, EncoderBlock, Mask, Mode, Parameters, Tensor};
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
    pub fn forward(&self, x: &Tensor, mask: &Mask, mode: Mode) -> Result<Tensor> {
        Ok(self.attend(x, mask, mode, false)?.0)
    }

    /// As [`EncoderBlock::forward`], with the weights `[B, H, N, N]` where they are asked for.
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
/// use regard::{BlockConfig, DType, DecoderBlock, Mask, Mode, Parameters, Tensor};
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
    /// Attention to the memory.
    pub multihead_attn: MultiHeadAttention,
    feed: FeedForward,
    norm1: LayerNorm,
    norm2: LayerNorm,
    norm3: LayerNorm,
    dropout: f64,
    norm_first: bool,
}

/// What a [`DecoderBlock`] keeps between the steps of decoding.
#[derive(Clone, Debug)]
pub struct DecoderCache {
    own: KeyValueCache,
    memory: (Tensor, Tensor),
}

impl DecoderCache {
    /// Keeps and repeats batch items: what a beam does when its hypotheses change places.
    pub fn reorder(&mut self, items: &[usize]) -> Result<()> {
        let index = Tensor::from_vec(items.iter().map(|&x| x as i64).collect(), &[items.len()])?;
        self.memory = (self.memory.0.rows(&index)?, self.memory.1.rows(&index)?);
        self.own.reorder(items)
    }
}

impl DecoderBlock {
    /// New.
    pub fn new(parameters: &Parameters, config: &BlockConfig) -> Result<Self> {
        config.check()?;
        let c = config;
        let at = |name: &str| parameters.at(name);
        Ok(Self {
            self_attn: MultiHeadAttention::new(&at("self_attn"), &c.attention(c.position))?,
            // Distances between two sequences mean nothing, so no positions here.
            multihead_attn: MultiHeadAttention::new(
                &at("multihead_attn"),
                &c.attention(Position::None),
            )?,
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
    pub fn attend(
        &self,
        x: &Tensor,
        memory: &Tensor,
        mask: &Mask,
        memory_mask: &Mask,
        mode: Mode,
        weights: bool,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let part = Part { norm_first: self.norm_first, dropout: self.dropout, mode };
        let x = part.around(x, &self.norm1, |x| self.self_attn.forward(x, x, x, mask, mode))?;
        let mut seen = None;
        let x = part.around(&x, &self.norm2, |x| {
            let to = &self.multihead_attn;
            let attended = to.attend(x, memory, memory, memory_mask, mode, weights)?;
            seen = attended.weights;
            Ok(attended.out)
        })?;
        let x = part.around(&x, &self.norm3, |x| self.feed.forward(x, mode))?;
        Ok((x, seen))
    }

    /// What decoding over a memory starts with.
    pub fn start(&self, memory: &Tensor) -> Result<DecoderCache> {
        Ok(DecoderCache {
            own: KeyValueCache::default(),
            memory: self.multihead_attn.remember(memory)?,
        })
    }

    /// As [`DecoderBlock::attend`] for the next places only, with what was kept of those before.
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
            let attended = self.multihead_attn.recall(x, &cache.memory, memory_mask, weights)?;
            seen = attended.weights;
            Ok(attended.out)
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

//! What a Transformer is made of.

use crate::{Activation, BlockConfig, Position, ScoreConfig, Weighting};
use regard_tensor::{Result, ensure};

/// What one side of a Transformer is made of.
///
/// ```
/// use regard::prelude::*;
/// let error = TransformerConfig::new(64, 5, 2).check().unwrap_err();
/// assert_eq!(error.to_string(), "5 heads do not divide a width of 64");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct TransformerConfig {
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
    /// Blocks.
    pub layers: usize,
    /// Inner width of the feed-forward layers.
    pub feed_forward: usize,
    /// Their nonlinearity.
    pub activation: Activation,
    /// The score of each head.
    pub score: ScoreConfig,
    /// How scores become weights; see [`BlockConfig`].
    pub weighting: Weighting,
    /// The share left out during training: of the input, weights, inner numbers and each part's
    /// output.
    pub dropout: f64,
    /// Whether each part normalizes its input (true) or its output.
    pub norm_first: bool,
    /// How it knows about order.
    pub position: Position,
    /// The longest sequence that learned positions serve.
    pub longest: usize,
    /// The longest distance that relative positions tell apart.
    pub max_distance: usize,
    /// Truncated self-attention: how far a vector sees to each side; all there is where none is
    /// given. For an encoder.
    pub window: Option<usize>,
    /// Whether a vector sees only itself and what came before it, as in a decoder-only model; see
    /// [`TransformerEncoder::extend`](crate::layers::TransformerEncoder::extend). For an encoder: a decoder
    /// always is.
    pub causal: bool,
    /// What keeps normalization from dividing by 0.
    pub eps: f64,
    /// Whether the input is normalized once its places are added, as in BERT. For an encoder.
    pub norm_input: bool,
}

impl Default for TransformerConfig {
    fn default() -> Self {
        let block = BlockConfig::default();
        Self {
            width: block.width,
            heads: block.heads,
            key_heads: None,
            head_key_width: None,
            head_value_width: None,
            bias: block.bias,
            layers: 2,
            feed_forward: block.feed_forward,
            activation: block.activation,
            score: block.score,
            weighting: block.weighting,
            dropout: block.dropout,
            norm_first: block.norm_first,
            position: Position::Sinusoidal,
            longest: 512,
            max_distance: block.max_distance,
            window: None,
            causal: false,
            eps: block.eps,
            norm_input: false,
        }
    }
}

impl TransformerConfig {
    /// Of this width, with feed-forward layers four times as wide.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let config = TransformerConfig::new(32, 4, 3);
    /// assert_eq!((config.layers, config.feed_forward), (3, 128));
    /// ```
    pub fn new(width: usize, heads: usize, layers: usize) -> Self {
        Self { width, heads, layers, feed_forward: width.saturating_mul(4), ..Self::default() }
    }

    /// What each block is made of.
    pub(crate) fn block(&self) -> BlockConfig {
        BlockConfig {
            width: self.width,
            heads: self.heads,
            key_heads: self.key_heads,
            head_key_width: self.head_key_width,
            head_value_width: self.head_value_width,
            bias: self.bias,
            feed_forward: self.feed_forward,
            activation: self.activation,
            score: self.score.clone(),
            weighting: self.weighting,
            dropout: self.dropout,
            norm_first: self.norm_first,
            position: self.position,
            max_distance: self.max_distance,
            eps: self.eps,
        }
    }

    /// Refuses what cannot be built, by name.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let error = TransformerConfig::new(32, 4, 0).check().unwrap_err();
    /// assert_eq!(error.to_string(), "a Transformer of 0 layers");
    /// ```
    pub fn check(&self) -> Result<()> {
        self.block().check()?;
        ensure!(self.layers > 0, "a Transformer of 0 layers");
        ensure!(self.window != Some(0), "a window of 0 sees no neighbor; it wants at least 1");
        ensure!(
            self.position != Position::Learned || self.longest > 0,
            "learned positions for a longest sequence of 0"
        );
        Ok(())
    }
}

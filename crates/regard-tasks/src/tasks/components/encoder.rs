//! The encoder, as plain options in `[model]`.

use super::mechanism::{ScoreKind, ScoreOptions};
use regard::attention::{BilinearScale, ScoreConfig, Weighting};
use regard::layers::{
    Activation, Cell, ConvolutionConfig, EncoderConfig, FullyConnectedConfig, Position,
    RecurrentConfig, SelfAttentionConfig, TransformerConfig,
};
use regard_data::{Error, Result};
use serde::Deserialize;

/// Which encoder reads the input, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum EncoderKind {
    /// None: every vector stays as it is.
    None,
    /// An RNN, GRU or LSTM.
    Recurrent(Cell),
    /// A CNN.
    Cnn,
    /// One network over sequences of a fixed length.
    FullyConnected,
    /// One layer of bare self-attention.
    SelfAttention,
    /// A Transformer.
    Transformer,
}

impl TryFrom<String> for EncoderKind {
    type Error = String;

    fn try_from(name: String) -> std::result::Result<Self, String> {
        match (name.as_str(), name.parse()) {
            ("none", _) => Ok(Self::None),
            ("cnn", _) => Ok(Self::Cnn),
            ("fully-connected", _) => Ok(Self::FullyConnected),
            ("self-attention", _) => Ok(Self::SelfAttention),
            ("transformer", _) => Ok(Self::Transformer),
            (_, Ok(cell)) => Ok(Self::Recurrent(cell)),
            _ => Err(format!(
                "there is no encoder {name:?}; there are none, rnn, rnn-relu, gru, lstm, cnn, \
                 fully-connected, self-attention, transformer"
            )),
        }
    }
}

/// The encoder, as plain options in `[model]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct EncoderOptions {
    /// Which.
    pub(crate) encoder: EncoderKind,
    /// Width of its state or its vectors.
    pub(crate) hidden: usize,
    /// Layers.
    pub(crate) layers: usize,
    /// Whether a recurrent one reads from both ends.
    pub(crate) bidirectional: bool,
    /// Heads of a Transformer and of self-attention.
    pub(crate) heads: usize,
    /// Width of a head's queries and keys; `hidden` over the heads where it is not given.
    pub(crate) key_width: Option<usize>,
    /// Width of a head's values; `hidden` over the heads where it is not given.
    pub(crate) value_width: Option<usize>,
    /// Whether the heads' projections have biases; those of a Transformer where it is not given.
    pub(crate) bias: Option<bool>,
    /// Width of the layer inside a Transformer's block, and inside a fully connected network.
    pub(crate) feed_forward: usize,
    /// The score of a Transformer's heads.
    pub(crate) head_score: ScoreKind,
    /// Width inside an additive or concat score of a head, and the rank of a low-rank one.
    pub(crate) head_score_hidden: usize,
    /// The text of a head's score that is written.
    pub(crate) head_expression: String,
    /// Which of its parameters are one number.
    pub(crate) head_expression_numbers: Vec<String>,
    /// How the scores of a Transformer's heads become weights.
    pub(crate) head_weighting: Weighting,
    /// Whether a Transformer normalizes before its sublayers rather than after.
    pub(crate) norm_first: bool,
    /// Whether a Transformer normalizes its input once places are added.
    pub(crate) norm_input: bool,
    /// What keeps a Transformer's normalization from dividing by 0.
    pub(crate) norm_eps: f64,
    /// How a Transformer or a CNN encodes positions.
    pub(crate) position: Position,
    /// How far a Transformer or self-attention sees on each side; everywhere where it is not given.
    pub(crate) window: Option<usize>,
    /// The longest distance that relative positions tell apart.
    pub(crate) max_distance: usize,
    /// How many vectors a CNN's layer sees at once.
    pub(crate) kernel_size: usize,
    /// The share left out during training.
    pub(crate) dropout: f64,
}

impl EncoderOptions {
    /// Refuses self-attention whose heads do not divide its width.
    pub(crate) fn check(&self) -> Result<()> {
        let (heads, hidden) = (self.heads, self.hidden);
        let one_missing = self.key_width.is_none() || self.value_width.is_none();
        let divides = heads > 0 && hidden.is_multiple_of(heads);
        if self.encoder == EncoderKind::SelfAttention && one_missing && !divides {
            return Err(Error::invalid(format!(
                "{heads} heads do not divide a width of {hidden} (`model.heads`, `model.hidden`); \
                 `model.key_width` and `model.value_width` give them others"
            )));
        }
        Ok(())
    }

    /// As the library's configuration, for inputs of at most so many vectors.
    pub(crate) fn config(&self, longest: usize) -> EncoderConfig {
        match self.encoder {
            EncoderKind::None => EncoderConfig::None,
            EncoderKind::Recurrent(cell) => {
                EncoderConfig::Recurrent(self.recurrent(cell, self.bidirectional))
            }
            EncoderKind::Cnn => EncoderConfig::Cnn(ConvolutionConfig {
                width: self.hidden,
                layers: self.layers,
                kernel: self.kernel_size,
                activation: Activation::Relu,
                dropout: self.dropout,
                position: self.position,
                longest,
            }),
            EncoderKind::FullyConnected => EncoderConfig::FullyConnected(FullyConnectedConfig {
                width: self.hidden,
                hidden: self.feed_forward,
                longest,
                dropout: self.dropout,
            }),
            EncoderKind::SelfAttention => EncoderConfig::SelfAttention(self.self_attention()),
            EncoderKind::Transformer => EncoderConfig::Transformer(self.transformer(longest)),
        }
    }

    /// Whether it is one that goes step by step.
    pub(crate) fn is_recurrent(&self) -> bool {
        matches!(self.encoder, EncoderKind::Recurrent(_))
    }

    /// As a recurrent network.
    pub(crate) fn recurrent(&self, cell: Cell, both_directions: bool) -> RecurrentConfig {
        let dropout = if self.layers > 1 { self.dropout } else { 0.0 };
        RecurrentConfig { cell, hidden: self.hidden, layers: self.layers, both_directions, dropout }
    }

    /// The score of a head.
    fn head_score(&self) -> ScoreConfig {
        let score = ScoreOptions {
            score: self.head_score,
            hidden: self.head_score_hidden,
            expression: &self.head_expression,
            numbers: &self.head_expression_numbers,
            scale: BilinearScale::FourthRoot,
        };
        score.config()
    }

    /// As bare self-attention.
    fn self_attention(&self) -> SelfAttentionConfig {
        let head = self.hidden / self.heads.max(1);
        SelfAttentionConfig {
            heads: self.heads,
            key_width: self.key_width.unwrap_or(head),
            value_width: self.value_width.unwrap_or(head),
            bias: self.bias.unwrap_or(false),
            score: self.head_score(),
            weighting: self.head_weighting,
            dropout: self.dropout,
            window: self.window,
            ..SelfAttentionConfig::default()
        }
    }

    /// As a Transformer.
    pub(crate) fn transformer(&self, longest: usize) -> TransformerConfig {
        TransformerConfig {
            head_key_width: self.key_width,
            head_value_width: self.value_width,
            bias: self.bias.unwrap_or(true),
            feed_forward: self.feed_forward,
            score: self.head_score(),
            weighting: self.head_weighting,
            max_distance: self.max_distance,
            dropout: self.dropout,
            norm_first: self.norm_first,
            norm_input: self.norm_input,
            eps: self.norm_eps,
            position: self.position,
            window: self.window,
            longest,
            ..TransformerConfig::new(self.hidden, self.heads, self.layers)
        }
    }
}

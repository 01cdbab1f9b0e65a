//! Which encoder, and what it is made of.

use crate::{
    ConvolutionConfig, FullyConnectedConfig, RecurrentConfig, SelfAttentionConfig,
    TransformerConfig,
};

/// Which [`Encoder`](crate::Encoder), and what it is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
/// let config: EncoderConfig =
///     serde_json::from_str(r#"{ "kind": "recurrent", "cell": "gru", "hidden": 32, "both_directions": true }"#).unwrap();
/// let gru = RecurrentConfig { both_directions: true, ..RecurrentConfig::new(Cell::Gru, 32) };
/// assert_eq!(config, EncoderConfig::Recurrent(gru));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum EncoderConfig {
    /// None: each vector stays as it is.
    None,
    /// An RNN, GRU or LSTM.
    Recurrent(RecurrentConfig),
    /// A CNN.
    Cnn(ConvolutionConfig),
    /// One network over sequences of a fixed length.
    FullyConnected(FullyConnectedConfig),
    /// One layer of bare self-attention: projections of q, k and v, and nothing else. Its width is that of
    /// the vectors it is given, whatever the configuration says of it.
    SelfAttention(SelfAttentionConfig),
    /// A Transformer; with a window, truncated self-attention.
    Transformer(TransformerConfig),
}

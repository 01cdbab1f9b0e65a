//! Which encoder, and what it is made of.

use crate::{ConvolutionConfig, FullyConnectedConfig, RecurrentConfig, TransformerConfig};

/// Which [`Encoder`](crate::Encoder), and what it is made of.
///
/// ```
/// use regard::prelude::*;
/// let config: EncoderConfig =
///     serde_json::from_str(r#"{ "kind": "recurrent", "cell": "gru", "hidden": 32, "both_directions": true }"#).unwrap();
/// let gru = RecurrentConfig { both_directions: true, ..RecurrentConfig::new(Cell::Gru, 32) };
/// assert_eq!(config, EncoderConfig::Recurrent(gru));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case"))]
pub enum EncoderConfig {
    /// None: each vector stays as it is.
    None,
    /// An RNN, GRU or LSTM.
    Recurrent(RecurrentConfig),
    /// A CNN.
    Cnn(ConvolutionConfig),
    /// One network over sequences of a fixed length.
    FullyConnected(FullyConnectedConfig),
    /// A Transformer; with a window, truncated self-attention.
    Transformer(TransformerConfig),
}

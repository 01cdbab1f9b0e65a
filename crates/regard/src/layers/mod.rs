//! Layers: plain structs that take their parameters, by name, from [`Parameters`](crate::tensor::Parameters).
//!
//! | what | which |
//! |---|---|
//! | attention | [`SelfAttention`], [`CrossAttention`], [`AdditiveAttention`], [`MultiHeadAttention`], [`WindowedSelfAttention`], [`GraphAttention`] |
//! | Transformer | [`EncoderBlock`], [`DecoderBlock`], [`TransformerEncoder`], [`TransformerDecoder`], [`KeyValueCache`] |
//! | recurrent, convolutional, fully connected | [`Recurrent`], [`Convolution`], [`FullyConnected`] |
//! | any of these that reads a sequence | [`Encoder`] |
//! | from a set to one vector | [`Pooling`], [`Gate`] |
//! | positions | [`Position`], [`sinusoids`], [`rotate`], [`alibi_slopes`] |
//! | plain | [`Linear`], [`Embedding`], [`LayerNorm`], [`RmsNorm`], [`FeedForward`], [`SwiGlu`] |

mod additive_attention;
mod block;
mod convolution;
mod cross_attention;
mod embedding;
mod encoder;
mod feed_forward;
mod fully_connected;
mod graph;
mod graph_attention;
mod graph_mean;
mod key_value_cache;
mod layer_norm;
mod linear;
mod multi_head;
mod pooling;
mod position;
mod positional_encoding;
mod probe;
mod recurrent;
mod rms_norm;
mod segment_softmax;
mod self_attention;
mod swi_glu;
mod transformer;
mod windowed;

pub use additive_attention::AdditiveAttention;
pub use block::{BlockConfig, DecoderBlock, DecoderCache, EncoderBlock};
pub use convolution::{Convolution, ConvolutionConfig};
pub use cross_attention::{CrossAttention, CrossAttentionConfig};
pub use embedding::Embedding;
pub use encoder::{Encoded, Encoder, EncoderConfig};
pub use feed_forward::FeedForward;
pub use fully_connected::{FullyConnected, FullyConnectedConfig};
pub use graph::Graph;
pub use graph_attention::{GraphAttention, GraphAttentionConfig, GraphVersion};
pub use graph_mean::GraphMean;
pub use key_value_cache::{KeyValue, KeyValueCache};
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use multi_head::{MultiHeadAttention, MultiHeadConfig};
pub use pooling::{Gate, Pooling, PoolingConfig};
pub use position::{Position, alibi_slopes, rotate, sinusoids};
pub(crate) use positional_encoding::PositionalEncoding;
pub use probe::{probe_embeddings, probe_tokens};
pub use recurrent::{Recurrent, RecurrentConfig, RecurrentOutput, RecurrentState};
pub use regard_tensor::{Activation, Cell};
pub use rms_norm::RmsNorm;
pub use segment_softmax::segment_softmax;
pub use self_attention::{SelfAttention, SelfAttentionConfig};
pub use swi_glu::SwiGlu;
pub use transformer::{
    Decoded, EncoderCache, TransformerCache, TransformerConfig, TransformerDecoder,
    TransformerEncoder,
};
pub use windowed::{WindowedConfig, WindowedSelfAttention};

//! Layers: plain structs that hold their parameters.

mod cache;
mod embedding;
mod feed_forward;
mod linear;
mod multi_head;
mod nonlinearity;
mod norm;
mod places;
mod position;
mod transformer;
mod windowed;

pub use cache::KeyValueCache;
pub use embedding::Embedding;
pub use feed_forward::FeedForward;
pub use linear::Linear;
pub use multi_head::{MultiHeadAttention, MultiHeadConfig};
pub use nonlinearity::Nonlinearity;
pub use norm::LayerNorm;
pub(crate) use places::Places;
pub use position::{Position, alibi_slopes, rotate, sinusoids};
pub use transformer::{BlockConfig, DecoderBlock, DecoderCache, EncoderBlock};
pub use windowed::{WindowedConfig, WindowedSelfAttention};

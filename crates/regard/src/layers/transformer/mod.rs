//! The Transformer: blocks over whole sequences, and the decoder one place at a time.

mod config;
mod decoder;
mod encoder;

pub use config::TransformerConfig;
pub use decoder::{Decoded, TransformerCache, TransformerDecoder};
pub use encoder::{EncoderCache, TransformerEncoder};

//! The Transformer: blocks over whole sequences, and the decoder one place at a time.

mod config;
mod encoder;

pub use config::TransformerConfig;
pub use encoder::TransformerEncoder;

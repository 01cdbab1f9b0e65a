//! From vectors to vectors that know their neighbors: what every task stands on.

mod any;
mod config;

pub use any::{Encoded, Encoder};
pub use config::EncoderConfig;

//! From vectors to vectors that know their neighbours: what every task stands on.

mod any;
mod config;

pub use any::{Encoded, Encoder};
pub use config::EncoderConfig;

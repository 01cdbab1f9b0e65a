//! A CNN over sequences: each vector sees its neighbors, and through every further layer theirs.

mod config;
mod stack;

pub use config::ConvolutionConfig;
pub use stack::Convolution;

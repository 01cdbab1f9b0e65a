//! A CNN over sequences: each vector sees its neighbours, and through every further layer theirs.

mod config;
mod stack;

pub use config::ConvolutionConfig;
pub use stack::Convolution;

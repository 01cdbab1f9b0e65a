//! Questions about a story: the question is the query, the story's sentences are the memory.

mod config;
mod model;
mod sentence_encoder;
mod story;

pub use config::MemoryNetworkConfig;
pub use model::{Answered, MemoryNetwork, SentenceWeights};
pub use story::Stories;

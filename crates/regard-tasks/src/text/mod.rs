//! Text as numbers and back: tokens, their vocabulary, labels.

mod bpe;
mod labels;
mod tokenizer;
mod vocabulary;
mod words;

pub use labels::Labels;
pub(crate) use tokenizer::split;
pub use tokenizer::{Tokenizer, TokenizerConfig, TokenizerKind};
pub(crate) use vocabulary::by_count;
pub use vocabulary::{END, PADDING, START, UNKNOWN, Vocabulary};

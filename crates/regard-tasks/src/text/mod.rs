//! Text as numbers and back: tokens, their vocabulary, labels.

mod bpe;
mod labels;
mod pretrained;
mod tokenizer;
mod vectors;
mod vocabulary;
mod words;

pub use labels::Labels;
pub(crate) use pretrained::Pretrained;
pub(crate) use tokenizer::split;
pub use tokenizer::{Tokenizer, TokenizerConfig, TokenizerKind};
pub use vectors::set_vectors;
pub(crate) use vocabulary::by_count;
pub use vocabulary::{END, PADDING, START, UNKNOWN, Vocabulary};

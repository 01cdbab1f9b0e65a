//! Text as numbers and back: tokens, their vocabulary, labels.

mod bpe;
mod labels;
mod pretrained;
mod tokenizer;
mod treebank;
mod vectors;
mod vocabulary;
mod words;

pub use labels::Labels;
pub use pretrained::Pretrained;
pub use tokenizer::split;
pub use tokenizer::{Tokenizer, TokenizerConfig, TokenizerKind};
pub use treebank::treebank_words;
pub use vectors::set_vectors;
pub use vocabulary::by_count;
pub use vocabulary::{END, PADDING, START, UNKNOWN, Vocabulary};

//! Text as numbers and back: tokens, their vocabulary, labels.

mod labels;
mod pairs;
mod tokeniser;
mod vocabulary;
mod words;

pub use labels::Labels;
pub(crate) use tokeniser::split;
pub use tokeniser::{Tokeniser, TokeniserConfig, TokeniserKind};
pub(crate) use vocabulary::by_count;
pub use vocabulary::{END, PADDING, START, UNKNOWN, Vocabulary};

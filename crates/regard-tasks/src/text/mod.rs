//! Text as numbers and back: tokens, their vocabulary, labels.

mod labels;
mod pairs;
mod tokeniser;
mod vocabulary;
mod words;

pub use labels::Labels;
pub use tokeniser::{Tokeniser, TokeniserConfig, TokeniserKind};
pub use vocabulary::{END, PADDING, START, UNKNOWN, Vocabulary};

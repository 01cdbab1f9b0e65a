//! How text becomes tokens, as plain options in `[text]`.

use crate::text::{TokenizerConfig, TokenizerKind};
use serde::Deserialize;

/// How text becomes tokens, as plain options in `[text]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct TextOptions {
    /// What a token is.
    pub(crate) tokenizer: TokenizerKind,
    /// Tokens at most.
    pub(crate) vocabulary: usize,
    /// Tokens that occur less often are unknown.
    pub(crate) minimum: usize,
    /// Whether letters are made small.
    pub(crate) lower: bool,
}

impl TextOptions {
    /// What a tokenizer is to learn.
    pub(crate) fn config(&self) -> TokenizerConfig {
        TokenizerConfig {
            kind: self.tokenizer,
            lowercase: self.lower,
            size: self.vocabulary,
            minimum_count: self.minimum,
        }
    }
}

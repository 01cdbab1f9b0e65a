//! How text becomes tokens, as plain options in `[text]`.

use regard::tensor::Parameters;
use regard_data::text::{TokenizerConfig, TokenizerKind, set_vectors};
use regard_data::{Error, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// How text becomes tokens, as plain options in `[text]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct TextOptions {
    /// What a token is.
    pub(crate) tokenizer: TokenizerKind,
    /// Tokens at most.
    pub(crate) vocabulary_size: usize,
    /// Tokens that occur less often are unknown.
    pub(crate) min_frequency: usize,
    /// Whether letters are lowercased.
    pub(crate) lowercase: bool,
    /// The `tokenizer.json` of a pretrained tokenizer.
    pub(crate) tokenizer_file: Option<PathBuf>,
    /// Pretrained vectors to begin with.
    pub(crate) vectors: Option<PathBuf>,
}

impl TextOptions {
    /// What a tokenizer is to learn.
    pub(crate) fn config(&self) -> TokenizerConfig {
        TokenizerConfig {
            kind: self.tokenizer,
            lowercase: self.lowercase,
            size: self.vocabulary_size,
            minimum_count: self.min_frequency,
            file: self.tokenizer_file.clone(),
        }
    }
}

/// Sets the table of this name to pretrained vectors, where some are given; gives what is worth
/// saying.
pub(crate) fn pretrained(
    parameters: &Parameters,
    name: &str,
    tokens: &[String],
    vectors: Option<&Path>,
) -> Result<Vec<String>> {
    let Some(file) = vectors else { return Ok(Vec::new()) };
    let table = parameters.all().into_iter().find(|parameter| parameter.name() == name);
    let missing =
        || Error::invalid(format!("`text.vectors`: the model has no table {name} of its own"));
    Ok(vec![set_vectors(&table.ok_or_else(missing)?, tokens, file)?])
}

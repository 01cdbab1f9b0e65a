//! The options of `translate`, and of `summarize`, which is the same with other data and measures.

use crate::metric::{RougeTokenization, Tokenization};
use crate::options::requirement::Requirement;
use crate::options::template::Checked;
use crate::options::training::TrainingConfig;
use crate::task::held_out::HeldOutOptions;
use crate::tasks::components::{TextOptions, needs};
use crate::tasks::seq2seq::{SearchOptions, Seq2SeqOptions, check_copying, tokenization};
use regard::models::{Seq2SeqConfig, SourceConfig};
use regard_data::files::{Column, ColumnFormat};
use regard_data::{Error, Result};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Config {
    pub(super) data: Data,
    pub(super) text: Text,
    pub(super) search: Search,
    pub(super) model: Seq2SeqOptions,
    pub(super) training: TrainingConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Embedded {
    Phrases,
    Dates,
    Copies,
    Reports,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Data {
    pub(super) embedded: Embedded,
    pub(super) size: usize,
    pub(super) train_source: Option<PathBuf>,
    pub(super) train_target: Option<PathBuf>,
    pub(super) train_pairs: Option<PathBuf>,
    pub(super) validation_source: Option<PathBuf>,
    pub(super) validation_target: Option<PathBuf>,
    pub(super) validation_pairs: Option<PathBuf>,
    pub(super) test_source: Option<PathBuf>,
    pub(super) test_target: Option<PathBuf>,
    pub(super) test_pairs: Option<PathBuf>,
    #[serde(flatten)]
    pub(super) format: ColumnFormat,
    pub(super) source_column: Column,
    pub(super) target_column: Column,
    #[serde(flatten)]
    pub(super) held_out: HeldOutOptions,
    pub(super) encoding: Option<String>,
    pub(super) max_length: usize,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Text {
    #[serde(flatten)]
    pub(super) tokens: TextOptions,
    pub(super) shared_vocabulary: bool,
    /// Pretrained vectors of the target's tokens.
    pub(super) target_vectors: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Search {
    #[serde(flatten)]
    pub(super) search: SearchOptions,
    /// How BLEU, which decides for `translate`, splits; none where the references decide.
    #[serde(default, deserialize_with = "tokenization")]
    pub(super) bleu: Option<Tokenization>,
    /// What decides for `summarize`.
    pub(super) rouge: Option<RougeOption>,
}

/// What ROUGE counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RougeOption {
    /// What suits the references.
    Auto,
    Words,
    Unicode,
    Characters,
}

impl RougeOption {
    /// How texts with these references are split.
    pub(super) fn tokenization<R: AsRef<str>>(self, references: &[R]) -> RougeTokenization {
        match self {
            Self::Auto => RougeTokenization::suiting(references),
            Self::Words => RougeTokenization::Words,
            Self::Unicode => RougeTokenization::Unicode,
            Self::Characters => RougeTokenization::Characters,
        }
    }
}

/// What the options need of each other to have an effect.
pub(crate) fn needs() -> Vec<Requirement> {
    let columns = [
        "data.separator",
        "data.header",
        "data.source_column",
        "data.target_column",
        "data.skip_bad_rows",
    ];
    let pairs = ["data.train_pairs", "data.validation_pairs", "data.test_pairs"];
    let mut all = [needs::common(), needs::text(), needs::decoder()].concat();
    all.extend(Requirement::each(&columns, &needs::given(&pairs)));
    all.push(Requirement::new("data.embedded", &needs::embedded()));
    all
}

impl Checked for Config {
    fn check(&self) -> Result<()> {
        self.data.held_out.check()?;
        self.model.check()?;
        self.search.search.check()?;
        if self.data.max_length == 0 {
            return Err(Error::invalid("`data.max_length` cannot be 0"));
        }
        check_copying(self.model.copy, self.text.tokens.tokenizer)?;
        self.training.check()
    }
}

impl Config {
    /// How many learned positions there are: what is written may be longer than what was read.
    pub(super) fn reach(&self) -> usize {
        (2 * self.data.max_length).max(self.search.search.max_output_length) + 1
    }

    /// The library's configuration for vocabularies of these sizes.
    pub(super) fn seq2seq(&self, source: usize, target: usize) -> Seq2SeqConfig {
        self.model.config(SourceConfig::Tokens { vocabulary: source }, target, self.reach())
    }
}

//! The options of `caption`.

use crate::metric::Tokenization;
use crate::options::template::Checked;
use crate::options::training::TrainingConfig;
use crate::tasks::captioned::Data;
use crate::tasks::components::TextOptions;
use crate::tasks::seq2seq::{SearchOptions, Seq2SeqOptions, tokenization};
use regard::models::{Seq2SeqConfig, SourceConfig};
use regard_data::Result;
use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Config {
    pub(super) data: Data,
    pub(super) text: TextOptions,
    pub(super) search: Search,
    pub(super) model: Model,
    pub(super) training: TrainingConfig,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Search {
    #[serde(flatten)]
    pub(super) search: SearchOptions,
    /// How BLEU splits; none where the references decide.
    #[serde(default, deserialize_with = "tokenization")]
    pub(super) bleu: Option<Tokenization>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Model {
    pub(super) patch_size: usize,
    #[serde(flatten)]
    pub(super) seq2seq: Seq2SeqOptions,
}

impl Checked for Config {
    fn check(&self) -> Result<()> {
        self.data.check(self.model.patch_size)?;
        self.model.seq2seq.check()?;
        self.search.search.check()?;
        self.training.check()
    }
}

impl Config {
    /// Patches across, and down.
    pub(super) fn patches(&self) -> usize {
        self.data.image_size / self.model.patch_size
    }

    /// The library's configuration for a vocabulary of this size and outputs of so many tokens.
    pub(super) fn seq2seq(&self, vocabulary: usize, longest: usize) -> Seq2SeqConfig {
        let side = self.data.image_size;
        let (channels, patch) = (self.data.channels(), self.model.patch_size);
        let source = SourceConfig::Patches { image: [side, side], channels, patch };
        let longest = longest.max(self.patches() * self.patches()) + 1;
        self.model.seq2seq.config(source, vocabulary, longest)
    }
}

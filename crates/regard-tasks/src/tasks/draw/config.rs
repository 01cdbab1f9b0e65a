//! The options of `draw`.

use crate::options::template::Checked;
use crate::options::training::TrainingConfig;
use crate::tasks::captioned::Data;
use crate::tasks::components::TextOptions;
use crate::tasks::seq2seq::{SearchOptions, Seq2SeqOptions};
use regard::models::{Seq2SeqConfig, SourceConfig, Tied};
use regard_data::{Error, Result};
use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Config {
    pub(super) data: Data,
    pub(super) text: TextOptions,
    search: Search,
    pub(super) model: Model,
    pub(super) training: TrainingConfig,
}

#[derive(Clone, Debug, Deserialize)]
struct Search {
    beam: usize,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Model {
    pub(super) patch_size: usize,
    pub(super) codes: usize,
    #[serde(flatten)]
    pub(super) seq2seq: Seq2SeqOptions,
}

impl Checked for Config {
    fn check(&self) -> Result<()> {
        self.data.check(self.model.patch_size)?;
        if self.is_embedded() && self.data.channels() != 3 {
            return Err(Error::invalid(
                "`data.color=false` leaves the embedded pictures without the colors that their \
                 sentences name",
            ));
        }
        if !(2..=MAX_CODES).contains(&self.model.codes) {
            let codes = self.model.codes;
            return Err(Error::invalid(format!(
                "`model.codes` cannot be {codes}; it is 2 to {MAX_CODES} patches"
            )));
        }
        self.model.seq2seq.check()?;
        if self.seq2seq(1, 1, 1).tied == Tied::All {
            return Err(Error::invalid(
                "`model.tied_embeddings=all` makes one table of words and patches, which have nothing in common; \
                 `output` ties the patches that are read to those that are written",
            ));
        }
        self.search().check()?;
        self.training.check()
    }
}

/// The most patches of a codebook.
const MAX_CODES: usize = 65_536;

impl Config {
    /// Whether the pictures are those that are made up.
    pub(super) fn is_embedded(&self) -> bool {
        self.data.train.is_none()
    }

    /// Patches across, and down.
    pub(super) fn patches(&self) -> usize {
        self.data.image_size / self.model.patch_size
    }

    pub(super) fn search(&self) -> SearchOptions {
        SearchOptions::of_one_length(self.search.beam)
    }

    /// The library's configuration for vocabularies of these sizes and sentences of so many words.
    pub(super) fn seq2seq(&self, words: usize, codes: usize, longest: usize) -> Seq2SeqConfig {
        let longest = longest.max(self.patches() * self.patches()) + 1;
        self.model.seq2seq.config(SourceConfig::Tokens { vocabulary: words }, codes, longest)
    }
}

//! The options of `caption`.

use crate::metric::Tokenization;
use crate::options::template::Checked;
use crate::options::training::TrainingConfig;
use crate::task::held_out::HeldOutOptions;
use crate::tasks::components::TextOptions;
use crate::tasks::seq2seq::{SearchOptions, Seq2SeqOptions, tokenization};
use regard::models::{Seq2SeqConfig, SourceConfig};
use regard_data::files::FileColumns;
use regard_data::toy::CaptionLanguage;
use regard_data::{Error, Result};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Config {
    pub(super) data: Data,
    pub(super) text: TextOptions,
    pub(super) search: Search,
    pub(super) model: Model,
    pub(super) training: TrainingConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Embedded {
    English,
    Chinese,
}

impl Embedded {
    pub(super) fn language(self) -> CaptionLanguage {
        match self {
            Self::English => CaptionLanguage::English,
            Self::Chinese => CaptionLanguage::Chinese,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Data {
    pub(super) embedded: Embedded,
    pub(super) size: usize,
    pub(super) image_size: usize,
    pub(super) train: Option<PathBuf>,
    pub(super) validation: Option<PathBuf>,
    pub(super) test: Option<PathBuf>,
    #[serde(flatten)]
    pub(super) columns: FileColumns,
    #[serde(flatten)]
    pub(super) held_out: HeldOutOptions,
    pub(super) encoding: Option<String>,
    pub(super) color: bool,
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

/// The largest side of a picture.
const MAX_SIDE: usize = 4096;

impl Checked for Config {
    fn check(&self) -> Result<()> {
        self.data.held_out.check()?;
        let (side, patch) = (self.data.image_size, self.model.patch_size);
        if !(1..=MAX_SIDE).contains(&side) {
            return Err(Error::invalid(format!(
                "`data.image_size` cannot be {side}; it is 1 to {MAX_SIDE} pixels"
            )));
        }
        if patch == 0 || !side.is_multiple_of(patch) {
            return Err(Error::invalid(format!(
                "`model.patch_size` cannot be {patch}: it divides `data.image_size`, which is {side}"
            )));
        }
        self.model.seq2seq.check()?;
        self.search.search.check()?;
        self.training.check()
    }
}

impl Config {
    /// Red, green and blue, or gray.
    pub(super) fn channels(&self) -> usize {
        if self.data.color { 3 } else { 1 }
    }

    /// Patches across, and down.
    pub(super) fn patches(&self) -> usize {
        self.data.image_size / self.model.patch_size
    }

    /// The library's configuration for a vocabulary of this size and outputs of so many tokens.
    pub(super) fn seq2seq(&self, vocabulary: usize, longest: usize) -> Seq2SeqConfig {
        let side = self.data.image_size;
        let (channels, patch) = (self.channels(), self.model.patch_size);
        let source = SourceConfig::Patches { image: [side, side], channels, patch };
        let longest = longest.max(self.patches() * self.patches()) + 1;
        self.model.seq2seq.config(source, vocabulary, longest)
    }
}

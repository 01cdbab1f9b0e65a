//! The options of `transcribe`.

use super::augmentation::Augmentation;
use crate::components::{SoundFrameOptions, TextOptions};
use crate::files::FileColumns;
use crate::options::Checked;
use crate::parts::HeldOut;
use crate::seq2seq::{SearchOptions, Seq2SeqOptions};
use crate::train::TrainingConfig;
use crate::{Error, Part, Result};
use regard::models::{Seq2SeqConfig, SourceConfig};
use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Config {
    pub(super) data: Data,
    pub(super) text: TextOptions,
    pub(super) audio: SoundFrameOptions,
    pub(super) augmentation: Augmentation,
    pub(super) search: SearchOptions,
    pub(super) model: Seq2SeqOptions,
    pub(super) training: TrainingConfig,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Data {
    pub(super) size: usize,
    train: Option<PathBuf>,
    validation: Option<PathBuf>,
    test: Option<PathBuf>,
    #[serde(flatten)]
    pub(super) columns: FileColumns,
    held_out: f64,
    pub(super) encoding: Option<String>,
    pub(super) longest: usize,
}

impl Data {
    /// The file or folder of a part.
    pub(super) fn source(&self, part: Part) -> Option<&Path> {
        match part {
            Part::Training => self.train.as_deref(),
            Part::Validation => self.validation.as_deref(),
            Part::Test => self.test.as_deref(),
        }
    }

    pub(super) fn held_out(&self, seed: u64) -> HeldOut {
        let share = self.held_out;
        let (validation, test) = (self.validation.is_none(), self.test.is_none());
        HeldOut { share, seed, validation, test }
    }
}

impl Checked for Config {
    fn check(&self) -> Result<()> {
        HeldOut::check(self.data.held_out)?;
        if self.data.longest == 0 {
            return Err(Error::invalid("`data.longest` cannot be 0"));
        }
        if self.data.train.is_none() && self.data.validation.is_some() {
            return Err(Error::invalid("`data.validation` is given, and `data.train` is not"));
        }
        self.audio.check()?;
        self.augmentation.check()?;
        self.search.check()?;
        self.model.check()?;
        self.training.check()
    }
}

impl Config {
    /// The library's configuration for vectors of this width, a vocabulary of this size, and outputs
    /// of so many tokens.
    pub(super) fn seq2seq(&self, width: usize, vocabulary: usize, longest: usize) -> Seq2SeqConfig {
        let reach = longest.max(2 * self.data.longest) + 1;
        self.model.config(SourceConfig::Vectors { width }, vocabulary, reach)
    }
}

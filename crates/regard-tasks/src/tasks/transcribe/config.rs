//! The options of `transcribe`.

use super::augmentation::Augmentation;
use crate::options::requirement::Condition::IsNot;
use crate::options::requirement::Requirement;
use crate::options::template::Checked;
use crate::options::training::TrainingConfig;
use crate::task::held_out::HeldOutOptions;
use crate::task::part::Part;
use crate::tasks::components::{SoundFrameOptions, TextOptions, needs};
use crate::tasks::seq2seq::{SearchOptions, Seq2SeqOptions};
use regard::models::{Seq2SeqConfig, SourceConfig};
use regard_data::files::FileColumns;
use regard_data::{Error, Result};
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
    #[serde(flatten)]
    pub(super) held_out: HeldOutOptions,
    pub(super) encoding: Option<String>,
    pub(super) max_length: usize,
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
}

/// What the options need of each other to have an effect.
pub(super) fn needs() -> Vec<Requirement> {
    let columns = ["data.separator", "data.header", "data.path_column", "data.text_column"];
    let (time, frequency) = ("augmentation.time_masks", "augmentation.frequency_masks");
    let mut all = [needs::common(), needs::text(), needs::decoder()].concat();
    all.extend(Requirement::each(&columns, &needs::any_file()));
    all.push(Requirement::new("augmentation.time_mask", &[IsNot(time, "0")]));
    all.push(Requirement::new("augmentation.frequency_mask", &[IsNot(frequency, "0")]));
    all
}

impl Checked for Config {
    fn check(&self) -> Result<()> {
        self.data.held_out.check()?;
        if self.data.max_length == 0 {
            return Err(Error::invalid("`data.max_length` cannot be 0"));
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
        let reach = longest.max(2 * self.data.max_length) + 1;
        self.model.config(SourceConfig::Vectors { width }, vocabulary, reach)
    }
}

//! The options of `label` over vectors.

use crate::options::template::Checked;
use crate::options::training::TrainingConfig;
use crate::task::held_out::HeldOutOptions;
use crate::task::part::Part;
use crate::tasks::components::{EncoderOptions, SoundFrameOptions};
use regard::models::{InputConfig, LabelerConfig};
use regard_data::files::SequenceColumns;
use regard_data::{Error, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Config {
    pub(super) data: Data,
    pub(super) audio: SoundFrameOptions,
    pub(super) model: Model,
    pub(super) training: TrainingConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::tasks::label) enum Kind {
    Words,
    Sound,
    Vectors,
    Table,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Data {
    pub(super) kind: Kind,
    pub(super) size: usize,
    train: Option<PathBuf>,
    validation: Option<PathBuf>,
    test: Option<PathBuf>,
    sequence_column: String,
    label_column: String,
    pub(super) gap: String,
    #[serde(flatten)]
    pub(super) held_out: HeldOutOptions,
    pub(super) encoding: Option<String>,
    pub(super) max_length: usize,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Model {
    neighbors: Option<usize>,
    head_hidden: Option<usize>,
    #[serde(flatten)]
    pub(super) encoder: EncoderOptions,
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

    pub(super) fn columns(&self) -> SequenceColumns<'_> {
        SequenceColumns { sequence: &self.sequence_column, label: &self.label_column }
    }
}

impl Checked for Config {
    fn check(&self) -> Result<()> {
        if self.data.held_out.skip_bad_rows && self.data.kind == Kind::Table {
            return Err(Error::invalid(
                "`data.skip_bad_rows` is for sentences and files; a table's sequence without one of its \
                 time steps is another",
            ));
        }
        self.data.held_out.check()?;
        self.model.encoder.check()?;
        self.audio.check()?;
        self.training.check()
    }
}

impl Config {
    /// The library's configuration for vectors of this width and so many labels.
    pub(super) fn labeler(&self, width: usize, labels: usize) -> LabelerConfig {
        let m = &self.model;
        LabelerConfig {
            neighbors: m.neighbors,
            hidden: m.head_hidden,
            dropout: m.encoder.dropout,
            label_smoothing: self.training.label_smoothing,
            ..LabelerConfig::new(
                InputConfig::vectors(width),
                m.encoder.config(self.data.max_length),
                labels,
            )
        }
    }
}

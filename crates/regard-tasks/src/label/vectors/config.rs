//! The options of `label` over vectors.

use crate::components::{EncoderOptions, SoundFrameOptions};
use crate::files::SequenceColumns;
use crate::options::Checked;
use crate::parts::HeldOut;
use crate::train::TrainingConfig;
use crate::{Error, Part, Result};
use regard::models::{InputConfig, LabelerConfig};
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
pub(in crate::label) enum Kind {
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
    held_out: f64,
    held_out_seed: u64,
    pub(super) encoding: Option<String>,
    pub(super) longest: usize,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Model {
    neighbors: Option<usize>,
    head: Option<usize>,
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

    pub(super) fn held_out(&self) -> HeldOut {
        let (validation, test) = (self.validation.is_none(), self.test.is_none());
        HeldOut { share: self.held_out, seed: self.held_out_seed, validation, test }
    }

    pub(super) fn columns(&self) -> SequenceColumns<'_> {
        SequenceColumns { sequence: &self.sequence_column, label: &self.label_column }
    }
}

impl Checked for Config {
    fn check(&self) -> Result<()> {
        HeldOut::check(self.data.held_out)?;
        if self.data.train.is_none() && self.data.validation.is_some() {
            return Err(Error::invalid("`data.validation` is given, and `data.train` is not"));
        }
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
            hidden: m.head,
            dropout: m.encoder.dropout,
            label_smoothing: self.training.label_smoothing,
            ..LabelerConfig::new(
                InputConfig::vectors(width),
                m.encoder.config(self.data.longest),
                labels,
            )
        }
    }
}

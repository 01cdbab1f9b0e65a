//! The recordings of `transcribe`: from files or embedded, in three parts.

use super::config::Config;
use crate::files::{Transcript, Waveform, transcript_columns};
use crate::parts::{self, Cached};
use crate::{Error, Part, Result, toy};
use regard_data::tick;
use std::path::{Path, PathBuf};

/// A recording and what is said in it.
#[derive(Clone, Debug)]
pub(super) struct Recording {
    pub(super) sound: Waveform,
    pub(super) text: String,
    /// The file, or the name of an embedded one.
    pub(super) file: PathBuf,
}

impl Recording {
    /// An error in this recording.
    pub(super) fn wrong(&self, what: impl Into<String>) -> Error {
        Error::file(&self.file, what.into())
    }
}

/// The recordings that a configuration names.
pub(super) struct Dataset<'a> {
    config: &'a Config,
    /// All that the training data list.
    training: Cached<Vec<Transcript>>,
}

impl<'a> Dataset<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        Self { config, training: Cached::new() }
    }

    /// The recordings of a part. Where the training data have no validation or test data beside
    /// them, a share of them, drawn by the seed, is held out for each; the list is read once for all
    /// parts.
    pub(super) fn part(&self, part: Part) -> Result<Vec<Recording>> {
        let data = &self.config.data;
        let given = |path: &Path| transcript_columns(path, &data.columns, data.encoding.as_deref());
        match (data.source(part), data.source(Part::Training)) {
            (Some(path), _) if part != Part::Training => read(&given(path)?),
            (_, Some(path)) => {
                let all = self.training.get(|| given(path))?;
                read(&data.held_out(self.config.training.seed).part(part, all))
            }
            (_, None) => embedded(self.config, part),
        }
    }
}

fn read(listed: &[Transcript]) -> Result<Vec<Recording>> {
    let mut read = Vec::with_capacity(listed.len());
    for Transcript { path, text } in listed {
        let sound = Waveform::read(path)?;
        read.push(Recording { sound, text: text.clone(), file: path.clone() });
        tick("reading recordings", read.len(), listed.len())?;
    }
    Ok(read)
}

fn embedded(config: &Config, part: Part) -> Result<Vec<Recording>> {
    let recording = |spoken: toy::Spoken| Recording {
        sound: Waveform { samples: spoken.samples, rate: toy::SPOKEN_RATE },
        text: spoken.words.join(" "),
        file: "embedded recording".into(),
    };
    parts::embedded_in_order(part, config.data.size, |n| {
        Ok(toy::spoken(n, 1)?.into_iter().map(recording).collect())
    })
}

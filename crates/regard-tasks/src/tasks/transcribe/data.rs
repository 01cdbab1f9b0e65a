//! The recordings of `transcribe`: from files or embedded, in three parts.

use super::config::Config;
use crate::task::embedded;
use crate::task::held_out::HeldOutOptions;
use crate::task::part::Part;
use crate::task::splits::{self, Splits};
use crate::tasks::components::read_together;
use regard_data::files::{Transcript, Waveform, transcript_columns};
use regard_data::tick;
use regard_data::{Error, Result, toy};
use std::path::PathBuf;

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
pub(super) type Dataset<'a> = Splits<'a, Config>;

impl splits::Dataset for Config {
    type List = Vec<Transcript>;
    type Examples = Vec<Recording>;

    fn given(&self, part: Part) -> Result<Option<&'static str>> {
        Ok(self.data.source(part).map(|_| part.name()))
    }

    fn held_out(&self) -> HeldOutOptions {
        self.data.held_out
    }

    fn list(&self, part: Part) -> Result<Self::List> {
        let data = &self.data;
        let Some(path) = data.source(part) else { return Ok(Vec::new()) };
        transcript_columns(path, &data.columns, data.encoding.as_deref())
    }

    fn read(&self, list: Self::List) -> Result<Self::Examples> {
        read(&list)
    }

    fn embedded(&self, part: Part) -> Result<Self::Examples> {
        embedded(self, part)
    }
}

/// How many recordings are read between two looks at whether to stop.
const TOGETHER: usize = 64;

fn read(listed: &[Transcript]) -> Result<Vec<Recording>> {
    let mut read = Vec::with_capacity(listed.len());
    for some in listed.chunks(TOGETHER) {
        let sounds = read_together(some, |Transcript { path, text }| {
            let sound = Waveform::read(path)?;
            Ok(Recording { sound, text: text.clone(), file: path.clone() })
        })?;
        read.extend(sounds.into_iter().flatten());
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
    embedded::part_in_order(part, config.data.size, |n| {
        Ok(toy::spoken(n, 1)?.into_iter().map(recording).collect())
    })
}

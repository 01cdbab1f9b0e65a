//! The sequences of `label` over vectors: from files or embedded, in three parts.

use super::config::{Config, Kind};
use crate::task::embedded;
use crate::task::held_out::HeldOutOptions;
use crate::task::part::Part;
use crate::task::splits::{self, Splits, Strata};
use crate::tasks::components::read_together;
use crate::tasks::labels::counts::LabelCounts;
use regard_data::files::Segment;
use regard_data::files::Transcript;
use regard_data::files::{
    LabeledVectors, Waveform, labeled_arrays, labeled_table, segments, transcripts,
};
use regard_data::{Error, Result, example_or_skipped, toy};
use std::path::{Path, PathBuf};

/// A sequence as its files hold it.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Sound { sound: Waveform, segments: Vec<Segment> },
    Vectors { numbers: Vec<f32>, width: usize, labels: Vec<String> },
}

/// A sequence, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Example {
    pub(super) content: Content,
    pub(super) file: PathBuf,
    /// From 1; 0 for a file that is one example as a whole.
    pub(super) line: usize,
}

impl Example {
    /// An error in this example.
    pub(super) fn wrong(&self, what: impl Into<String>) -> Error {
        match self.line {
            0 => Error::file(&self.file, what.into()),
            line => Error::line(&self.file, line, what),
        }
    }

    /// All labels it has.
    pub(super) fn labels(&self) -> Vec<&str> {
        match &self.content {
            Content::Sound { segments, .. } => {
                segments.iter().map(|segment| &segment.label[..]).collect()
            }
            Content::Vectors { labels, .. } => labels.iter().map(String::as_str).collect(),
        }
    }
}

impl From<LabeledVectors> for Example {
    fn from(one: LabeledVectors) -> Self {
        let LabeledVectors { numbers, width, labels, file, line } = one;
        Self { content: Content::Vectors { numbers, width, labels }, file, line }
    }
}

/// The sequences that a configuration names.
pub(super) type Dataset<'a> = Splits<'a, Config>;

impl splits::Dataset for Config {
    type List = Vec<Example>;
    type Examples = Vec<Example>;

    fn given(&self, part: Part) -> Result<Option<&'static str>> {
        Ok(self.data.source(part).map(|_| part.name()))
    }

    fn held_out(&self) -> HeldOutOptions {
        self.data.held_out
    }

    fn list(&self, part: Part) -> Result<Self::List> {
        given(self, self.data.source(part).unwrap_or(Path::new("")))
    }

    fn strata(&self, list: &Self::List) -> Strata {
        let counts = LabelCounts::new(list.iter().flat_map(Example::labels));
        Strata::Labels(list.iter().map(|example| counts.rarest(&example.labels())).collect())
    }

    fn read(&self, list: Self::List) -> Result<Self::Examples> {
        Ok(list)
    }

    fn embedded(&self, part: Part) -> Result<Self::Examples> {
        embedded(self, part)
    }
}

fn given(config: &Config, path: &Path) -> Result<Vec<Example>> {
    let encoding = config.data.encoding.as_deref();
    match config.data.kind {
        Kind::Vectors => {
            Ok(labeled_arrays(path, encoding)?.into_iter().map(Example::from).collect())
        }
        Kind::Table => {
            let found = labeled_table(path, config.data.columns(), encoding)?;
            Ok(found.into_iter().map(Example::from).collect())
        }
        Kind::Sound | Kind::Words => recordings(path, encoding),
    }
}

/// Recordings and the files of their segments: listed, or beside each other in a folder.
fn recordings(path: &Path, encoding: Option<&str>) -> Result<Vec<Example>> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let (found, is_folder) = (transcripts(path, encoding)?, path.is_dir());
    // Texts are read on this thread, which keeps what is remarked of them.
    let waves = read_together(&found, |two| Waveform::read(&two.path))?;
    let one = |(two, sound): (Transcript, Waveform)| {
        let marks = match is_folder {
            true => two.path.with_extension("txt"),
            false => folder.join(&two.text),
        };
        let segments = segments(&marks, encoding)?;
        Ok(Example { content: Content::Sound { segments, sound }, file: two.path, line: 0 })
    };
    let read = found.into_iter().zip(waves).filter_map(|(two, sound)| Some((two, sound?)));
    read.filter_map(|both| example_or_skipped(one(both)).transpose()).collect()
}

fn embedded(config: &Config, part: Part) -> Result<Vec<Example>> {
    let example = |spoken: toy::Spoken| {
        let segment = |(start, end, label)| Segment { start, end, label };
        let content = Content::Sound {
            sound: Waveform { samples: spoken.samples, rate: toy::SPOKEN_RATE },
            segments: spoken.segments.into_iter().map(segment).collect(),
        };
        Example { content, file: "embedded recording".into(), line: 0 }
    };
    let drawn = embedded::part_in_order(part, config.data.size, |n| {
        Ok(toy::spoken(n, 1)?.into_iter().map(example).collect())
    })?;
    match config.data.kind {
        Kind::Vectors | Kind::Table => as_vectors(config, drawn),
        Kind::Sound | Kind::Words => Ok(drawn),
    }
}

/// The same tones as vectors, as a file would hold them.
fn as_vectors(config: &Config, sounds: Vec<Example>) -> Result<Vec<Example>> {
    let plain = config.audio.plain(toy::SPOKEN_RATE)?;
    let filters = plain.filters()?;
    let one = |example: Example| {
        let Content::Sound { sound, segments } = &example.content else { return Ok(example) };
        let numbers = plain.stacked(&filters.frames(sound)?);
        let width = plain.width();
        let labels = (0..numbers.len() / width)
            .map(|at| label_at(segments, sound, plain.middle(at), &config.data.gap).to_string())
            .collect();
        Ok(Example { content: Content::Vectors { numbers, width, labels }, ..example })
    };
    sounds.into_iter().map(one).collect()
}

/// The label of the segment that covers a moment of a recording, or what the gaps between them are
/// called. The last frame may reach beyond the recording: it has the label of its last sample.
pub(super) fn label_at<'a>(
    segments: &'a [Segment],
    sound: &Waveform,
    moment: f64,
    gap: &'a str,
) -> &'a str {
    let last = (sound.samples.len() as f64 - 0.5) / f64::from(sound.rate);
    let moment = moment.min(last);
    let covers = |segment: &&Segment| segment.start <= moment && moment < segment.end;
    segments.iter().find(covers).map_or(gap, |segment| &segment.label)
}

//! The examples of `classify`: from files or embedded, in three parts.

use super::config::{Config, Embedded, Kind, Source};
use crate::task::embedded;
use crate::task::held_out::HeldOutOptions;
use crate::task::part::Part;
use crate::task::splits::{self, Splits, Strata};
use crate::tasks::components::read_together;
use regard_data::files::{
    self, Labeled, LogMel, MelFilters, Sounds, Waveform, labeled_columns, labeled_files,
    labels_of_files,
};
use regard_data::{Error, Result, example_or_skipped, toy};
use std::path::{Path, PathBuf};

/// What is classified.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Text(String),
    /// A sequence of vectors, one after the other.
    Vectors {
        numbers: Vec<f32>,
        width: usize,
    },
    Sound(Waveform),
}

/// An example, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Example {
    pub(super) label: String,
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

    /// What it is called where examples are listed, and what `predict` takes for it where it can.
    pub(super) fn name(&self) -> String {
        match (&self.content, self.line) {
            (Content::Text(text), _) => text.clone(),
            (_, 0) => self.file.display().to_string(),
            (_, line) => format!("{}, line {line}", self.file.display()),
        }
    }
}

/// The examples that a configuration names.
pub(super) type Dataset<'a> = Splits<'a, Config>;

impl splits::Dataset for Config {
    type List = Vec<Example>;
    type Examples = Vec<Example>;

    fn given(&self, part: Part) -> Result<Option<&'static str>> {
        let data = &self.data;
        let own = data.source(part)?.is_some();
        // Recordings may say themselves which of them are for the test.
        let told = part == Part::Test && data.splits() && data.source(Part::Training)?.is_some();
        Ok((own || told).then_some(match part {
            Part::Training if data.train_files.is_some() => "train_files",
            Part::Validation if data.validation_files.is_some() => "validation_files",
            _ => part.name(),
        }))
    }

    fn held_out(&self) -> HeldOutOptions {
        self.data.held_out
    }

    fn list(&self, part: Part) -> Result<Self::List> {
        match (self.data.source(part)?, self.data.source(Part::Training)?) {
            (Some(source), _) if part != Part::Training => given(self, source, None),
            (_, Some(source)) => given(self, source, Some(part == Part::Test)),
            (_, None) => Ok(Vec::new()),
        }
    }

    fn strata(&self, list: &Self::List) -> Strata {
        Strata::Labels(list.iter().map(|example| example.label.clone()).collect())
    }

    fn read(&self, list: Self::List) -> Result<Self::Examples> {
        Ok(list)
    }

    fn embedded(&self, part: Part) -> Result<Self::Examples> {
        embedded(self, part)
    }
}

/// All examples of a source; of recordings that say so themselves, those that are for the test or
/// those that are not.
fn given(config: &Config, source: Source, test: Option<bool>) -> Result<Vec<Example>> {
    let (data, encoding) = (&config.data, config.data.encoding.as_deref());
    let of = |file: &Path, line: Labeled, content| Example {
        label: line.label,
        content,
        file: file.into(),
        line: line.line,
    };
    match (config.data.kind, source) {
        (Kind::Audio, Source::One(path)) => recordings(config, path, test),
        (Kind::Vectors, Source::One(path)) => {
            let all = labeled_columns(path, data.format, &data.columns(), encoding)?
                .into_iter()
                .filter_map(|line| {
                    let content =
                        vectors(&line.text).map_err(|what| Error::line(path, line.line, what));
                    let content = example_or_skipped(content).transpose()?;
                    Some(content.map(|content| of(path, line, content)))
                });
            same_width(all.collect::<Result<_>>()?)
        }
        (Kind::Text, Source::One(path)) => {
            let text = |line: Labeled| of(path, line.clone(), Content::Text(line.text));
            Ok(labeled_columns(path, data.format, &data.columns(), encoding)?
                .into_iter()
                .map(text)
                .collect())
        }
        (_, Source::Many(paths)) => {
            let labels = labels_of_files(paths)?;
            let mut all = Vec::new();
            for file in labels.into_iter().zip(paths.iter().cloned()) {
                let lines = labeled_files(std::slice::from_ref(&file), encoding)?;
                let text = |line: Labeled| of(&file.1, line.clone(), Content::Text(line.text));
                all.extend(lines.into_iter().map(text));
            }
            Ok(all)
        }
    }
}

fn recordings(config: &Config, path: &Path, test: Option<bool>) -> Result<Vec<Example>> {
    let (data, options) = (&config.data, config.data.sounds());
    let found = match path.is_file() {
        true => Sounds::listed(path, &options, &data.file_columns(), data.encoding.as_deref())?,
        false => Sounds::find(path, &options)?,
    };
    let mut sounds = found.sounds;
    sounds.retain(|sound| test.is_none_or(|test| sound.test == test));
    let waves = read_together(&sounds, |sound| Waveform::read(&sound.path))?;
    let example = |(sound, wave): (regard_data::files::Sound, Option<Waveform>)| {
        let content = Content::Sound(wave?);
        Some(Example { label: sound.label, content, file: sound.path, line: 0 })
    };
    Ok(sounds.into_iter().zip(waves).filter_map(example).collect())
}

/// "1,2 3,4": two vectors of width 2; or what is wrong.
pub(super) fn vectors(text: &str) -> std::result::Result<Content, String> {
    let mut numbers = Vec::new();
    let mut width = 0;
    for vector in text.split_whitespace() {
        let before = numbers.len();
        for number in vector.split(',') {
            numbers.push(files::number(number)? as f32);
        }
        let now = numbers.len() - before;
        if width != 0 && now != width {
            return Err(format!("a vector of {now} numbers after one of {width}"));
        }
        width = now;
    }
    match width {
        0 => Err("there is no vector".into()),
        _ => Ok(Content::Vectors { numbers, width }),
    }
}

fn same_width(all: Vec<Example>) -> Result<Vec<Example>> {
    let width = |example: &Example| match example.content {
        Content::Vectors { width, .. } => width,
        _ => 0,
    };
    let first = all.first().map_or(0, width);
    match all.iter().find(|example| width(example) != first) {
        Some(other) => {
            let (now, file) = (width(other), "vectors before it have");
            Err(other.wrong(format!("vectors of {now} numbers; {file} {first}")))
        }
        None => Ok(all),
    }
}

/// The frames of a recording.
pub(super) fn frames(filters: &MelFilters, choice: &LogMel, sound: &Waveform) -> Result<Content> {
    Ok(Content::Vectors { numbers: filters.frames(sound)?, width: choice.mels })
}

fn embedded(config: &Config, part: Part) -> Result<Vec<Example>> {
    let example = |((label, content), line): ((String, Content), usize)| Example {
        label,
        content,
        file: "embedded examples".into(),
        line,
    };
    let sound = |samples| Waveform { samples, rate: toy::TONE_RATE };
    let drawn = |n| -> Result<Vec<(String, Content)>> {
        match config.data.kind {
            Kind::Text => {
                let texts = match config.data.embedded {
                    Embedded::Cues => toy::cues(n, 1)?,
                    Embedded::Opinions => toy::opinions(n, 1)?,
                };
                let texts = texts.into_iter();
                Ok(texts.map(|(label, text)| (label, Content::Text(text))).collect())
            }
            Kind::Audio => {
                let tones = toy::tones(n, 1)?.into_iter();
                Ok(tones.map(|(label, wave)| (label, Content::Sound(sound(wave)))).collect())
            }
            Kind::Vectors => {
                let choice = config.audio.mel(toy::TONE_RATE);
                let filters = choice.filters()?;
                let tones = toy::tones(n, 1)?.into_iter();
                let vectors = |(label, wave)| Ok((label, frames(&filters, &choice, &sound(wave))?));
                tones.map(vectors).collect()
            }
        }
    };
    let most = match config.data.kind {
        Kind::Text => embedded::TEXTS,
        Kind::Audio | Kind::Vectors => embedded::PICTURES,
    };
    embedded::part(part, (config.data.size, most), |n| {
        Ok(drawn(n)?.into_iter().zip(1..).map(example).collect())
    })
}

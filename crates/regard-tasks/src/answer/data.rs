//! The questions of `answer`: from files or embedded, in three parts.

use super::config::{Config, Data, Format, Kind};
use super::encoding::first_answer;
use crate::files::{Answer, Asked, Passage, Place, asked_columns, babi, between, squad};
use crate::parts::{Cached, HeldOut, check_size};
use crate::{Error, Part, Result, toy};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Questions, and where they stand.
pub(super) struct Questions {
    pub(super) file: PathBuf,
    pub(super) all: Vec<Asked>,
}

fn file(data: &Data, part: Part) -> Option<&Path> {
    match part {
        Part::Training => data.train.as_deref(),
        Part::Validation => data.validation.as_deref(),
        Part::Test => data.test.as_deref(),
    }
}

/// What a file is, by its name.
fn format(path: &Path) -> Result<Format> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match name.trim_end_matches(".gz").rsplit('.').next() {
        Some("json") => Ok(Format::Squad),
        Some("tsv" | "csv") => Ok(Format::Tsv),
        Some("txt") => Ok(Format::Babi),
        _ => Err(Error::file(
            path,
            "the name does not tell what it holds; `data.format` is \"babi\", \"squad\", \"tsv\" or \
             \"csv\"",
        )),
    }
}

fn given(data: &Data, path: &Path) -> Result<Vec<Asked>> {
    let encoding = data.encoding.as_deref();
    let format = if data.format == Format::Auto { format(path)? } else { data.format };
    match format {
        Format::Squad => squad(path, encoding, data.unfound),
        Format::Tsv => asked_columns(path, &data.columns, encoding),
        Format::Babi | Format::Auto => babi(path, encoding),
    }
}

/// The questions that a configuration names.
pub(super) struct Dataset<'a> {
    data: &'a Data,
    /// What answers: only a memory network chooses among answers that it has seen.
    kind: Kind,
    /// All that the training file holds.
    training: Cached<Vec<Asked>>,
}

impl<'a> Dataset<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        Self { data: &config.data, kind: config.model.model, training: Cached::new() }
    }

    /// The questions of a part. Where the training file has no validation or test file beside it, a
    /// share of its questions is held out for each; it is read once for all parts.
    pub(super) fn part(&self, part: Part) -> Result<Questions> {
        let data = self.data;
        match (file(data, part), &data.train) {
            (Some(path), _) if part != Part::Training => {
                Ok(Questions { file: path.into(), all: given(data, path)? })
            }
            (_, Some(path)) => {
                let held = HeldOut {
                    share: data.held_out,
                    seed: data.held_out_seed,
                    validation: data.validation.is_none(),
                    test: data.test.is_none(),
                };
                let all = self.training.get(|| given(data, path))?;
                let all = match self.kind {
                    Kind::Memory => {
                        held.stratified(part, all, |asked| first_answer(asked).to_string())
                    }
                    Kind::Reader => held.part(part, all),
                };
                Ok(Questions { file: path.into(), all })
            }
            (_, None) => embedded(data, part),
        }
    }
}

/// The most embedded stories.
const MOST: usize = 1_000_000;

fn embedded(data: &Data, part: Part) -> Result<Questions> {
    check_size(data.size, MOST)?;
    let held = (data.size / 5).clamp(50, 1000);
    let stories = toy::stories(data.size + 2 * held, 1, data.facts, data.language)?;
    let asked = |(story, line): (toy::Story, usize)| {
        let passage = Passage::joined(&story.sentences, between(&story.sentences));
        let last = story.supporting.last().map(|&at| passage.ranges[at].clone());
        let start =
            last.and_then(|range| Some(range.start + passage.text[range].find(&story.answer)?));
        Asked {
            passage: Arc::new(passage),
            question: story.question,
            answers: vec![Answer { text: story.answer, start }],
            supporting: story.supporting,
            place: Place::Line(line),
        }
    };
    let all = stories.into_iter().zip(1..).map(asked);
    let all: Vec<Asked> = match part {
        Part::Validation => all.take(held).collect(),
        Part::Test => all.skip(held).take(held).collect(),
        Part::Training => all.skip(2 * held).collect(),
    };
    Ok(Questions { file: "embedded stories".into(), all })
}

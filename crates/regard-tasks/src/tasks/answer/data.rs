//! The questions of `answer`: from files or embedded, in three parts.

use super::config::{Config, Data, Format, Kind};
use super::encoding::first_answer;
use crate::task::embedded::{TEXTS, check_size, made};
use crate::task::held_out::HeldOutOptions;
use crate::task::part::Part;
use crate::task::splits::{self, Examples, List, Splits, Strata};
use regard_data::files::{Answer, Asked, Passage, Place, asked_columns, babi, between, squad};
use regard_data::{Error, Result, toy};
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
    if data.held_out.skip_bad_rows && format != Format::Tsv {
        return Err(Error::file(path, "`data.skip_bad_rows` is for files of columns (TSV, CSV)"));
    }
    match format {
        Format::Squad => squad(path, encoding, data.unfound),
        Format::Tsv => asked_columns(path, &data.columns, encoding),
        Format::Babi | Format::Auto => babi(path, encoding),
    }
}

/// The questions that a configuration names.
pub(super) type Dataset<'a> = Splits<'a, Config>;

impl splits::Dataset for Config {
    type List = Questions;
    type Examples = Questions;

    fn given(&self, part: Part) -> Result<Option<&'static str>> {
        Ok(file(&self.data, part).map(|_| part.name()))
    }

    fn held_out(&self) -> HeldOutOptions {
        self.data.held_out
    }

    fn list(&self, part: Part) -> Result<Questions> {
        let file = file(&self.data, part).unwrap_or(Path::new(""));
        Ok(Questions { file: file.into(), all: given(&self.data, file)? })
    }

    fn strata(&self, list: &Questions) -> Strata {
        let answer = |asked: &Asked| first_answer(asked).to_string();
        match self.model.model {
            // It chooses among answers that it has seen.
            Kind::Memory => Strata::Labels(list.all.iter().map(answer).collect()),
            Kind::Reader => Strata::Count(list.all.len()),
        }
    }

    fn read(&self, list: Questions) -> Result<Questions> {
        Ok(list)
    }

    fn embedded(&self, part: Part) -> Result<Questions> {
        embedded(&self.data, part)
    }
}

impl List for Questions {
    fn count(&self) -> usize {
        self.all.len()
    }

    fn pick(&self, which: &[usize]) -> Result<Self> {
        Ok(Self { file: self.file.clone(), all: self.all.pick(which)? })
    }
}

impl Examples for Questions {
    type Example = Asked;

    fn count(&self) -> usize {
        self.all.len()
    }

    fn nth(&self, at: usize) -> Option<Asked> {
        self.all.get(at).cloned()
    }
}

/// The most embedded stories.
const MOST: usize = 1_000_000;

fn embedded(data: &Data, part: Part) -> Result<Questions> {
    check_size(data.size, MOST)?;
    let size = made(data.size, TEXTS)?;
    let held = (size / 5).clamp(50, 1000);
    let stories = toy::stories(size + 2 * held, 1, data.facts, data.language)?;
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

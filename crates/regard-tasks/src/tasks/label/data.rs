//! The sentences of `label`: from files or embedded, in three parts.

use super::config::{Config, Data, Embedded};
use crate::task::embedded;
use crate::task::held_out::HeldOutOptions;
use crate::task::part::Part;
use crate::task::splits::{self, Examples, List, Splits, Strata};
use crate::tasks::labels::counts::LabelCounts;
use regard_data::files::{Tagged, conll_columns};
use regard_data::{Result, toy};
use std::path::{Path, PathBuf};

/// Sentences, and where they stand.
pub(super) struct Sentences {
    pub(super) file: PathBuf,
    pub(super) all: Vec<Tagged>,
    /// Of embedded sentences that ask at a distance: how far it is for every word that asks.
    pub(super) distances: Option<Vec<Vec<Option<usize>>>>,
}

fn file(data: &Data, part: Part) -> Option<&Path> {
    match part {
        Part::Training => data.train.as_deref(),
        Part::Validation => data.validation.as_deref(),
        Part::Test => data.test.as_deref(),
    }
}

/// The sentences that a configuration names.
pub(super) type Dataset<'a> = Splits<'a, Config>;

impl splits::Dataset for Config {
    type List = Sentences;
    type Examples = Sentences;

    fn given(&self, part: Part) -> Result<Option<&'static str>> {
        Ok(file(&self.data, part).map(|_| part.name()))
    }

    fn held_out(&self) -> HeldOutOptions {
        self.data.held_out
    }

    fn list(&self, part: Part) -> Result<Sentences> {
        let (data, file) = (&self.data, file(&self.data, part).unwrap_or(Path::new("")));
        let all = conll_columns(file, data.columns(), data.encoding.as_deref())?;
        Ok(Sentences { file: file.into(), all, distances: None })
    }

    fn strata(&self, list: &Sentences) -> Strata {
        let counts = LabelCounts::new(list.all.iter().flat_map(|sentence| &sentence.labels));
        let rarest = |sentence: &Tagged| counts.rarest(&sentence.labels);
        Strata::Labels(list.all.iter().map(rarest).collect())
    }

    fn read(&self, list: Sentences) -> Result<Sentences> {
        Ok(list)
    }

    fn embedded(&self, part: Part) -> Result<Sentences> {
        match self.data.embedded {
            Embedded::Tagged => embedded(self.data.size, part),
            Embedded::Distance => distant(&self.data, part),
        }
    }
}

impl List for Sentences {
    fn count(&self) -> usize {
        self.all.len()
    }

    fn pick(&self, which: &[usize]) -> Result<Self> {
        Ok(Self { file: self.file.clone(), all: self.all.pick(which)?, distances: None })
    }
}

impl Examples for Sentences {
    type Example = Tagged;

    fn count(&self) -> usize {
        self.all.len()
    }

    fn nth(&self, at: usize) -> Option<Tagged> {
        self.all.get(at).cloned()
    }
}

fn embedded(size: usize, part: Part) -> Result<Sentences> {
    let tagged = |(words, line): (Vec<(String, String)>, usize)| {
        let (words, labels): (Vec<_>, Vec<_>) = words.into_iter().unzip();
        Tagged { lines: vec![line; words.len()], words, labels }
    };
    let all = embedded::part(part, (size, embedded::TEXTS), |n| {
        Ok(toy::tagged(n, 1)?.into_iter().zip(1..).map(tagged).collect())
    })?;
    Ok(Sentences { file: "embedded sentences".into(), all, distances: None })
}

fn distant(data: &Data, part: Part) -> Result<Sentences> {
    let drawn = embedded::part(part, (data.size, embedded::LONG_TEXTS), |n| {
        toy::distant(n, data.distance, 1)
    })?;
    let (mut all, mut distances) = (Vec::new(), Vec::new());
    for (sentence, line) in drawn.into_iter().zip(1..) {
        let toy::Distant { words, labels, distances: told } = sentence;
        all.push(Tagged { lines: vec![line; words.len()], words, labels });
        distances.push(told);
    }
    Ok(Sentences { file: "embedded sentences".into(), all, distances: Some(distances) })
}

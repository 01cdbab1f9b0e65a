//! The sentences of `label`: from files or embedded, in three parts.

use super::config::{Config, Data, Embedded};
use crate::files::{Tagged, conll_columns};
use crate::label_counts::LabelCounts;
use crate::parts::{self, Cached, HeldOut};
use crate::{Part, Result, toy};
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
pub(super) struct Dataset<'a> {
    data: &'a Data,
    /// All that the training file holds.
    training: Cached<Vec<Tagged>>,
}

impl<'a> Dataset<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        Self { data: &config.data, training: Cached::new() }
    }

    /// The sentences of a part. Where the training file has no validation or test file beside it, a
    /// share of its sentences is held out for each; it is read once for all parts.
    pub(super) fn part(&self, part: Part) -> Result<Sentences> {
        let data = self.data;
        let given = |path: &Path| conll_columns(path, data.columns(), data.encoding.as_deref());
        match (file(data, part), &data.train) {
            (Some(path), _) if part != Part::Training => {
                Ok(Sentences { file: path.into(), all: given(path)?, distances: None })
            }
            (_, Some(path)) => {
                let held = HeldOut {
                    share: data.held_out,
                    seed: data.held_out_seed,
                    validation: data.validation.is_none(),
                    test: data.test.is_none(),
                };
                let all = self.training.get(|| given(path))?;
                let counts = LabelCounts::new(all.iter().flat_map(|sentence| &sentence.labels));
                let rarest = |sentence: &Tagged| counts.rarest(&sentence.labels);
                let all = held.stratified(part, all, rarest);
                Ok(Sentences { file: path.into(), all, distances: None })
            }
            (_, None) => match data.embedded {
                Embedded::Tagged => embedded(data.size, part),
                Embedded::Distance => distant(data, part),
            },
        }
    }
}

fn embedded(size: usize, part: Part) -> Result<Sentences> {
    let tagged = |(words, line): (Vec<(String, String)>, usize)| {
        let (words, labels): (Vec<_>, Vec<_>) = words.into_iter().unzip();
        Tagged { lines: vec![line; words.len()], words, labels }
    };
    let all = parts::embedded(part, size, |n| {
        Ok(toy::tagged(n, 1)?.into_iter().zip(1..).map(tagged).collect())
    })?;
    Ok(Sentences { file: "embedded sentences".into(), all, distances: None })
}

fn distant(data: &Data, part: Part) -> Result<Sentences> {
    let drawn = parts::embedded(part, data.size, |n| toy::distant(n, data.distance, 1))?;
    let (mut all, mut distances) = (Vec::new(), Vec::new());
    for (sentence, line) in drawn.into_iter().zip(1..) {
        let toy::Distant { words, labels, distances: told } = sentence;
        all.push(Tagged { lines: vec![line; words.len()], words, labels });
        distances.push(told);
    }
    Ok(Sentences { file: "embedded sentences".into(), all, distances: Some(distances) })
}

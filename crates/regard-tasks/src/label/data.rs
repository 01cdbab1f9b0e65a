//! The sentences of `label`: from files or embedded, in three parts.

use super::config::{Config, Data};
use crate::data::{Tagged, conll};
use crate::parts::{self, Cached, HeldOut};
use crate::{Part, Result, toy};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Sentences, and where they stand.
pub(super) struct Sentences {
    pub(super) file: PathBuf,
    pub(super) all: Vec<Tagged>,
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
        let given = |path: &Path| conll(path, data.column, data.encoding.as_deref());
        match (file(data, part), &data.train) {
            (Some(path), _) if part != Part::Training => {
                Ok(Sentences { file: path.into(), all: given(path)? })
            }
            (_, Some(path)) => {
                let held = HeldOut {
                    share: data.held_out,
                    seed: data.held_out_seed,
                    validation: data.validation.is_none(),
                    test: data.test.is_none(),
                };
                let all = self.training.get(|| given(path))?;
                let counts = label_counts(all);
                let rarest = |sentence: &Tagged| rarest(sentence, &counts);
                Ok(Sentences { file: path.into(), all: held.stratified(part, all, rarest) })
            }
            (_, None) => embedded(data.size, part),
        }
    }
}

/// How often each label occurs.
fn label_counts(all: &[Tagged]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for label in all.iter().flat_map(|sentence| &sentence.labels) {
        *counts.entry(label.clone()).or_insert(0) += 1;
    }
    counts
}

/// The rarest label of a sentence: what splits must take care of.
fn rarest(sentence: &Tagged, counts: &BTreeMap<String, usize>) -> String {
    let rarity = |label: &&String| (counts.get(*label).copied(), (*label).clone());
    sentence.labels.iter().min_by_key(rarity).cloned().unwrap_or_default()
}

fn embedded(size: usize, part: Part) -> Result<Sentences> {
    let tagged = |(words, line): (Vec<(String, String)>, usize)| {
        let (words, labels): (Vec<_>, Vec<_>) = words.into_iter().unzip();
        Tagged { lines: vec![line; words.len()], words, labels }
    };
    let all = parts::embedded(part, size, |n| {
        Ok(toy::tagged(n, 1)?.into_iter().zip(1..).map(tagged).collect())
    })?;
    Ok(Sentences { file: "embedded sentences".into(), all })
}

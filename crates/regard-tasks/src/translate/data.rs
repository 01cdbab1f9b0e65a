//! The pairs of `translate`: from files or embedded, in three parts.

use super::config::{Config, Data, Embedded};
use crate::data::{parallel, parallel_tsv};
use crate::parts::{self, Cached, HeldOut};
use crate::{Error, Part, Result, toy};
use std::path::PathBuf;

/// A sentence and its translation.
pub(super) type Pair = (String, String);

/// The files of a part: two parallel ones, one of pairs, or none.
fn files(data: &Data, part: Part) -> [&Option<PathBuf>; 3] {
    match part {
        Part::Training => [&data.train_source, &data.train_target, &data.train_pairs],
        Part::Validation => {
            [&data.validation_source, &data.validation_target, &data.validation_pairs]
        }
        Part::Test => [&data.test_source, &data.test_target, &data.test_pairs],
    }
}

/// The pairs of a part as its files hold them; none where no files are given.
fn given(data: &Data, part: Part) -> Result<Option<Vec<Pair>>> {
    let encoding = data.encoding.as_deref();
    let found = match files(data, part) {
        [None, None, None] => return Ok(None),
        [Some(source), Some(target), None] => parallel(source, target, encoding)?,
        [None, None, Some(both)] => parallel_tsv(both, encoding)?,
        _ => {
            let name = parts::name(part);
            return Err(Error::invalid(format!(
                "the {name} part wants `data.{name}_source` and `data.{name}_target`, or \
                 `data.{name}_pairs` alone"
            )));
        }
    };
    Ok(Some(found.pairs))
}

/// The pairs that a configuration names.
pub(super) struct Dataset<'a> {
    config: &'a Config,
    /// All that the training files hold; none where no files are given.
    training: Cached<Option<Vec<Pair>>>,
}

impl<'a> Dataset<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        Self { config, training: Cached::new() }
    }

    /// The pairs of a part. Where the training files have no validation or test files beside them,
    /// a share of the training pairs, drawn by the seed, is held out for each; the files are read
    /// once for all parts.
    pub(super) fn part(&self, part: Part) -> Result<Vec<Pair>> {
        let data = &self.config.data;
        if part != Part::Training
            && let Some(pairs) = given(data, part)?
        {
            return Ok(pairs);
        }
        let Some(all) = self.training.get(|| given(data, Part::Training))? else {
            return embedded(self.config, part);
        };
        let spare = |part| files(data, part).iter().all(|file| file.is_none());
        let held = HeldOut {
            share: data.held_out,
            seed: self.config.training.seed,
            validation: spare(Part::Validation),
            test: spare(Part::Test),
        };
        Ok(held.part(part, all))
    }
}

fn embedded(config: &Config, part: Part) -> Result<Vec<Pair>> {
    parts::embedded(part, config.data.size, |n| match config.data.embedded {
        Embedded::Phrases => toy::phrases(n, 1),
        Embedded::Dates => toy::dates(n, 1),
        Embedded::Reports => toy::reports(n, 1),
    })
}

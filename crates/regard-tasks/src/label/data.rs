//! The sentences of `label`: from files or embedded, in three parts.

use super::config::{Config, Data};
use crate::data::{Tagged, conll};
use crate::parts::{self, HeldOut};
use crate::{Part, Result, toy};
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

/// The sentences of a part. Where the training file has no validation or test file beside it, a
/// share of its sentences is held out for each.
pub(super) fn read(config: &Config, part: Part) -> Result<Sentences> {
    let data = &config.data;
    let given = |path: &Path| {
        let all = conll(path, data.column, data.encoding.as_deref())?;
        Ok(Sentences { file: path.into(), all })
    };
    match (file(data, part), &data.train) {
        (Some(path), _) if part != Part::Training => given(path),
        (_, Some(path)) => {
            let held = HeldOut {
                share: data.held_out,
                seed: data.held_out_seed,
                validation: data.validation.is_none(),
                test: data.test.is_none(),
            };
            let Sentences { file, all } = given(path)?;
            Ok(Sentences { file, all: held.part(part, &all) })
        }
        (_, None) => embedded(data.size, part),
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
    Ok(Sentences { file: "embedded sentences".into(), all })
}

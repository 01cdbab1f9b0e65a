//! The pairs of `translate`: from files or embedded, in three parts.

use super::config::{Config, Data, Embedded};
use crate::files::{parallel_column_lines, parallel_lines};
use crate::parts::{self, Cached, HeldOut};
use crate::{Error, Part, Result, toy};
use regard_data::remark;
use std::path::{Path, PathBuf};

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

/// The pairs of a part as the lines of its files hold them, blank ones too; none where no files are
/// given.
fn given_lines(data: &Data, part: Part) -> Result<Option<Vec<Pair>>> {
    let encoding = data.encoding.as_deref();
    let found = match files(data, part) {
        [None, None, None] => return Ok(None),
        [Some(source), Some(target), None] => parallel_lines(source, target, encoding)?,
        [None, None, Some(both)] => {
            let columns = [data.source_column.clone(), data.target_column.clone()];
            parallel_column_lines(both, data.format, &columns, encoding)?
        }
        _ => {
            let name = parts::name(part);
            return Err(Error::invalid(format!(
                "the {name} part wants `data.{name}_source` and `data.{name}_target`, or \
                 `data.{name}_pairs` alone"
            )));
        }
    };
    Ok(Some(found))
}

/// Whether a pair has both sides.
pub(super) fn is_whole((source, target): &Pair) -> bool {
    !source.is_empty() && !target.is_empty()
}

/// The pairs of a part that have both sides; none where no files are given.
fn given(data: &Data, part: Part) -> Result<Option<Vec<Pair>>> {
    let Some(mut pairs) = given_lines(data, part)? else { return Ok(None) };
    let all = pairs.len();
    pairs.retain(is_whole);
    if pairs.is_empty() {
        let file = files(data, part).into_iter().flatten().next();
        let file = file.map(PathBuf::as_path).unwrap_or(Path::new(""));
        return Err(Error::file(file, "no line has both a source and a target"));
    }
    let empty = all - pairs.len();
    if empty > 0 {
        let file = files(data, part).into_iter().flatten().next();
        let file = file.map_or_else(String::new, |file| format!("{}: ", file.display()));
        let used = pairs.len();
        remark(format!("{file}{all} rows: {used} used, {empty} with an empty source or target"));
    }
    Ok(Some(pairs))
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
        let held = HeldOut {
            share: data.held_out,
            seed: self.config.training.seed,
            validation: self.has_no_files(Part::Validation),
            test: self.has_no_files(Part::Test),
        };
        Ok(held.part(part, all))
    }

    fn has_no_files(&self, part: Part) -> bool {
        files(&self.config.data, part).iter().all(|file| file.is_none())
    }

    /// The pairs of a part as [`Dataset::part`] gives them; with one for each line, blank ones too,
    /// where the part is all that its files hold.
    pub(super) fn lines(&self, part: Part) -> Result<Vec<Pair>> {
        let parts = [Part::Validation, Part::Test];
        let held_out = parts.iter().any(|&part| self.has_no_files(part));
        if part == Part::Training && held_out {
            return self.part(part);
        }
        match given_lines(&self.config.data, part)? {
            Some(lines) => Ok(lines),
            None => self.part(part),
        }
    }
}

fn embedded(config: &Config, part: Part) -> Result<Vec<Pair>> {
    parts::embedded(part, config.data.size, |n| match config.data.embedded {
        Embedded::Phrases => toy::phrases(n, 1),
        Embedded::Dates => toy::dates(n, 1),
        Embedded::Reports => toy::reports(n, 1),
    })
}

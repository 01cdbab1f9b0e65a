//! The pairs of `translate`: from files or embedded, in three parts.

use super::config::{Config, Data, Embedded};
use crate::task::embedded;
use crate::task::held_out::HeldOutOptions;
use crate::task::part::Part;
use crate::task::splits::{self, Splits};
use regard_data::files::{parallel_column_lines, parallel_lines};
use regard_data::{Error, Result, remark, skipping_bad_rows, toy};
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

/// The pairs of a part as the lines of its files hold them, blank ones too.
fn given_lines(data: &Data, part: Part) -> Result<Vec<Pair>> {
    let encoding = data.encoding.as_deref();
    match files(data, part) {
        [Some(source), Some(target), None] => parallel_lines(source, target, encoding),
        [None, None, Some(both)] => {
            let columns = [data.source_column.clone(), data.target_column.clone()];
            parallel_column_lines(both, data.format, &columns, encoding)
        }
        _ => {
            let name = part.name();
            Err(Error::invalid(format!(
                "the {name} part needs `data.{name}_source` and `data.{name}_target`, or \
                 `data.{name}_pairs` alone"
            )))
        }
    }
}

/// Whether a pair has both sides.
pub(super) fn is_whole((source, target): &Pair) -> bool {
    !source.is_empty() && !target.is_empty()
}

/// The pairs of a part's files that have both sides.
fn given(data: &Data, part: Part) -> Result<Vec<Pair>> {
    let mut pairs = given_lines(data, part)?;
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
    Ok(pairs)
}

/// The pairs that a configuration names.
pub(super) type Dataset<'a> = Splits<'a, Config>;

impl splits::Dataset for Config {
    type List = Vec<Pair>;
    type Examples = Vec<Pair>;

    fn given(&self, part: Part) -> Result<Option<&'static str>> {
        let names = match part {
            Part::Training => ["train_source", "train_pairs"],
            Part::Validation => ["validation_source", "validation_pairs"],
            Part::Test => ["test_source", "test_pairs"],
        };
        Ok(match files(&self.data, part) {
            [None, None, None] => None,
            [_, _, Some(_)] => Some(names[1]),
            _ => Some(names[0]),
        })
    }

    fn held_out(&self) -> HeldOutOptions {
        self.data.held_out
    }

    fn list(&self, part: Part) -> Result<Self::List> {
        given(&self.data, part)
    }

    fn read(&self, list: Self::List) -> Result<Self::Examples> {
        Ok(list)
    }

    fn embedded(&self, part: Part) -> Result<Self::Examples> {
        embedded(self, part)
    }
}

/// The pairs of a part as its dataset gives them; with one for each line, blank ones too, where the
/// part is all that its files hold.
pub(super) fn with_blank_lines(config: &Config, part: Part) -> Result<Vec<Pair>> {
    let has_no_files = |part| files(&config.data, part).iter().all(|file| file.is_none());
    let held_out = [Part::Validation, Part::Test].into_iter().any(has_no_files);
    if has_no_files(part) || part == Part::Training && held_out {
        return Dataset::new(config).part(part);
    }
    let skip = config.data.held_out.skip_bad_rows;
    skipping_bad_rows(skip, || given_lines(&config.data, part))
}

fn embedded(config: &Config, part: Part) -> Result<Vec<Pair>> {
    let most = match config.data.embedded {
        Embedded::Reports => embedded::LONG_TEXTS,
        _ => embedded::TEXTS,
    };
    embedded::part(part, (config.data.size, most), |n| match config.data.embedded {
        Embedded::Phrases => toy::phrases(n, 1),
        Embedded::Dates => toy::dates(n, 1),
        Embedded::Copies => toy::copies(n, 1),
        Embedded::Reports => toy::reports(n, 1),
    })
}

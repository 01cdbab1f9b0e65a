//! The data of `regress`: from files or embedded, in three parts.

use super::config::{Config, Data};
use crate::files::{lines, table_columns};
use crate::parts::{self, Cached, HeldOut};
use crate::{Error, Part, Result, toy};
use regard::tensor::Random;
use std::path::{Path, PathBuf};

/// A datum: what is known, and what is to be told from it.
pub(super) type Datum = (Vec<f64>, f64);

/// Data with the names of their columns; the last is told from the others.
pub(super) struct Observations {
    pub(super) names: Vec<String>,
    pub(super) data: Vec<Datum>,
}

impl Observations {
    /// Keeps so many at most, drawn by a seed, in their order.
    pub(super) fn sample(&mut self, most: usize, seed: u64) {
        if self.data.len() <= most {
            return;
        }
        let mut kept = Random::named(seed, "sample").order(self.data.len());
        kept.truncate(most);
        kept.sort_unstable();
        self.data = kept.into_iter().map(|at| self.data[at].clone()).collect();
    }
}

fn file(data: &Data, part: Part) -> &Option<PathBuf> {
    match part {
        Part::Training => &data.train,
        Part::Validation => &data.validation,
        Part::Test => &data.test,
    }
}

fn given(path: &Path, data: &Data) -> Result<Observations> {
    let table = table_columns(path, &data.columns(), data.encoding.as_deref())?;
    let rows = 0..table.columns[0].len();
    let row = |row: usize| -> Datum {
        let mut all: Vec<f64> = table.columns.iter().map(|column| column[row]).collect();
        let y = all.pop().unwrap_or_default();
        (all, y)
    };
    Ok(Observations { data: rows.map(row).collect(), names: table.names })
}

/// The data that a configuration names.
pub(super) struct Dataset<'a> {
    config: &'a Config,
    /// All that the training file holds.
    training: Cached<Observations>,
}

impl<'a> Dataset<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        Self { config, training: Cached::new() }
    }

    /// The data of a part. Where the training file has no validation or test file beside it, a
    /// share of its rows, drawn by the seed, is held out for each; it is read once for all parts.
    pub(super) fn part(&self, part: Part) -> Result<Observations> {
        let data = &self.config.data;
        let Some(train) = &data.train else {
            if let Some(path) = file(data, part) {
                return given(path, data);
            }
            let points = parts::embedded(part, data.size, |n| toy::sine(n, 1))?;
            let datum = |(x, y): (f32, f32)| (vec![x.into()], y.into());
            let names = vec!["x".into(), "y".into()];
            return Ok(Observations { names, data: points.into_iter().map(datum).collect() });
        };
        if part != Part::Training
            && let Some(path) = file(data, part)
        {
            return given(path, data);
        }
        let all = self.training.get(|| given(train, data))?;
        let held = HeldOut {
            share: data.held_out,
            seed: self.config.training.seed,
            validation: data.validation.is_none(),
            test: data.test.is_none(),
        };
        Ok(Observations { data: held.part(part, &all.data), names: all.names.clone() })
    }
}

impl Dataset<'_> {
    /// The outputs for a part's data, one for each line of its file: blank for a blank line.
    pub(super) fn by_line(&self, part: Part, outputs: Vec<String>) -> Result<Vec<String>> {
        let data = &self.config.data;
        let (Part::Validation | Part::Test, Some(path)) = (part, file(data, part)) else {
            return Ok(outputs);
        };
        let all = lines(path, data.encoding.as_deref())?;
        let is_blank = |line: &String| line.trim().is_empty();
        let first = all.iter().position(|line| !is_blank(line)).unwrap_or(0);
        let filled = all.iter().filter(|line| !is_blank(line)).count();
        let rows = match filled.checked_sub(outputs.len()) {
            Some(0) => &all[..],
            // The header.
            Some(1) => &all[first + 1..],
            // Where cells go over several lines, a row is what has an output.
            _ => return Ok(outputs),
        };
        let mut outputs = outputs.into_iter();
        let output = |line: &String| match is_blank(line) {
            true => String::new(),
            false => outputs.next().unwrap_or_default(),
        };
        Ok(rows.iter().map(output).collect())
    }
}

/// Refuses data with another number of columns than the model was made for.
pub(super) fn same_columns(
    names: &[String],
    observations: &Observations,
    part: Part,
) -> Result<()> {
    let (then, now) = (names.len(), observations.names.len());
    if then == now {
        return Ok(());
    }
    let part = parts::name(part);
    let what = format!("the {part} part has {now} columns; the model was made for {then}");
    Err(Error::invalid(what))
}

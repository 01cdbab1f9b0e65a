//! The data of `regress`: from files or embedded, in three parts.

use super::config::{Config, Data};
use crate::task::embedded;
use crate::task::held_out::HeldOutOptions;
use crate::task::part::Part;
use crate::task::splits::{self, Examples, List, Splits};
use regard::tensor::Random;
use regard_data::files::{lines, table_columns};
use regard_data::{Error, Result, toy};
use std::path::{Path, PathBuf};

/// A datum: the features, and the target.
pub(super) type Datum = (Vec<f64>, f64);

/// Data with the names of their columns; the last is the target.
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
pub(super) type Dataset<'a> = Splits<'a, Config>;

impl splits::Dataset for Config {
    type List = Observations;
    type Examples = Observations;

    fn given(&self, part: Part) -> Result<Option<&'static str>> {
        Ok(file(&self.data, part).as_ref().map(|_| part.name()))
    }

    fn held_out(&self) -> HeldOutOptions {
        self.data.held_out
    }

    fn list(&self, part: Part) -> Result<Observations> {
        match file(&self.data, part) {
            Some(path) => given(path, &self.data),
            None => embedded(&self.data, part),
        }
    }

    fn read(&self, list: Observations) -> Result<Observations> {
        Ok(list)
    }

    fn embedded(&self, part: Part) -> Result<Observations> {
        embedded(&self.data, part)
    }
}

impl List for Observations {
    fn count(&self) -> usize {
        self.data.len()
    }

    fn pick(&self, which: &[usize]) -> Result<Self> {
        Ok(Self { data: self.data.pick(which)?, names: self.names.clone() })
    }
}

impl Examples for Observations {
    type Example = Datum;

    fn count(&self) -> usize {
        self.data.len()
    }

    fn nth(&self, at: usize) -> Option<Datum> {
        self.data.get(at).cloned()
    }
}

fn embedded(data: &Data, part: Part) -> Result<Observations> {
    let points = embedded::part(part, (data.size, embedded::NUMBERS), |n| toy::sine(n, 1))?;
    let datum = |(x, y): (f32, f32)| (vec![x.into()], y.into());
    let names = vec!["x".into(), "y".into()];
    Ok(Observations { names, data: points.into_iter().map(datum).collect() })
}

/// The outputs for a part's data, one for each line of its file: blank for a blank line.
pub(super) fn by_line(data: &Data, part: Part, outputs: Vec<String>) -> Result<Vec<String>> {
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
    let part = part.name();
    let what = format!("the {part} part has {now} columns; the model was made for {then}");
    Err(Error::invalid(what))
}

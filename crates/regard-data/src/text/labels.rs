//! The labels that a model tells apart.

use super::vocabulary::by_count;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// The labels seen in training, the commonest first, numbered from 0.
///
/// ```
/// use regard_data::text::Labels;
/// let labels = Labels::learn(["VERB", "NOUN", "NOUN"]);
/// assert_eq!((labels.id("NOUN"), labels.id("VERB"), labels.id("X")), (Some(0), Some(1), None));
/// let error = labels.id_at("X", "dev.conllu", 7).unwrap_err().to_string();
/// assert_eq!(error, "dev.conllu, line 7: label `X` is not among the 2 seen in training");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Labels {
    names: Vec<String>,
    ids: HashMap<String, usize>,
}

impl Labels {
    /// All the labels given; of equally common ones the one that came first is first.
    pub fn learn<'a>(labels: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of(by_count(labels).into_iter().map(|(label, _)| label.to_string()).collect())
    }

    /// All the labels given, by number where all are numbers, else by name.
    ///
    /// ```
    /// use regard_data::text::Labels;
    /// assert_eq!(Labels::in_order(["10", "9", "10"]).names(), ["9", "10"]);
    /// ```
    pub fn in_order<'a>(labels: impl IntoIterator<Item = &'a str>) -> Self {
        let labels: BTreeSet<&str> = labels.into_iter().collect();
        let mut names: Vec<String> = labels.into_iter().map(str::to_string).collect();
        // 10 comes after 9; with one name that is no number, numbers are names too.
        let numbers = names.iter().map(|name| name.parse::<i64>().ok());
        if let Some(numbers) = numbers.collect::<Option<Vec<i64>>>() {
            let mut both: Vec<(i64, String)> = numbers.into_iter().zip(names).collect();
            both.sort();
            names = both.into_iter().map(|(_, name)| name).collect();
        }
        Self::of(names)
    }

    /// The number of a label, where training has seen it.
    pub fn id(&self, label: &str) -> Option<usize> {
        self.ids.get(label).copied()
    }

    /// The number of a label that a line of a file holds. Refuses one unseen in training.
    pub fn id_at(&self, label: &str, file: impl AsRef<Path>, line: usize) -> Result<usize> {
        let unseen = || format!("label `{label}` is not among the {} seen in training", self.len());
        self.id(label).ok_or_else(|| Error::line(file, line, unseen()))
    }

    /// The label of a number; empty beyond the last.
    pub fn name(&self, id: usize) -> &str {
        self.names.get(id).map_or("", String::as_str)
    }

    /// All labels, by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn of(names: Vec<String>) -> Self {
        let ids = names.iter().enumerate().map(|(id, name)| (name.clone(), id)).collect();
        Self { names, ids }
    }
}

impl TryFrom<Vec<String>> for Labels {
    type Error = Error;

    fn try_from(names: Vec<String>) -> Result<Self> {
        let labels = Self::of(names);
        if labels.ids.len() != labels.len() {
            return Err(Error::invalid("a label is there twice"));
        }
        Ok(labels)
    }
}

impl From<Labels> for Vec<String> {
    fn from(labels: Labels) -> Self {
        labels.names
    }
}

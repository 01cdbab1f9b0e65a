//! Labels that cannot be meant: one for all examples, or another for nearly each.

use regard_data::remark;
use regard_data::{Error, Result};
use std::collections::BTreeSet;

/// How many examples there are at least before labels that nearly all differ are odd.
const MANY: usize = 20;

/// How many examples there are at least before a first one of a label of its own cannot be meant.
const LONE: usize = 3;

/// Where labels were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LabelSource {
    /// The lines of a file, of which the first may name the columns.
    Lines,
    /// Folders, recordings, a graph: no line names columns there.
    Others,
}

/// Refuses labels among which there is nothing to choose, such as one under a header of any words, and says where nearly all differ; of examples
/// that are called `things`.
pub(crate) fn check_labels<'a>(
    labels: impl IntoIterator<Item = &'a str>,
    things: &str,
    source: LabelSource,
) -> Result<()> {
    match only_label(labels, things, source) {
        Some(what) => Err(Error::invalid(what)),
        None => Ok(()),
    }
}

/// As [`check_labels`], where data are looked at: says what would be refused.
pub(crate) fn describe_labels<'a>(
    labels: impl IntoIterator<Item = &'a str>,
    things: &str,
    source: LabelSource,
) {
    if let Some(what) = only_label(labels, things, source) {
        remark(what);
    }
}

/// What is wrong with a single label.
fn only_label<'a>(
    labels: impl IntoIterator<Item = &'a str>,
    things: &str,
    source: LabelSource,
) -> Option<String> {
    let (mut all, mut names, mut first, mut firsts) = (0, BTreeSet::new(), None, 0);
    for label in labels {
        all += 1;
        names.insert(label);
        firsts += usize::from(*first.get_or_insert(label) == label);
    }
    if all >= MANY && 2 * names.len() > all {
        remark(format!(
            "{all} training {things} have {} different labels: nearly each has its own, as if the \
             columns of label and text were swapped",
            names.len()
        ));
    }
    match (names.first(), names.len()) {
        (Some(label), 1) => Some(format!(
            "all {all} training {things} have the label `{label}`: there is nothing to learn; two \
             labels or more are needed"
        )),
        (_, 2) if source == LabelSource::Lines && firsts == 1 && all > LONE => {
            let first = first.unwrap_or_default();
            let other = names.iter().find(|name| **name != first).unwrap_or(&"");
            Some(format!(
                "only the first of {all} training {things} has the label `{first}`, and all others have \
                 `{other}`: if that is a line that names the columns, there is one label and nothing to \
                 learn; if it is none, more {things} of its label are needed"
            ))
        }
        _ => None,
    }
}

//! Lines, words and n-grams as the metrics on text count them.

use regard_data::{Error, Result};
use std::collections::HashMap;
use std::hash::Hash;

/// Spaces as Python sees them: it has four separators more than Unicode's property.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(is_space).filter(|word| !word.is_empty())
}

pub(super) fn trim(line: &str) -> &str {
    line.trim_matches(is_space)
}

pub(super) fn trim_end(line: &str) -> &str {
    line.trim_end_matches(is_space)
}

/// How often each run of `order` neighbors occurs.
pub(super) fn ngrams<T: Eq + Hash>(of: &[T], order: usize) -> HashMap<&[T], usize> {
    let mut counts = HashMap::new();
    for ngram in of.windows(order) {
        *counts.entry(ngram).or_default() += 1;
    }
    counts
}

/// Refuses lists of different lengths and a hypothesis without a reference.
pub(super) fn check<H, R>(hypotheses: &[H], references: &[Vec<R>]) -> Result<()> {
    let (given, expected) = (hypotheses.len(), references.len());
    if given != expected {
        return Err(Error::invalid(format!(
            "there are {given} hypotheses for {expected} sets of references"
        )));
    }
    match references.iter().position(Vec::is_empty) {
        Some(at) => Err(Error::invalid(format!("hypothesis {} has no reference", at + 1))),
        None => Ok(()),
    }
}

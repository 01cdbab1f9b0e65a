//! Word and character error rates as jiwer counts them: the fewest words (or characters) that must be
//! put in place of others, left out or added to make the truth of what was written, over the length
//! of the truth.

use super::text;
use regard_data::{Error, Result};
use serde::Serialize;

/// How far texts are from what they should be.
///
/// ```
/// use regard_tasks::metric::ErrorRate;
/// let words = ErrorRate::words(&["one two two five"], &["one two four five"])?;
/// assert_eq!((words.errors, words.length, words.rate()), (1, 4, 0.25));
/// let characters = ErrorRate::characters(&["abd"], &["abcd"])?;
/// assert_eq!(characters.rate(), 0.25);
/// # Ok::<(), regard_tasks::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ErrorRate {
    /// Words or characters replaced, left out or added.
    pub errors: usize,
    /// Words or characters of the truth.
    pub length: usize,
}

impl ErrorRate {
    /// Word errors of all texts together, each held against its truth. Words stand between spaces.
    /// Refuses lists of different lengths.
    pub fn words<A: AsRef<str>, B: AsRef<str>>(written: &[A], truth: &[B]) -> Result<Self> {
        Self::counted(written, truth, |line| split(&single_spaces(line)))
    }

    /// As [`ErrorRate::words`], by characters; spaces at the ends do not count.
    pub fn characters<A: AsRef<str>, B: AsRef<str>>(written: &[A], truth: &[B]) -> Result<Self> {
        Self::counted(written, truth, |line| text::trim(line).chars().map(String::from).collect())
    }

    fn counted<A: AsRef<str>, B: AsRef<str>>(
        written: &[A],
        truth: &[B],
        tokens: impl Fn(&str) -> Vec<String>,
    ) -> Result<Self> {
        if written.len() != truth.len() {
            let (given, expected) = (written.len(), truth.len());
            return Err(Error::invalid(format!("there are {given} texts for {expected} truths")));
        }
        let mut all = Self::default();
        for (written, truth) in written.iter().zip(truth) {
            let (written, truth) = (tokens(written.as_ref()), tokens(truth.as_ref()));
            all.errors += distance(&written, &truth);
            all.length += truth.len();
        }
        Ok(all)
    }

    /// Errors over the length of the truth; may exceed 1. With no truth at all it is 1 where
    /// something was written and 0 where nothing was.
    pub fn rate(&self) -> f64 {
        match (self.errors, self.length) {
            (0, 0) => 0.0,
            (_, 0) => 1.0,
            (errors, length) => errors as f64 / length as f64,
        }
    }
}

/// Two spaces or more of any kind are one plain space; so are none at the ends.
fn single_spaces(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        if text::is_space(c) && rest.peek().is_some_and(|&c| text::is_space(c)) {
            while rest.peek().is_some_and(|&c| text::is_space(c)) {
                rest.next();
            }
            out.push(' ');
        } else {
            out.push(c);
        }
    }
    text::trim(&out).to_string()
}

fn split(line: &str) -> Vec<String> {
    line.split(' ').filter(|word| !word.is_empty()).map(String::from).collect()
}

/// Levenshtein's distance.
pub(super) fn distance<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = match x == y {
                true => diagonal,
                false => 1 + diagonal.min(above).min(row[j]),
            };
            diagonal = above;
        }
    }
    row[b.len()]
}

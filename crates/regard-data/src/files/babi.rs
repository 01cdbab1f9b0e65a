//! Stories in numbered lines, as the bAbI tasks have them.

use super::asked::{Answer, Asked, Passage, Place};
use super::opened::numbered_beginning;
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// The story so far.
#[derive(Default)]
struct Story {
    /// Number of the line before.
    last: usize,
    sentences: Vec<String>,
    /// The numbers of the lines that the sentences stood in.
    numbers: Vec<usize>,
}

impl Story {
    /// The question of a line, about all sentences before it; or what is wrong.
    fn asked(&self, fields: &[&str], line: usize) -> std::result::Result<Asked, String> {
        let (question, answer) = (fields[0].trim(), fields[1].trim());
        match (question, answer) {
            ("", _) => return Err("the question is empty".into()),
            (_, "") => return Err("the answer is empty".into()),
            _ => {}
        }
        if self.sentences.is_empty() {
            return Err("a question before any sentence: the text is empty".into());
        }
        let fact = |number: &str| {
            let known: Option<usize> = number.parse().ok();
            let at = known.and_then(|number| self.numbers.iter().position(|&n| n == number));
            at.ok_or_else(|| {
                format!("`{number}` is not the number of a sentence before the question")
            })
        };
        let facts = fields.get(2).copied().unwrap_or_default();
        let supporting: std::result::Result<_, _> = facts.split_whitespace().map(fact).collect();
        let passage = Passage::joined(&self.sentences, between(&self.sentences));
        let supporting: Vec<usize> = supporting?;
        // Of an answer that stands in several sentences, the place in one that tells it.
        let told = supporting.iter().rev().find_map(|&at| {
            let range = passage.ranges[at].clone();
            Some(range.start + passage.text[range].find(answer)?)
        });
        let start = told.or_else(|| passage.text.rfind(answer));
        Ok(Asked {
            passage: Arc::new(passage),
            question: question.into(),
            answers: vec![Answer { text: answer.into(), start }],
            supporting,
            place: Place::Line(line),
        })
    }
}

/// What stands between sentences: nothing where they are Chinese.
pub fn between(sentences: &[impl AsRef<str>]) -> &'static str {
    let chinese = |s: &str| s.ends_with(['。', '！', '？']);
    if sentences.iter().all(|s| chinese(s.as_ref())) { "" } else { " " }
}

/// Reads numbered lines: sentences, and questions with an answer and the numbers of the sentences
/// that tell it behind tabs. Number 1 begins a new story. Refuses, by its line, what has no number or
/// a wrong one, a question before any sentence, an empty answer, and a sentence that is not there.
///
/// ```
/// use regard_data::files::babi;
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "1 Mary left.\n2 John went home.\n3 Where is John?\thome\t2\n").unwrap();
/// let asked = &babi(&file, None)?[0];
/// assert_eq!((asked.answers[0].text.as_str(), &asked.supporting[..]), ("home", &[1][..]));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn babi(path: impl AsRef<Path>, encoding: Option<&str>) -> Result<Vec<Asked>> {
    let path = path.as_ref();
    let mut all = Vec::new();
    let mut story = Story::default();
    for (line, text) in numbered_beginning(path, encoding)? {
        let wrong = |what: &str| Error::line(path, line, what);
        let (number, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let number: usize = number.parse().map_err(|_| {
            wrong(&format!("`{number}` is no number; a line is a number, a space and a sentence"))
        })?;
        if number == 1 {
            story = Story::default();
        } else if number != story.last + 1 {
            let expected = story.last + 1;
            return Err(wrong(&format!("number {number}; {expected} or 1 was expected")));
        }
        story.last = number;
        let fields: Vec<&str> = rest.split('\t').collect();
        if fields.len() > 1 {
            all.push(story.asked(&fields, line).map_err(|what| wrong(&what))?);
        } else if rest.trim().is_empty() {
            return Err(wrong("the sentence is empty"));
        } else {
            story.sentences.push(rest.trim().into());
            story.numbers.push(number);
        }
    }
    if all.is_empty() {
        return Err(Error::file(path, "there are no questions"));
    }
    Ok(all)
}

//! Questions about paragraphs, as SQuAD's JSON has them.

use super::asked::{Answer, Asked, Passage, Place};
use super::lines::text;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// What is done with an answer that does not stand where the file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfound {
    /// The file is refused.
    #[default]
    Refuse,
    /// It is looked for in the text; where it is not there, it counts when answers are compared and
    /// is not learned from. An empty question, which some files have, stays one.
    Search,
}

/// A value of the file and its path.
#[derive(Clone)]
struct At<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> At<'a> {
    fn wrong(&self, what: impl std::fmt::Display) -> String {
        format!("{}: {what}", self.path)
    }

    fn key(&self, key: &str) -> std::result::Result<Self, String> {
        let value = self.value.get(key).ok_or_else(|| self.wrong(format!("`{key}` is missing")))?;
        let dot = if self.path.is_empty() { "" } else { "." };
        Ok(Self { value, path: format!("{}{dot}{key}", self.path) })
    }

    fn items(&self) -> std::result::Result<Vec<Self>, String> {
        let all = self.value.as_array().ok_or_else(|| self.wrong("a list was expected"))?;
        let item = |(at, value)| Self { value, path: format!("{}[{at}]", self.path) };
        Ok(all.iter().enumerate().map(item).collect())
    }

    fn text(&self) -> std::result::Result<&'a str, String> {
        match self.value.as_str() {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(self.wrong("the text is empty")),
            None => Err(self.wrong("a text was expected")),
        }
    }
}

/// The byte of a text's character, counted as the file counts.
fn byte_of(text: &str, character: usize) -> Option<usize> {
    text.char_indices().map(|(at, _)| at).nth(character)
}

/// The occurrence of an answer nearest to where it was said to be.
fn nearest(text: &str, answer: &str, start: usize) -> Option<usize> {
    let all = text.match_indices(answer).map(|(at, _)| at);
    all.min_by_key(|at| at.abs_diff(start))
}

fn answer(at: &At, text: &str, unfound: Unfound) -> std::result::Result<Answer, String> {
    let (words, place) = (at.key("text")?, at.key("answer_start")?);
    let words = words.text()?;
    let count = place.value.as_i64().ok_or_else(|| place.wrong("a whole number was expected"))?;
    let start = usize::try_from(count).ok().and_then(|count| byte_of(text, count));
    let there = start.filter(|&start| text[start..].starts_with(words));
    let start = match (there, unfound) {
        (Some(start), _) => Some(start),
        (None, Unfound::Search) => nearest(text, words, start.unwrap_or(0)),
        (None, Unfound::Refuse) => {
            let characters = text.chars().count();
            let long = words.chars().count();
            let past = count >= 0 && count as usize + long > characters;
            let what = match (text.contains(words), past) {
                (_, true) => format!(
                    "an answer of {long} characters at {count} ends past the text, which has \
                     {characters}"
                ),
                (false, _) => format!("the answer `{words}` is not in the text"),
                (true, _) => format!("the answer `{words}` does not stand at {count}"),
            };
            let hint = "`data.unfound=search` looks for such answers";
            return Err(place.wrong(format!("{what}; {hint}")));
        }
    };
    Ok(Answer { text: words.into(), start })
}

fn question(
    at: &At,
    passage: &Arc<Passage>,
    unfound: Unfound,
) -> std::result::Result<Asked, String> {
    let impossible = match at.value.get("is_impossible") {
        None => false,
        Some(value) => {
            value.as_bool().ok_or_else(|| at.wrong("`is_impossible` is neither true nor false"))?
        }
    };
    let given = at.key("answers")?;
    let answers: Vec<Answer> = given
        .items()?
        .iter()
        .map(|at| answer(at, &passage.text, unfound))
        .collect::<std::result::Result<_, _>>()?;
    match (impossible, answers.is_empty()) {
        (true, false) => return Err(given.wrong("there are answers, and `is_impossible` is true")),
        (false, true) => {
            return Err(given.wrong("there is no answer, and `is_impossible` is not true"));
        }
        _ => {}
    }
    let told = answers.iter().filter_map(|answer| passage.sentence_at(answer.start?));
    let mut supporting: Vec<usize> = told.collect();
    supporting.sort_unstable();
    supporting.dedup();
    let asked = at.key("question")?;
    let asked = match (asked.value.as_str(), unfound) {
        (Some(text), Unfound::Search) => text,
        _ => asked.text()?,
    };
    Ok(Asked {
        passage: passage.clone(),
        question: asked.into(),
        answers,
        supporting,
        place: Place::Path(at.path.clone()),
    })
}

fn questions(file: &Value, unfound: Unfound) -> std::result::Result<Vec<Asked>, String> {
    let mut all = Vec::new();
    for article in (At { value: file, path: String::new() }).key("data")?.items()? {
        for paragraph in article.key("paragraphs")?.items()? {
            let passage = Arc::new(Passage::new(paragraph.key("context")?.text()?));
            for at in paragraph.key("qas")?.items()? {
                all.push(question(&at, &passage, unfound)?);
            }
        }
    }
    match all.is_empty() {
        true => Err("there are no questions".into()),
        false => Ok(all),
    }
}

/// Reads SQuAD's JSON, 1.1 or 2.0. Refuses, by its path in the file, what is missing or of another
/// kind, an empty text, an answer that is not in the text, and one that ends past it.
///
/// ```
/// use regard_data::files::{Unfound, squad};
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, r#"{ "data": [{ "paragraphs": [{ "context": "Mary left.", "qas": [
///     { "id": "1", "question": "Who left?", "answers": [{ "text": "Mary", "answer_start": 8 }] }
/// ] }] }] }"#).unwrap();
/// assert_eq!(squad(&file, None, Unfound::Search)?[0].answers[0].start, Some(0));
/// let error = squad(&file, None, Unfound::Refuse).unwrap_err().to_string();
/// assert!(error.contains("data[0].paragraphs[0].qas[0].answers[0].answer_start: "), "{error}");
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn squad(
    path: impl AsRef<Path>,
    encoding: Option<&str>,
    unfound: Unfound,
) -> Result<Vec<Asked>> {
    let path = path.as_ref();
    let text = text(path, encoding)?;
    let file: Value = serde_json::from_str(&text)
        .map_err(|error| Error::line(path, error.line(), format!("no JSON: {error}")))?;
    questions(&file, unfound)
        .map_err(|what| Error::file(path, what.strip_prefix(": ").unwrap_or(&what)))
}

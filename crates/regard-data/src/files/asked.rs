//! Questions about texts, with their answers.

use super::columns::{Column, ColumnFile, ColumnFormat, Row};
use super::lines::columns;
use crate::{Error, Result, bad_rows};
use serde::Deserialize;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A text and its sentences.
///
/// ```
/// use regard_data::files::Passage;
/// let passage = Passage::new("It is 3.5 km. “Really?” Yes. 真的！好。");
/// let sentences: Vec<&str> = passage.sentences().collect();
/// assert_eq!(sentences, ["It is 3.5 km.", "“Really?”", "Yes.", "真的！", "好。"]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    /// The whole text.
    pub text: String,
    /// Where its sentences stand, in bytes.
    pub ranges: Vec<Range<usize>>,
}

/// An answer, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The answer.
    pub text: String,
    /// The byte of the text where it begins; none where nobody has said or it is not in the text.
    pub start: Option<usize>,
}

/// Where a question stands in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a line, from 1.
    Line(usize),
    /// At a path of a JSON file: `data[0].paragraphs[2].qas[1]`.
    Path(String),
}

/// A question about a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// What it is about; shared by all questions about it.
    pub passage: Arc<Passage>,
    /// The question.
    pub question: String,
    /// The answers that people gave; none where the text has no answer.
    pub answers: Vec<Answer>,
    /// The sentences that tell the answer, from 0; none where nobody has said.
    pub supporting: Vec<usize>,
    /// Where it stands in its file.
    pub place: Place,
}

impl Asked {
    /// An error in this question.
    pub fn wrong(&self, file: impl AsRef<Path>, what: &str) -> Error {
        match &self.place {
            Place::Line(line) => Error::line(file, *line, what),
            Place::Path(path) => Error::file(file, format!("{path}: {what}")),
        }
    }
}

/// What ends a sentence where a space or nothing follows, and what does anywhere.
const ENDS: &str = ".!?…";
const CHINESE_ENDS: &str = "。！？；";
/// What still belongs to the sentence that has ended.
const CLOSING: &str = "\"'”’»)]）】』」》";

impl Passage {
    /// A text, cut into sentences after what ends one and at line breaks.
    pub fn new(text: &str) -> Self {
        let mut ranges = Vec::new();
        let mut start = 0;
        let mut characters = text.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            let mut end = at + c.len_utf8();
            let chinese = CHINESE_ENDS.contains(c);
            if !(chinese || ENDS.contains(c) || c == '\n') {
                continue;
            }
            while let Some(&(at, c)) = characters.peek()
                && (CLOSING.contains(c) || CHINESE_ENDS.contains(c) || ENDS.contains(c))
            {
                end = at + c.len_utf8();
                characters.next();
            }
            let spaced = characters.peek().is_none_or(|(_, c)| c.is_whitespace());
            if chinese || spaced || c == '\n' {
                ranges.extend(trimmed(text, start..end));
                start = end;
            }
        }
        ranges.extend(trimmed(text, start..text.len()));
        Self { text: text.into(), ranges }
    }

    /// Sentences that are known to be some, with `between` between them.
    ///
    /// ```
    /// use regard_data::files::Passage;
    /// let passage = Passage::joined(&["Mary left.", "John came."], " ");
    /// assert_eq!(passage.text, "Mary left. John came.");
    /// assert_eq!(passage.sentences().last(), Some("John came."));
    /// ```
    pub fn joined(sentences: &[impl AsRef<str>], between: &str) -> Self {
        let mut text = String::new();
        let mut ranges = Vec::new();
        for sentence in sentences {
            if !text.is_empty() {
                text.push_str(between);
            }
            let start = text.len();
            text.push_str(sentence.as_ref());
            ranges.push(start..text.len());
        }
        Self { text, ranges }
    }

    /// The sentences, one after the other.
    pub fn sentences(&self) -> impl Iterator<Item = &str> {
        self.ranges.iter().map(|range| &self.text[range.clone()])
    }

    /// The sentence that a byte of the text belongs to.
    pub fn sentence_at(&self, byte: usize) -> Option<usize> {
        self.ranges.iter().position(|range| range.contains(&byte))
    }
}

/// A range without blanks at its ends; none where nothing is left.
fn trimmed(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let whole = &text[range.clone()];
    let start = range.start + (whole.len() - whole.trim_start().len());
    let end = start + whole.trim().len();
    (start < end).then_some(start..end)
}

/// Reads a file of lines `text<TAB>question<TAB>answer`, with more answers behind more tabs; an empty
/// answer says that the text has none. Refuses a line with fewer columns, an empty text and an empty
/// question.
///
/// ```
/// use regard_data::files::asked_tsv;
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "Mary left. John came.\tWho came?\tJohn\n").unwrap();
/// let asked = &asked_tsv(&file, None)?[0];
/// assert_eq!(asked.answers[0].start, Some(11));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn asked_tsv(path: impl AsRef<Path>, encoding: Option<&str>) -> Result<Vec<Asked>> {
    asked_columns(path.as_ref(), &AskedColumns::default(), encoding)
}

/// Which columns of a file hold questions.
///
/// ```
/// use regard_data::files::{AskedColumns, Column};
/// assert_eq!(AskedColumns::default().question, Column::Number(2));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AskedColumns {
    /// How the lines are columns.
    #[serde(flatten)]
    pub format: ColumnFormat,
    /// What is asked about.
    #[serde(rename = "text_column")]
    pub text: Column,
    /// The question.
    #[serde(rename = "question_column")]
    pub question: Column,
    /// An answer each; if none are named, all columns behind text and question.
    #[serde(rename = "answer_columns", default)]
    pub answers: Vec<Column>,
}

impl Default for AskedColumns {
    /// Text, tab, question, and answers behind further tabs.
    fn default() -> Self {
        let (text, question) = (Column::Number(1), Column::Number(2));
        Self { format: ColumnFormat::default(), text, question, answers: Vec::new() }
    }
}

/// As [`asked_tsv`], with text, question and answers in these columns. Refuses a column that is not
/// there, by line; an empty answer is none.
///
/// ```
/// use regard_data::files::{AskedColumns, Column, asked_columns};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("asked.csv");
/// std::fs::write(&path, "id,question,context,answer\n7,Who came?,\"Mary, and John.\",John\n").unwrap();
/// let [text, question] = ["context", "question"].map(|name| Column::Name(name.into()));
/// let columns = AskedColumns { text, question, ..AskedColumns::default() };
/// let asked = &asked_columns(&path, &columns, None)?[0];
/// assert_eq!((&asked.question[..], asked.answers[0].start), ("Who came?", Some(10)));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn asked_columns(path: &Path, at: &AskedColumns, encoding: Option<&str>) -> Result<Vec<Asked>> {
    let both = [at.text.clone(), at.question.clone()];
    let named = [&both[..], &at.answers].concat();
    let file = ColumnFile::read(path, at.format, &named, encoding)?;
    let usual = *at == AskedColumns::default();
    let read = |row: &Row| {
        let wrong = |what: String| Error::line(path, row.line, what);
        if usual && row.cells.len() < both.len() {
            let there = columns(row.cells.len());
            return Err(wrong(format!("{there}; a text, a question and an answer were expected")));
        }
        let (text, question) = (file.cell(row, &at.text)?, file.cell(row, &at.question)?);
        match (text, question) {
            ("", _) => return Err(wrong("the text is empty".into())),
            (_, "") => return Err(wrong("the question is empty".into())),
            _ => {}
        }
        let answers: Vec<&str> = match at.answers.is_empty() {
            true => file.behind(row, &both)?.iter().map(String::as_str).collect(),
            false => at.answers.iter().map(|at| file.cell(row, at)).collect::<Result<_>>()?,
        };
        let answers = answers.into_iter().filter(|answer| !answer.is_empty());
        let answer = |answer: &str| Answer { text: answer.to_string(), start: text.find(answer) };
        Ok(Asked {
            passage: Arc::new(Passage::new(text)),
            question: question.to_string(),
            answers: answers.map(answer).collect(),
            supporting: Vec::new(),
            place: Place::Line(row.line),
        })
    };
    let all = bad_rows::rows(file.rows().iter().map(read))?;
    match all.len() {
        0 => Err(Error::file(path, "there are no questions")),
        _ => Ok(all),
    }
}

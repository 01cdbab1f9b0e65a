//! Sentences of which each word has a label.

use super::header::{WORD_NAMES, are_names, is_lone_label};
use super::lines::{beginning_lines, columns};
use crate::{Error, Result, bad_rows, remark};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How many columns CoNLL-U has.
const UNIVERSAL: usize = 10;

/// What opens a document in CoNLL-2003: not a sentence.
const DOCUMENT: &str = "-DOCSTART-";

/// The column of a CoNLL-U file that holds the labels.
///
/// ```
/// use regard_data::files::ConllColumn;
/// let column: ConllColumn = serde_json::from_str(r#""deprel""#).unwrap();
/// assert_eq!(column, ConllColumn::Deprel);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConllColumn {
    /// The word itself.
    Form = 1,
    /// Its lemma.
    Lemma,
    /// Its universal part of speech.
    #[default]
    Upos,
    /// Its part of speech in the language's own set.
    Xpos,
    /// Its morphological features, all of them as one label.
    Feats,
    /// The number of the word it hangs on.
    Head,
    /// Its relation to that word.
    Deprel,
    /// Its enhanced relations, all of them as one label.
    Deps,
    /// Anything else.
    Misc,
}

/// A sentence of which each word has a label.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tagged {
    /// The words `[N]`.
    pub words: Vec<String>,
    /// Their labels `[N]`.
    pub labels: Vec<String>,
    /// The lines `[N]` of the file where they stand, from 1.
    pub lines: Vec<usize>,
}

/// Reads sentences with labels. A file named so, or with ten columns between tabs, is CoNLL-U:
/// comments, ranges of words (`1-2`) and empty nodes (`1.1`) are left out, and `column` is the
/// label. Any other has a word first and its label last in each line, between tabs or spaces. A
/// blank line ends a sentence. A first line that names the columns is left out, with a [`remark`]. Refuses another number of columns, an empty word or label, words out
/// of order, and a file without a sentence.
///
/// ```
/// use regard_data::files::{ConllColumn, conll};
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "I PRON\nsaw VERB\n\nBirds NOUN\n").unwrap();
/// let sentences = conll(&file, ConllColumn::Upos, None)?;
/// assert_eq!(sentences[0].labels, ["PRON", "VERB"]);
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn conll(
    path: impl AsRef<Path>,
    column: ConllColumn,
    encoding: Option<&str>,
) -> Result<Vec<Tagged>> {
    let columns = ConllColumns { label: LabelColumn::Name(column), word: None };
    conll_columns(path, columns, encoding)
}

/// The column of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    expecting = "a column of CoNLL-U, such as \"upos\" or \"deprel\", or a number from 1 was expected"
)]
pub enum LabelColumn {
    /// Counted from 1.
    Number(usize),
    /// Of CoNLL-U; of any other file the last.
    Name(ConllColumn),
}

/// Which columns hold words and labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConllColumns {
    /// The column of labels.
    pub label: LabelColumn,
    /// The column of words, counted from 1; that of CoNLL-U's forms, or the first, if none.
    pub word: Option<usize>,
}

impl ConllColumns {
    /// The places of word and label, from 0, in lines of so many columns; or what is wrong.
    fn places(self, width: usize, universal: bool) -> std::result::Result<[usize; 2], String> {
        let usual = if universal { ConllColumn::Form as usize } else { 0 };
        let word = self.word.map_or(Some(usual), |word| word.checked_sub(1));
        let label = match self.label {
            LabelColumn::Number(number) => number.checked_sub(1),
            LabelColumn::Name(column) if universal => Some(column as usize),
            LabelColumn::Name(_) => Some(width - 1),
        };
        let (Some(word), Some(label)) = (word, label) else {
            return Err("columns are counted from 1".into());
        };
        match word.max(label) {
            last if last >= width => {
                Err(format!("column {} was expected, {}", last + 1, columns(width)))
            }
            _ => Ok([word, label]),
        }
    }
}

/// As [`conll`], with columns by number.
///
/// ```
/// use regard_data::files::{ConllColumns, LabelColumn, conll_columns};
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n").unwrap();
/// let columns = ConllColumns { label: LabelColumn::Number(2), word: None };
/// assert_eq!(conll_columns(&file, columns, None)?[0].labels, ["NNP", "VBZ"]);
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn conll_columns(
    path: impl AsRef<Path>,
    columns: ConllColumns,
    encoding: Option<&str>,
) -> Result<Vec<Tagged>> {
    let path = path.as_ref();
    let lines = beginning_lines(path, encoding)?;
    let named = path.to_string_lossy().trim_end_matches(".gz").ends_with(".conllu");
    let universal = named || lines.iter().any(|line| line.split('\t').count() == UNIVERSAL);
    let width = if universal {
        UNIVERSAL
    } else {
        lines.iter().find_map(|line| plain_width(line)).unwrap_or(2)
    };
    let header = header(path, &lines);
    let mut sentences = vec![];
    let mut sentence = Tagged::default();
    // A sentence with a bad line is left out whole.
    let mut is_bad = false;
    for (line, number) in lines.iter().zip(1..).filter(|(_, number)| Some(*number) != header) {
        if line.trim().is_empty() {
            let sentence = std::mem::take(&mut sentence);
            if !std::mem::take(&mut is_bad) {
                sentences.push(sentence);
            }
            continue;
        }
        if is_bad {
            continue;
        }
        let word = match universal {
            true => universal_word(line, columns, sentence.words.len() + 1),
            false => plain_word(line, columns, width),
        };
        match bad_rows::row(word.map_err(|what| Error::line(path, number, what)))? {
            None => is_bad = true,
            Some(None) => {}
            Some(Some((word, label))) => {
                sentence.words.push(word.into());
                sentence.labels.push(label.into());
                sentence.lines.push(number);
            }
        }
    }
    if !is_bad {
        sentences.push(sentence);
    }
    sentences.retain(|sentence| !sentence.words.is_empty());
    remark_first_label(path, &sentences);
    match sentences.len() {
        0 => Err(Error::file(path, "there is no sentence")),
        _ => Ok(sentences),
    }
}

/// The line that names the columns, if there is one, which is said.
fn header(path: &Path, lines: &[String]) -> Option<usize> {
    let is_data = |line: &&String| !line.trim().is_empty() && !line.starts_with("# ");
    let at = lines.iter().position(|line| is_data(&line))?;
    let names = plain_cells(&lines[at]);
    let same = |line: &String| plain_cells(line).last() == names.last();
    // What labels another word, too, is a label.
    if !are_names(&names, WORD_NAMES) || lines[at + 1..].iter().any(same) {
        return None;
    }
    let (path, line) = (path.display(), at + 1);
    remark(format!(
        "{path}: line {line} names the columns ({}) and is not read as data",
        names.join(", ")
    ));
    Some(line)
}

/// Says where the first word's label may be the name of a column.
fn remark_first_label(path: &Path, sentences: &[Tagged]) {
    let labels = || sentences.iter().flat_map(|sentence| &sentence.labels).map(String::as_str);
    let Some(first) = sentences.first() else { return };
    // A header may have an empty line behind it.
    let stands_alone = first.words.len() == 1
        && sentences.len() > 3
        && labels().filter(|label| *label == first.labels[0]).count() == 1;
    if !stands_alone && !is_lone_label(labels()) {
        return;
    }
    remark(format!(
        "{}: the label `{}` occurs in line {} alone; if that line names the columns, take it out of the \
         file",
        path.display(),
        first.labels[0],
        first.lines[0]
    ));
}

/// A word and its label; none where the line holds neither; or what is wrong.
type Word<'a> = std::result::Result<Option<(&'a str, &'a str)>, String>;

fn universal_word(line: &str, columns: ConllColumns, place: usize) -> Word<'_> {
    if line.starts_with('#') {
        return Ok(None);
    }
    let cells = cells(line.split('\t').collect(), UNIVERSAL)?;
    let number = cells[0];
    if number.split(['-', '.']).all(|part| part.parse::<usize>().is_ok())
        && number.contains(['-', '.'])
    {
        return Ok(None);
    }
    match number.parse::<usize>() {
        Ok(number) if number == place => {
            let [word, label] = columns.places(UNIVERSAL, true)?;
            named(cells[word], cells[label])
        }
        _ => Err(format!("word {place} of a sentence was expected, `{number}` is there")),
    }
}

fn plain_word(line: &str, columns: ConllColumns, width: usize) -> Word<'_> {
    let cells = cells(plain_cells(line), width)?;
    let [word, label] = columns.places(width, false)?;
    match cells[0] {
        DOCUMENT => Ok(None),
        _ => named(cells[word], cells[label]),
    }
}

fn named<'a>(word: &'a str, label: &'a str) -> Word<'a> {
    match (word.trim(), label.trim()) {
        ("", _) => Err("the word is empty".into()),
        (_, "") => Err("the label is empty".into()),
        both => Ok(Some(both)),
    }
}

fn plain_cells(line: &str) -> Vec<&str> {
    if line.contains('\t') { line.split('\t').collect() } else { line.split_whitespace().collect() }
}

/// How many columns a file has whose first line with words is this.
fn plain_width(line: &str) -> Option<usize> {
    Some(plain_cells(line).len().max(2)).filter(|_| !line.trim().is_empty())
}

fn cells(cells: Vec<&str>, width: usize) -> std::result::Result<Vec<&str>, String> {
    match cells.len() {
        count if count == width => Ok(cells),
        count => Err(format!("{width} columns were expected, {}", columns(count))),
    }
}

//! A list of files, each with a text that belongs to it: a label, a sentence, a transcript.

use super::columns::{Column, ColumnFile, ColumnFormat};
use super::header::{Words, remark_header};
use super::lines::columns;
use super::opened::numbered_beginning;
use crate::{Error, Result, bad_rows, sample};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Where in a list the paths stand, and what belongs to them.
///
/// ```
/// use regard_data::files::{Column, FileColumns};
/// assert_eq!(FileColumns::default().path, Column::Number(1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FileColumns {
    /// How the list's lines are columns.
    #[serde(flatten)]
    pub format: ColumnFormat,
    /// The path, which begins at the list's folder.
    #[serde(rename = "path_column")]
    pub path: Column,
    /// What belongs to the file.
    #[serde(rename = "text_column")]
    pub text: Column,
}

impl Default for FileColumns {
    /// Path, tab, text.
    fn default() -> Self {
        let (path, text) = (Column::Number(1), Column::Number(2));
        Self { format: ColumnFormat::default(), path, text }
    }
}

impl FileColumns {
    /// Whether a list has these two columns and no other, with a tab between.
    fn are_all(&self, list: &Path, encoding: Option<&str>) -> Result<bool> {
        let first_two = match (&self.path, &self.text) {
            (Column::Number(path), Column::Number(text)) => [path.min(text), path.max(text)],
            _ => return Ok(false),
        };
        let usual = first_two == [&1, &2] && !self.format.header;
        Ok(usual && self.format.separator.of(list, encoding)? == b'\t')
    }
}

/// A file that is there, and what belongs to it.
pub(super) struct ListedFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// Where it is listed, from 1.
    pub(super) line: usize,
}

/// Reads a list; `what` is what its texts are called. Refuses a file that is not there and an empty
/// cell, by line; opens no file.
pub(super) fn file_list(
    list: &Path,
    at: &FileColumns,
    what: &str,
    encoding: Option<&str>,
) -> Result<Vec<ListedFile>> {
    let folder = list.parent().unwrap_or(Path::new(""));
    let rows = match at.are_all(list, encoding)? {
        true => two_columns(list, at, what, encoding)?,
        false => {
            let both = [at.path.clone(), at.text.clone()];
            ColumnFile::read(list, at.format, &both, encoding)?.cells(&both)?
        }
    };
    let rows = without_unlisted_header(list, folder, rows);
    let file = |(line, cells): (usize, Vec<String>)| {
        let wrong = |what: String| Err(Error::line(list, line, what));
        let [name, text] = <[String; 2]>::try_from(cells).unwrap_or_default();
        let path = folder.join(&name);
        match (name.is_empty(), text.is_empty(), path.is_file()) {
            (true, ..) => wrong("the path is empty".into()),
            (_, true, _) => wrong(format!("the {what} is empty")),
            (.., false) => wrong(format!("there is no file {}", path.display())),
            _ => Ok(ListedFile { path, text, line }),
        }
    };
    let label = |row: &(usize, Vec<String>)| match what {
        "label" => row.1.get(1).cloned().unwrap_or_default(),
        _ => String::new(),
    };
    bad_rows::rows(sample::some_files(list, rows, label).into_iter().map(file))
}

/// Without a first row that names the columns in words of its own: what would be its path is a bare word
/// and no file, and the next row's is one.
fn without_unlisted_header(list: &Path, folder: &Path, mut rows: ListRows) -> ListRows {
    let [(line, first), (_, second), ..] = &rows[..] else { return rows };
    let is_file = |cells: &[String]| cells.first().is_some_and(|name| folder.join(name).is_file());
    let is_word = |cell: &String| Words::of(cell) == Words::One && !cell.contains(['.', '/']);
    if is_file(first) || !is_file(second) || !first.iter().all(is_word) {
        return rows;
    }
    remark_header(list, *line, first);
    rows.remove(0);
    rows
}

/// Rows of a list, each with its line.
type ListRows = Vec<(usize, Vec<String>)>;

/// The rows of a list that has two columns, path and text, each with its line.
fn two_columns(
    list: &Path,
    at: &FileColumns,
    what: &str,
    encoding: Option<&str>,
) -> Result<ListRows> {
    let path_first = at.path == Column::Number(1);
    let row = |(line, row): (usize, String)| {
        let cells: Vec<&str> = row.split('\t').map(str::trim).collect();
        let &[first, second] = &cells[..] else {
            let there = columns(cells.len());
            let both = if path_first { ["path", what] } else { [what, "path"] }.join(" and ");
            let what = format!("{both} with a tab between were expected, {there}");
            return Err(Error::line(list, line, what));
        };
        let both = if path_first { [first, second] } else { [second, first] };
        Ok((line, both.map(str::to_string).to_vec()))
    };
    bad_rows::rows(numbered_beginning(list, encoding)?.into_iter().map(row))
}

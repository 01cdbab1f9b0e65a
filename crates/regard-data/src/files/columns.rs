//! Columns of a text file, by name or by number.

use super::header::without_header;
use super::lines::beginning;
use super::quotes::check_quotes;
use super::table::LineCounter;
use crate::{Error, Result, bad_rows};
use csv::{ReaderBuilder, StringRecord};
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};

/// A column of a file.
///
/// ```
/// use regard_data::files::Column;
/// assert_eq!(serde_json::from_str::<Column>("2").unwrap(), Column::Number(2));
/// assert_eq!(serde_json::from_str::<Column>("\"label\"").unwrap(), Column::Name("label".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a column's name, or its number from 1, was expected")]
pub enum Column {
    /// Counted from 1.
    Number(usize),
    /// As the header calls it.
    Name(String),
}

impl std::fmt::Display for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => write!(f, "`{name}`"),
        }
    }
}

/// What stands between the columns of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Separator {
    /// Tabs; in a file that is called `.csv` and whose first line has none, commas, or semicolons where
    /// it has no comma either.
    #[default]
    Auto,
    /// This ASCII character.
    Character(u8),
}

impl<'de> Deserialize<'de> for Separator {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        Ok(Self::Character(match (name.as_str(), name.as_bytes()) {
            ("auto", _) => return Ok(Self::Auto),
            ("tab", _) => b'\t',
            ("comma", _) => b',',
            ("semicolon", _) => b';',
            (_, &[one]) if one.is_ascii() && one != b'"' && one != b'\n' && one != b'\r' => one,
            _ => {
                let what = format!(
                    "`{name}` is no separator; \"auto\", \"tab\", \"comma\", \"semicolon\" and single \
                     characters are"
                );
                return Err(serde::de::Error::custom(what));
            }
        }))
    }
}

impl Separator {
    /// The character for a file; only where its name leaves it open, the file is looked into.
    pub fn of(self, path: &Path, encoding: Option<&str>) -> Result<u8> {
        let named = path.to_string_lossy().to_lowercase();
        match self {
            Self::Character(character) => return Ok(character),
            Self::Auto if !named.trim_end_matches(".gz").ends_with(".csv") => return Ok(b'\t'),
            Self::Auto => {}
        }
        let text = beginning(path, encoding)?;
        let first = text.lines().next().unwrap_or_default();
        Ok(match (first.contains('\t'), first.contains(','), first.contains(';')) {
            (true, _, _) => b'\t',
            (false, false, true) => b';',
            _ => b',',
        })
    }
}

/// How a file's lines are columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ColumnFormat {
    /// What stands between columns.
    pub separator: Separator,
    /// Whether the first line names them. It does too where a column is asked for by name.
    pub header: bool,
}

/// The lines of a file in columns.
#[derive(Clone, Debug)]
pub struct ColumnFile {
    path: PathBuf,
    header: Option<Vec<String>>,
    rows: Vec<Row>,
}

/// A row of a file.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Where it stands, from 1.
    pub(super) line: usize,
    pub(super) cells: Vec<String>,
}

impl Row {
    pub(super) fn is_blank(&self) -> bool {
        self.cells.iter().all(String::is_empty)
    }
}

impl ColumnFile {
    /// Reads a file of which these columns will be asked for. Between tabs, cells are what they are; else
    /// they may stand in quotes, as in CSV, where blank lines are none and a row of separators alone is a
    /// blank one.
    ///
    /// ```
    /// use regard_data::files::{Column, ColumnFile, ColumnFormat};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("films.csv");
    /// std::fs::write(&path, "id,label,text\n7,good,\"a fine, long film\"\n").unwrap();
    /// let columns = ["text", "label"].map(|name| Column::Name(name.into()));
    /// let file = ColumnFile::read(&path, ColumnFormat::default(), &columns, None)?;
    /// assert_eq!(file.cells(&columns)?, [(2, vec!["a fine, long film".to_string(), "good".into()])]);
    /// # Ok::<(), regard_data::Error>(())
    /// ```
    pub fn read(
        path: &Path,
        format: ColumnFormat,
        columns: &[Column],
        encoding: Option<&str>,
    ) -> Result<Self> {
        let separator = format.separator.of(path, encoding)?;
        let text = beginning(path, encoding)?;
        let mut rows = match separator {
            b'\t' => tabs(&text),
            separator => quoted(path, &text, separator)?,
        };
        let by_name = columns.iter().any(|column| matches!(column, Column::Name(_)));
        let first = rows.iter().position(|row| !row.is_blank());
        let header = match (format.header || by_name, first) {
            (true, None) => return Err(Error::file(path, "there is no line, not even a header")),
            (true, Some(first)) => rows.drain(..=first).next_back().map(|row| row.cells),
            (false, _) => {
                let kept = without_header(path, &rows, |row| cells_of(row, columns)).len();
                rows.drain(..rows.len() - kept);
                None
            }
        };
        Ok(Self { path: path.into(), header, rows })
    }

    /// The cells of some columns, row by row up to the last that is not blank, each with its line.
    /// Refuses a column that is not there, by line and column; of a blank row all cells are empty.
    pub fn cells(&self, columns: &[Column]) -> Result<Vec<(usize, Vec<String>)>> {
        self.cells_of(self.rows(), columns)
    }

    /// The same of every row, blank ones at the end too; a bad one that is left out is blank, so that
    /// rows keep their number.
    pub(super) fn all_cells(&self, columns: &[Column]) -> Result<Vec<(usize, Vec<String>)>> {
        let blank = |row: &Row| (row.line, vec![String::new(); columns.len()]);
        let all = self.rows.iter().map(|row| {
            let read = self.cells_of(std::slice::from_ref(row), columns)?.pop();
            Ok(read.unwrap_or_else(|| blank(row)))
        });
        all.collect()
    }

    fn cells_of(&self, rows: &[Row], columns: &[Column]) -> Result<Vec<(usize, Vec<String>)>> {
        // A name that the header does not have is wrong where there is no row, too.
        columns.iter().try_for_each(|column| self.place(column).map(drop))?;
        let row = |row: &Row| {
            if row.is_blank() {
                return Ok((row.line, vec![String::new(); columns.len()]));
            }
            let cell = |column: &Column| Ok(self.cell(row, column)?.to_string());
            Ok((row.line, columns.iter().map(cell).collect::<Result<_>>()?))
        };
        bad_rows::rows(rows.iter().map(row))
    }

    /// The rows up to the last that is not blank.
    pub(super) fn rows(&self) -> &[Row] {
        let last = self.rows.iter().rposition(|row| !row.is_blank());
        &self.rows[..last.map_or(0, |last| last + 1)]
    }

    /// A cell of a row; refuses a column that is not there.
    pub(super) fn cell<'a>(&self, row: &'a Row, column: &Column) -> Result<&'a str> {
        let found = row.cells.get(self.place(column)?).map(String::as_str);
        found.ok_or_else(|| {
            let there = super::lines::columns(row.cells.len());
            Error::line(&self.path, row.line, format!("column {column} was expected, {there}"))
        })
    }

    /// The cells of a row behind all of these columns.
    pub(super) fn behind<'a>(&self, row: &'a Row, columns: &[Column]) -> Result<&'a [String]> {
        let mut first = 0;
        for column in columns {
            first = first.max(self.place(column)? + 1);
        }
        Ok(row.cells.get(first..).unwrap_or_default())
    }

    /// Whether its first row was asked for as a header.
    pub(super) fn has_header(&self) -> bool {
        self.header.is_some()
    }

    /// What a column is called: by the header, or by its number.
    pub fn name(&self, column: &Column) -> Result<String> {
        let place = self.place(column)?;
        let named = self.header.as_ref().and_then(|header| header.get(place));
        Ok(named.cloned().unwrap_or_else(|| (place + 1).to_string()))
    }

    /// The place of a column, from 0.
    fn place(&self, column: &Column) -> Result<usize> {
        match column {
            Column::Number(0) => Err(Error::file(&self.path, "columns are counted from 1")),
            Column::Number(number) => Ok(number - 1),
            Column::Name(name) => {
                let header = self.header.as_deref().unwrap_or_default();
                header.iter().position(|column| column == name).ok_or_else(|| {
                    let known = header.join(", ");
                    let what = format!("the header has no column `{name}`; it has {known}");
                    Error::line(&self.path, 1, what)
                })
            }
        }
    }
}

/// The cells of columns by number; none where one is not there.
fn cells_of<'a>(row: &'a Row, columns: &[Column]) -> Option<Vec<&'a str>> {
    let cell = |column: &Column| match column {
        Column::Number(number) => row.cells.get(number.checked_sub(1)?).map(String::as_str),
        Column::Name(_) => None,
    };
    columns.iter().map(cell).collect()
}

fn tabs(text: &str) -> Vec<Row> {
    let cells = |line: &str| line.split('\t').map(|cell| cell.trim().to_string()).collect();
    text.lines().zip(1..).map(|(text, line)| Row { line, cells: cells(text) }).collect()
}

fn quoted(path: &Path, text: &str, separator: u8) -> Result<Vec<Row>> {
    check_quotes(path, text, separator)?;
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator)
        .from_reader(text.as_bytes());
    let mut rows = Vec::new();
    let mut row = StringRecord::new();
    let mut lines = LineCounter::default();
    while reader.read_record(&mut row).map_err(|error| Error::file(path, error))? {
        // A text of several lines becomes one.
        let cell = |cell: &str| cell.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = lines.line(text, &row);
        rows.push(Row { line, cells: row.iter().map(cell).collect() });
    }
    Ok(rows)
}

//! Numbers in columns.

use super::columns::{Column, ColumnFile, ColumnFormat, Row, Separator};
use super::lines::{beginning, columns};
use super::number::number;
use crate::{Error, Result, bad_rows};
use csv::{ReaderBuilder, StringRecord, Trim};
use std::path::Path;

/// Columns of numbers: the last is the target, which is predicted from the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The columns' names: the header's, or their numbers from 1.
    pub names: Vec<String>,
    /// The columns, all of the same length.
    pub columns: Vec<Vec<f64>>,
}

/// Reads a file of comma-separated numbers, two columns or more. A first row without a number is
/// the header. Refuses other rows of another length, and what is no finite number or beyond f32, by line
/// and column.
///
/// ```
/// use regard_data::files::table;
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "x,y\n1,2\n").unwrap();
/// let table = table(&file, None)?;
/// assert_eq!((&table.names[1][..], table.columns[1][0]), ("y", 2.0));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn table(path: impl AsRef<Path>, encoding: Option<&str>) -> Result<Table> {
    let path = path.as_ref();
    separated(path, &beginning(path, encoding)?, b',')
}

/// Which columns of a file are a [`Table`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableColumns {
    /// What stands between columns; commas, unless the first line has none and tabs or semicolons.
    pub separator: Separator,
    /// What the target is predicted from: all other columns, if none are named.
    pub features: Vec<Column>,
    /// What is predicted: the last, if none is named.
    pub target: Option<Column>,
}

/// As [`table`], of these columns; the others may hold anything. A first row whose chosen cells are no
/// numbers is the header.
///
/// ```
/// use regard_data::files::{Column, TableColumns, table_columns};
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "city;price;rooms\nRome;300;3\n").unwrap();
/// let columns = TableColumns { features: vec![Column::Number(3)], target: Some(Column::Number(2)),
///     ..TableColumns::default() };
/// let table = table_columns(file.path(), &columns, None)?;
/// assert_eq!((table.names, table.columns), (vec!["rooms".into(), "price".into()], vec![vec![3.0], vec![300.0]]));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn table_columns(path: &Path, columns: &TableColumns, encoding: Option<&str>) -> Result<Table> {
    let text = beginning(path, encoding)?;
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let separator = match columns.separator {
        Separator::Character(character) => character,
        Separator::Auto => *b",\t;".iter().find(|&&c| first.contains(c as char)).unwrap_or(&b','),
    };
    if columns.features.is_empty() && columns.target.is_none() {
        return separated(path, &text, separator);
    }
    let width = first.split(separator as char).count();
    let mut chosen = columns.features.clone();
    let target = columns.target.clone().unwrap_or(Column::Number(width));
    if chosen.is_empty() {
        chosen = (1..=width).map(Column::Number).collect();
    }
    let format = |header| ColumnFormat { separator: Separator::Character(separator), header };
    let all = [&chosen[..], std::slice::from_ref(&target)].concat();
    let plain = ColumnFile::read(path, format(false), &all, encoding)?;
    let is_number = |cell: &str| cell.parse::<f64>().is_ok();
    let is_header = |row: &Row| {
        let mut cells = all.iter().map(|column| plain.cell(row, column));
        cells.all(|cell| cell.is_ok_and(|cell| !is_number(cell)))
    };
    let named = plain.rows().iter().find(|row| !row.is_blank()).is_some_and(is_header);
    let file = if named { ColumnFile::read(path, format(true), &all, encoding)? } else { plain };
    let target_name = file.name(&target)?;
    if columns.features.is_empty() {
        let is_target = |column: &Column| file.name(column).is_ok_and(|name| name == target_name);
        chosen.retain(|column| !is_target(column));
    }
    let all = [chosen, vec![target]].concat();
    if all.len() < 2 {
        return Err(Error::file(path, "there is no column beside the target"));
    }
    let names = all.iter().map(|column| file.name(column)).collect::<Result<Vec<_>>>()?;
    let mut table = Table { columns: vec![Vec::new(); names.len()], names };
    for row in file.rows().iter().filter(|row| !row.is_blank()) {
        let read = |(column, name): (&Column, &String)| {
            let wrong = |what| Error::line(path, row.line, format!("column {name}: {what}"));
            number(file.cell(row, column)?).map_err(wrong)
        };
        let numbers = all.iter().zip(&table.names).map(read).collect::<Result<Vec<f64>>>();
        let Some(numbers) = bad_rows::row(numbers)? else { continue };
        table.columns.iter_mut().zip(numbers).for_each(|(column, x)| column.push(x));
    }
    match table.columns[0].is_empty() {
        true => Err(Error::file(path, "there are no rows")),
        false => Ok(table),
    }
}

/// All columns of a file.
fn separated(path: &Path, text: &str, separator: u8) -> Result<Table> {
    let mut table = Building::default();
    if is_plain(text) {
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
            let cells = line.split(separator as char);
            let wrong = |what| Error::line(path, number, what);
            bad_rows::row(table.add_row(cells).map_err(wrong))?;
        }
    } else {
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(separator)
            .trim(Trim::All)
            .from_reader(text.as_bytes());
        let mut row = StringRecord::new();
        while reader.read_record(&mut row).map_err(|error| Error::file(path, error))? {
            let wrong = |what| Error::line(path, line(text, &row), what);
            bad_rows::row(table.add_row(row.iter()).map_err(wrong))?;
        }
    }
    match (table.columns.first(), table.rows) {
        (None, _) => Err(Error::file(path, "there are no rows")),
        (Some(column), _) if column.is_empty() => {
            Err(Error::file(path, "there are no rows under the header"))
        }
        _ => Ok(Table { names: table.names, columns: table.columns }),
    }
}

/// Whether commas and line ends are all that stands between numbers: no quotes, and no returns that
/// end a line alone.
fn is_plain(text: &str) -> bool {
    let returns = text.bytes().filter(|&byte| byte == b'\r').count();
    !text.contains('"') && (returns == 0 || returns == text.matches("\r\n").count())
}

/// A table whose rows are still being read.
#[derive(Default)]
struct Building {
    names: Vec<String>,
    columns: Vec<Vec<f64>>,
    /// Rows so far, the header with them.
    rows: usize,
}

impl Building {
    /// Takes a row, or nothing of it.
    fn add_row<'a>(
        &mut self,
        cells: impl Iterator<Item = &'a str> + Clone,
    ) -> std::result::Result<(), String> {
        let rows = self.columns.first().map_or(0, Vec::len);
        let added = self.add(cells);
        if added.is_err() {
            self.columns.iter_mut().for_each(|column| column.truncate(rows));
            // The first good row says how wide a table is.
            if self.rows == 1 {
                *self = Self::default();
            }
        }
        added
    }

    /// Takes a row; the first may be the header. Says what is wrong with it.
    fn add<'a>(
        &mut self,
        cells: impl Iterator<Item = &'a str> + Clone,
    ) -> std::result::Result<(), String> {
        self.rows += 1;
        let count = || cells.clone().count();
        if self.rows == 1 {
            let width = count();
            if width < 2 {
                return Err("2 columns or more were expected, 1 is there".into());
            }
            self.columns = vec![Vec::new(); width];
            if cells.clone().all(|cell| cell.trim().parse::<f64>().is_err()) {
                self.names = cells.map(|cell| cell.trim().to_string()).collect();
                return Ok(());
            }
            self.names = (1..=width).map(|column| column.to_string()).collect();
        }
        let width = self.columns.len();
        let mut place = 0;
        for cell in cells.clone() {
            let Some(column) = self.columns.get_mut(place) else { break };
            match number(cell) {
                Ok(number) => column.push(number),
                _ if count() != width => break,
                Err(what) => return Err(format!("column {}: {what}", self.names[place])),
            }
            place += 1;
        }
        if place != width || count() != width {
            return Err(format!("{width} columns were expected, {}", columns(count())));
        }
        Ok(())
    }
}

/// The line where a row begins. The reader's own count stands before the blank lines it passes
/// over.
fn line(text: &str, row: &StringRecord) -> usize {
    LineCounter::default().line(text, row)
}

/// Counts lines as far as rows have been read, so that each is counted once.
#[derive(Default)]
pub(super) struct LineCounter {
    /// The bytes that have been counted, and the line ends in them.
    bytes: usize,
    ends: usize,
}

impl LineCounter {
    /// The line where a row begins; rows come in their order.
    pub(super) fn line(&mut self, text: &str, row: &StringRecord) -> usize {
        let start = row.position().map_or(0, |position| position.byte() as usize);
        let blank = text[start..].find(|end| end != '\r' && end != '\n').unwrap_or(0);
        let begin = start + blank;
        self.ends += text[self.bytes..begin].matches('\n').count();
        self.bytes = begin;
        self.ends + 1
    }
}

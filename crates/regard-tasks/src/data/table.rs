//! Numbers in columns.

use super::lines::{columns, text};
use crate::{Error, Result};
use csv::{ReaderBuilder, StringRecord, Trim};
use std::path::Path;

/// Columns of numbers: the last is what is to be told from the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The columns' names: the header's, or their numbers from 1.
    pub names: Vec<String>,
    /// The columns, all of the same length.
    pub columns: Vec<Vec<f64>>,
}

/// Reads a file of comma-separated numbers, two columns or more. A first row without a number is
/// the header. Refuses other rows of another length, and what is no finite number, by line and
/// column.
///
/// ```
/// use regard_tasks::data::table;
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "x,y\n1,2\n").unwrap();
/// let table = table(&file, None)?;
/// assert_eq!((&table.names[1][..], table.columns[1][0]), ("y", 2.0));
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn table(path: impl AsRef<Path>, encoding: Option<&str>) -> Result<Table> {
    let path = path.as_ref();
    let text = text(path, encoding)?;
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let rows: Vec<StringRecord> =
        reader.records().collect::<csv::Result<_>>().map_err(|error| Error::file(path, error))?;
    let Some(first) = rows.first() else {
        return Err(Error::file(path, "there are no rows"));
    };
    let width = first.len();
    let header = first.iter().all(|cell| cell.parse::<f64>().is_err());
    let names: Vec<String> = match header {
        true => first.iter().map(str::to_string).collect(),
        false => (1..=width).map(|column| column.to_string()).collect(),
    };
    if width < 2 {
        return Err(Error::line(
            path,
            line(&text, first),
            "2 columns or more were expected, 1 is there",
        ));
    }
    let mut table = Table { names, columns: vec![Vec::new(); width] };
    for row in rows.iter().skip(header.into()) {
        add(&mut table, row).map_err(|what| Error::line(path, line(&text, row), what))?;
    }
    match table.columns[0].len() {
        0 => Err(Error::file(path, "there are no rows under the header")),
        _ => Ok(table),
    }
}

fn add(table: &mut Table, row: &StringRecord) -> std::result::Result<(), String> {
    let width = table.columns.len();
    if row.len() != width {
        return Err(format!("{width} columns were expected, {}", columns(row.len())));
    }
    for (place, (cell, column)) in row.iter().zip(&mut table.columns).enumerate() {
        match cell.parse::<f64>() {
            Ok(number) if number.is_finite() => column.push(number),
            _ => {
                let name = &table.names[place];
                return Err(format!("column {name}: `{cell}` is not a finite number"));
            }
        }
    }
    Ok(())
}

/// The line where a row begins. The reader's own count stands before the blank lines it passes
/// over.
fn line(text: &str, row: &StringRecord) -> usize {
    let start = row.position().map_or(0, |position| position.byte() as usize);
    let blank = text[start..].find(|end| end != '\r' && end != '\n').unwrap_or(0);
    text[..start + blank].matches('\n').count() + 1
}

//! Texts with a label each.

use super::columns::{Column, ColumnFile, ColumnFormat, Row};
use super::header::{Words, is_lone_label, may_name_columns, remark_header, without_header};
use super::lines::beginning_lines;
use crate::{Error, Result, bad_rows, remark};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

/// A text and its label.
#[derive(Clone, Debug, PartialEq)]
pub struct Labeled {
    /// The label.
    pub label: String,
    /// The text.
    pub text: String,
    /// The line of the file where it stands, from 1.
    pub line: usize,
}

/// Reads a file of lines `label<TAB>text`. Refuses a line without a tab, an empty label or text,
/// and a file without lines; blank lines at the end are none. A first line that names the columns is
/// left out, and further columns are not read, with a [`remark`].
///
/// ```
/// use regard_data::files::labeled;
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "good\ta fine film\n").unwrap();
/// assert_eq!(labeled(&file, None)?[0].label, "good");
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn labeled(path: impl AsRef<Path>, encoding: Option<&str>) -> Result<Vec<Labeled>> {
    let path = path.as_ref();
    let rows = label_and_text(path, &filled(path, encoding)?);
    let example = |row: &Row| {
        let wrong = |what| Err(Error::line(path, row.line, what));
        match row.cells.iter().map(|cell| cell.trim()).collect::<Vec<_>>()[..] {
            ["", _] => wrong("the label is empty"),
            [_, ""] => wrong("the text is empty"),
            [label, text] => Ok(Labeled { label: label.into(), text: text.into(), line: row.line }),
            _ => wrong("a label and a text with a tab between were expected"),
        }
    };
    let rows =
        without_header(path, &rows, |row| Some(row.cells.iter().map(|cell| cell.trim()).collect()));
    Ok(without_header_label(path, bad_rows::rows(rows.iter().map(example))?))
}

/// Lines as rows of a label and a text. Where all have more columns alike they are a table, of which
/// the first two are read; where some have, what follows a further tab is text too. Either is said.
fn label_and_text(path: &Path, lines: &[String]) -> Vec<Row> {
    let wide = |line: &String| line.split('\t').count();
    let columns = lines.first().map_or(0, wide);
    let more = lines.iter().filter(|line| wide(line) > 2).count();
    let is_table = lines.len() > 2 && columns > 2 && lines.iter().all(|line| wide(line) == columns);
    match (is_table, more) {
        (_, 0) => {}
        (true, _) => remark(format!(
            "{}: every row has {columns} columns, of which the first is read as the label and the \
             second as the text; `data.label_column` and `data.text_column` choose others",
            path.display()
        )),
        (false, _) => remark(format!(
            "{}: {more} of {} rows have more than one tab; what follows a further tab is read as text",
            path.display(),
            lines.len()
        )),
    }
    let cells = |line: &String| -> Vec<String> {
        match is_table {
            true => line.split('\t').take(2).map(str::to_string).collect(),
            false => line.splitn(2, '\t').map(str::to_string).collect(),
        }
    };
    lines.iter().zip(1..).map(|(text, line)| Row { line, cells: cells(text) }).collect()
}

/// Without the first row, where its label is a word and all others are numbers, or where it is the only one
/// that occurs once and label and text are a word alone as no other row's are; where only its label is odd,
/// it may name the columns. Either is said.
fn without_header_label(path: &Path, mut all: Vec<Labeled>) -> Vec<Labeled> {
    let Some((first, others)) = all.split_first() else { return all };
    let is_number = |one: &Labeled| one.label.parse::<f64>().is_ok();
    let (shown, line) = (path.display(), first.line);
    if !is_number(first) && others.len() > 2 && others.iter().all(is_number) {
        remark(format!(
            "{shown}: line {line} names the columns: its label is `{}`, and all others are numbers; it is \
             not read as data",
            first.label
        ));
        all.remove(0);
        return all;
    }
    if is_lone_label(all.iter().map(|one| &one.label[..])) {
        let texts = others.iter().map(|one| vec![&one.text[..]]);
        if Words::of(&first.label) == Words::One && may_name_columns(&[&first.text], texts) {
            remark_header(path, line, &[&first.label, &first.text]);
            all.remove(0);
            return all;
        }
        remark(format!(
            "{shown}: the label `{}` occurs in line {line} alone; if that line names the columns, \
             `data.header=true` leaves it out",
            first.label
        ));
    }
    all
}

/// As [`labeled`], with the label and the text in these columns. A file of tabs whose label is in the
/// first column and whose text in the second is read as [`labeled`] reads it. Refuses a column that is not there, by line.
///
/// ```
/// use regard_data::files::{Column, ColumnFormat, labeled_columns};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("films.csv");
/// std::fs::write(&path, "text;stars\na fine film;5\n").unwrap();
/// let columns = ["stars", "text"].map(|name| Column::Name(name.into()));
/// let read = labeled_columns(&path, ColumnFormat::default(), &columns, None)?;
/// assert_eq!((&read[0].label[..], &read[0].text[..], read[0].line), ("5", "a fine film", 2));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn labeled_columns(
    path: &Path,
    format: ColumnFormat,
    [label, text]: &[Column; 2],
    encoding: Option<&str>,
) -> Result<Vec<Labeled>> {
    let usual = [label, text] == [&Column::Number(1), &Column::Number(2)] && !format.header;
    if usual && format.separator.of(path, encoding)? == b'\t' {
        return labeled(path, encoding);
    }
    let columns = [label.clone(), text.clone()];
    let cells = ColumnFile::read(path, format, &columns, encoding)?.cells(&columns)?;
    if cells.is_empty() {
        return Err(Error::file(path, "there are no texts"));
    }
    let example = |(line, cells): (usize, Vec<String>)| {
        let names = columns.iter().zip(&cells);
        if let Some((column, _)) = names.into_iter().find(|(_, cell)| cell.is_empty()) {
            return Err(Error::line(path, line, format!("column {column} is empty")));
        }
        let [label, text] = <[String; 2]>::try_from(cells).unwrap_or_default();
        Ok(Labeled { label, text, line })
    };
    Ok(without_header_label(path, bad_rows::rows(cells.into_iter().map(example))?))
}

/// Reads files of which each holds the texts of one label, one in a line, all of a file behind
/// those of the one before. Refuses an empty line before the last, and a file without lines.
///
/// ```
/// use regard_data::files::labeled_files;
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "a fine film\n").unwrap();
/// let files = [("good".to_string(), file.path().to_path_buf())];
/// assert_eq!(labeled_files(&files, None)?[0].text, "a fine film");
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn labeled_files(files: &[(String, PathBuf)], encoding: Option<&str>) -> Result<Vec<Labeled>> {
    let mut all = Vec::new();
    for (label, path) in files {
        for (line, number) in filled(path, encoding)?.iter().zip(1..) {
            let text = line.trim();
            let read = match text.is_empty() {
                true => Err(Error::line(path, number, "the text is empty")),
                false => Ok(Labeled { label: label.clone(), text: text.into(), line: number }),
            };
            all.extend(bad_rows::row(read)?);
        }
    }
    Ok(all)
}

/// Labels for files that hold one label each: of the names' parts between dots, those that tell the
/// files apart. Refuses files of the same name.
///
/// ```
/// use regard_data::files::labels_of_files;
/// assert_eq!(labels_of_files(&["a/film.pos.gz", "a/film.neg.gz"])?, ["pos", "neg"]);
/// assert_eq!(labels_of_files(&["good.txt", "bad.txt"])?, ["good", "bad"]);
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn labels_of_files(paths: &[impl AsRef<Path>]) -> Result<Vec<String>> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let parts = |path: &Path| -> Vec<String> {
        name(path).trim_end_matches(".gz").split('.').map(str::to_string).collect()
    };
    let mut parts: Vec<Vec<String>> = paths.iter().map(|path| parts(path.as_ref())).collect();
    while shared(&parts, |parts| parts.last()) {
        parts.iter_mut().for_each(|parts| drop(parts.pop()));
    }
    while shared(&parts, |parts| parts.first()) {
        parts.iter_mut().for_each(|parts| drop(parts.remove(0)));
    }
    let labels: Vec<String> = parts.iter().map(|parts| parts.join(".")).collect();
    let mut seen = HashSet::new();
    match labels.iter().position(|label| !seen.insert(label)) {
        Some(twice) => Err(Error::file(&paths[twice], "another file would have the same label")),
        None => Ok(labels),
    }
}

/// Whether all names have this part alike, and another beside it.
fn shared(names: &[Vec<String>], part: impl Fn(&[String]) -> Option<&String>) -> bool {
    let alike = |name: &Vec<String>| name.len() > 1 && part(name) == part(&names[0]);
    !names.is_empty() && names.iter().all(alike)
}

/// The lines of a file up to the last that is not blank; at least one.
fn filled(path: &Path, encoding: Option<&str>) -> Result<Vec<String>> {
    let mut lines = beginning_lines(path, encoding)?;
    let end = lines.iter().rposition(|line| !line.trim().is_empty());
    lines.truncate(end.ok_or_else(|| Error::file(path, "there are no texts"))? + 1);
    Ok(lines)
}

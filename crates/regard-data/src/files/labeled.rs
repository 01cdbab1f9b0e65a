//! Texts with a label each.

use super::columns::{Column, ColumnFile, ColumnFormat};
use super::lines::lines;
use crate::{Error, Result};
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
/// and a file without lines; blank lines at the end are none.
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
    let example = |(line, number): (&String, usize)| {
        let wrong = |what| Error::line(path, number, what);
        let Some((label, text)) = line.split_once('\t') else {
            return Err(wrong("a label and a text with a tab between were expected"));
        };
        match (label.trim(), text.trim()) {
            ("", _) => Err(wrong("the label is empty")),
            (_, "") => Err(wrong("the text is empty")),
            (label, text) => Ok(Labeled { label: label.into(), text: text.into(), line: number }),
        }
    };
    filled(path, encoding)?.iter().zip(1..).map(example).collect()
}

/// As [`labeled`], with the label and the text in these columns. A file of tabs whose label is in the
/// first column and whose text in the second is read as [`labeled`] reads it: what follows a further
/// tab is text too. Refuses a column that is not there, by line.
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
    cells.into_iter().map(example).collect()
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
            if text.is_empty() {
                return Err(Error::line(path, number, "the text is empty"));
            }
            all.push(Labeled { label: label.clone(), text: text.into(), line: number });
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
    let mut lines = lines(path, encoding)?;
    let end = lines.iter().rposition(|line| !line.trim().is_empty());
    lines.truncate(end.ok_or_else(|| Error::file(path, "there are no texts"))? + 1);
    Ok(lines)
}

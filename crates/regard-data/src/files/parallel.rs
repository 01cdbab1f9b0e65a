//! Sentences and their translations.

use super::columns::{Column, ColumnFile, ColumnFormat, Row};
use super::header::without_header;
use super::lines::{beginning_lines, columns};
use crate::{Error, Result, bad_rows, sample};
use std::path::Path;

/// Pairs of a source and its target, and what was left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parallel {
    /// Source and target.
    pub pairs: Vec<(String, String)>,
    /// How many pairs were left out because a side is empty.
    pub skipped: usize,
}

/// Reads two files of which each line of one belongs to the same line of the other. Refuses files
/// of different lengths, and files without a pair.
///
/// ```
/// use regard_data::files::parallel;
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "Rust\n\n").unwrap();
/// let both = parallel(&file, &file, None)?;
/// assert_eq!((both.pairs.len(), both.skipped), (1, 1));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn parallel(
    source: impl AsRef<Path>,
    target: impl AsRef<Path>,
    encoding: Option<&str>,
) -> Result<Parallel> {
    let (source, target) = (source.as_ref(), target.as_ref());
    with_both_sides(source, parallel_lines(source, target, encoding)?)
}

/// As [`parallel`], line by line: a pair for each line, blank sides as they are.
pub fn parallel_lines(
    source: &Path,
    target: &Path,
    encoding: Option<&str>,
) -> Result<Vec<(String, String)>> {
    let (mut from, mut to) =
        (beginning_lines(source, encoding)?, beginning_lines(target, encoding)?);
    if sample::is_cut(source) || sample::is_cut(target) {
        // Of two beginnings one may be longer; whole files are compared when they are learned.
        let both = from.len().min(to.len());
        (from, to) = (from[..both].to_vec(), to[..both].to_vec());
    }
    if from.len() != to.len() {
        return Err(Error::file(
            source,
            format!(
                "{} lines, but {} has {}; each line should have its translation",
                from.len(),
                target.display(),
                to.len()
            ),
        ));
    }
    let pairs = from.iter().zip(&to);
    Ok(pairs.map(|(from, to)| (from.trim().into(), to.trim().into())).collect())
}

/// Reads a file of lines `source<TAB>target`. Refuses another number of columns, and a file without
/// a pair.
///
/// ```
/// use regard_data::files::parallel_tsv;
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "a dog\t一只狗\n").unwrap();
/// assert_eq!(parallel_tsv(&file, None)?.pairs[0].1, "一只狗");
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn parallel_tsv(path: impl AsRef<Path>, encoding: Option<&str>) -> Result<Parallel> {
    let path = path.as_ref();
    with_both_sides(path, parallel_tsv_lines(path, encoding)?)
}

/// As [`parallel_tsv`], line by line: a pair for each line, blank sides as they are.
pub(super) fn parallel_tsv_lines(
    path: &Path,
    encoding: Option<&str>,
) -> Result<Vec<(String, String)>> {
    let all = beginning_lines(path, encoding)?;
    let cells = |line: &String| line.split('\t').map(|cell| cell.trim().into()).collect();
    let rows: Vec<Row> =
        all.iter().zip(1..).map(|(text, line)| Row { line, cells: cells(text) }).collect();
    let kept = without_header(path, &rows, |row| Some(row.cells.iter().map(|x| &x[..]).collect()));
    let mut pairs = Vec::new();
    for (line, number) in all.iter().zip(1..).skip(rows.len() - kept.len()) {
        let both = match line.split('\t').collect::<Vec<_>>()[..] {
            [source, target] => Ok((source, target)),
            [blank] if blank.trim().is_empty() => Ok(("", "")),
            ref other => {
                let there = columns(other.len());
                let what = format!("source and target with a tab between were expected, {there}");
                Err(Error::line(path, number, what))
            }
        };
        // A bad row that is left out is blank, so that rows keep their number.
        let (source, target) = bad_rows::row(both)?.unwrap_or_default();
        pairs.push((source.trim().into(), target.trim().into()));
    }
    Ok(pairs)
}

/// As [`parallel_tsv`], line by line, with source and target in these columns: a pair for each row.
pub fn parallel_column_lines(
    path: &Path,
    format: ColumnFormat,
    columns: &[Column; 2],
    encoding: Option<&str>,
) -> Result<Vec<(String, String)>> {
    let usual = *columns == [Column::Number(1), Column::Number(2)] && !format.header;
    if usual && format.separator.of(path, encoding)? == b'\t' {
        return parallel_tsv_lines(path, encoding);
    }
    let cells = ColumnFile::read(path, format, columns, encoding)?.all_cells(columns)?;
    let pair = |(_, cells): (usize, Vec<String>)| {
        let [source, target] = <[String; 2]>::try_from(cells).unwrap_or_default();
        (source, target)
    };
    Ok(cells.into_iter().map(pair).collect())
}

fn with_both_sides(path: &Path, pairs: Vec<(String, String)>) -> Result<Parallel> {
    let all = pairs.len();
    let whole = |(source, target): &(String, String)| !source.is_empty() && !target.is_empty();
    let pairs: Vec<_> = pairs.into_iter().filter(whole).collect();
    let parallel = Parallel { skipped: all - pairs.len(), pairs };
    match parallel.pairs.len() {
        0 => Err(Error::file(path, "no line has both a source and a target")),
        _ => Ok(parallel),
    }
}

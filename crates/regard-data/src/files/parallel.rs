//! Sentences and their translations.

use super::columns::{Column, ColumnFile, ColumnFormat, Row};
use super::header::{may_name_columns, without_header};
use super::lines::{beginning_lines, columns};
use crate::{Error, Result, bad_rows, remark, sample};
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

/// Reads a file of lines `source<TAB>target`. Where the first line has more columns, the first two are
/// read, with a [`remark`]. Refuses a line without a tab, or with more columns than the first, and a file
/// without a pair.
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
    let width = rows.iter().find(|row| !row.is_blank()).map_or(2, |row| row.cells.len());
    let kept = without_header(path, &rows, |row| {
        Some(row.cells.iter().take(2).map(String::as_str).collect())
    });
    if width > 2 && !kept.is_empty() {
        remark(format!(
            "{}: its rows have {width} columns, of which the first is read as the source and the second \
             as the target; `data.source_column` and `data.target_column` choose others",
            path.display()
        ));
    }
    let mut pairs = Vec::new();
    for Row { line, cells } in kept {
        let both = match &cells[..] {
            [source, target] => Ok((source.clone(), target.clone())),
            [source, target, ..] if cells.len() <= width => Ok((source.clone(), target.clone())),
            [blank] if blank.is_empty() => Ok(Pair::default()),
            other => {
                let there = columns(other.len());
                let what = format!("source and target with a tab between were expected, {there}");
                Err(Error::line(path, *line, what))
            }
        };
        // A bad row that is left out is blank, so that rows keep their number.
        pairs.push(bad_rows::row(both)?.unwrap_or_default());
    }
    remark_first_pair(path, kept.first().map_or(1, |row| row.line), &pairs);
    Ok(pairs)
}

/// A source and its target.
type Pair = (String, String);

/// Says where the first pair may be a line that names the columns; the pairs are of lines from this one.
fn remark_first_pair(path: &Path, line: usize, pairs: &[Pair]) {
    fn sides((source, target): &Pair) -> Vec<&str> {
        vec![source, target]
    }
    let mut filled = pairs.iter().zip(line..).filter(|(pair, _)| **pair != Pair::default());
    let Some((first, line)) = filled.next() else { return };
    if may_name_columns(&sides(first), filled.map(|(pair, _)| sides(pair))) {
        remark(format!(
            "{}: line {line} (`{}`, `{}`) is read as a pair; if it names the columns, `data.header=true` \
             leaves it out",
            path.display(),
            first.0,
            first.1
        ));
    }
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
    let file = ColumnFile::read(path, format, columns, encoding)?;
    let cells = file.all_cells(columns)?;
    let line = cells.first().map_or(1, |(line, _)| *line);
    let pair = |(_, cells): (usize, Vec<String>)| {
        let [source, target] = <[String; 2]>::try_from(cells).unwrap_or_default();
        (source, target)
    };
    let pairs: Vec<Pair> = cells.into_iter().map(pair).collect();
    if !file.has_header() {
        remark_first_pair(path, line, &pairs);
    }
    Ok(pairs)
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

//! Sequences of vectors with a label for each: from NumPy's files, and from tables.

use super::folder::{entries, has_extension};
use super::lines::{lines, text};
use super::npy::{NumpyArray, NumpyValues};
use super::number::number;
use super::opened::numbered_lines;
use crate::{Error, Result, example_or_skipped};
use csv::{ReaderBuilder, StringRecord, Trim};
use std::path::{Path, PathBuf};

/// A sequence of vectors, and a label for each.
#[derive(Clone, Debug, PartialEq)]
pub struct LabeledVectors {
    /// `[N, width]`, one after the other.
    pub numbers: Vec<f32>,
    /// Numbers in a vector.
    pub width: usize,
    /// `[N]`
    pub labels: Vec<String>,
    /// Where it was read.
    pub file: PathBuf,
    /// Its first line there, from 1; 0 for a file that is one sequence as a whole.
    pub line: usize,
}

/// Reads a list of files, or a folder: each line of a list is a `.npz` file that holds `features`
/// `[N, D]` and `labels` `[N]`, or a `.npy` file of features, a tab, and a text file with a label in
/// each line; in a folder such a text file has the name of its `.npy` file and ends with .txt. Paths
/// begin at the list's folder. Refuses another number of labels than of vectors, by file.
///
/// ```
/// let error = regard_data::files::labeled_arrays("missing.tsv".as_ref(), None).unwrap_err();
/// assert_eq!(error.to_string(), "missing.tsv: there is no such file");
/// ```
pub fn labeled_arrays(path: &Path, encoding: Option<&str>) -> Result<Vec<LabeledVectors>> {
    let found: Vec<LabeledVectors> = match path.is_dir() {
        true => {
            let files = entries(path)?.into_iter();
            let files = files.filter(|file| has_extension(file, &["npy", "npz"]));
            let read = |file: PathBuf| array(&file, &file.with_extension("txt"), encoding);
            files
                .filter_map(|file| example_or_skipped(read(file)).transpose())
                .collect::<Result<_>>()?
        }
        false => listed(path, encoding)?,
    };
    match found.len() {
        0 => Err(Error::file(path, "it has no .npy or .npz files")),
        _ => same_width(found),
    }
}

fn listed(list: &Path, encoding: Option<&str>) -> Result<Vec<LabeledVectors>> {
    let folder = list.parent().unwrap_or(Path::new(""));
    let mut found = Vec::new();
    for (line, text) in numbered_lines(list, encoding)? {
        let read = listed_one(list, (line, &text), folder, encoding);
        found.extend(example_or_skipped(read)?);
    }
    Ok(found)
}

/// The files that a line of a list names.
fn listed_one(
    list: &Path,
    (line, text): (usize, &str),
    folder: &Path,
    encoding: Option<&str>,
) -> Result<LabeledVectors> {
    let (features, labels) = text.split_once('\t').unwrap_or((text, ""));
    let (features, labels) = (folder.join(features.trim()), labels.trim());
    let missing =
        |path: &Path| Error::line(list, line, format!("there is no file {}", path.display()));
    if !has_extension(&features, &["npy", "npz"]) {
        let what = "a .npz file, or a .npy file, a tab and a file of labels were expected";
        return Err(match features.is_file() {
            true => Error::line(list, line, what),
            false => missing(&features),
        });
    }
    let labels = folder.join(labels);
    if has_extension(&features, &["npy"]) && !labels.is_file() {
        return Err(missing(&labels));
    }
    array(&features, &labels, encoding)
}

/// The features `[N, D]` of a `.npy` file, or of a `.npz` file by that name, and D.
pub fn feature_array(path: &Path, bytes: &[u8]) -> Result<(Vec<f32>, usize)> {
    let array = match has_extension(path, &["npz"]) {
        false => NumpyArray::decode(path, bytes)?,
        true => {
            let all = NumpyArray::decode_all(path, bytes)?.into_iter();
            let found = all.into_iter().find(|(name, _)| name == "features");
            found.ok_or_else(|| Error::file(path, "the array `features` was expected"))?.1
        }
    };
    let count = array.shape.first().copied().unwrap_or(0);
    let read = vectors(path, array, vec![String::new(); count]);
    let read = read.map_err(|what| Error::file(path, what))?;
    Ok((read.numbers, read.width))
}

/// One sequence, with the labels of a text file where it does not hold them itself.
fn array(path: &Path, labels: &Path, encoding: Option<&str>) -> Result<LabeledVectors> {
    let wrong = |what: String| Error::file(path, what);
    if has_extension(path, &["npy"]) {
        let mut names = lines(labels, encoding)?;
        names.truncate(
            names.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |at| at + 1),
        );
        if let Some(at) = names.iter().position(|line| line.trim().is_empty()) {
            return Err(Error::line(labels, at + 1, "the label is empty"));
        }
        let names = names.iter().map(|line| line.trim().to_string()).collect();
        return vectors(path, NumpyArray::read(path)?, names).map_err(wrong);
    }
    let (mut features, mut names) = (None, None);
    for (name, array) in NumpyArray::read_all(path)? {
        match &name[..] {
            "features" => features = Some(array),
            "labels" => names = Some(array),
            _ => {}
        }
    }
    let (Some(features), Some(names)) = (features, names) else {
        return Err(wrong("the arrays `features` and `labels` were expected".into()));
    };
    let names = match names.values {
        NumpyValues::Texts(texts) => texts,
        NumpyValues::Numbers(numbers) => numbers.iter().map(|x| x.to_string()).collect(),
    };
    vectors(path, features, names).map_err(wrong)
}

fn vectors(
    path: &Path,
    features: NumpyArray,
    labels: Vec<String>,
) -> std::result::Result<LabeledVectors, String> {
    let (&[count, width], NumpyValues::Numbers(numbers)) = (&features.shape[..], &features.values)
    else {
        return Err(format!(
            "features of shape {:?}; numbers [N, D] were expected",
            features.shape
        ));
    };
    if width == 0 || count == 0 {
        return Err(format!("features of shape [{count}, {width}]; there is nothing to label"));
    }
    if labels.len() != count {
        return Err(format!("{} labels for {count} vectors", labels.len()));
    }
    if let Some(at) = numbers.iter().position(|&x| !(x as f32).is_finite()) {
        let (vector, x) = (at / width, numbers[at]);
        return Err(match x.is_finite() {
            false => format!("vector {vector} holds {x}, which is no finite number"),
            true => format!(
                "vector {vector} holds {x:e}, which is beyond the numbers computed in (f32, up to 3.4e38)"
            ),
        });
    }
    let numbers = numbers.iter().map(|&x| x as f32).collect();
    Ok(LabeledVectors { numbers, width, labels, file: path.into(), line: 0 })
}

fn same_width(all: Vec<LabeledVectors>) -> Result<Vec<LabeledVectors>> {
    let first = all.first().map_or(0, |one| one.width);
    match all.iter().find(|one| one.width != first) {
        Some(other) => {
            let what = format!("vectors of {} numbers; those before have {first}", other.width);
            Err(Error::file(&other.file, what))
        }
        None => Ok(all),
    }
}

/// Which columns of a table are no features.
#[derive(Clone, Copy, Debug)]
pub struct SequenceColumns<'a> {
    /// The column that tells sequences apart: its rows follow each other.
    pub sequence: &'a str,
    /// The column of labels.
    pub label: &'a str,
}

/// Reads a CSV file with a header (commas between its columns, or tabs or semicolons where the header has
/// no comma): one row for each time step, a column that says which sequence it
/// belongs to, one of labels, and numbers in all others. Refuses missing columns, rows of another
/// length, what is no finite number, and a sequence that is taken up again, by line and column.
///
/// ```
/// use regard_data::files::{SequenceColumns, labeled_table};
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "day,load,state\n1,0.5,off\n1,3.0,on\n2,0.4,off\n").unwrap();
/// let columns = SequenceColumns { sequence: "day", label: "state" };
/// let found = labeled_table(file.path(), columns, None)?;
/// assert_eq!((found.len(), &found[0].labels[..]), (2, &["off".to_string(), "on".into()][..]));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn labeled_table(
    path: &Path,
    columns: SequenceColumns,
    encoding: Option<&str>,
) -> Result<Vec<LabeledVectors>> {
    let text = text(path, encoding)?;
    let header = text.lines().next().unwrap_or_default();
    let separator = *b",\t;".iter().find(|&&c| header.contains(c as char)).unwrap_or(&b',');
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator)
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let rows: Vec<StringRecord> =
        reader.records().collect::<csv::Result<_>>().map_err(|error| Error::file(path, error))?;
    let Some((header, rows)) = rows.split_first() else {
        return Err(Error::file(path, "there are no rows"));
    };
    let place = |name: &str| {
        let found = header.iter().position(|column| column == name);
        found.ok_or_else(|| Error::line(path, 1, format!("the header has no column `{name}`")))
    };
    let places = [place(columns.sequence)?, place(columns.label)?];
    if header.len() < 3 {
        return Err(Error::line(
            path,
            1,
            "there is no column of numbers beside sequence and label",
        ));
    }
    let mut sequences = Sequences { path, header, places, found: Vec::new() };
    rows.iter().try_for_each(|row| sequences.add(row))?;
    match sequences.found.len() {
        0 => Err(Error::file(path, "there are no rows under the header")),
        _ => Ok(sequences.found.into_iter().map(|(_, one)| one).collect()),
    }
}

/// The sequences of a table, while its rows are read.
struct Sequences<'a> {
    path: &'a Path,
    header: &'a StringRecord,
    /// The columns of sequences and of labels.
    places: [usize; 2],
    /// By the names of the sequences.
    found: Vec<(String, LabeledVectors)>,
}

impl Sequences<'_> {
    fn add(&mut self, row: &StringRecord) -> Result<()> {
        let line = row.position().map_or(0, |position| position.line() as usize);
        self.add_at(row, line).map_err(|what| Error::line(self.path, line, what))
    }

    fn add_at(&mut self, row: &StringRecord, line: usize) -> std::result::Result<(), String> {
        let (wide, there) = (self.header.len(), row.len());
        if wide != there {
            return Err(format!("{wide} columns were expected, {there} are there"));
        }
        let [sequence, label] = self.places.map(|place| &row[place]);
        if label.is_empty() {
            return Err("the label is empty".into());
        }
        let (header, places) = (self.header, self.places);
        let one = self.sequence(sequence, line)?;
        one.labels.push(label.to_string());
        for (column, cell) in row.iter().enumerate().filter(|(at, _)| !places.contains(at)) {
            let read = number(cell).map_err(|what| format!("column {}: {what}", &header[column]));
            one.numbers.push(read? as f32);
        }
        Ok(())
    }

    /// The sequence of this name: the last, or a new one.
    fn sequence(
        &mut self,
        name: &str,
        line: usize,
    ) -> std::result::Result<&mut LabeledVectors, String> {
        let last = self.found.len().checked_sub(1);
        match self.found.iter().position(|(known, _)| known == name) {
            Some(at) if Some(at) != last => {
                Err(format!("sequence `{name}` is taken up again; its rows follow each other"))
            }
            Some(at) => Ok(&mut self.found[at].1),
            None => {
                let (numbers, labels, width) = (Vec::new(), Vec::new(), self.header.len() - 2);
                let file = self.path.into();
                self.found.push((
                    name.to_string(),
                    LabeledVectors { numbers, width, labels, file, line },
                ));
                let last = self.found.len() - 1;
                Ok(&mut self.found[last].1)
            }
        }
    }
}

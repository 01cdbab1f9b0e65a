//! Recordings and what is said in them.

use super::file_list::{FileColumns, ListedFile, file_list};
use super::folder::{entries, has_extension};
use super::lines::text;
use super::wav::SOUND_EXTENSIONS;
use crate::{Error, Result, example_or_skipped, sample};
use std::path::{Path, PathBuf};

/// A recording that has not been read yet, and what is said in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// The file.
    pub path: PathBuf,
    /// What is said.
    pub text: String,
}

/// Finds the recordings of a list, a file of lines path, tab, transcript, the path beginning at the
/// list's folder; or of a folder in which beside each recording stands a text file of the same name
/// that ends with .txt. Opens no recording; refuses a listed file that is not there, a recording
/// without a transcript, and an empty transcript.
///
/// ```
/// use regard_data::files::transcripts;
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// std::fs::write(folder.join("a.wav"), "").unwrap();
/// std::fs::write(folder.join("a.txt"), "three one\n").unwrap();
/// assert_eq!(transcripts(folder, None)?[0].text, "three one");
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn transcripts(path: &Path, encoding: Option<&str>) -> Result<Vec<Transcript>> {
    transcript_columns(path, &FileColumns::default(), encoding)
}

/// As [`transcripts`], with the path and the transcript in these columns of a list. Refuses a column
/// that is not there, by line.
///
/// ```
/// use regard_data::files::{Column, ColumnFormat, FileColumns, transcript_columns};
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// std::fs::write(folder.join("a.wav"), "").unwrap();
/// std::fs::write(folder.join("list.tsv"), "text\tspeaker\tfile\nthree one\tann\ta.wav\n").unwrap();
/// let format = ColumnFormat { header: true, ..ColumnFormat::default() };
/// let columns = FileColumns { format, path: Column::Number(3), text: Column::Number(1) };
/// assert_eq!(transcript_columns(&folder.join("list.tsv"), &columns, None)?[0].text, "three one");
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn transcript_columns(
    path: &Path,
    columns: &FileColumns,
    encoding: Option<&str>,
) -> Result<Vec<Transcript>> {
    let transcript = |ListedFile { path, text, .. }| Transcript { path, text };
    let found: Vec<Transcript> = match path.is_dir() {
        true => beside(path, encoding)?,
        false => {
            let listed = file_list(path, columns, "transcript", encoding)?;
            listed.into_iter().map(transcript).collect()
        }
    };
    match found.len() {
        0 => Err(Error::file(path, "it has no recordings")),
        _ => Ok(found),
    }
}

fn beside(folder: &Path, encoding: Option<&str>) -> Result<Vec<Transcript>> {
    let recordings =
        entries(folder)?.into_iter().filter(|path| has_extension(path, &SOUND_EXTENSIONS));
    let recordings = sample::some_files(folder, recordings.collect(), |_| String::new());
    let found = recordings.into_iter().map(|path: PathBuf| {
        let beside = path.with_extension("txt");
        if !beside.is_file() {
            let what = format!("there is no transcript {} beside it", beside.display());
            return Err(Error::file(path, what));
        }
        let text = text(&beside, encoding)?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match text.is_empty() {
            true => Err(Error::file(beside, "the transcript is empty")),
            false => Ok(Transcript { path, text }),
        }
    });
    found.filter_map(|one| example_or_skipped(one).transpose()).collect()
}

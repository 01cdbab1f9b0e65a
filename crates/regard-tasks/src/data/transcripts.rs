//! Recordings and what is said in them.

use super::folder::{entries, has_extension};
use super::lines::{columns, text};
use super::opened::numbered_lines;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// A recording that has not been read yet, and what is said in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// The WAV file.
    pub path: PathBuf,
    /// What is said.
    pub text: String,
}

/// Finds the recordings of a list, a file of lines path, tab, transcript, the path beginning at the
/// list's folder; or of a folder in which beside each WAV file stands a text file of the same name
/// that ends with .txt. Opens no recording; refuses a listed file that is not there, a recording
/// without a transcript, and an empty transcript.
///
/// ```
/// use regard_tasks::data::transcripts;
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// std::fs::write(folder.join("a.wav"), "").unwrap();
/// std::fs::write(folder.join("a.txt"), "three one\n").unwrap();
/// assert_eq!(transcripts(folder, None)?[0].text, "three one");
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn transcripts(path: &Path, encoding: Option<&str>) -> Result<Vec<Transcript>> {
    let found = match path.is_dir() {
        true => beside(path, encoding)?,
        false => listed(path, encoding)?,
    };
    match found.len() {
        0 => Err(Error::file(path, "it has no recordings")),
        _ => Ok(found),
    }
}

fn listed(list: &Path, encoding: Option<&str>) -> Result<Vec<Transcript>> {
    let folder = list.parent().unwrap_or(Path::new(""));
    let mut found = Vec::new();
    for (line, row) in numbered_lines(list, encoding)? {
        let wrong = |what: String| Error::line(list, line, what);
        let (name, text) = match row.split('\t').collect::<Vec<_>>()[..] {
            [name, text] => (name.trim(), text.trim()),
            ref other => {
                let there = columns(other.len());
                let what = format!("path and transcript with a tab between were expected, {there}");
                return Err(wrong(what));
            }
        };
        if name.is_empty() || text.is_empty() {
            let what = if name.is_empty() { "path" } else { "transcript" };
            return Err(wrong(format!("the {what} is empty")));
        }
        let path = folder.join(name);
        if !path.is_file() {
            return Err(wrong(format!("there is no file {}", path.display())));
        }
        found.push(Transcript { path, text: text.to_string() });
    }
    Ok(found)
}

fn beside(folder: &Path, encoding: Option<&str>) -> Result<Vec<Transcript>> {
    let recordings = entries(folder)?.into_iter().filter(|path| has_extension(path, &["wav"]));
    let found = recordings.map(|path| {
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
    found.collect()
}

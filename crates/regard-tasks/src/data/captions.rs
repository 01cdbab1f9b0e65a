//! Pictures and the sentences that belong to them.

use super::lines::columns;
use super::opened::numbered_lines;
use crate::{Error, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A picture that has not been read yet, and its sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caption {
    /// The PNG or JPEG file.
    pub path: PathBuf,
    /// At least one.
    pub sentences: Vec<String>,
    /// Where it is first listed, from 1.
    pub line: usize,
}

/// Reads a file of lines path, tab, sentence, the path beginning at the file's folder; a picture may
/// be listed several times, each with a sentence of its own. Opens no picture; refuses a listed file
/// that is not there.
///
/// ```
/// use regard_tasks::data::captions;
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// std::fs::write(folder.join("dog.png"), "").unwrap();
/// std::fs::write(folder.join("list.tsv"), "dog.png\ta dog\ndog.png\tan animal\n").unwrap();
/// let found = captions(&folder.join("list.tsv"), None)?;
/// assert_eq!(found[0].sentences, ["a dog", "an animal"]);
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn captions(list: &Path, encoding: Option<&str>) -> Result<Vec<Caption>> {
    let folder = list.parent().unwrap_or(Path::new(""));
    let mut found: Vec<Caption> = Vec::new();
    let mut places = HashMap::new();
    for (line, text) in numbered_lines(list, encoding)? {
        let wrong = |what: String| Error::line(list, line, what);
        let (name, sentence) = match text.split('\t').collect::<Vec<_>>()[..] {
            [name, sentence] => (name.trim(), sentence.trim()),
            ref other => {
                let there = columns(other.len());
                return Err(wrong(format!(
                    "path and sentence with a tab between were expected, {there}"
                )));
            }
        };
        if name.is_empty() || sentence.is_empty() {
            let what = if name.is_empty() { "path" } else { "sentence" };
            return Err(wrong(format!("the {what} is empty")));
        }
        let path = folder.join(name);
        if !path.is_file() {
            return Err(wrong(format!("there is no file {}", path.display())));
        }
        let at = *places.entry(path.clone()).or_insert_with(|| {
            found.push(Caption { path, sentences: Vec::new(), line });
            found.len() - 1
        });
        found[at].sentences.push(sentence.to_string());
    }
    match found.len() {
        0 => Err(Error::file(list, "it lists no pictures")),
        _ => Ok(found),
    }
}

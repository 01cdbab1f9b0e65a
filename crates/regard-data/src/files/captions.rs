//! Pictures and the sentences that belong to them.

use super::file_list::{FileColumns, ListedFile, file_list};
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
/// use regard_data::files::captions;
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// std::fs::write(folder.join("dog.png"), "").unwrap();
/// std::fs::write(folder.join("list.tsv"), "dog.png\ta dog\ndog.png\tan animal\n").unwrap();
/// let found = captions(&folder.join("list.tsv"), None)?;
/// assert_eq!(found[0].sentences, ["a dog", "an animal"]);
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn captions(list: &Path, encoding: Option<&str>) -> Result<Vec<Caption>> {
    caption_columns(list, &FileColumns::default(), encoding)
}

/// As [`captions`], with the path and the sentence in these columns. Refuses a column that is not
/// there, by line.
///
/// ```
/// use regard_data::files::{Column, FileColumns, caption_columns};
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// std::fs::write(folder.join("dog.png"), "").unwrap();
/// std::fs::write(folder.join("list.csv"), "id,says,file\n7,\"a dog, asleep\",dog.png\n").unwrap();
/// let [path, text] = ["file", "says"].map(|name| Column::Name(name.into()));
/// let columns = FileColumns { path, text, ..FileColumns::default() };
/// let found = caption_columns(&folder.join("list.csv"), &columns, None)?;
/// assert_eq!((&found[0].sentences[0][..], found[0].line), ("a dog, asleep", 2));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn caption_columns(
    list: &Path,
    columns: &FileColumns,
    encoding: Option<&str>,
) -> Result<Vec<Caption>> {
    let mut found: Vec<Caption> = Vec::new();
    let mut places = HashMap::new();
    for ListedFile { path, text, line } in file_list(list, columns, "sentence", encoding)? {
        let at = *places.entry(path.clone()).or_insert_with(|| {
            found.push(Caption { path, sentences: Vec::new(), line });
            found.len() - 1
        });
        found[at].sentences.push(text);
    }
    match found.len() {
        0 => Err(Error::file(list, "it lists no pictures")),
        _ => Ok(found),
    }
}

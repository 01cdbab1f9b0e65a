//! Which recordings there are, and what they are labeled: by folder, by a list, or by name.

use super::columns::Column;
use super::file_list::{FileColumns, ListedFile, file_list};
use super::folder::{LabeledFiles, entries, has_extension, no_file_of};
use super::wav::SOUND_EXTENSIONS;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// How labels and parts are found. A *field* is what stands between underscores in a file's name
/// without its ending, counted from 0: `7_jackson_32.wav` has the fields 7, jackson and 32.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SoundOptions {
    /// The field that is the label, for a folder without folders.
    pub label_field: Option<usize>,
    /// The field, a number, that says which part a recording belongs to.
    pub split_field: Option<usize>,
    /// Recordings whose number is below this are the test part.
    pub split_test_below: u64,
}

/// A recording that has not been read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sound {
    /// The file.
    pub path: PathBuf,
    /// What it is a recording of.
    pub label: String,
    /// Whether `split_field` puts it into the test part.
    pub test: bool,
}

/// The recordings of a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sounds {
    /// By label and name (folder per label), by line (list), or by name.
    pub sounds: Vec<Sound>,
    /// What was found and is no recording.
    pub left_out: Vec<PathBuf>,
}

impl Sounds {
    /// Finds the recordings of a folder of recordings per label, of a flat folder where
    /// `label_field` is given, or of a list: a file of lines label, tab, path, the path beginning
    /// at the list's folder. Opens no recording; refuses a listed file that is not there.
    ///
    /// ```
    /// use regard_data::files::{SoundOptions, Sounds};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path();
    /// std::fs::write(folder.join("7_jackson_32.wav"), "").unwrap();
    /// let options =
    ///     SoundOptions { label_field: Some(1), split_field: Some(2), split_test_below: 5 };
    /// let found = Sounds::find(folder, &options)?.sounds;
    /// assert_eq!((found[0].label.as_str(), found[0].test), ("jackson", false));
    /// # Ok::<(), regard_data::Error>(())
    /// ```
    pub fn find(path: &Path, options: &SoundOptions) -> Result<Self> {
        let found = match options.label_field {
            _ if path.is_file() => {
                let (path_column, text) = (Column::Number(2), Column::Number(1));
                let columns = FileColumns { path: path_column, text, ..FileColumns::default() };
                return Self::listed(path, options, &columns, None);
            }
            Some(field) => flat(path, field)?,
            None => per_label(path)?,
        };
        Self::labeled(found, options)
    }

    /// Finds the recordings of a list, with the path and the label in these columns. Opens none;
    /// refuses a listed file that is not there.
    ///
    /// ```
    /// use regard_data::files::{Column, FileColumns, SoundOptions, Sounds};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path();
    /// std::fs::write(folder.join("a.wav"), "").unwrap();
    /// std::fs::write(folder.join("list.csv"), "file,word\na.wav,yes\n").unwrap();
    /// let [path, text] = ["file", "word"].map(|name| Column::Name(name.into()));
    /// let columns = FileColumns { path, text, ..FileColumns::default() };
    /// let options = SoundOptions::default();
    /// let found = Sounds::listed(&folder.join("list.csv"), &options, &columns, None)?;
    /// assert_eq!(found.sounds[0].label, "yes");
    /// # Ok::<(), regard_data::Error>(())
    /// ```
    pub fn listed(
        list: &Path,
        options: &SoundOptions,
        columns: &FileColumns,
        encoding: Option<&str>,
    ) -> Result<Self> {
        let listed = file_list(list, columns, "label", encoding)?;
        if listed.is_empty() {
            return Err(Error::file(list, "it lists no recordings"));
        }
        let files = listed.into_iter().map(|ListedFile { path, text, .. }| (path, text)).collect();
        Self::labeled(LabeledFiles { files, left_out: vec![] }, options)
    }

    fn labeled(
        LabeledFiles { files, left_out }: LabeledFiles,
        options: &SoundOptions,
    ) -> Result<Self> {
        let sounds = files.into_iter().map(|(path, label)| {
            let test = options.is_test(&path)?;
            Ok(Sound { path, label, test })
        });
        Ok(Self { sounds: sounds.collect::<Result<_>>()?, left_out })
    }
}

impl SoundOptions {
    fn is_test(&self, path: &Path) -> Result<bool> {
        let Some(at) = self.split_field else { return Ok(false) };
        let text = field(path, at)?;
        let number: u64 = text.parse().map_err(|_| {
            Error::file(path, format!("field {at} of its name, \"{text}\", is not a number"))
        })?;
        Ok(number < self.split_test_below)
    }
}

fn flat(folder: &Path, label_field: usize) -> Result<LabeledFiles> {
    let (wanted, left_out): (Vec<_>, Vec<_>) = recordings(folder)?;
    if wanted.is_empty() {
        return Err(Error::file(folder, no_file_of(&SOUND_EXTENSIONS)));
    }
    let labeled = wanted.into_iter().map(|path| {
        let label = field(&path, label_field)?;
        Ok((path, label))
    });
    let files = labeled.collect::<Result<_>>()?;
    Ok(LabeledFiles { files, left_out }.sampled(folder))
}

fn per_label(root: &Path) -> Result<LabeledFiles> {
    let has_folders = entries(root)?.iter().any(|path| path.is_dir());
    if !has_folders && !recordings(root)?.0.is_empty() {
        let what = "it has recordings and no folders; `label_field` says which field of their \
                    names is the label";
        return Err(Error::file(root, what));
    }
    LabeledFiles::in_folders(root, &SOUND_EXTENSIONS)
}

fn recordings(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    Ok(entries(folder)?.into_iter().partition(|path| has_extension(path, &SOUND_EXTENSIONS)))
}

fn field(path: &Path, at: usize) -> Result<String> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match stem.split('_').nth(at) {
        Some(field) if !field.is_empty() => Ok(field.to_owned()),
        _ => Err(Error::file(path, format!("its name has no field {at}, counted from 0"))),
    }
}

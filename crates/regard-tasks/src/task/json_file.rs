//! A JSON file of a run: its text, and where it stands, so that an error can name it.

use regard_data::{Error, Result};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// A JSON file that has been read and not yet parsed.
///
/// ```
/// use regard_tasks::task::JsonFile;
/// # let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("vocabulary.json");
/// std::fs::write(&path, r#"["cat", "dog"]"#).unwrap();
/// let file = JsonFile::read(&path)?;
/// assert_eq!(file.parse::<Vec<String>>()?, ["cat", "dog"]);
/// assert!(file.parse::<u32>().unwrap_err().to_string().contains("vocabulary.json: "));
/// # Ok::<(), regard_tasks::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct JsonFile {
    path: PathBuf,
    text: String,
}

impl JsonFile {
    /// Reads a file of a run's folder; one that is not there is named.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let hint = if missing { "; a run's folder has one" } else { "" };
            Error::file(path, format!("{error}{hint}"))
        })?;
        Ok(Self { path: path.into(), text })
    }

    /// Its text as it stands.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it says; an error names the file and the line.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.text).map_err(|error| Error::file(&self.path, error))
    }
}

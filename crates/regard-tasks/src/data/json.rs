//! What a run folder keeps: anything that serde knows, as JSON.

use super::lines::text;
use crate::{Error, Result};
use serde::{Serialize, de::DeserializeOwned};
use std::{fs, path::Path};

/// Reads a value from a JSON file. Refuses what is damaged or holds something else, by file and
/// line.
///
/// ```
/// use regard_tasks::data::{read_json, write_json};
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// write_json(&file, &[1, 2])?;
/// assert_eq!(read_json::<Vec<u8>>(&file)?, [1, 2]);
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn read_json<T: DeserializeOwned>(path: impl AsRef<Path>) -> Result<T> {
    let path = path.as_ref();
    let damaged = |error: serde_json::Error| Error::line(path, error.line(), error.to_string());
    serde_json::from_str(&text(path, None)?).map_err(damaged)
}

/// Writes a value as a JSON file, whole or not at all.
pub fn write_json<T: Serialize>(path: impl AsRef<Path>, value: &T) -> Result<()> {
    let path = path.as_ref();
    let unwritten =
        |error: &dyn std::fmt::Display| Error::file(path, format!("cannot be written: {error}"));
    let json = serde_json::to_string_pretty(value).map_err(|error| unwritten(&error))?;
    let partial = path.with_extension("partial");
    let written = fs::write(&partial, json).and_then(|()| fs::rename(&partial, path));
    written.map_err(|error| unwritten(&error))
}

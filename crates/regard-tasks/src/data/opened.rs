//! A file opened for reading, unpacked on the way where it begins as gzip does.

use crate::{Error, Result};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// The bytes of a file, plain or gzip: what it is, its first two bytes say, not its name.
pub(super) fn opened(path: &Path) -> Result<Box<dyn Read>> {
    let failed = |error| Error::file(path, error);
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    match file.fill_buf().map_err(failed)?.starts_with(&[0x1f, 0x8b]) {
        true => Ok(Box::new(MultiGzDecoder::new(file))),
        false => Ok(Box::new(file)),
    }
}

/// The lines of a UTF-8 file, each with its number from 1. Blank lines at the end are dropped.
pub(super) fn numbered_lines(path: &Path) -> Result<Vec<(usize, String)>> {
    let mut lines = Vec::new();
    for (at, line) in BufReader::new(opened(path)?).lines().enumerate() {
        let line = line.map_err(|error| Error::line(path, at + 1, error.to_string()))?;
        // Some editors begin a file with a mark of its encoding.
        let text = if at == 0 { line.trim_start_matches('\u{feff}') } else { &line };
        lines.push((at + 1, text.trim_end().to_owned()));
    }
    let kept = lines.iter().rposition(|(_, line)| !line.is_empty()).map_or(0, |last| last + 1);
    lines.truncate(kept);
    Ok(lines)
}

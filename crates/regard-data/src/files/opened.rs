//! A file opened for reading, unpacked on the way where it begins as gzip does.

use super::lines::{beginning_lines, lines};
use crate::{Error, Result};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// The bytes of a file, plain or gzip: what it is, its first two bytes say, not its name.
pub fn opened(path: &Path) -> Result<Box<dyn Read>> {
    let failed = |error| Error::file(path, error);
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    match file.fill_buf().map_err(failed)?.starts_with(&[0x1f, 0x8b]) {
        true => Ok(Box::new(MultiGzDecoder::new(file))),
        false => Ok(Box::new(file)),
    }
}

/// The lines of a text file, each with its number from 1 and without blanks at its end. Blank lines
/// at the end of the file are dropped.
pub(super) fn numbered_lines(path: &Path, encoding: Option<&str>) -> Result<Vec<(usize, String)>> {
    Ok(numbered(lines(path, encoding)?))
}

/// As [`numbered_lines`]; of a long file only its beginning, where that is asked for.
pub(super) fn numbered_beginning(
    path: &Path,
    encoding: Option<&str>,
) -> Result<Vec<(usize, String)>> {
    Ok(numbered(beginning_lines(path, encoding)?))
}

fn numbered(lines: Vec<String>) -> Vec<(usize, String)> {
    let lines = lines.into_iter().enumerate();
    let mut lines: Vec<_> = lines.map(|(at, line)| (at + 1, line.trim_end().to_owned())).collect();
    let kept = lines.iter().rposition(|(_, line)| !line.is_empty()).map_or(0, |last| last + 1);
    lines.truncate(kept);
    lines
}

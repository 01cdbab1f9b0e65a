//! Stretches of time with labels.

use super::opened::numbered_lines;
use crate::{Error, Result};
use serde::Serialize;
use std::path::Path;

/// A stretch of time with a label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Segment {
    /// Seconds from the start of the recording.
    pub start: f64,
    /// Seconds from the start of the recording.
    pub end: f64,
    /// What it is.
    pub label: String,
}

/// Reads a file of lines start, tab, end, tab, label, in seconds and in the order of time (as
/// Audacity writes its labels). Refuses other lines, segments that end before they begin or overlap,
/// and a file without any, by line.
///
/// ```
/// use regard_data::files::segments;
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "0.1\t0.4\tone\n0.5\t0.9\ttwo\n").unwrap();
/// let found = segments(file.path(), None)?;
/// assert_eq!((found[1].start, found[1].label.as_str()), (0.5, "two"));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn segments(path: &Path, encoding: Option<&str>) -> Result<Vec<Segment>> {
    let mut found: Vec<Segment> = Vec::new();
    for (line, text) in numbered_lines(path, encoding)? {
        let wrong = |what: String| Error::line(path, line, what);
        let [start, end, label] = text.split('\t').collect::<Vec<_>>()[..] else {
            return Err(wrong("start, end and label with tabs between were expected".into()));
        };
        let seconds = |text: &str| match text.trim().parse::<f64>() {
            Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(seconds),
            _ => Err(wrong(format!("`{text}` is no number of seconds"))),
        };
        let (start, end, label) = (seconds(start)?, seconds(end)?, label.trim());
        if label.is_empty() {
            return Err(wrong("the label is empty".into()));
        }
        if end <= start {
            return Err(wrong(format!("a segment from {start} to {end} s ends before it begins")));
        }
        if let Some(before) = found.last().filter(|before| before.end > start) {
            let what = format!("it begins at {start} s; the one before ends at {} s", before.end);
            return Err(wrong(what));
        }
        found.push(Segment { start, end, label: label.into() });
    }
    match found.len() {
        0 => Err(Error::file(path, "there are no segments")),
        _ => Ok(found),
    }
}

//! What went wrong, in one sentence that names the file and the line.

use std::path::{Path, PathBuf};

/// What went wrong, in one sentence.
///
/// ```
/// use regard_data::Error;
/// let error = Error::line("train.tsv", 3, "2 columns were expected, there is 1");
/// assert_eq!(error.to_string(), "train.tsv, line 3: 2 columns were expected, there is 1");
/// ```
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line of a file is not as it should be.
    #[error("{}, line {line}: {what}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A file as a whole cannot be used.
    #[error("{}: {what}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// What was asked for cannot be done.
    #[error("{0}")]
    Invalid(String),
    /// It was stopped because somebody asked for that.
    #[error("stopped")]
    Stopped,
    /// The library refused.
    #[error(transparent)]
    Library(#[from] regard::Error),
}

/// A result with our error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error in a line of a file.
    ///
    /// ```
    /// use regard_data::Error;
    /// assert_eq!(Error::line("a.tsv", 1, "empty").to_string(), "a.tsv, line 1: empty");
    /// ```
    pub fn line(file: impl AsRef<Path>, line: usize, what: impl Into<String>) -> Self {
        Self::Line { file: file.as_ref().into(), line, what: shortened(what.into()) }
    }

    /// An error of a whole file.
    ///
    /// ```
    /// use regard_data::Error;
    /// assert_eq!(Error::file("a.tsv", "no such file").to_string(), "a.tsv: no such file");
    /// ```
    pub fn file(file: impl AsRef<Path>, what: impl ToString) -> Self {
        Self::File { file: file.as_ref().into(), what: shortened(what.to_string()) }
    }

    /// An error in what was asked for.
    ///
    /// ```
    /// use regard_data::Error;
    /// assert_eq!(Error::invalid("no such task").to_string(), "no such task");
    /// ```
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid(shortened(what.into()))
    }
}

/// A sentence that can be read: what it cites may be a megabyte.
fn shortened(what: String) -> String {
    const LONGEST: usize = 1000;
    const KEPT: usize = 200;
    let characters = what.chars().count();
    if characters <= LONGEST {
        return what;
    }
    let start: String = what.chars().take(KEPT).collect();
    let end: String = what.chars().skip(characters - KEPT).collect();
    format!("{start} … ({} characters left out) … {end}", characters - 2 * KEPT)
}

//! The folder of a comparison: its plan, its runs, its table and its picture.

use crate::compare::trials::Comparison;
use crate::compare::trials::{CONFIG, PLAN};
use crate::run::folder::Run;
use crate::run::folder::{files, is_temporary};
use crate::run::lock;
use crate::run::lock::RunLock;
use regard_data::{Error, Result};
use std::path::PathBuf;

/// The files of what came of a comparison.
const RESULTS: [&str; 4] =
    ["comparison.txt", "comparison.json", "comparison.svg", "comparison.png"];

/// Where a comparison is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparisonFolder {
    /// The folder.
    pub path: PathBuf,
    /// Whether a comparison that is there is replaced; otherwise it is gone on with.
    pub overwrite: bool,
}

impl ComparisonFolder {
    /// Refuses a folder in which no comparison can begin: one that holds other files, or a comparison
    /// unless that is to be overwritten, and one that a process compares in. Leaves nothing there.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().to_path_buf();
    /// let place = regard_tasks::compare::ComparisonFolder { path, overwrite: true };
    /// assert!(place.check().is_ok());
    /// std::fs::write(place.path.join("diary.txt"), "").unwrap();
    /// assert!(place.check().unwrap_err().to_string().contains("no comparison's"));
    /// ```
    pub fn check(&self) -> Result<()> {
        RunLock::check(&self.path)?;
        let found = files(&self.path)?;
        let left_over = |name: &String| name == lock::FILE || is_temporary(name);
        let is_comparison = found.iter().any(|name| name == PLAN || name == RESULTS[1]);
        if found.iter().all(left_over) || self.overwrite && is_comparison {
            return Ok(());
        }
        // Runs that were done before leave nothing to go on with.
        let goes_on = match found.iter().any(|name| name == PLAN) {
            true => format!("`regard compare --resume {}` goes on with it, ", self.path.display()),
            false => String::new(),
        };
        let what = match is_comparison {
            true => format!(
                "holds a comparison already; {goes_on}`--overwrite` replaces it, `--out` names \
                 another folder"
            ),
            false => "holds files that are no comparison's; `--out` names another folder".into(),
        };
        Err(Error::file(&self.path, what))
    }

    /// Makes the folder where there is none, and removes the comparison that is replaced: nothing but
    /// its own files, of which its plan says what they are.
    pub fn make(&self) -> Result<()> {
        std::fs::create_dir_all(&self.path).map_err(|e| Error::file(&self.path, e))?;
        if !self.overwrite {
            return Ok(());
        }
        self.check()?;
        if self.path.join(PLAN).exists() {
            let (_, options, comparison) = Comparison::open(&self.path)?;
            for folder in comparison.folders(&self.path, &options)? {
                Run::remove_all(&folder)?;
            }
        }
        for name in RESULTS.iter().chain(&[CONFIG, PLAN]) {
            match std::fs::remove_file(self.path.join(name)) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::file(self.path.join(name), e));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

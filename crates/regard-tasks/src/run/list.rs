//! The runs that lie under a folder, and how far each has come.

use crate::options::template::Options;
use crate::options::training::TrainingConfig;
use crate::run::folder::Run;
use crate::run::lock::RunLock;
use crate::run::record::Record;
use regard_data::{Error, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How a training stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state", content = "why")]
pub enum RunState {
    /// A process is at it.
    Training(String),
    /// All epochs are done.
    Done,
    /// It did not get better for so long that it stopped by itself.
    Early,
    /// It was stopped before its last epoch.
    Stopped,
    /// No epoch has been validated yet.
    Begun,
    /// It cannot be read, for this reason.
    Damaged(String),
}

/// What is known of a run without its model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// Its folder.
    pub folder: PathBuf,
    /// Its task; empty where that cannot be read.
    pub task: String,
    /// Epochs done, as far as they were validated.
    pub epoch: usize,
    /// Epochs in all.
    pub epochs: usize,
    /// The name and the value of the measure that decides, at its best, on the validation part.
    pub best: Option<(String, f64)>,
    /// The epoch it was best at.
    pub best_epoch: Option<usize>,
    /// Numbers in the model.
    pub parameters: usize,
    /// Seconds of training.
    pub seconds: f64,
    /// How it stands.
    #[serde(flatten)]
    pub state: RunState,
}

impl RunSummary {
    /// Of the run in a folder; one that cannot be read says why.
    pub fn of(folder: &Path) -> Self {
        Self::knowing(folder, &mut BTreeMap::new())
    }

    /// The same, with the options of tasks that have been read before: of many runs they are most of it.
    fn knowing(folder: &Path, known: &mut BTreeMap<&'static str, Options>) -> Self {
        Self::read(folder, known).unwrap_or_else(|error| Self {
            folder: folder.into(),
            task: String::new(),
            epoch: 0,
            epochs: 0,
            best: None,
            best_epoch: None,
            parameters: 0,
            seconds: 0.0,
            state: RunState::Damaged(error.to_string()),
        })
    }

    fn read(folder: &Path, known: &mut BTreeMap<&'static str, Options>) -> Result<Self> {
        let run = Run::open(folder)?;
        let task = run.task()?;
        let options = match known.get(task.name()) {
            Some(options) => options.clone(),
            None => known.entry(task.name()).or_insert(task.options()?).clone(),
        };
        let config = TrainingConfig::of(&options.file_of_run(&run.path("config.toml"))?)?;
        let records = Record::read(&run, usize::MAX)?;
        let best = records.iter().rfind(|record| record.best);
        let epoch = records.last().map_or(0, |last| last.epoch);
        let waited = records.iter().rev().take_while(|record| !record.best).count();
        let state = match RunLock::holder(folder) {
            Some(who) => RunState::Training(who),
            None if epoch == 0 => RunState::Begun,
            None if epoch >= config.epochs => RunState::Done,
            None if config.patience > 0 && waited >= config.patience => RunState::Early,
            None => RunState::Stopped,
        };
        Ok(Self {
            folder: folder.into(),
            task: task.name().into(),
            epoch,
            epochs: config.epochs,
            best: best.map(|record| record.validation.first()).map(|(n, x)| (n.to_string(), x)),
            best_epoch: best.map(|record| record.epoch),
            parameters: run.parameters()?,
            seconds: records.last().map_or(0.0, |last| last.seconds),
            state,
        })
    }
}

/// How deep runs are looked for: those of a comparison lie in folders of their own.
const DEPTH: usize = 4;

/// The runs under a folder, by name. Refuses what is no folder.
///
/// ```
/// let folder = tempfile::tempdir().unwrap();
/// assert!(regard_tasks::run::runs_under(folder.path())?.is_empty());
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn runs_under(folder: &Path) -> Result<Vec<RunSummary>> {
    let mut folders = Vec::new();
    std::fs::read_dir(folder).map_err(|error| Error::file(folder, error))?;
    find(folder, DEPTH, &mut folders);
    folders.sort();
    let mut known = BTreeMap::new();
    Ok(folders.iter().map(|folder| RunSummary::knowing(folder, &mut known)).collect())
}

/// Adds the folders of runs; what cannot be looked into holds none.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if folder.join("run.json").is_file() {
        return found.push(folder.into());
    }
    if depth == 0 {
        return;
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            find(&path, depth - 1, found);
        }
    }
}

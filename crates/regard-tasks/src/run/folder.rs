//! The folder of a run, which describes itself.
//!
//! | file | holds |
//! |---|---|
//! | `run.json` | the task, the version of the program, the number of parameters |
//! | `config.toml` | all options, with their comments |
//! | `vocabulary.json` | what preprocessing learned from the training part: vocabularies, labels, means |
//! | `metrics.jsonl` | one line for each validated epoch |
//! | `curves.svg` | the same as a picture |
//! | `best.safetensors` | the parameters of the best epoch |
//! | `last.safetensors` | the checkpoint to go on from: parameters, optimizer, epoch, batch and step |
//! | `scenes/` | what the model made of three samples after each validated epoch |
//! | `ablation.json` | what its measure loses without each head, by part, where that was asked for |
//! | `tensorboard` | a folder of curves for TensorBoard, where it is on |
//! | `clock.json` | how long it took, and while it runs how fast it is; equal runs have all other files equal |
//! | `.lock` | the process that trains or trained last |

use crate::options::template::Options;
use crate::run::events;
use crate::run::lock;
use crate::run::lock::RunLock;
use crate::run::snapshot::Snapshot;
use crate::task::Task;
use crate::task::json_file::JsonFile;
use crate::task::model::Model;
use crate::tasks::task_named;
use regard::tensor::{TEMPORARY, write_whole};
use regard_data::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of a run: a training and its checkpoints.
#[derive(Clone, Debug)]
pub struct Run {
    folder: PathBuf,
    lock: Option<Arc<RunLock>>,
}

/// The files of a run that are there before `run.json`.
const BEFORE: [&str; 2] = ["config.toml", "vocabulary.json"];
/// The files of a run that come with it and after it; what else is in its folder is not its own.
const AFTER: [&str; 9] = [
    "run.json",
    "metrics.jsonl",
    "curves.svg",
    "best.safetensors",
    "last.safetensors",
    "clock.json",
    "confusion.svg",
    "measured.json",
    "ablation.json",
];

/// Sections of the options that belong to training: a trained model is what they made of it.
const LEARNED: [&str; 4] = ["text", "audio", "model", "training"];

/// What may change of a run to go on with.
const FURTHER: [&str; 5] = [
    "training.epochs",
    "training.patience",
    "training.validate_every",
    "training.checkpoint_minutes",
    "training.tensorboard",
];

/// What `run.json` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Manifest {
    task: String,
    version: String,
    parameters: usize,
    /// How parts are held out of the training part; versions before drew them otherwise.
    #[serde(default)]
    held_out: Option<String>,
}

/// How parts are held out now.
const HELD_OUT: &str = "stratified";

impl Run {
    /// A new run in a folder that is not there yet, or is empty but for what a training left there
    /// that was killed before it began. Data paths are kept as whole paths: the run can be used from
    /// any folder.
    pub fn create(
        folder: &Path,
        task: &dyn Task,
        options: &Options,
        model: &dyn Model,
    ) -> Result<Self> {
        Self::begin(folder, task, options, model, false)
    }

    /// As [`Run::create`]; a run that is there is removed first, and nothing but the run.
    pub fn overwrite(
        folder: &Path,
        task: &dyn Task,
        options: &Options,
        model: &dyn Model,
    ) -> Result<Self> {
        Self::begin(folder, task, options, model, true)
    }

    fn begin(
        folder: &Path,
        task: &dyn Task,
        options: &Options,
        model: &dyn Model,
        overwrite: bool,
    ) -> Result<Self> {
        Self::check_free(folder, overwrite)?;
        std::fs::create_dir_all(folder).map_err(|e| Error::file(folder, e))?;
        let run = Self { folder: folder.into(), lock: None }.locked()?;
        // Somebody else may have been here a moment before the lock.
        Self::check_content(folder, overwrite)?;
        run.clear()?;
        run.write("config.toml", options.clone().absolute_paths()?.to_string().as_bytes())?;
        run.write("vocabulary.json", model.vocabulary()?.as_bytes())?;
        let manifest = Manifest {
            task: task.name().into(),
            version: env!("CARGO_PKG_VERSION").into(),
            parameters: model.learned(),
            held_out: Some(HELD_OUT.into()),
        };
        let manifest =
            serde_json::to_string_pretty(&manifest).map_err(|e| Error::file(folder, e))?;
        run.write("run.json", manifest.as_bytes())?;
        Ok(run)
    }

    /// Refuses a folder in which no run can begin: one that holds other files, or a run unless that
    /// is to be overwritten, and one that a process trains in. Leaves nothing there.
    pub fn check_free(folder: &Path, overwrite: bool) -> Result<()> {
        RunLock::check(folder)?;
        Self::check_content(folder, overwrite)
    }

    fn check_content(folder: &Path, overwrite: bool) -> Result<()> {
        let found = files(folder)?;
        let is_run = found.iter().any(|name| name == "run.json");
        let left_over =
            |name: &String| name == lock::FILE || BEFORE.contains(&&name[..]) || is_temporary(name);
        if overwrite && is_run || found.iter().all(left_over) {
            return Ok(());
        }
        let what = match is_run {
            true => {
                "holds a run already; `--resume` goes on with it, `--overwrite` replaces it, \
                 `--out` names another folder"
            }
            false => "holds files that are no run's; `--out` names another folder",
        };
        Err(Error::file(folder, what))
    }

    /// A run that is there.
    pub fn open(folder: &Path) -> Result<Self> {
        let run = Self { folder: folder.into(), lock: None };
        let begun = BEFORE.iter().any(|name| run.path(name).exists());
        if begun && !run.path("run.json").exists() {
            RunLock::check(folder)?;
            let what = "there is no run.json: the training was ended before it began; the same \
                        `regard train` begins anew";
            return Err(Error::file(folder, what));
        }
        run.manifest()?;
        Ok(run)
    }

    /// A run that is there, to go on with. Refuses one that another process trains.
    pub fn resume(folder: &Path) -> Result<Self> {
        Self::open(folder)?.locked()
    }

    /// Locked for this process, and without what a killed one left there.
    fn locked(mut self) -> Result<Self> {
        self.lock = Some(Arc::new(RunLock::take(&self.folder)?));
        for name in files(&self.folder)?.iter().filter(|name| is_temporary(name)) {
            self.remove(name)?;
        }
        Ok(self)
    }

    /// The lock that it has, or a new one.
    pub(crate) fn lock(&self) -> Result<Arc<RunLock>> {
        match &self.lock {
            Some(lock) => Ok(lock.clone()),
            None => Ok(Arc::new(RunLock::take(&self.folder)?)),
        }
    }

    /// Whether a process trains it now.
    pub fn is_training(&self) -> bool {
        RunLock::check(&self.folder).is_err()
    }

    /// How many parameters its model has.
    pub fn parameters(&self) -> Result<usize> {
        Ok(self.manifest()?.parameters)
    }

    /// Removes its files, and nothing else that is in its folder.
    fn clear(&self) -> Result<()> {
        for name in AFTER.iter().chain(&BEFORE) {
            self.remove(name)?;
        }
        for name in files(&self.path(events::FOLDER))? {
            if name.starts_with(events::PREFIX) {
                self.remove(&format!("{}/{name}", events::FOLDER))?;
            }
        }
        Snapshot::remove_all(self)
    }

    /// Removes the run of a folder, if there is one, and the folder too where nothing else is in it.
    /// Refuses one that another process trains.
    pub(crate) fn remove_all(folder: &Path) -> Result<()> {
        if !folder.is_dir() {
            return Ok(());
        }
        let run = Self { folder: folder.into(), lock: None }.locked()?;
        run.clear()?;
        run.remove(lock::FILE)?;
        // What is somebody's own stays, and its folder with it.
        for empty in [run.path(events::FOLDER), folder.into()] {
            let _ = std::fs::remove_dir(empty);
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        match std::fs::remove_file(self.path(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::file(self.path(name), error))
            }
            _ => Ok(()),
        }
    }

    /// Goes on with other options from now on.
    pub fn set_options(&self, options: &Options) -> Result<()> {
        self.write("config.toml", options.to_string().as_bytes())?;
        Ok(())
    }

    /// The first of `before`, `before-2`, `before-3`, … that is not there.
    pub fn free(before: &Path) -> PathBuf {
        let numbered = |n: usize| PathBuf::from(format!("{}-{n}", before.display()));
        let mut all = std::iter::once(before.to_path_buf()).chain((2..).map(numbered));
        all.find(|path| !path.exists()).unwrap_or_else(|| before.into())
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What its folder is called, for pictures: where it lies is nobody else's concern.
    pub fn name(&self) -> String {
        let folder = self.folder.canonicalize().unwrap_or_else(|_| self.folder.clone());
        folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
    }

    /// A file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file whole or not at all.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf> {
        let path = self.path(name);
        write_whole(&path, bytes)?;
        Ok(path)
    }

    fn manifest(&self) -> Result<Manifest> {
        JsonFile::read(&self.path("run.json"))?.parse()
    }

    fn vocabulary(&self) -> Result<JsonFile> {
        JsonFile::read(&self.path("vocabulary.json"))
    }

    /// What should be known before it is measured, in sentences.
    pub fn notes(&self) -> Result<Vec<String>> {
        let old = self.manifest()?.held_out.as_deref() != Some(HELD_OUT);
        let what = "this run is of a version that held out other examples: a part without files of \
                    its own may now hold what the model has learned";
        Ok(old.then(|| what.to_string()).into_iter().collect())
    }

    /// Its task.
    pub fn task(&self) -> Result<&'static dyn Task> {
        task_named(&self.manifest()?.task).map_err(|e| Error::file(self.path("run.json"), e))
    }

    /// Its options.
    pub fn options(&self) -> Result<Options> {
        self.task()?.options()?.file_of_run(&self.path("config.toml"))
    }

    /// Its model, with the parameters that training began with.
    pub(crate) fn untrained_model(&self) -> Result<Box<dyn Model>> {
        self.task()?.open(&self.options()?, &self.vocabulary()?)
    }

    /// Refuses options for its trained model that would be ignored, or make another model of it.
    pub fn check_untrained(&self, options: &Options) -> Result<()> {
        let learned = |name: &str| LEARNED.iter().any(|s| name.split('.').next() == Some(s));
        let Some(name) = self.changed(options, &learned)? else { return Ok(()) };
        Err(Error::invalid(format!(
            "`{name}` belongs to training: the model in {} is what it was trained with; `[data]` \
             and `[search]` can be set now",
            self.folder.display()
        )))
    }

    /// Refuses options to go on with that differ in more than how long it is trained.
    pub fn check_further(&self, options: &Options) -> Result<()> {
        let fixed = |name: &str| !FURTHER.contains(&name);
        let Some(name) = self.changed(options, &fixed)? else { return Ok(()) };
        Err(Error::invalid(format!(
            "`{name}` cannot change on the way: the run in {} began with another; what can is {}",
            self.folder.display(),
            FURTHER.map(|name| format!("`{name}`")).join(", ")
        )))
    }

    /// The first option, of those that are meant, that differs from the run's own.
    fn changed(
        &self,
        options: &Options,
        is_meant: &dyn Fn(&str) -> bool,
    ) -> Result<Option<String>> {
        let own = self.options()?;
        let differs = |name: &String| is_meant(name) && options.get(name) != own.get(name);
        Ok(own.names().iter().find(|name| differs(name)).cloned())
    }

    /// Refuses to resume with another vocabulary than the run began with: its data have changed,
    /// or the file has.
    pub fn check_vocabulary(&self, model: &dyn Model) -> Result<()> {
        let (kept, now) = (self.vocabulary()?, model.vocabulary()?);
        if kept.text() == now {
            return Ok(());
        }
        // What is no vocabulary at all is damaged; data cannot do that.
        self.task()?.open(&self.options()?, &kept)?;
        let what = "the data of this run have changed since it began, or this file has: another \
                    vocabulary follows from the data now";
        Err(Error::file(self.path("vocabulary.json"), what))
    }

    /// Its model with the parameters of the best checkpoint; the options may name other data.
    pub fn model(&self, options: &Options) -> Result<Box<dyn Model>> {
        let model = self.task()?.open(options, &self.vocabulary()?)?;
        let best = self.path("best.safetensors");
        if !best.exists() {
            return Err(Error::file(best, self.why_no_best()));
        }
        let checkpoint = crate::run::checkpoint::Checkpoint::read(&best)?;
        checkpoint.set_parameters(model.parameters()).map_err(|e| Error::file(&best, e))?;
        Ok(model)
    }

    fn why_no_best(&self) -> String {
        let folder = self.folder.display();
        let records = crate::run::record::Record::read(self, usize::MAX).unwrap_or_default();
        if records.iter().any(|record| record.best) {
            return "is not there, and metrics.jsonl says that it was: it has been removed".into();
        }
        if !records.is_empty() {
            return "is not there: no epoch gave a measure that is a number".into();
        }
        format!(
            "is not there: no epoch has been validated yet; `regard train --resume {folder}` goes on"
        )
    }
}

/// The names of a folder's files; none where there is no folder.
pub(crate) fn files(folder: &Path) -> Result<Vec<String>> {
    let failed = |error| Error::file(folder, error);
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        Ok(entry.map_err(failed)?.file_name().to_string_lossy().into_owned())
    };
    entries.map(name).collect()
}

/// Whether a file is what a process that was killed had not yet written whole.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY)
}

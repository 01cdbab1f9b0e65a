//! The folder of a run, which describes itself.
//!
//! | file | holds |
//! |---|---|
//! | `run.json` | the task, the version of the program, the number of parameters |
//! | `config.toml` | all options, with their comments |
//! | `vocabulary.json` | what preprocessing learned from the training part: vocabularies, labels, means |
//! | `metrics.jsonl` | one line for each validated epoch |
//! | `curves.svg` | the same as a picture |
//! | `best.safetensors`, `last.safetensors` | checkpoints of the best epoch and of the last: parameters, optimizer, epoch, batch and step |

use crate::{Error, JsonFile, Model, Options, Result, Task, task_named};
use regard::tensor::write_whole;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The folder of a run: a training and its checkpoints.
#[derive(Clone, Debug)]
pub struct Run {
    folder: PathBuf,
}

/// What `run.json` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Manifest {
    task: String,
    version: String,
    parameters: usize,
}

impl Run {
    /// A new run in a folder that is not there yet or is empty.
    pub fn create(
        folder: &Path,
        task: &dyn Task,
        options: &Options,
        model: &dyn Model,
    ) -> Result<Self> {
        let occupied = std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some());
        if occupied {
            let what = "holds files already; `--resume` goes on with a run, `--out` names another";
            return Err(Error::file(folder, what));
        }
        std::fs::create_dir_all(folder).map_err(|e| Error::file(folder, e))?;
        let run = Self { folder: folder.into() };
        run.write("config.toml", options.to_string().as_bytes())?;
        run.write("vocabulary.json", model.vocabulary()?.as_bytes())?;
        let manifest = Manifest {
            task: task.name().into(),
            version: env!("CARGO_PKG_VERSION").into(),
            parameters: model.parameters().numel(),
        };
        let manifest =
            serde_json::to_string_pretty(&manifest).map_err(|e| Error::file(folder, e))?;
        run.write("run.json", manifest.as_bytes())?;
        Ok(run)
    }

    /// A run that is there.
    pub fn open(folder: &Path) -> Result<Self> {
        let run = Self { folder: folder.into() };
        run.manifest()?;
        Ok(run)
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

    /// Its task.
    pub fn task(&self) -> Result<&'static dyn Task> {
        task_named(&self.manifest()?.task).map_err(|e| Error::file(self.path("run.json"), e))
    }

    /// Its options.
    pub fn options(&self) -> Result<Options> {
        self.task()?.options()?.file(&self.path("config.toml"))
    }

    /// Refuses to resume with another vocabulary than the run began with: its data have changed.
    pub fn check_vocabulary(&self, model: &dyn Model) -> Result<()> {
        if self.vocabulary()?.text() != model.vocabulary()? {
            let what = "the data of this run have changed since it began";
            return Err(Error::file(self.path("vocabulary.json"), what));
        }
        Ok(())
    }

    /// Its model with the parameters of the best checkpoint; the options may name other data.
    pub fn model(&self, options: &Options) -> Result<Box<dyn Model>> {
        let model = self.task()?.open(options, &self.vocabulary()?)?;
        let best = self.path("best.safetensors");
        if !best.exists() {
            return Err(Error::file(best, "is not there; the run ended before its first epoch"));
        }
        let checkpoint = crate::Checkpoint::read(&best)?;
        checkpoint.set_parameters(model.parameters()).map_err(|e| Error::file(&best, e))?;
        Ok(model)
    }
}

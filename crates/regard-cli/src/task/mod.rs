//! The verbs on tasks: `train`, `eval`, `predict`, `show`, `compare`, `init`, `data`.

mod argument;
pub mod compare;
pub mod data;
pub mod eval;
pub mod explore;
pub mod export;
pub mod import;
pub mod init;
pub mod interrupt;
mod phase_bar;
pub mod predict;
mod progress;
pub mod show;
mod table;
mod threads;
pub mod train;

use anyhow::{Result, bail};
use clap::Args;
use regard_tasks::{Options, Run, Task, task_named};
use std::path::PathBuf;

/// A task and its options.
#[derive(Args, Debug)]
pub struct TaskArguments {
    /// regress, translate, summarize, transcribe, caption, answer, label, classify, image or graph
    task: String,
    #[command(flatten)]
    settings: Settings,
}

/// What changes a task's options.
#[derive(Args, Debug)]
pub struct Settings {
    /// Options from a file; `regard init TASK` writes one
    #[arg(long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// One option, as KEY=VALUE or SECTION.KEY=VALUE; may be given many times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// How text files are encoded, where it is not UTF-8: latin1, gbk, …
    #[arg(long, value_name = "NAME")]
    encoding: Option<String>,
}

impl Settings {
    /// Options changed by the file, then by the settings.
    fn apply(&self, options: Options) -> Result<Options> {
        let options = match &self.config {
            Some(file) => options.file(file)?,
            None => options,
        };
        let encoding = self.encoding.iter().map(|name| format!("data.encoding=\"{name}\""));
        let mut all = self.sets.iter().cloned().chain(encoding);
        Ok(all.try_fold(options, |options, setting| options.set(&setting))?)
    }
}

/// Sections of the options that belong to training: a trained model is what they made of it.
const LEARNED: [&str; 4] = ["text", "audio", "model", "training"];

impl Settings {
    /// The options of a run changed by the file and the settings; refuses what would be ignored, or
    /// make another model than the run's.
    fn apply_to_run(&self, run: &Run) -> Result<Options> {
        let before = run.options()?;
        let options = self.apply(before.clone())?;
        let learned = |name: &&String| LEARNED.iter().any(|s| name.split('.').next() == Some(s));
        let changed = |name: &&String| options.get(name) != before.get(name);
        if let Some(name) = before.names().iter().filter(learned).find(changed) {
            bail!(
                "`{name}` belongs to training: the model in {} is what it was trained with; \
                 `[data]` and `[search]` can be set now",
                run.folder().display()
            );
        }
        Ok(options)
    }
}

impl TaskArguments {
    fn task(&self) -> Result<&'static dyn Task> {
        Ok(task_named(&self.task)?)
    }

    fn options(&self) -> Result<Options> {
        self.settings.apply(self.task()?.options()?)
    }
}

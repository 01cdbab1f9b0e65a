//! What changes a task's options on the command line.

use crate::output::note;
use anyhow::{Result, bail};
use clap::Args;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use regard_data::remarked;
use regard_tasks::options::Options;
use regard_tasks::run::Run;
use regard_tasks::task::Task;
use regard_tasks::tasks::{task_named, tasks};
use std::path::PathBuf;

/// What changes a task's options.
#[derive(Args, Debug)]
pub struct Settings {
    /// Options from a file; `regard init TASK` writes one
    #[arg(long, value_name = "FILE.toml", value_hint = clap::ValueHint::FilePath)]
    pub(super) config: Option<PathBuf>,
    /// One option, as KEY=VALUE or SECTION.KEY=VALUE; may be given many times, and without --set
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) sets: Vec<String>,
    /// How text files are encoded, where it is not UTF-8: latin1, gbk, …
    #[arg(long, value_name = "NAME")]
    pub(super) encoding: Option<String>,
}

impl Settings {
    /// Options changed by the file, then by the settings, then by words of the form KEY=VALUE.
    /// An option that is called by an old name is noted.
    pub(super) fn apply(&self, options: Options, words: &[String]) -> Result<Options> {
        let (changed, remarks) = remarked(|| {
            let options = match &self.config {
                Some(file) => options.file(file)?,
                None => options,
            };
            let encoding = self.encoding.iter().map(|name| format!("data.encoding=\"{name}\""));
            let mut all = self.sets.iter().chain(words).cloned().chain(encoding);
            all.try_fold(options, |options, setting| options.set(&setting))
        });
        remarks.iter().for_each(|text| note(text));
        Ok(changed?)
    }

    /// The options of a task changed so; refuses words that set nothing.
    pub(super) fn apply_to_task(&self, task: &dyn Task, words: &[String]) -> Result<Options> {
        check_words(words, task.name())?;
        self.apply(task.options()?, words)
    }

    /// The options of a run changed so; refuses words that set nothing, what would be ignored, and
    /// what would make another model than the run's.
    pub(super) fn apply_to_run(&self, run: &Run, words: &[String]) -> Result<Options> {
        check_words(words, run.task()?.name())?;
        let mut options = self.apply(run.options()?, words)?;
        // What is asked on the command line is encoded so, too.
        options.unset("data.encoding");
        run.check_untrained(&options)?;
        Ok(options)
    }
}

/// Refuses a word that is no setting.
pub(super) fn check_words(words: &[String], task: &str) -> Result<()> {
    match words.iter().find(|word| !word.contains('=')) {
        Some(word) => bail!(
            "`{word}` is not of the form KEY=VALUE; `regard options {task}` lists what can be set"
        ),
        None => Ok(()),
    }
}

/// Words that set an option of a run, and those that are inputs for its model: an input is whatever
/// does not begin with the name of an option and an equals sign.
pub(super) fn settings_and_inputs(
    run: &Run,
    words: &[String],
) -> Result<(Vec<String>, Vec<String>)> {
    let options = run.options()?;
    let sets = |word: &String| word.split_once('=').is_some_and(|(key, _)| options.knows(key));
    Ok(words.iter().cloned().partition(sets))
}

/// A task and its options.
#[derive(Args, Debug)]
pub struct TaskArguments {
    /// Which task
    #[arg(value_parser = TaskName)]
    task: String,
    /// Options, as `regard options TASK` lists them
    #[arg(value_name = "KEY=VALUE")]
    words: Vec<String>,
    #[command(flatten)]
    settings: Settings,
}

impl TaskArguments {
    pub(super) fn task(&self) -> Result<&'static dyn Task> {
        Ok(task_named(&self.task)?)
    }

    pub(super) fn options(&self) -> Result<Options> {
        self.settings.apply_to_task(self.task()?, &self.words)
    }
}

/// Takes any word, and tells shells and readers of the help which tasks there are; what is no task is
/// refused with the same sentence everywhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskName;

impl TypedValueParser for TaskName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> std::result::Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(tasks().iter().map(|task| PossibleValue::new(task.name()))))
    }
}

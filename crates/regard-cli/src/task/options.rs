//! `regard options`: what can be set of a task.

use super::settings::TaskName;
use crate::terminal::{columns, wrapped};
use anyhow::Result;
use clap::Args;
use regard_tasks::options::{ListedOption, OptionGroup};
use regard_tasks::task::Task;
use regard_tasks::tasks::task_named;
use std::io::Write;

/// Say what can be set of a task: every option with its value and what it means
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard options translate             # all of them
  regard options translate score       # those in whose name or comment the word stands
  regard options label --json

`regard train TASK KEY=VALUE` sets one; `regard init TASK` writes them all into a file.")]
pub struct Command {
    /// Which task
    #[arg(value_parser = TaskName)]
    task: String,
    /// Only options in whose name or comment this stands
    word: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Command {
    /// Writes the options.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        let options = task_named(&self.task)?.options()?;
        let groups = match &self.word {
            Some(word) => options.groups_with(word)?,
            None => options.groups(),
        };
        match self.json {
            true => writeln!(to, "{}", serde_json::to_string_pretty(&groups)?)?,
            false => write!(to, "{}", written(&groups))?,
        }
        Ok(())
    }
}

/// All options of a task, for people.
pub fn told(task: &dyn Task) -> Result<String> {
    Ok(written(&task.options()?.groups()))
}

/// Options by groups, each with its comment below it.
fn written(groups: &[OptionGroup]) -> String {
    const USUAL: usize = 100;
    let columns = columns().unwrap_or(USUAL).min(USUAL);
    let line = |option: &ListedOption| match (&option.value, &option.example) {
        (Some(value), _) => format!("{} = {value}\n", option.name),
        (None, Some(example)) => format!("{} (not set; as {example})\n", option.name),
        (None, None) => format!("{}\n", option.name),
    };
    let group = |group: &OptionGroup| {
        let lines: String = group.options.iter().map(line).collect();
        lines + &wrapped(&group.comment, "    ", columns)
    };
    groups.iter().map(group).collect()
}

//! The program's arguments: its verbs, and what `--help` says.

use crate::task::{
    ablate, compare, data, eval, explain, explore, export, heads, import, init, list, options,
    predict, show, train,
};
use crate::{attend, bench, completions, info, manual};
use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use regard_tasks::task::Task;
use regard_tasks::tasks::task_named;
use std::ffi::OsString;
use std::io::Write;

/// Attention you can pick, train, run fast and look at
#[derive(Parser)]
#[command(name = "regard", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Program {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  regard train translate
  regard show runs/translate \"the children bought three red books yesterday\"
  regard list
  regard compare translate
  regard explore runs/translate
  regard attend in.safetensors --out out.safetensors --causal
  regard bench --filter causal
  regard info

`regard VERB --help` says more about each.";

#[derive(Subcommand)]
enum Verb {
    Train(train::Command),
    Eval(eval::Command),
    Predict(predict::Command),
    Show(show::Command),
    Ablate(ablate::Command),
    Heads(heads::Command),
    Explain(explain::Command),
    Compare(compare::Command),
    Explore(explore::Explore),
    Serve(explore::Serve),
    List(list::Command),
    Options(options::Command),
    Init(init::Command),
    Data(data::Command),
    Export(export::Command),
    Import(import::Command),
    Attend(attend::Command),
    Bench(bench::Command),
    Info(info::Command),
    Completions(completions::Command),
    Man(manual::Command),
}

impl Program {
    /// Reads arguments, the program's name first. Ends the process where they ask for help or cannot
    /// be meant.
    pub fn parse_from_words(words: Vec<OsString>) -> Self {
        let command = match helped(&words) {
            Some((verb, task)) => with_options(Self::command(), &verb, task),
            None => Self::command(),
        };
        let matches = command.get_matches_from(words);
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Does what is asked.
    pub fn run(&self, to: &mut (impl Write + Send)) -> Result<()> {
        match &self.verb {
            Verb::Train(command) => command.run(to),
            Verb::Eval(command) => command.run(to),
            Verb::Predict(command) => command.run(to),
            Verb::Show(command) => command.run(to),
            Verb::Ablate(command) => command.run(to),
            Verb::Heads(command) => command.run(to),
            Verb::Explain(command) => command.run(to),
            Verb::Compare(command) => command.run(to),
            Verb::Explore(command) => command.run(to),
            Verb::Serve(command) => command.run(to),
            Verb::List(command) => command.run(to),
            Verb::Options(command) => command.run(to),
            Verb::Init(command) => command.run(to),
            Verb::Data(command) => command.run(to),
            Verb::Export(command) => command.run(to),
            Verb::Import(command) => command.run(to),
            Verb::Attend(command) => command.run(to),
            Verb::Bench(command) => command.run(to),
            Verb::Info(command) => command.run(to),
            Verb::Completions(command) => command.run(to),
            Verb::Man(command) => command.run(to),
        }
    }
}

/// The verb and the task, where help is asked for a verb that takes a task and a task is named.
fn helped(words: &[OsString]) -> Option<(String, &'static dyn Task)> {
    let words: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let (verb, rest) = words.split_first()?;
    let takes_task = ["train", "compare", "init", "data"].contains(verb);
    let asks = rest.iter().any(|word| ["-h", "--help"].contains(word));
    let task = rest.iter().find_map(|word| task_named(word).ok())?;
    (takes_task && asks).then(|| (verb.to_string(), task))
}

/// With a task's options behind the help of a verb.
fn with_options(command: clap::Command, verb: &str, task: &dyn Task) -> clap::Command {
    let Ok(options) = options::told(task) else { return command };
    command.mut_subcommand(verb, |verb| {
        let before = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
        let name = task.name();
        verb.after_help(format!("{before}\n\nOptions of {name}, as KEY=VALUE:\n\n{options}"))
    })
}

//! `regard list`: which tasks and runs there are.

use super::table;
use anyhow::Result;
use clap::Args;
use regard_tasks::run::{RunState, RunSummary, runs_under};
use regard_tasks::task::Task;
use regard_tasks::tasks::tasks;
use std::io::Write;
use std::path::PathBuf;

/// List the tasks, and the runs under a folder with their measures
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard list
  regard list runs/compare-translate
  regard list --json

The measure is the best on the validation part, with its epoch. `regard train --resume RUN` goes on
with a run that was stopped.")]
pub struct Command {
    /// Where runs lie, also in folders of it [default: runs]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Command {
    /// Writes a line for each task and each run.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        let usual = PathBuf::from("runs");
        let runs = match &self.folder {
            None if !usual.exists() => Vec::new(),
            folder => runs_under(folder.as_ref().unwrap_or(&usual))?,
        };
        if self.json {
            let task = |task: &&dyn Task| serde_json::json!({ "name": task.name(), "about": task.about() });
            let tasks: Vec<_> = tasks().iter().map(task).collect();
            let all = serde_json::json!({ "tasks": tasks, "runs": runs });
            writeln!(to, "{}", serde_json::to_string_pretty(&all)?)?;
            return Ok(());
        }
        writeln!(to, "tasks")?;
        for task in tasks() {
            writeln!(to, "  {:<12} {}", task.name(), task.about())?;
        }
        let folder = self.folder.as_ref().unwrap_or(&usual).display();
        if runs.is_empty() {
            writeln!(to, "\nno runs under {folder}; `regard train TASK` makes one")?;
            return Ok(());
        }
        let head = ["run", "task", "epochs", "best", "parameters", "time", "state"];
        let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
        write!(to, "\nruns under {folder}\n{}", table::lines(&head, &rows))?;
        Ok(())
    }
}

fn row(run: &RunSummary) -> Vec<String> {
    let folder = run.folder.display().to_string();
    let state = match &run.state {
        RunState::Training(who) => format!("training ({who})"),
        RunState::Done => "done".into(),
        RunState::Early => "ended early".into(),
        RunState::Stopped => "stopped".into(),
        RunState::Begun => "begun".into(),
        RunState::Damaged(why) => {
            let unknown = vec![String::new(); 5];
            return [vec![folder], unknown, vec![format!("damaged: {why}")]].concat();
        }
    };
    let best = run.best.as_ref().map_or(String::new(), |(name, value)| {
        let at = run.best_epoch.map_or(String::new(), |epoch| format!(" (epoch {epoch})"));
        format!("{name} {}{at}", table::measure(*value))
    });
    vec![
        folder,
        run.task.clone(),
        format!("{}/{}", run.epoch, run.epochs),
        best,
        table::number(run.parameters),
        table::seconds(run.seconds),
        state,
    ]
}

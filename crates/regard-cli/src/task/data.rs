//! `regard data`: what the data hold.

use super::{TaskArguments, table};
use anyhow::Result;
use clap::Args;
use regard_data::remarked;
use std::io::Write;

/// Say what a task's data hold: counts, lengths, labels, a few examples
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard data translate
  regard data label train=en_ewt-ud-train.conllu.gz")]
pub struct Command {
    #[command(flatten)]
    arguments: TaskArguments,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Command {
    /// Writes a line for each fact, label and example.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        let options = self.arguments.options()?;
        let task = self.arguments.task()?;
        let (description, remarks) = remarked(|| task.describe(&options));
        let description = description.map_err(|error| options.explain(error))?;
        if self.json {
            let mut all = serde_json::to_value(&description)?;
            all["notes"] = remarks.into();
            writeln!(to, "{}", serde_json::to_string_pretty(&all)?)?;
            return Ok(());
        }
        writeln!(to, "{:<20} {}", "data", description.source)?;
        for (name, text) in &description.facts {
            writeln!(to, "{name:<20} {text}")?;
        }
        if !description.labels.is_empty() {
            let all: usize = description.labels.iter().map(|(_, n)| n).sum();
            let share = |n: usize| format!("{:.1}%", 100.0 * n as f64 / all.max(1) as f64);
            let rows: Vec<Vec<String>> = description
                .labels
                .iter()
                .map(|(label, n)| vec![label.clone(), table::number(*n), share(*n)])
                .collect();
            write!(to, "\n{}", table::table(&["label", "examples", "share"], &rows))?;
        }
        if !description.examples.is_empty() {
            writeln!(to, "\nexamples")?;
        }
        for example in &description.examples {
            writeln!(to, "  {}", table::short(example))?;
        }
        if !remarks.is_empty() {
            writeln!(to, "\nnotes")?;
        }
        for remark in &remarks {
            writeln!(to, "  {remark}")?;
        }
        Ok(())
    }
}

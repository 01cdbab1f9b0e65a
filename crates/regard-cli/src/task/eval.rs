//! `regard eval`: how good a run's model is on the test part.

use super::threads::Threads;
use super::{Settings, table};
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use regard_tasks::{Part, Report, Run, picture};
use std::io::Write;
use std::path::PathBuf;

/// Measure a run's model on the test part of its data
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard eval runs/translate
  regard eval runs/translate --part validation --json
  regard eval runs/label --set test=other.conllu --outputs tagged.txt")]
pub struct Command {
    /// The run's folder
    run: PathBuf,
    #[command(flatten)]
    settings: Settings,
    /// Which part of the data
    #[arg(long, value_enum, default_value = "test")]
    part: PartName,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Write every output to this file, one in each line
    #[arg(long, value_name = "FILE")]
    outputs: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
}

/// The parts of the data, by name.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartName {
    /// What the model learned
    Training,
    /// What the best epoch was chosen by
    Validation,
    /// What nothing was chosen by
    Test,
}

impl Command {
    /// Writes measures, tables and samples.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.threads.start()?;
        let run = Run::open(&self.run)?;
        let options = self.settings.apply(run.options()?)?;
        let (part, name) = match self.part {
            PartName::Training => (Part::Training, "training"),
            PartName::Validation => (Part::Validation, "validation"),
            PartName::Test => (Part::Test, "test"),
        };
        let report = run.model(&options)?.evaluate(part)?;
        if report.examples == 0 {
            bail!("the {name} part holds no examples");
        }
        if let Some(file) = &self.outputs {
            let text: String = report.outputs.iter().map(|line| format!("{line}\n")).collect();
            regard::tensor::write_whole(file, text.as_bytes())?;
        }
        if self.json {
            writeln!(to, "{}", serde_json::to_string_pretty(&report)?)?;
        } else {
            written(&report, name, to)?;
        }
        if let Some(confusion) = &report.confusion {
            let title = format!("{}: {name} part", run.folder().display());
            let svg = picture::confusion(&title, &confusion.labels, &confusion.counts);
            let file = run.write("confusion.svg", svg.as_bytes())?;
            if !self.json {
                writeln!(to, "\nconfusion matrix: {}", file.display())?;
            }
        }
        Ok(())
    }
}

fn written(report: &Report, part: &str, to: &mut impl Write) -> Result<()> {
    writeln!(to, "{} part, {} examples", part, table::number(report.examples))?;
    for (name, value) in &report.scores.values {
        writeln!(to, "  {name:<12} {}", table::measure(*value))?;
    }
    if let Some(signature) = &report.signature {
        writeln!(to, "  sacreBLEU    {signature}")?;
    }
    if let Some(confusion) = &report.confusion {
        let row = |label: &regard_tasks::metric::LabelScore| {
            let share = |x: f64| format!("{x:.3}");
            vec![
                label.label.clone(),
                share(label.precision),
                share(label.recall),
                share(label.f1),
                table::number(label.support),
            ]
        };
        let rows: Vec<Vec<String>> = confusion.table().iter().map(row).collect();
        let head = ["label", "precision", "recall", "F1", "examples"];
        write!(to, "\n{}", table::table(&head, &rows))?;
    }
    if let Some(groups) = &report.groups {
        let rows = groups.values.iter();
        let rows: Vec<Vec<String>> =
            rows.map(|(name, value)| vec![name.clone(), table::measure(*value)]).collect();
        write!(to, "\n{}", table::table(&[&groups.by, &groups.measure], &rows))?;
    }
    if !report.samples.is_empty() {
        writeln!(to, "\nsamples")?;
    }
    for (input, expected, output) in &report.samples {
        writeln!(to, "  {input}\n    expected {expected}\n    output   {output}")?;
    }
    Ok(())
}

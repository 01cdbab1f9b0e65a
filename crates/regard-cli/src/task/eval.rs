//! `regard eval`: how good a run's model is on the test part.

use super::device::DeviceOption;
use super::phase_bar::PhaseBar;
use super::threads::Threads;
use super::{Settings, table};
use crate::output::{self, Destination};
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use regard_data::remarked;
use regard_picture::picture;
use regard_tasks::run::Run;
use regard_tasks::task::{Part, Report};
use std::io::{Write, stderr};
use std::path::PathBuf;

/// Measure a run's model on the test part of its data
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard eval runs/translate
  regard eval runs/translate --part validation --json
  regard eval runs/label test=other.conllu --outputs tagged.txt")]
pub struct Command {
    /// The run's folder
    #[arg(value_hint = clap::ValueHint::DirPath)]
    run: PathBuf,
    /// Options of [data] and [search], as `regard options TASK` lists them
    #[arg(value_name = "KEY=VALUE")]
    words: Vec<String>,
    #[command(flatten)]
    settings: Settings,
    /// Which part of the data
    #[arg(long, value_enum, default_value = "test")]
    part: PartName,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Write every output to this file, one for each line of the data; `-` for standard output
    #[arg(long, value_name = "FILE")]
    outputs: Option<PathBuf>,
    /// Where the picture of the confusion matrix goes [default: into the run's folder]
    #[arg(long, value_name = "FILE.svg")]
    out: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceOption,
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

impl From<PartName> for Part {
    fn from(name: PartName) -> Self {
        match name {
            PartName::Training => Self::Training,
            PartName::Validation => Self::Validation,
            PartName::Test => Self::Test,
        }
    }
}

impl Command {
    /// Writes measures, tables and samples.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.threads.start()?;
        let run = Run::open(&self.run)?;
        let options = self.settings.apply_to_run(&run, &self.words)?;
        let part = Part::from(self.part);
        let name = match self.part {
            PartName::Training => "training",
            PartName::Validation => "validation",
            PartName::Test => "test",
        };
        let destinations = self.outputs.iter().chain(&self.out);
        destinations.map(|path| Destination::new(path)).try_for_each(Destination::check)?;
        run.notes()?.iter().for_each(|text| output::note(text));
        let bar = PhaseBar::new();
        let model = run.model(&options)?;
        self.device.place(model.as_ref())?;
        let (report, remarks) = remarked(|| model.evaluate(part));
        drop(bar);
        remarks.iter().for_each(|text| output::note(text));
        let report = report?;
        if report.examples == 0 {
            bail!("the {name} part holds no examples");
        }
        if let Some(file) = &self.outputs {
            let text: String = report.outputs.iter().map(|line| one_line(line) + "\n").collect();
            let outputs = Destination::new(file);
            outputs.write(text.as_bytes(), to)?;
            if outputs.is_standard_output() {
                return self.tell(&run, &report, name, &mut stderr());
            }
        }
        self.tell(&run, &report, name, to)
    }

    fn tell(&self, run: &Run, report: &Report, name: &str, to: &mut impl Write) -> Result<()> {
        if self.json {
            writeln!(to, "{}", serde_json::to_string_pretty(report)?)?;
        } else {
            written(report, name, to)?;
        }
        let Some(confusion) = &report.confusion else { return Ok(()) };
        let title = format!("{}: {name} part", run.name());
        let svg = picture::confusion(&title, &confusion.labels, &confusion.counts);
        let file = self.out.clone().unwrap_or_else(|| run.path("confusion.svg"));
        match Destination::new(&file).write(svg.as_bytes(), to) {
            Ok(()) if !self.json => writeln!(to, "\nconfusion matrix: {}", file.display())?,
            Ok(()) => {}
            // The measures are what was asked for; a run may be somebody else's.
            Err(error) if self.out.is_none() => {
                output::note(&format!("no picture ({error}); `--out` names another place for it"));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// An output in one line, whatever it is made of.
fn one_line(output: &str) -> String {
    output.replace(['\n', '\r'], " ")
}

fn written(report: &Report, part: &str, to: &mut impl Write) -> Result<()> {
    writeln!(to, "{part} part, {}", table::count(report.examples, "example", "examples"))?;
    write!(to, "{}", table::measures(&report.scores.values))?;
    if let Some(read) = &report.values_read {
        let (read, all) = (table::measure(read.per_output), table::measure(read.of));
        writeln!(to, "  values read  {read} of {all} for each output")?;
    }
    for note in &report.notes {
        writeln!(to, "  note: {note}")?;
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
    for groups in [&report.groups, &report.places].into_iter().flatten() {
        let rows = groups.values.iter();
        let rows: Vec<Vec<String>> =
            rows.map(|(name, value)| vec![name.clone(), table::measure(*value)]).collect();
        write!(to, "\n{}", table::table(&[&groups.by, &groups.measure], &rows))?;
    }
    if !report.samples.is_empty() {
        writeln!(to, "\nsamples")?;
    }
    for (input, expected, output) in &report.samples {
        let [input, expected, output] = [input, expected, output].map(|text| table::short(text));
        writeln!(to, "  {input}\n    expected {expected}\n    output   {output}")?;
    }
    Ok(())
}

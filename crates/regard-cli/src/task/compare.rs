//! `regard compare`: mechanisms side by side.

use super::compare_runs::CompareRuns;
use super::comparison_table::{self, Heading};
use super::device::DeviceOption;
use super::interrupt::Interrupted;
use super::progress::ProgressReport;
use super::settings::Settings;
use super::threads::Threads;
use crate::heap;
use crate::output::note;
use crate::terminal::columns;
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_data::remarked;
use regard_tasks::compare::{Comparison, ComparisonFolder, Meter, Outcome, compare, variants};
use regard_tasks::options::Options;
use regard_tasks::run::Run;
use regard_tasks::task::{Part, Task};
use regard_tasks::tasks::task_named;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Train variants of a model on the same data and seeds and compare them, or compare finished runs
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard compare translate                    # fixed vector, additive, dot, Transformer
  regard compare translate --over score=additive,dot,scaled-dot,bilinear --seeds 3
  regard compare label --over encoder=gru,transformer --over layers=1,2
  regard compare --resume runs/compare-label  # goes on where it stopped
  regard compare runs/a runs/b                # runs that are done, of one task

Variants and runs are measured on the validation part, so that nothing is chosen by the test part;
`--test` measures them on that. The column p says how likely a difference as large as that from the
first would be by chance.")]
pub struct Command {
    /// Which task, or a run
    #[arg(value_name = "TASK|RUN", required_unless_present = "resume")]
    task: Option<String>,
    /// Options of the task, as `regard options TASK` lists them; or more runs
    #[arg(value_name = "KEY=VALUE|RUN")]
    words: Vec<String>,
    #[command(flatten)]
    settings: Settings,
    /// What to vary, as KEY=A,B,C; several make all combinations
    #[arg(long, value_name = "KEY=A,B,C")]
    over: Vec<String>,
    /// How many seeds each variant is trained with
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    seeds: u16,
    /// Measure on the test part instead of the validation part
    #[arg(long)]
    test: bool,
    /// Where the runs, the table and the picture are kept [default: runs/compare-TASK; nowhere for
    /// runs that are done]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Go on with the comparison in this folder where it stopped
    #[arg(
        long,
        value_name = "FOLDER",
        conflicts_with_all = ["task", "words", "out", "over", "seeds", "config", "sets", "encoding"]
    )]
    resume: Option<PathBuf>,
    /// Replace the comparison in the folder of --out, where there is one
    #[arg(long, conflicts_with = "resume", requires = "out")]
    overwrite: bool,
    #[command(flatten)]
    device: DeviceOption,
    #[command(flatten)]
    threads: Threads,
}

/// What is compared, and where.
struct Begun {
    task: &'static dyn Task,
    options: Options,
    comparison: Comparison,
    folder: PathBuf,
}

impl Command {
    /// Trains all and writes the table.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.threads.start()?;
        if let Some(runs) = self.runs()? {
            return runs.run(to);
        }
        let Begun { task, options, comparison, folder } = self.begin()?;
        let meter = Meter { reset: heap::reset_peak, peak: heap::peak };
        let callback = |name: &str| {
            eprintln!("\n{name}");
            Box::new(ProgressReport::new()) as Box<dyn regard_tasks::train::Callback>
        };
        let place = ComparisonFolder { path: folder.clone(), overwrite: self.overwrite };
        let (outcome, remarks) =
            remarked(|| compare(task, &options, &comparison, &place, meter, callback));
        remarks.iter().for_each(|text| note(text));
        let Outcome { finished, stopped } = outcome?;
        if !finished.is_empty() {
            let (part, seeds) = (comparison.part, Some(comparison.seeds));
            let heading = Heading { what: "variant", part, seeds };
            comparison_table::write(&folder, task.name(), &finished, &heading)?;
            write!(to, "{}", comparison_table::written(&finished, &heading, columns()))?;
            writeln!(to, "\npicture {}", folder.join("comparison.svg").display())?;
        }
        if stopped {
            let (done, all) = (finished.len(), comparison.variants.len());
            writeln!(
                to,
                "stopped; {done} of {all} variants are done, `regard compare --resume {}` goes on",
                folder.display()
            )?;
            return Err(Interrupted.into());
        }
        Ok(())
    }

    /// The runs that are named in place of a task; none where a task is.
    fn runs(&self) -> Result<Option<CompareRuns<'_>>> {
        let Some(first) = self.task.as_ref().filter(|first| is_run(first)) else { return Ok(None) };
        for (given, name) in [
            (!self.over.is_empty(), "--over"),
            (self.seeds > 1, "--seeds"),
            (self.settings.config.is_some(), "--config"),
        ] {
            if given {
                bail!("{name} is for variants that are trained, and {first} is a run");
            }
        }
        let is_setting = |word: &&String| word.contains('=') && !Path::new(word).is_dir();
        let (words, runs): (Vec<&String>, Vec<&String>) = self.words.iter().partition(is_setting);
        Ok(Some(CompareRuns {
            folders: [first].into_iter().chain(runs).map(PathBuf::from).collect(),
            words: words.into_iter().cloned().collect(),
            settings: &self.settings,
            part: if self.test { Part::Test } else { Part::Validation },
            device: self.device.device,
            out: self
                .out
                .as_deref()
                .map(|out| ComparisonFolder { path: out.into(), overwrite: self.overwrite }),
        }))
    }

    fn begin(&self) -> Result<Begun> {
        if let Some(folder) = &self.resume {
            let (task, options, mut comparison) =
                Comparison::open(folder).context("no comparison can be gone on with")?;
            if self.test {
                comparison.part = Part::Test;
            }
            comparison.device = self.device.device;
            return Ok(Begun { task, options, comparison, folder: folder.clone() });
        }
        let Some(task) = &self.task else { bail!("no task is named") };
        let task = task_named(task)?;
        let options = self.settings.apply_to_task(task, &self.words)?;
        let variants = match self.over.is_empty() {
            true => task.comparison(),
            false => variants(&self.over)?,
        };
        let part = if self.test { Part::Test } else { Part::Validation };
        let usual = Path::new("runs").join(format!("compare-{}", task.name()));
        let folder = self.out.clone().unwrap_or_else(|| Run::free(&usual));
        ComparisonFolder { path: folder.clone(), overwrite: self.overwrite }.check()?;
        let device = self.device.device;
        let comparison = Comparison { variants, seeds: self.seeds.into(), part, device };
        Ok(Begun { task, options, comparison, folder })
    }
}

/// Whether a word names a run and no task.
fn is_run(word: &str) -> bool {
    task_named(word).is_err() && (Path::new(word).is_dir() || word.contains(['/', '\\']))
}

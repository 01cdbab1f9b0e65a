//! `regard train`: trains a model on a task.

use super::interrupt::Interrupted;
use super::threads::Threads;
use super::{Settings, progress::ProgressReport, show, table};
use anyhow::{Result, bail};
use clap::Args;
use regard_tasks::picture::Caption;
use regard_tasks::{Ended, Learner, Options, Record, Run, TrainingConfig, task_named, train};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Train a model on a task: embedded data, or your own
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard train translate                                  # embedded data, about a minute
  regard train label --set encoder=transformer --set epochs=5
  regard train translate --config translate.toml --out runs/mine
  regard train --resume runs/mine                         # goes on where it stopped

`regard init TASK` writes a configuration in which every option is commented.")]
pub struct Command {
    /// regress, translate, summarize, transcribe, caption, answer, label, classify, image or graph
    #[arg(required_unless_present = "resume")]
    task: Option<String>,
    #[command(flatten)]
    settings: Settings,
    /// Where the run is kept [default: runs/TASK, or the next free name]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Go on with the run in this folder where it stopped
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["out", "config", "sets", "encoding"])]
    resume: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
}

impl Command {
    /// Trains, and says what came of it.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.threads.start()?;
        let (run, options, mut learner) = self.begin()?;
        let config = TrainingConfig::of(&options)?;
        let mut report = ProgressReport::new();
        let ended = train(learner.as_mut(), &config, &run, &mut report)?;
        drop(report);
        let folder = run.folder().display();
        match ended {
            Ended::Stopped => {
                writeln!(to, "stopped; `regard train --resume {folder}` goes on")?;
                return Err(Interrupted.into());
            }
            Ended::Early => {
                writeln!(to, "stopped early: no better for {} validations", config.patience)?
            }
            Ended::Done => {}
        }
        summary(&run, &options, learner.as_ref(), to)
    }

    /// A new run, or one to go on with.
    fn begin(&self) -> Result<(Run, Options, Box<dyn Learner>)> {
        let named = self.task.as_deref().map(task_named).transpose()?;
        if let Some(folder) = &self.resume {
            let run = Run::open(folder)?;
            let (task, options) = (run.task()?, run.options()?);
            if named.is_some_and(|named| named.name() != task.name()) {
                bail!("{} is a run of `{}`", folder.display(), task.name());
            }
            let learner = task.begin(&options)?;
            run.check_vocabulary(learner.model())?;
            return Ok((run, options, learner));
        }
        let Some(task) = named else { bail!("no task is named") };
        let options = self.settings.apply(task.options()?)?;
        let learner = task.begin(&options)?;
        let usual = || Run::free(&Path::new("runs").join(task.name()));
        let folder = self.out.clone().unwrap_or_else(usual);
        let run = Run::create(&folder, task, &options, learner.model())?;
        Ok((run, options, learner))
    }
}

/// What came of a training: measures of the best epoch, three predictions, a picture.
fn summary(run: &Run, options: &Options, learner: &dyn Learner, to: &mut impl Write) -> Result<()> {
    let records = Record::read(run, usize::MAX)?;
    let Some(best) = records.iter().rfind(|record| record.best) else {
        bail!("no epoch of the run in {} was any good", run.folder().display());
    };
    let last = records.last().map_or(best.epoch, |record| record.epoch);
    writeln!(to, "\nbest epoch {} of {last}, on the validation part:", best.epoch)?;
    for (name, value) in &best.validation.values {
        writeln!(to, "  {name:<12} {}", table::measure(*value))?;
    }
    let model = run.model(options)?;
    let inputs = learner.samples(3);
    if !inputs.is_empty() {
        writeln!(to, "\nsamples:")?;
    }
    for prediction in model.predict(&inputs)? {
        writeln!(to, "  {} → {}", prediction.input, prediction.output)?;
    }
    writeln!(to, "\nrun       {}", run.folder().display())?;
    writeln!(to, "curves    {}", run.path("curves.svg").display())?;
    if let Some(input) = inputs.first()
        && let Ok(scenes) = model.show(input)
        && let Some((name, scene)) = scenes.first()
    {
        let file = run.path(&format!("{name}.png"));
        let caption = Caption::of(run, model.as_ref(), name, input)?;
        regard::tensor::write_whole(&file, &show::png(scene, &caption)?)?;
        writeln!(to, "attention {}", file.display())?;
    }
    writeln!(to, "\nnext: `regard show {0} INPUT`, `regard eval {0}`", run.folder().display())?;
    Ok(())
}

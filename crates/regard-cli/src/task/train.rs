//! `regard train`: trains a model on a task.

use super::interrupt::Interrupted;
use super::phase_bar::{self, PhaseBar};
use super::progress::{ProgressReport, TRAINING_BYTES};
use super::threads::Threads;
use super::{Settings, show, table};
use crate::limits::Limits;
use crate::output::{Destination, note};
use anyhow::{Result, bail};
use clap::Args;
use regard::tensor::limit_parameters;
use regard_tasks::picture::Caption;
use regard_tasks::{
    Ended, Learner, Model, Options, Record, Run, TrainingConfig, task_named, train,
};
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
  regard train --resume runs/mine --set epochs=20         # trains further

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
    /// Go on with the run in this folder where it stopped; with --set epochs=N until epoch N
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["out", "config", "encoding"])]
    resume: Option<PathBuf>,
    /// Replace the run in the folder of --out, where there is one
    #[arg(long, conflicts_with = "resume", requires = "out")]
    overwrite: bool,
    #[command(flatten)]
    threads: Threads,
}

impl Command {
    /// Trains, and says what came of it.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.threads.start()?;
        limit_memory();
        let _phases = PhaseBar::new();
        let (run, options, mut learner) = self.begin()?;
        let config = TrainingConfig::of(&options)?;
        learner.notes().iter().for_each(|text| note(text));
        let mut report = ProgressReport::new();
        let ended = train(learner.as_mut(), &config, &run, &mut report)?;
        let folder = run.folder().display();
        phase_bar::clear();
        match ended {
            Ended::Stopped => {
                writeln!(to, "stopped; `regard train --resume {folder}` goes on")?;
                return Err(Interrupted.into());
            }
            Ended::Early => {
                let waited = table::count(config.patience, "validation", "validations");
                writeln!(to, "stopped early: no better for {waited}")?
            }
            Ended::Done => {}
        }
        let told = summary(&run, &options, learner.as_ref(), to);
        drop(report);
        told
    }

    /// A new run, or one to go on with.
    fn begin(&self) -> Result<(Run, Options, Box<dyn Learner>)> {
        let named = self.task.as_deref().map(task_named).transpose()?;
        if let Some(folder) = &self.resume {
            let run = Run::resume(folder)?;
            let task = run.task()?;
            if named.is_some_and(|named| named.name() != task.name()) {
                bail!("{} is a run of `{}`", folder.display(), task.name());
            }
            let options = self.further(&run)?;
            let learner = task.begin(&options).map_err(|error| options.explain(error))?;
            run.check_vocabulary(learner.model())?;
            if !self.settings.sets.is_empty() {
                run.set_options(&options)?;
            }
            return Ok((run, options, learner));
        }
        let Some(task) = named else { bail!("no task is named") };
        let options = self.settings.apply(task.options()?)?;
        let usual = || Run::free(&Path::new("runs").join(task.name()));
        let folder = self.out.clone().unwrap_or_else(usual);
        // Told before data are read for minutes.
        Run::check_free(&folder, self.overwrite)?;
        let learner = task.begin(&options).map_err(|error| options.explain(error))?;
        let run = match self.overwrite {
            true => Run::overwrite(&folder, task, &options, learner.model())?,
            false => Run::create(&folder, task, &options, learner.model())?,
        };
        Ok((run, options, learner))
    }

    /// The options of a run to go on with: what says how long may be other than before.
    fn further(&self, run: &Run) -> Result<Options> {
        let options = self.settings.apply(run.options()?)?;
        run.check_further(&options)?;
        Ok(options)
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
    write!(to, "{}", table::measures(&best.validation.values))?;
    let model = run.model(options)?;
    let inputs = learner.samples(3);
    if !inputs.is_empty() {
        writeln!(to, "\nsamples:")?;
    }
    for prediction in model.predict(&inputs)? {
        let [input, output] = [&prediction.input, &prediction.output].map(|x| table::short(x));
        writeln!(to, "  {input} → {output}")?;
    }
    writeln!(to, "\nrun       {}", run.folder().display())?;
    writeln!(to, "curves    {}", run.path("curves.svg").display())?;
    let attends = match inputs.first() {
        Some(input) => picture(run, model.as_ref(), input, to)?,
        None => false,
    };
    let folder = run.folder().display();
    let show = if attends { format!("`regard show {folder} INPUT`, ") } else { String::new() };
    writeln!(to, "\nnext: {show}`regard eval {folder}`")?;
    Ok(())
}

/// Draws what the model attends to for an input; gives whether it attends to anything. The model is
/// trained: what cannot be drawn is said, and no more.
fn picture(run: &Run, model: &dyn Model, input: &str, to: &mut impl Write) -> Result<bool> {
    let Ok(scenes) = model.show(input) else { return Ok(false) };
    let Some((name, scene)) = scenes.first() else { return Ok(false) };
    let file = run.path(&format!("{name}.png"));
    let drawn = Caption::of(run, model, name, input)
        .map_err(Into::into)
        .and_then(|caption| show::png(scene, &caption));
    match drawn.and_then(|png| Destination::new(&file).write(&png, to)) {
        Ok(()) => writeln!(to, "attention {}", file.display())?,
        Err(error) => note(&format!("no picture of the attention: {error:#}")),
    }
    Ok(true)
}

/// Refuses models that would take more memory than there is, while they are built: parameters,
/// gradients and optimizer, and once more what a checkpoint holds of them while it is written.
fn limit_memory() {
    const CHECKPOINT_BYTES: usize = 12;
    let free = Limits::of_machine().bytes;
    limit_parameters(free / (TRAINING_BYTES + CHECKPOINT_BYTES));
}

//! `regard train`: trains a model on a task.

use super::device::DeviceOption;
use super::interrupt::{self, Interrupted};
use super::phase_bar::{self, PhaseBar};
use super::progress::{ProgressReport, TRAINING_BYTES};
use super::settings::{Settings, TaskName, check_words};
use super::threads::Threads;
use super::{show, table};
use crate::heap;
use crate::limits::Limits;
use crate::output::{Destination, note};
use crate::sentence::sentence;
use anyhow::{Result, bail};
use clap::Args;
use regard::tensor::limit_parameters;
use regard_data::{SampledFile, SampledUnit, remarked, sampled};
use regard_tasks::options::{Options, TrainingConfig};
use regard_tasks::run::{Record, Run};
use regard_tasks::task::{Input, Learner, Model, Task};
use regard_tasks::tasks::task_named;
use regard_tasks::train::{Callback, Ended, Rehearsal, rehearse, train};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Train a model on a task: embedded data, or your own
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard train translate                                  # embedded data, about a minute
  regard train label encoder=transformer epochs=5
  regard train translate --config translate.toml --out runs/mine
  regard train label --dry-run                            # what it would take
  regard train --resume runs/mine                         # goes on where it stopped
  regard train --resume runs/mine epochs=20               # trains further

`regard options TASK` and `regard train TASK --help` say what can be set; `regard init TASK` writes
it all into a file, with comments.")]
pub struct Command {
    /// Which task
    #[arg(required_unless_present = "resume", value_parser = TaskName)]
    task: Option<String>,
    /// Options of the task, as `regard options TASK` lists them
    #[arg(value_name = "KEY=VALUE")]
    words: Vec<String>,
    #[command(flatten)]
    settings: Settings,
    /// Where the run is kept [default: runs/TASK, or the next free name]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Go on with the run in this folder where it stopped; with epochs=N until epoch N
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["out", "config", "encoding"])]
    resume: Option<PathBuf>,
    /// Replace the run in the folder of --out, where there is one
    #[arg(long, conflicts_with = "resume", requires = "out")]
    overwrite: bool,
    /// Read the data, check the options, try a few batches, say what it would take, and write nothing
    #[arg(long, conflicts_with = "resume")]
    dry_run: bool,
    #[command(flatten)]
    device: DeviceOption,
    #[command(flatten)]
    threads: Threads,
}

impl Command {
    /// Trains, and says what came of it.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.threads.start()?;
        limit_memory();
        let _phases = PhaseBar::new();
        if self.dry_run {
            return self.rehearse(to);
        }
        let (begun, remarks) = remarked(|| self.begin());
        remarks.iter().for_each(|text| note(text));
        let (run, options, mut learner) = begun?;
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
        let (named, words) = self.task_and_words()?;
        if let Some(folder) = &self.resume {
            let run = Run::resume(folder)?;
            let task = run.task()?;
            if named.is_some_and(|named| named.name() != task.name()) {
                bail!("{} is a run of `{}`", folder.display(), task.name());
            }
            let options = self.further(&run, &words)?;
            let learner = task.begin(&options).map_err(|error| options.explain(error))?;
            run.check_vocabulary(learner.model())?;
            self.device.place(learner.model())?;
            if options != run.options()? {
                run.set_options(&options)?;
            }
            return Ok((run, options, learner));
        }
        let Some(task) = named else { bail!("no task is named") };
        let New { options, folder, learner } = self.begin_new(task, &words)?;
        let run = match self.overwrite {
            true => Run::overwrite(&folder, task, &options, learner.model())?,
            false => Run::create(&folder, task, &options, learner.model())?,
        };
        Ok((run, options, learner))
    }

    /// What a new run begins with; nothing is written yet.
    fn begin_new(&self, task: &'static dyn Task, words: &[String]) -> Result<New> {
        let options = self.settings.apply_to_task(task, words)?;
        let usual = || Run::free(&Path::new("runs").join(task.name()));
        let folder = self.out.clone().unwrap_or_else(usual);
        // Told before data are read for minutes.
        Run::check_free(&folder, self.overwrite)?;
        let learner = task.begin(&options).map_err(|error| options.explain(error))?;
        // A device that is not there costs no run that is.
        self.device.place(learner.model())?;
        Ok(New { options, folder, learner })
    }

    /// Says what a training would take, and writes nothing.
    fn rehearse(&self, to: &mut impl Write) -> Result<()> {
        let (Some(task), words) = self.task_and_words()? else { bail!("no task is named") };
        interrupt::listen();
        // Whoever wants to know what it would take does not want to wait for all of it.
        let ((mut tried, mut remarks), mut files) =
            sampled(|| remarked(|| self.tried(task, &words)));
        if tried.is_err() && files.iter().any(SampledFile::is_cut) && !interrupt::asked() {
            // What a beginning lacks the rest may have.
            ((tried, remarks), files) = (remarked(|| self.tried(task, &words)), Vec::new());
        }
        remarks.iter().for_each(|text| note(text));
        let Tried { options, folder, notes, rehearsal } = tried?;
        notes.iter().for_each(|text| note(text));
        let Rehearsal { plan, tried, examples, seconds } = rehearsal;
        let more = times_more(&options, &files);
        let batches = plan.batches as f64 * more;
        let epoch = seconds * batches;
        let mut line = |name: &str, text: String| writeln!(to, "{name:<12} {text}");
        line("task", task.name().into())?;
        line("run", format!("{}, which is not written", folder.display()))?;
        let cut: Vec<&SampledFile> = files.iter().filter(|file| file.is_cut()).collect();
        for file in &cut {
            line("data", how_far(file))?;
        }
        let parameters = table::number(plan.parameters);
        line(
            "parameters",
            match cut.is_empty() {
                true => parameters,
                false => format!("{parameters}, with the words and labels of these"),
            },
        )?;
        let batches = match more > 1.0 {
            false => table::count(plan.batches, "batch", "batches"),
            true => format!("about {} batches", table::number(batches.round() as usize)),
        };
        line("epochs", format!("{} of {batches}", plan.epochs))?;
        let free = match Limits::of_machine().bytes {
            usize::MAX => String::new(),
            free => format!("; {} are free", table::bytes(free)),
        };
        let so_far = if cut.is_empty() { "so far" } else { "for these" };
        line("memory", format!("{} {so_far}{free}", table::bytes(heap::peak())))?;
        let all = table::seconds(epoch * plan.epochs as f64);
        let tried = match tried {
            0 => format!("{} of a batch", table::count(examples, "example", "examples")),
            tried => table::count(tried, "batch", "batches"),
        };
        line(
            "time",
            format!(
                "about {all} of training, {} an epoch, by a trial of {tried}; validation comes on top",
                table::seconds(epoch)
            ),
        )?;
        Ok(())
    }

    /// A training that is tried on the beginning of its data.
    fn tried(&self, task: &'static dyn Task, words: &[String]) -> Result<Tried> {
        let New { options, folder, mut learner } = self.begin_new(task, words)?;
        let config = TrainingConfig::of(&options)?;
        let notes = learner.notes();
        let rehearsal = rehearse(learner.as_mut(), &config, &mut Notes)?;
        Ok(Tried { options, folder, notes, rehearsal })
    }

    /// The task, where one is named, and the words that set options: a run to go on with knows its
    /// task, so that the first word may be a setting.
    fn task_and_words(&self) -> Result<(Option<&'static dyn Task>, Vec<String>)> {
        let mut words = self.words.clone();
        match &self.task {
            Some(word) if word.contains('=') && self.resume.is_some() => {
                words.insert(0, word.clone());
                Ok((None, words))
            }
            Some(word) if word.contains('=') => bail!("no task is named before `{word}`"),
            Some(task) => Ok((Some(task_named(task)?), words)),
            None => Ok((None, words)),
        }
    }

    /// The options of a run to go on with: what says how long may be other than before.
    fn further(&self, run: &Run, words: &[String]) -> Result<Options> {
        check_words(words, run.task()?.name())?;
        let options = self.settings.apply(run.options()?, words)?;
        run.check_further(&options)?;
        Ok(options)
    }
}

/// What a new run begins with.
struct New {
    options: Options,
    folder: PathBuf,
    learner: Box<dyn Learner>,
}

/// What a training that was tried tells.
struct Tried {
    options: Options,
    folder: PathBuf,
    notes: Vec<String>,
    rehearsal: Rehearsal,
}

/// What was read of a file, folder or list.
fn how_far(file: &SampledFile) -> String {
    let (count, path) = (table::number(file.lines), file.path.display());
    let (used, size) = (table::bytes(file.used as usize), table::bytes(file.size as usize));
    let all = || table::number(file.size as usize);
    match (file.unit, file.path.is_dir()) {
        (SampledUnit::Lines, _) => {
            format!("from the first {count} lines of {path}, {used} of {size}")
        }
        (SampledUnit::Files, false) => format!("from {count} of the files that {path} lists"),
        (SampledUnit::Files, true) => format!("from {count} of the {} files in {path}", all()),
        (SampledUnit::Examples, _) => format!("from {count} of {} {path}", all()),
    }
}

/// How many times more there is to learn than the lines of the training files that were read.
fn times_more(options: &Options, files: &[SampledFile]) -> f64 {
    let training: Vec<PathBuf> = options
        .names()
        .iter()
        .filter(|name| name.starts_with("data.train"))
        .filter_map(|name| options.get(name))
        .flat_map(|value| match value.as_array() {
            Some(all) => all.clone(),
            None => vec![value.clone()],
        })
        .filter_map(|value| value.as_str().map(PathBuf::from))
        .collect();
    let own: Vec<&SampledFile> =
        files.iter().filter(|file| training.contains(&file.path)).collect();
    let made = files.iter().filter(|file| file.unit == SampledUnit::Examples).collect();
    let own = [own, made, files.iter().collect()].into_iter().find(|some| !some.is_empty());
    let own = own.unwrap_or_default();
    let used: f64 = own.iter().map(|file| file.used).sum();
    let size: f64 = own.iter().map(|file| file.size as f64).sum();
    if used > 0.0 { (size / used).max(1.0) } else { 1.0 }
}

/// Says what is said before the first batch; a training that is only tried has no progress.
struct Notes;

impl Callback for Notes {
    fn note(&mut self, text: &str) {
        note(text);
    }

    fn stop(&self) -> bool {
        interrupt::asked()
    }
}

/// What came of a training: measures of the best epoch, three predictions, a picture.
fn summary(run: &Run, options: &Options, learner: &dyn Learner, to: &mut impl Write) -> Result<()> {
    let records = Record::read(run, usize::MAX)?;
    let Some(best) = records.iter().rfind(|record| record.best) else {
        bail!("no epoch of the run in {} gave a measure that is a number", run.folder().display());
    };
    let last = records.last().map_or(best.epoch, |record| record.epoch);
    writeln!(to, "\nbest epoch {} of {last}, on the validation part:", best.epoch)?;
    write!(to, "{}", table::measures(&best.validation.values))?;
    let model = run.model(options)?;
    let inputs: Vec<Input> = learner.samples(3).into_iter().map(Input::from).collect();
    // A picture is no line of text: what was drawn is in the picture of the attention.
    let written = if model.asks().draws { &inputs[..0] } else { &inputs[..] };
    if !written.is_empty() {
        writeln!(to, "\nsamples:")?;
    }
    for prediction in model.predict(written)? {
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
fn picture(run: &Run, model: &dyn Model, input: &Input, to: &mut impl Write) -> Result<bool> {
    let Ok(scenes) = model.show(input) else { return Ok(false) };
    let Some((name, scene)) = scenes.first() else { return Ok(false) };
    let file = run.path(&format!("{name}.png"));
    let drawn = run
        .caption(model, name, input)
        .map_err(Into::into)
        .and_then(|caption| show::png(scene, &caption));
    match drawn.and_then(|png| Destination::new(&file).write(&png, to)) {
        Ok(()) => writeln!(to, "attention {}", file.display())?,
        Err(error) => note(&format!("no picture of the attention: {}", sentence(&error))),
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

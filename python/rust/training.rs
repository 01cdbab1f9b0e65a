//! Training in Python's process, alone or as one of several ranks.

use crate::line::{Answer, Event, Line, Pool, serve};
use pyo3::prelude::*;
use regard::tensor::{Device, limit_parameters};
use regard_data::remarked;
use regard_tasks::options::{Options, TrainingConfig};
use regard_tasks::run::{Record, Run};
use regard_tasks::task::{Learner, Placement, Task};
use regard_tasks::tasks::task_named;
use regard_tasks::train::{Callback, Ended, Plan, Progress, Ranks, share, train, train_together};
use regard_tasks::{Error, Result};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Batches that come sooner after one that was told of are not told of.
const PACE: Duration = Duration::from_millis(100);

/// What is to be trained.
#[derive(FromPyObject)]
pub(crate) struct Request {
    /// The task; none where a run says.
    task: Option<String>,
    /// Where the run is kept; none for the next free name.
    out: Option<PathBuf>,
    /// The run to go on with.
    resume: Option<PathBuf>,
    overwrite: bool,
    /// A file of options.
    config: Option<PathBuf>,
    /// Options, `key=value`, the value in TOML.
    settings: Vec<String>,
    threads: usize,
    /// Where it is trained: `cpu`, `cuda:0`, `auto`.
    device: String,
    /// Bytes of memory that are free.
    memory: usize,
    /// Which rank this is, and how many there are.
    rank: usize,
    ranks: usize,
}

/// Bytes of a training for each parameter: its value, its gradient, the optimizer's two means, and
/// once more what a checkpoint holds of them while it is written.
const PARAMETER_BYTES: usize = 28;

/// A run's folder, and how its training ended: done, early or stopped.
type Outcome = (PathBuf, &'static str);

/// Trains, and gives the run's folder and how it ended.
#[pyfunction]
pub(crate) fn train_run(
    py: Python<'_>,
    request: Request,
    listener: &Bound<'_, PyAny>,
) -> PyResult<Outcome> {
    // A model that does not fit is refused while it is built; it would end the interpreter.
    limit_parameters(request.memory / PARAMETER_BYTES);
    serve(py, Pool::Own(request.threads), Some(listener), |line| {
        let mut told = Told { line, last: None, stop: false };
        let (folder, ended) = match request.ranks {
            1 => request.alone(&mut told)?,
            size => {
                let mut ranks = Group { line, rank: request.rank, size };
                request.together(&mut ranks, &mut told)?
            }
        };
        let ended = match ended {
            Ended::Done => "done",
            Ended::Early => "early",
            Ended::Stopped => "stopped",
        };
        Ok((folder, ended))
    })
}

/// A run that is there already, or the folder of one to come.
enum Place {
    Run(Run),
    Folder(PathBuf),
}

impl Place {
    fn folder(&self) -> &Path {
        match self {
            Self::Run(run) => run.folder(),
            Self::Folder(folder) => folder,
        }
    }
}

impl Request {
    /// Moves the model to its device, and says so where nobody named it.
    fn place(&self, learner: &dyn Learner, told: &mut Told) -> Result<()> {
        let placement: Placement = self.device.parse()?;
        let device = placement.place(learner.model())?;
        if placement == Placement::Auto && device != Device::Cpu {
            let said = format!("computes on {device}; device=\"cpu\" computes on the CPU");
            told.line.tell(Event::Line(said));
        }
        Ok(())
    }

    fn alone(&self, told: &mut Told) -> Result<(PathBuf, Ended)> {
        let (task, options, place) = told.noting(|| self.plan())?;
        let mut learner =
            told.noting(|| task.begin(&options)).map_err(|error| options.explain(error))?;
        // A device that is not there costs no run that is.
        self.place(learner.as_ref(), told)?;
        let run = self.begin(task, &options, place, learner.as_ref())?;
        told.begun(&run, learner.as_ref());
        let ended = train(learner.as_mut(), &TrainingConfig::of(&options)?, &run, told)?;
        Ok((run.folder().into(), ended))
    }

    /// Rank 0 says what is trained and where; the others do as it says.
    fn together(&self, ranks: &mut Group, told: &mut Told) -> Result<(PathBuf, Ended)> {
        let plan = (self.rank == 0).then(|| told.noting(|| self.plan()));
        let said = plan.as_ref().map(|plan| match plan {
            Ok((task, options, place)) => {
                Ok(serde_json::json!([task.name(), options.to_string(), place.folder()])
                    .to_string()
                    .into_bytes())
            }
            Err(error) => Err(error.to_string()),
        });
        let said = share(ranks, said);
        let plan = plan.transpose()?;
        let said = said?;
        let (task, text, folder): (String, String, PathBuf) =
            serde_json::from_slice(&said).map_err(|e| Error::invalid(e.to_string()))?;
        let task = task_named(&task)?;
        // Rank 0 has refused what would have no effect.
        let options =
            task.options()?.text(Path::new("the options of rank 0"), &text)?.set_by_nobody();
        let mut learner = match self.rank {
            0 => told.noting(|| task.begin(&options)),
            _ => task.begin(&options),
        }
        .map_err(|error| options.explain(error))?;
        let run = plan.map(|(task, options, place)| -> Result<Run> {
            self.place(learner.as_ref(), told)?;
            let run = self.begin(task, &options, place, learner.as_ref())?;
            told.begun(&run, learner.as_ref());
            Ok(run)
        });
        // Where it cannot begin, the others hear why.
        let began = run.as_ref().map(|run| match run {
            Ok(_) => Ok(Vec::new()),
            Err(error) => Err(error.to_string()),
        });
        let heard = share(ranks, began);
        let run = run.transpose()?;
        heard?;
        let config = TrainingConfig::of(&options)?;
        if run.is_none() {
            self.place(learner.as_ref(), told)?;
        }
        let ended = train_together(learner.as_mut(), &config, run.as_ref(), ranks, told)?;
        Ok((folder, ended))
    }

    /// The task, its options and its place; refuses a place that is taken before data are read.
    fn plan(&self) -> Result<(&'static dyn Task, Options, Place)> {
        let named = self.task.as_deref().map(task_named).transpose()?;
        let apply = |options: Options| -> Result<Options> {
            let options = match &self.config {
                Some(file) => options.file(file)?,
                None => options,
            };
            self.settings.iter().try_fold(options, |options, setting| options.set(setting))
        };
        if let Some(folder) = &self.resume {
            let run = Run::resume(folder)?;
            let task = run.task()?;
            if named.is_some_and(|named| named.name() != task.name()) {
                return Err(Error::file(folder, format!("is a run of `{}`", task.name())));
            }
            let options = apply(run.options()?)?;
            run.check_further(&options)?;
            return Ok((task, options, Place::Run(run)));
        }
        let task = named.ok_or_else(|| Error::invalid("no task is named"))?;
        let options = apply(task.options()?)?;
        options.check_requirements()?;
        let usual = || Run::free(&Path::new("runs").join(task.name()));
        let folder = self.out.clone().unwrap_or_else(usual);
        Run::check_free(&folder, self.overwrite)?;
        Ok((task, options, Place::Folder(folder)))
    }

    /// The run, once its learner is there.
    fn begin(
        &self,
        task: &dyn Task,
        options: &Options,
        place: Place,
        learner: &dyn Learner,
    ) -> Result<Run> {
        match place {
            Place::Run(run) => {
                run.check_vocabulary(learner.model())?;
                if !self.settings.is_empty() || self.config.is_some() {
                    run.set_options(options)?;
                }
                Ok(run)
            }
            Place::Folder(folder) => match self.overwrite {
                true => Run::overwrite(&folder, task, options, learner.model()),
                false => Run::create(&folder, task, options, learner.model()),
            },
        }
    }
}

/// Tells Python of a training.
struct Told<'a> {
    line: &'a Line,
    /// When a batch was told of last.
    last: Option<Instant>,
    /// Whether the listener wants no more.
    stop: bool,
}

impl Told<'_> {
    /// Does something, and tells what was remarked on the way.
    fn noting<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let (done, remarks) = remarked(work);
        remarks.iter().for_each(|text| self.note(text));
        done
    }

    /// Where the run is, and what should be known before it is trained.
    fn begun(&mut self, run: &Run, learner: &dyn Learner) {
        self.line.tell(Event::Place(run.folder().into()));
        learner.notes().iter().for_each(|text| self.note(text));
    }
}

impl Callback for Told<'_> {
    fn note(&mut self, text: &str) {
        self.line.tell(Event::Note(text.into()));
    }

    fn begin(&mut self, plan: &Plan) {
        self.line.tell(Event::Begin(*plan));
    }

    fn batch(&mut self, progress: &Progress) {
        if self.last.is_none_or(|last| last.elapsed() >= PACE) {
            self.last = Some(Instant::now());
            self.line.tell(Event::Batch(*progress));
        }
    }

    fn epoch(&mut self, record: &Record) {
        let answer = self.line.ask(Event::Epoch(Box::new(record.clone())));
        self.stop |= matches!(answer, Answer::Failed);
    }

    fn stop(&self) -> bool {
        self.stop || self.line.stop()
    }
}

/// The ranks of a process group that Python has.
struct Group<'a> {
    line: &'a Line,
    rank: usize,
    size: usize,
}

impl Ranks for Group<'_> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_reduce(&mut self, numbers: &mut Vec<f32>) -> Result<()> {
        match self.line.ask(Event::AllReduce(std::mem::take(numbers))) {
            Answer::Numbers(sums) => *numbers = sums,
            _ => return Err(gone()),
        }
        Ok(())
    }

    fn broadcast(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        match self.line.ask(Event::Broadcast(std::mem::take(bytes))) {
            Answer::Bytes(all) => *bytes = all,
            _ => return Err(gone()),
        }
        Ok(())
    }
}

/// What Python raised says more, and is what whoever called is told.
fn gone() -> Error {
    Error::invalid("the other ranks cannot be reached")
}

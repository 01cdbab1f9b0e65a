//! Mechanisms side by side: the same data and seeds, one table.

use crate::compare::folder::ComparisonFolder;
use crate::metric::permutation_test;
use crate::metric::scores::Scores;
use crate::options::template::Options;
use crate::options::training::TrainingConfig;
use crate::run::folder::Run;
use crate::run::lock::RunLock;
use crate::run::record::Record;
use crate::task::json_file::JsonFile;
use crate::task::learner::Learner;
use crate::task::part::Part;
use crate::task::placement::Placement;
use crate::task::report::{Groups, PerExample};
use crate::task::{Task, Variant};
use crate::tasks::task_named;
use crate::train::callback::Callback;
use crate::train::trainer::{Ended, train};
use regard::tensor::write_whole;
use regard_data::{Error, Result, remark};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// How much memory is in use at most: the program's allocator knows.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// Begins to count anew, from what is in use now.
    pub reset: fn(),
    /// The most bytes in use since.
    pub peak: fn() -> usize,
}

impl Meter {
    /// Bytes in use now; counts the peak anew.
    fn in_use(&self) -> usize {
        (self.reset)();
        (self.peak)()
    }
}

/// A variant whose data have been read and whose model has been built, and the memory of it.
struct Begun {
    learner: Box<dyn Learner>,
    /// Bytes it holds while another variant is trained.
    held: usize,
    /// The most bytes in use while it was begun.
    peak: usize,
}

impl Begun {
    fn new(task: &dyn Task, options: &Options, meter: Meter, device: Placement) -> Result<Self> {
        let before = meter.in_use();
        let learner = task.begin(options).map_err(|error| options.explain(error))?;
        // A device that is not there costs no comparison that is.
        device.place(learner.model())?;
        let peak = (meter.peak)().saturating_sub(before);
        let held = meter.in_use().saturating_sub(before);
        Ok(Self { learner, held, peak })
    }
}

/// What is compared: it stands in the folder, so that a comparison can be gone on with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The variants.
    pub variants: Vec<Variant>,
    /// How many seeds each is trained with.
    pub seeds: usize,
    /// The part that they are measured on.
    pub part: Part,
    /// Where they are trained and measured; not kept, as in a run.
    #[serde(skip)]
    pub device: Placement,
}

/// What `comparison-plan.json` says.
#[derive(Serialize, Deserialize)]
struct Plan {
    task: String,
    #[serde(flatten)]
    comparison: Comparison,
}

pub(crate) const PLAN: &str = "comparison-plan.json";
pub(crate) const CONFIG: &str = "config.toml";

impl Comparison {
    /// The comparison that a folder holds, with its task and its options, to go on with.
    pub fn open(folder: &Path) -> Result<(&'static dyn Task, Options, Self)> {
        if !folder.join(PLAN).exists() {
            let what =
                format!("there is no {PLAN}; a folder in which variants are trained has one");
            return Err(Error::file(folder, what));
        }
        let plan: Plan = JsonFile::read(&folder.join(PLAN))?.parse()?;
        let task = task_named(&plan.task).map_err(|e| Error::file(folder.join(PLAN), e))?;
        let options = task.options()?.file_of_run(&folder.join(CONFIG))?;
        let held_out = options
            .names()
            .iter()
            .any(|name| name.starts_with("data.train") && options.get(name).is_some());
        if plan.comparison.seeds > 1
            && held_out
            && !options.says_held_out_seed(&folder.join(CONFIG))?
        {
            let what = "this comparison was begun by a version that held out other examples for every \
                        seed; begin it anew with `--overwrite`, or in another folder";
            return Err(Error::file(folder, what));
        }
        Ok((task, options, plan.comparison))
    }

    /// Its seeds.
    fn seeds(&self, options: &Options) -> Result<Vec<u64>> {
        Ok((TrainingConfig::of(options)?.seed..).take(self.seeds).collect())
    }

    /// The folders of its runs: those of the first variant, then those of the next.
    pub(crate) fn folders(&self, folder: &Path, options: &Options) -> Result<Vec<PathBuf>> {
        let seeds = self.seeds(options)?;
        let names = folder_names(&self.variants);
        let of = |name: &String| seeds.iter().map(|seed| run_folder(folder, name, *seed)).collect();
        Ok(names.iter().flat_map(|name| -> Vec<PathBuf> { of(name) }).collect())
    }

    fn write(&self, folder: &Path, task: &dyn Task, options: &Options) -> Result<()> {
        let plan = Plan { task: task.name().into(), comparison: self.clone() };
        let plan = serde_json::to_string_pretty(&plan).map_err(|e| Error::file(folder, e))?;
        let options = options.clone().absolute_paths()?.to_string();
        write_whole(folder.join(CONFIG), options.as_bytes())?;
        Ok(write_whole(folder.join(PLAN), plan.as_bytes())?)
    }
}

/// What came of one variant and one seed: `measured.json` in the folder of its run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Measured {
    part: Part,
    parameters: usize,
    seconds: f64,
    peak_bytes: usize,
    scores: Scores,
    groups: Option<Groups>,
    #[serde(default)]
    places: Option<Groups>,
    each: Option<PerExample>,
}

const MEASURED: &str = "measured.json";

impl Measured {
    /// What a folder holds, where its run is done and was measured on this part.
    fn read(folder: &Path, part: Part) -> Option<Self> {
        let file = JsonFile::read(&folder.join(MEASURED)).ok()?;
        file.parse::<Self>().ok().filter(|measured| measured.part == part)
    }
}

/// What came of one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Its name.
    pub name: String,
    /// Its settings.
    pub settings: Vec<String>,
    /// Numbers in its model.
    pub parameters: usize,
    /// Seconds of training, on average over the seeds.
    pub seconds: f64,
    /// The most bytes it had in use while its data were read and while it was trained.
    pub peak_bytes: usize,
    /// Measures on the part, seed by seed.
    pub scores: Vec<Scores>,
    /// The first seed's measure over groups of examples, where the task has them.
    pub groups: Option<Groups>,
    /// The first seed's measure by the position in the source, where the task knows it.
    pub places: Option<Groups>,
    /// How likely a difference at least as large as that from the first variant is by chance, by a
    /// [`permutation_test`] over the examples, each with its mean over the seeds; none for the first
    /// itself.
    pub p: Option<f64>,
    /// What was told of each example, on average over the seeds: the same example with another seed is
    /// no other example.
    #[serde(skip)]
    pub each: Option<PerExample>,
}

/// What came of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The variants that are done with every seed.
    pub finished: Vec<Compared>,
    /// Whether it was stopped before all were.
    pub stopped: bool,
}

impl Compared {
    fn new(variant: &Variant, all: Vec<Measured>) -> Self {
        let seeds = all.len().max(1) as f64;
        let each = mean_of_seeds(all.iter().map(|measured| measured.each.as_ref()));
        Self {
            name: variant.name.clone(),
            settings: variant.settings.clone(),
            parameters: all.first().map_or(0, |measured| measured.parameters),
            seconds: all.iter().map(|measured| measured.seconds).sum::<f64>() / seeds,
            peak_bytes: all.iter().map(|measured| measured.peak_bytes).max().unwrap_or(0),
            groups: all.first().and_then(|measured| measured.groups.clone()),
            places: all.first().and_then(|measured| measured.places.clone()),
            scores: all.into_iter().map(|measured| measured.scores).collect(),
            p: None,
            each,
        }
    }

    /// A measure's mean and standard deviation over the seeds, by its place.
    pub fn spread(&self, measure: usize) -> (f64, f64) {
        let all: Vec<f64> =
            self.scores.iter().filter_map(|s| Some(s.values.get(measure)?.1)).collect();
        let n = all.len().max(1) as f64;
        let mean = all.iter().sum::<f64>() / n;
        let squares: f64 = all.iter().map(|x| (x - mean).powi(2)).sum();
        (mean, (squares / (n - 1.0).max(1.0)).sqrt())
    }
}

/// The mean over the seeds of what was told of each example; none where some seed told nothing, or
/// told it of other examples.
fn mean_of_seeds<'a>(seeds: impl Iterator<Item = Option<&'a PerExample>>) -> Option<PerExample> {
    let all: Vec<&PerExample> = seeds.collect::<Option<_>>()?;
    let first = all.first()?;
    let count = first.values.len();
    if all.iter().any(|one| one.values.len() != count) {
        return None;
    }
    let mean = |at: usize| all.iter().map(|one| one.values[at]).sum::<f64>() / all.len() as f64;
    Some(PerExample { measure: first.measure.clone(), values: (0..count).map(mean).collect() })
}

/// What the folders of variants are called, but for the seed.
fn folder_names(variants: &[Variant]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (at, variant) in variants.iter().enumerate() {
        let plain = |c: char| if c.is_alphanumeric() || c == '_' { c } else { '-' };
        let name: String = variant.name.chars().map(plain).take(100).collect();
        let taken = all.contains(&name);
        all.push(if taken { format!("{name}-{}", at + 1) } else { name });
    }
    all
}

fn run_folder(folder: &Path, name: &str, seed: u64) -> PathBuf {
    folder.join(format!("{name}-seed{seed}"))
}

/// The options of every variant; refuses two of the same settings, and a comparison over seeds.
fn options_of(options: &Options, variants: &[Variant]) -> Result<Vec<Options>> {
    let seed = TrainingConfig::of(options)?.seed;
    let mut all = Vec::new();
    for (at, variant) in variants.iter().enumerate() {
        let mut settings = variant.settings.iter();
        let options =
            settings.try_fold(options.clone(), |options, setting| options.set(setting))?;
        if variants[..at].iter().any(|other| other.name == variant.name) {
            return Err(Error::invalid(format!("`{}` is asked for twice", variant.name)));
        }
        if TrainingConfig::of(&options)?.seed != seed {
            return Err(Error::invalid(
                "`training.seed` is not compared over; `--seeds` varies it",
            ));
        }
        all.push(options);
    }
    Options::check_variants(&mut all).into_iter().for_each(remark);
    Ok(all)
}

/// One variant with one seed, in a folder of its own.
struct Trial<'a> {
    task: &'a dyn Task,
    options: Options,
    folder: PathBuf,
    part: Part,
    device: Placement,
}

impl Trial<'_> {
    /// Trains it, or goes on where it stopped, and measures it. None where it was stopped.
    fn run(
        &self,
        begun: Begun,
        meter: Meter,
        callback: &mut dyn Callback,
    ) -> Result<Option<Measured>> {
        let Begun { mut learner, held, peak } = begun;
        let run = match Run::resume(&self.folder) {
            Ok(run) => run,
            Err(_) => Run::create(&self.folder, self.task, &self.options, learner.model())?,
        };
        let config = TrainingConfig::of(&self.options)?;
        let before = meter.in_use();
        if train(learner.as_mut(), &config, &run, callback)? == Ended::Stopped {
            return Ok(None);
        }
        let trained = held + (meter.peak)().saturating_sub(before);
        let parameters = learner.model().learned();
        drop(learner);
        let seconds = Record::read(&run, usize::MAX)?.last().map_or(0.0, |last| last.seconds);
        let model = run.model(&self.options)?;
        self.device.place(model.as_ref())?;
        let report = match model.evaluate(self.part) {
            Err(Error::Stopped) => return Ok(None),
            report => report?,
        };
        let measured = Measured {
            part: self.part,
            parameters,
            seconds,
            peak_bytes: peak.max(trained),
            scores: report.scores,
            groups: report.groups,
            places: report.places,
            each: report.each,
        };
        let text = serde_json::to_string(&measured).map_err(|e| Error::file(&self.folder, e))?;
        run.write(MEASURED, text.as_bytes())?;
        Ok(Some(measured))
    }
}

/// Trains every variant with every seed in folders of its own and measures it; what the folder holds
/// already of the same comparison is not done again, unless that is overwritten. Every variant is
/// begun before the first is trained, so that a wrong setting costs no training; only the first is
/// kept, so that memory holds the data and the model of one variant, and the others are begun again
/// in their turn.
pub fn compare(
    task: &dyn Task,
    options: &Options,
    comparison: &Comparison,
    place: &ComparisonFolder,
    meter: Meter,
    mut callback: impl FnMut(&str) -> Box<dyn Callback>,
) -> Result<Outcome> {
    let Comparison { variants, part, device, .. } = comparison;
    let folder = &place.path;
    let mut all = options_of(options, variants)?;
    let is_varied = |key: &str| {
        let sets = |setting: &String| {
            setting
                .split('=')
                .next()
                .is_some_and(|name| name.trim().rsplit('.').next() == Some(key))
        };
        variants.iter().any(|variant| variant.settings.iter().any(sets))
    };
    if let Some((setting, why)) = task.alike(&all)?
        && !is_varied(setting.split('=').next().unwrap_or_default())
    {
        remark(format!("{} variants: {why}", variants.len()));
        let set = |options: Options| {
            let mut options = options.set(setting)?;
            // Nobody asked for it, and some variants may have no use for it.
            options.unset(&format!("model.{}", setting.split('=').next().unwrap_or_default()));
            Ok(options)
        };
        all = all.into_iter().map(set).collect::<Result<_>>()?;
    }
    let names = folder_names(variants);
    let seeds = comparison.seeds(options)?;
    let mut begun = None;
    // The last first: what is kept is the variant that is trained next.
    for (at, (options, name)) in all.iter().zip(&names).enumerate().rev() {
        let is_done =
            |&seed: &u64| Measured::read(&run_folder(folder, name, seed), *part).is_some();
        if place.overwrite || !seeds.first().is_none_or(is_done) {
            drop(begun.take());
            begun = Some((at, Begun::new(task, options, meter, *device)?));
        }
    }
    place.make()?;
    let _lock = RunLock::take(folder)?;
    comparison.write(folder, task, options)?;
    let mut finished = Vec::new();
    for (at, variant) in variants.iter().enumerate() {
        let mut measured = Vec::new();
        for &seed in &seeds {
            let options = all[at].clone().set(&format!("training.seed={seed}"))?;
            let folder = run_folder(folder, &names[at], seed);
            let trial = Trial { task, options, folder, part: *part, device: *device };
            if let Some(done) = Measured::read(&trial.folder, *part) {
                measured.push(done);
                continue;
            }
            // Another variant than this would only take up memory.
            let kept = begun.take().filter(|(of, _)| *of == at).map(|(_, begun)| begun);
            let begun = match kept {
                Some(begun) => begun,
                None => Begun::new(task, &trial.options, meter, *device)?,
            };
            let mut callback = callback(&format!("{}, seed {seed}", variant.name));
            match trial.run(begun, meter, callback.as_mut())? {
                Some(done) => measured.push(done),
                None => return Ok(Outcome { finished: tested(finished)?, stopped: true }),
            }
        }
        finished.push(Compared::new(variant, measured));
    }
    Ok(Outcome { finished: tested(finished)?, stopped: false })
}

/// With how likely each difference from the first variant is by chance.
pub(crate) fn tested(mut compared: Vec<Compared>) -> Result<Vec<Compared>> {
    let Some((first, others)) = compared.split_first_mut() else { return Ok(compared) };
    for other in others {
        if let (Some(a), Some(b)) = (&other.each, &first.each)
            && a.values.len() == b.values.len()
        {
            other.p = Some(permutation_test(&a.values, &b.values)?);
        }
    }
    Ok(compared)
}

//! Mechanisms side by side: the same data and seeds, one table.

use crate::{
    Callback, Ended, Error, Groups, Learner, Options, Part, Result, Run, Scores, Task,
    TrainingConfig, Variant, train,
};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

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
    fn new(task: &dyn Task, options: &Options, meter: Meter) -> Result<Self> {
        let before = meter.in_use();
        let learner = task.begin(options)?;
        let peak = (meter.peak)().saturating_sub(before);
        let held = meter.in_use().saturating_sub(before);
        Ok(Self { learner, held, peak })
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
    /// Measures on the test part, seed by seed.
    pub scores: Vec<Scores>,
    /// The first seed's measure over groups of examples, where the task has them.
    pub groups: Option<Groups>,
}

impl Compared {
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

/// All combinations of settings, `key=a,b,c` each.
///
/// ```
/// use regard_tasks::variants;
/// let all = variants(&["score=dot,additive".into(), "layers=1,2".into()])?;
/// let names: Vec<&str> = all.iter().map(|v| &v.name[..]).collect();
/// assert_eq!(names, ["dot, 1", "dot, 2", "additive, 1", "additive, 2"]);
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn variants(over: &[String]) -> Result<Vec<Variant>> {
    let mut all = vec![Variant { name: String::new(), settings: Vec::new() }];
    for choice in over {
        let (key, values) = choice
            .split_once('=')
            .filter(|(_, values)| !values.is_empty())
            .ok_or_else(|| Error::invalid(format!("`{choice}` is not of the form key=a,b,c")))?;
        let with = |variant: &Variant, value: &str| {
            let parts = [&variant.name[..], value];
            let name: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let settings = [&variant.settings[..], &[format!("{key}={value}")]].concat();
            Variant { name: name.join(", "), settings }
        };
        all = all.iter().flat_map(|v| values.split(',').map(move |value| with(v, value))).collect();
    }
    Ok(all)
}

/// What a variant's folders are called, but for the seed.
fn folder_name(variant: &Variant) -> String {
    variant.name.replace([',', ' ', '/', '.'], "-")
}

/// The options of every variant; refuses two of one name, and a comparison over seeds.
fn options_of(options: &Options, variants: &[Variant]) -> Result<Vec<Options>> {
    let seed = TrainingConfig::of(options)?.seed;
    let mut all = Vec::new();
    for (at, variant) in variants.iter().enumerate() {
        let mut settings = variant.settings.iter();
        let options =
            settings.try_fold(options.clone(), |options, setting| options.set(setting))?;
        if variants[..at].iter().any(|other| folder_name(other) == folder_name(variant)) {
            return Err(Error::invalid(format!("`{}` is asked for twice", variant.name)));
        }
        if TrainingConfig::of(&options)?.seed != seed {
            return Err(Error::invalid(
                "`training.seed` is not compared over; `--seeds` varies it",
            ));
        }
        all.push(options);
    }
    Ok(all)
}

/// Trains every variant with every seed in folders of its own and measures it on the test part.
/// None where it was stopped. Every variant is begun before the first is trained, so that a wrong
/// setting costs no training, and kept until its turn, so that none is begun twice.
pub fn compare(
    task: &dyn Task,
    options: &Options,
    variants: &[Variant],
    seeds: usize,
    folder: &Path,
    meter: Meter,
    mut callback: impl FnMut(&str) -> Box<dyn Callback>,
) -> Result<Option<Vec<Compared>>> {
    let all = options_of(options, variants)?;
    let first = TrainingConfig::of(options)?.seed;
    let begun = all.iter().map(|options| Begun::new(task, options, meter));
    let begun = begun.collect::<Result<Vec<Begun>>>()?;
    let mut compared = Vec::new();
    for ((variant, options), begun) in variants.iter().zip(all).zip(begun) {
        let mut outcome = Compared {
            name: variant.name.clone(),
            settings: variant.settings.clone(),
            parameters: 0,
            seconds: 0.0,
            peak_bytes: 0,
            scores: Vec::new(),
            groups: None,
        };
        let mut begun = Some(begun);
        for seed in first..first + seeds as u64 {
            let options = options.clone().set(&format!("training.seed={seed}"))?;
            let Begun { mut learner, held, peak } = match begun.take() {
                Some(begun) => begun,
                None => Begun::new(task, &options, meter)?,
            };
            let run = folder.join(format!("{}-seed{seed}", folder_name(variant)));
            let run = Run::create(&run, task, &options, learner.model())?;
            let mut callback = callback(&format!("{}, seed {seed}", variant.name));
            let config = TrainingConfig::of(&options)?;
            let (before, started) = (meter.in_use(), Instant::now());
            if train(learner.as_mut(), &config, &run, callback.as_mut())? == Ended::Stopped {
                return Ok(None);
            }
            outcome.seconds += started.elapsed().as_secs_f64() / seeds as f64;
            let trained = held + (meter.peak)().saturating_sub(before);
            outcome.peak_bytes = outcome.peak_bytes.max(peak).max(trained);
            outcome.parameters = learner.model().parameters().numel();
            drop(learner);
            let report = run.model(&options)?.evaluate(Part::Test)?;
            outcome.groups = outcome.groups.or(report.groups);
            outcome.scores.push(report.scores);
        }
        compared.push(outcome);
    }
    Ok(Some(compared))
}

//! `regress`: a number from numbers.

mod config;
mod data;
mod model;

use crate::metric::scores::Scores;
use crate::options::requirement::Requirement;
use crate::options::template::Checked;
use crate::options::template::Options;
use crate::options::training::{self, TrainingConfig};
use crate::task::json_file::JsonFile;
use crate::task::learner::Learner;
use crate::task::lesson::{Lengths, Lesson, Samples, learner};
use crate::task::model::Model;
use crate::task::part::Part;
use crate::task::{Description, Task, Variant};
use config::Config;
use data::{Dataset, Datum, Observations, same_columns};
use model::{MAX_POINTS, Preprocessor, Regression, written};
use regard::Tensor;
use regard::attention::Reinforce;
use regard::tensor::Random;
use regard_data::{Error, Result, remark};

/// Predicts a number from numbers: kernel regression of fixed or learned width, or the mean of all.
#[derive(Clone, Copy, Debug)]
pub struct Regress;

/// A regression and what it is validated on.
struct RegressLesson {
    regression: Regression,
    /// How many data are learned.
    points: usize,
    validation: Vec<Datum>,
}

impl Task for Regress {
    fn name(&self) -> &'static str {
        "regress"
    }

    fn about(&self) -> &'static str {
        "a number from numbers"
    }

    fn template(&self) -> String {
        [include_str!("options.toml"), training::TEMPLATE].concat()
    }

    fn defaults(&self) -> &'static [&'static str] {
        // A step sees all data: each is predicted from all the others.
        &[
            "epochs=200",
            "batch_size=10000",
            "learning_rate=0.1",
            "clip_norm=0.0",
            "validate_every=5",
        ]
    }

    fn requirements(&self) -> Vec<Requirement> {
        config::needs()
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Learner>> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let (mut training, validation) = dataset.learned()?;
        drop(dataset);
        if let Some(what) = constant_target(&training) {
            return Err(Error::invalid(what));
        }
        if let Some(what) = constant_features(&training) {
            return Err(Error::invalid(what));
        }
        // A run of a version that did not refuse it goes on.
        let is_asked = options.is_set("model.score");
        if let Some(what) = config.saturated(training.names.len() - 1).filter(|_| is_asked) {
            return Err(Error::invalid(what));
        }
        let rows = training.data.len();
        training.sample(MAX_POINTS, config.training.seed);
        let regression = Regression::new(config, Preprocessor::fit(&training)?)?;
        same_columns(&training.names, &validation, Part::Validation)?;
        if validation.data.is_empty() {
            return Err(Error::invalid("there are no validation data; `data.held_out` gives some"));
        }
        regression.take(&training.data)?;
        let (points, validation) = (training.data.len(), validation.data);
        let sampled = (points < rows).then(|| {
            format!(
                "{points} of {rows} rows are learned, drawn by the seed: each is compared with every \
                 other"
            )
        });
        let lesson = RegressLesson { regression, points, validation };
        learner(lesson, sampled.into_iter().collect(), None)
    }

    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
        Ok(Box::new(Regression::new(Config::of(options)?, vocabulary.parse()?)?))
    }

    fn describe(&self, options: &Options) -> Result<Description> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let training = dataset.part(Part::Training)?;
        if let Some(what) = constant_target(&training) {
            remark(what);
        }
        let mut facts = vec![
            ("training rows".to_string(), training.data.len().to_string()),
            ("validation rows".to_string(), dataset.count(Part::Validation)?),
            ("test rows".to_string(), dataset.count(Part::Test)?),
        ];
        let last = training.names.len() - 1;
        for (at, name) in training.names.iter().enumerate() {
            let value = |(x, y): &Datum| if at == last { *y } else { x[at] };
            let values = || training.data.iter().map(value);
            let mean = values().sum::<f64>() / training.data.len().max(1) as f64;
            let least = values().fold(f64::INFINITY, f64::min);
            let most = values().fold(f64::NEG_INFINITY, f64::max);
            let told = if at == last { ", predicted from the others" } else { "" };
            let text = format!("{least:.4} to {most:.4}, {mean:.4} on average{told}");
            facts.push((format!("column {name}"), text));
        }
        let source = config.data.train.as_ref();
        let example = |(x, y): &Datum| format!("{} → {}", written(x), written(&[*y]));
        Ok(Description {
            source: source.map_or("embedded sine".into(), |path| path.display().to_string()),
            facts,
            labels: Vec::new(),
            examples: training.data.iter().take(5).map(example).collect(),
        })
    }

    fn comparison(&self) -> Vec<Variant> {
        let kernel = "model.model=kernel";
        vec![
            Variant::new("mean", &["model.model=mean"]),
            Variant::new("fixed width", &[kernel, "learn_bandwidth=false", "per_column=false"]),
            Variant::new("learned width", &[kernel, "learn_bandwidth=true"]),
            Variant::new("window", &[kernel, "windowed=true", "bandwidth=0.15"]),
            Variant::new(
                "learned width, 10 nearest",
                &[kernel, "learn_bandwidth=true", "nearest=10"],
            ),
        ]
    }
}

/// What is wrong where the target is the same number in every row.
fn constant_target(training: &Observations) -> Option<String> {
    let (_, first) = training.data.first()?;
    let (rows, name) = (training.data.len(), training.names.last()?);
    let is_same = rows > 1 && training.data.iter().all(|(_, y)| y == first);
    is_same.then(|| {
        format!("all {rows} training rows have {first} in the target, column {name}: there is nothing to learn")
    })
}

/// What is wrong where no column that is predicted from changes.
fn constant_features(training: &Observations) -> Option<String> {
    let (first, _) = training.data.first()?;
    let rows = training.data.len();
    let is_same = rows > 1 && training.data.iter().all(|(x, _)| x == first);
    is_same.then(|| {
        format!(
            "all {rows} training rows are the same but for the target: there is nothing to predict it from"
        )
    })
}

impl Lesson for RegressLesson {
    fn model(&self) -> &dyn Model {
        &self.regression
    }

    fn training(&self) -> &TrainingConfig {
        &self.regression.config.training
    }

    fn lengths(&self) -> Lengths {
        Lengths::Together(self.points)
    }

    fn loss(&self, _: &[usize], _: &mut Option<Reinforce>, _: &Random) -> Result<Tensor> {
        self.regression.loss()
    }

    fn weight(&self, batch: &[usize]) -> f64 {
        batch.len() as f64
    }

    fn measure(&self) -> Result<Scores> {
        Ok(self.regression.measure(&self.validation)?.0)
    }

    fn samples(&self) -> Samples {
        Samples::Typed(self.validation.iter().map(|(x, _)| written(x)).collect())
    }
}

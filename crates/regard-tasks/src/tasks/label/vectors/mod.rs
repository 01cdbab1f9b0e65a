//! A label for every vector, whatever the vector: frames of sound, features from elsewhere, time
//! steps of a table.

mod config;
mod data;
mod model;

use crate::metric::scores::Scores;
use crate::options::template::Checked;
use crate::options::template::Options;
use crate::options::training::TrainingConfig;
use crate::task::Description;
use crate::task::json_file::JsonFile;
use crate::task::learner::Learner;
use crate::task::lengths::{lengths, remark_left_out};
use crate::task::lesson::{Lengths, Lesson, Samples, learner};
use crate::task::model::Model;
use crate::task::part::Part;
use crate::task::splits::check_some;
use crate::tasks::labels::check::{LabelSource, check_labels};
use crate::tasks::labels::truth::Truth;
use crate::tasks::labels::weights::LabelWeights;
use config::Config;
pub(super) use config::Kind;
use data::{Dataset, Example};
use model::{Encoded, Labeler, Preprocessor};
use regard::attention::Reinforce;
use regard::tensor::Random;
use regard::{Mode, Tensor};
use regard_data::text::by_count;
use regard_data::{Error, Result};

/// A labeler and the sequences it learns from.
struct VectorLesson {
    labeler: Labeler,
    sequences: Vec<Encoded>,
    targets: Vec<Vec<usize>>,
    weights: Option<LabelWeights>,
    validation: Vec<Example>,
}

/// Reads the data and initializes a model.
pub(super) fn begin(options: &Options) -> Result<Box<dyn Learner>> {
    let config = Config::of(options)?;
    let dataset = Dataset::new(&config);
    let (training, validation) = dataset.learned()?;
    drop(dataset);
    let longest = config.data.max_length;
    check_some(training.len(), validation.len(), "sequences", None)?;
    let preprocessor = Preprocessor::fit(&config, &training)?;
    check_labels(
        preprocessor.labels.names().iter().map(String::as_str),
        "vectors",
        LabelSource::Others,
    )?;
    let labeler = Labeler::new(config, preprocessor)?;
    let mut sequences = labeler.encode_all(&training)?;
    let (_, mut targets) = labeler.targets(&training, &sequences)?;
    let all = targets.len();
    targets.retain(|one| one.len() <= longest);
    remark_left_out(all - targets.len(), all, "sequences", longest, "vectors");
    sequences.retain(|one| labeler.length(one) <= longest);
    if sequences.is_empty() {
        return Err(Error::invalid(format!(
            "no training sequence has at most {longest} vectors; a larger `data.max_length` keeps them"
        )));
    }
    // Labels that training has not seen, and sound of another rate, are told before hours are spent.
    let (truth, _) = labeler.targets(&validation, &labeler.encode_all(&validation)?)?;
    let rates = labeler.note_of_rates(&training);
    let notes = rates.into_iter().chain(truth.note("validation")).collect();
    let weights = LabelWeights::new(
        &labeler.config.training.class_weights,
        labeler.preprocessor.labels.names(),
        targets.iter().flatten(),
    )?;
    learner(VectorLesson { labeler, sequences, targets, weights, validation }, notes, None)
}

/// The model of a run.
pub(super) fn open(options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
    Ok(Box::new(Labeler::new(Config::of(options)?, vocabulary.parse()?)?))
}

/// What the data hold.
pub(super) fn describe(options: &Options) -> Result<Description> {
    let config = Config::of(options)?;
    let dataset = Dataset::new(&config);
    let training = dataset.part(Part::Training)?;
    let [validation, test] = [dataset.part(Part::Validation)?, dataset.part(Part::Test)?];
    drop(dataset);
    let source = match config.data.source(Part::Training) {
        Some(path) => path.display().to_string(),
        None => "embedded tones".into(),
    };
    let preprocessor = Preprocessor::fit(&config, &training)?;
    let labeler = Labeler::new(config, preprocessor)?;
    let counts: Vec<usize> =
        labeler.encode_all(&training)?.iter().map(|one| labeler.length(one)).collect();
    let longest = labeler.config.data.max_length;
    let long = counts.iter().filter(|&&count| count > longest).count();
    remark_left_out(long, counts.len(), "sequences", longest, "vectors");
    let unseen = |part: &[Example]| {
        Truth::new(&labeler.preprocessor.labels, part.iter().flat_map(Example::labels)).fact()
    };
    let facts = [
        ("training sequences", training.len().to_string()),
        ("validation sequences", validation.len().to_string()),
        ("test sequences", test.len().to_string()),
        ("training vectors", counts.iter().sum::<usize>().to_string()),
        ("sequences", lengths(counts, "vectors")),
        ("labels", labeler.preprocessor.labels.len().to_string()),
        ("unseen in validation", unseen(&validation)),
        ("unseen in test", unseen(&test)),
    ];
    let labels = by_count(training.iter().flat_map(Example::labels));
    let example = |(at, example): (usize, &Example)| {
        let labels = by_count(example.labels());
        let labels: Vec<&str> = labels.into_iter().map(|(label, _)| label).collect();
        format!("train:{at} → {}", labels.join(", "))
    };
    Ok(Description {
        source,
        facts: facts.map(|(name, text)| (name.to_string(), text)).into(),
        labels: labels.into_iter().map(|(label, n)| (label.to_string(), n)).collect(),
        examples: training.iter().take(5).enumerate().map(example).collect(),
    })
}

impl Lesson for VectorLesson {
    fn model(&self) -> &dyn Model {
        &self.labeler
    }

    fn training(&self) -> &TrainingConfig {
        &self.labeler.config.training
    }

    fn lengths(&self) -> Lengths {
        Lengths::Each(self.targets.iter().map(Vec::len).collect())
    }

    fn loss(&self, batch: &[usize], _: &mut Option<Reinforce>, random: &Random) -> Result<Tensor> {
        let targets: Vec<&[usize]> = batch.iter().map(|&index| &self.targets[index][..]).collect();
        let sequences: Vec<&[f32]> =
            batch.iter().map(|&index| &self.sequences[index].vectors[..]).collect();
        let batch = self.labeler.batch(&sequences)?;
        let targets = batch.targets(&targets)?;
        let (weights, model) = (self.weights.as_ref(), &self.labeler.model);
        let mode = Mode::Train(random);
        LabelWeights::sequence_loss(weights, model, &batch.sequences(), &targets, mode)
    }

    fn weight(&self, batch: &[usize]) -> f64 {
        let labels = batch.iter().flat_map(|&index| &self.targets[index]);
        LabelWeights::sum(self.weights.as_ref(), labels)
    }

    fn measure(&self) -> Result<Scores> {
        Ok(self.labeler.measure(&self.validation, Part::Validation)?.scores)
    }

    fn samples(&self) -> Samples {
        Samples::Numbered(self.validation.len())
    }
}

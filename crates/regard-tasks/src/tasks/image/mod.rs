//! `image`: what an image shows.

mod augmentation;
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
use crate::task::splits::check_some;
use crate::task::{Description, Task, Variant};
use crate::tasks::labels::check::{LabelSource, check_labels, describe_labels};
use crate::tasks::labels::truth::Truth;
use crate::tasks::labels::weights::LabelWeights;
use config::Config;
use data::{Dataset, source};
use model::{Classifier, Preprocessor};
use regard::Tensor;
use regard::attention::Reinforce;
use regard::tensor::{CrossEntropy, Random};
use regard_data::Result;
use regard_data::files::Images;
use regard_data::text::{Labels, by_count};

/// Tells what images show: attention over patches or pixels, or convolutions.
#[derive(Clone, Copy, Debug)]
pub struct ImageTask;

/// A classifier and the images it learns from.
struct ImageLesson {
    classifier: Classifier,
    images: Images,
    truth: Vec<usize>,
    weights: Option<LabelWeights>,
    validation: Images,
    validation_truth: Truth,
}

impl Task for ImageTask {
    fn name(&self) -> &'static str {
        "image"
    }

    fn about(&self) -> &'static str {
        "what an image shows"
    }

    fn template(&self) -> String {
        [include_str!("options.toml"), training::TEMPLATE, training::CLASS_WEIGHTS].concat()
    }

    fn defaults(&self) -> &'static [&'static str] {
        &["epochs=12", "learning_rate=0.002", "schedule=cosine", "warmup_steps=30", "batch_size=32"]
    }

    fn requirements(&self) -> Vec<Requirement> {
        config::needs()
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Learner>> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let (images, validation) = dataset.learned()?;
        drop(dataset);
        let preprocessor = Preprocessor::fit(&images, &config.data);
        let classifier = Classifier::new(config, preprocessor)?;
        classifier.check_size(&validation, Part::Validation)?;
        check_some(images.len(), validation.len(), "images", None)?;
        check_labels(images.labels.iter().map(String::as_str), "images", LabelSource::Others)?;
        let truth = classifier.truth(&images).ids;
        let validation_truth = classifier.truth(&validation);
        let option = &classifier.config.training.class_weights;
        let weights = LabelWeights::new(option, classifier.labels(), &truth)?;
        let notes = validation_truth.note("validation").into_iter().collect();
        let lesson =
            ImageLesson { classifier, images, truth, weights, validation, validation_truth };
        learner(lesson, notes, None)
    }

    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
        Ok(Box::new(Classifier::new(Config::of(options)?, vocabulary.parse()?)?))
    }

    fn describe(&self, options: &Options) -> Result<Description> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let training = dataset.part(Part::Training)?;
        let [validation, test] = [dataset.part(Part::Validation)?, dataset.part(Part::Test)?];
        let known = Labels::in_order(training.labels.iter().map(String::as_str));
        let unseen = |part: &regard_data::files::Images| {
            Truth::new(&known, part.labels.iter().map(String::as_str)).fact()
        };
        describe_labels(training.labels.iter().map(String::as_str), "images", LabelSource::Others);
        let size = format!("{}×{}", training.height, training.width);
        let facts = [
            ("training images", training.len().to_string()),
            ("validation images", validation.len().to_string()),
            ("test images", test.len().to_string()),
            ("unseen in validation", unseen(&validation)),
            ("unseen in test", unseen(&test)),
            ("pixels", size),
            ("channels", training.channels.to_string()),
            ("no images, left out", training.left_out.len().to_string()),
        ];
        let labels = by_count(training.labels.iter().map(String::as_str)).into_iter();
        let source = source(&config.data, Part::Training);
        let examples = training.labels.iter().take(5).enumerate();
        Ok(Description {
            source: source.map_or("embedded shapes".into(), |path| path.display().to_string()),
            facts: facts.map(|(name, text)| (name.to_string(), text)).into(),
            labels: labels.map(|(label, count)| (label.to_string(), count)).collect(),
            examples: examples.map(|(at, label)| format!("train:{at} → {label}")).collect(),
        })
    }

    fn comparison(&self) -> Vec<Variant> {
        vec![Variant::new("ViT", &["model.model=vit"]), Variant::new("CNN", &["model.model=cnn"])]
    }
}

impl Lesson for ImageLesson {
    fn model(&self) -> &dyn Model {
        &self.classifier
    }

    fn training(&self) -> &TrainingConfig {
        &self.classifier.config.training
    }

    fn lengths(&self) -> Lengths {
        Lengths::Alike(self.images.len())
    }

    fn loss(&self, batch: &[usize], _: &mut Option<Reinforce>, random: &Random) -> Result<Tensor> {
        let (logits, targets) =
            self.classifier.learned(&self.images, batch, &self.truth, random)?;
        let label_smoothing = self.classifier.config.training.label_smoothing;
        let rule = CrossEntropy { label_smoothing, ..CrossEntropy::default() };
        LabelWeights::loss(self.weights.as_ref(), &logits, targets, rule)
    }

    fn weight(&self, batch: &[usize]) -> f64 {
        LabelWeights::sum(self.weights.as_ref(), batch.iter().map(|&i| &self.truth[i]))
    }

    fn measure(&self) -> Result<Scores> {
        let truth = &self.validation_truth;
        let probabilities = self.classifier.label_probabilities(&self.validation)?;
        probabilities.with_unseen(&truth.unseen).scores(&truth.ids)
    }

    fn samples(&self) -> Samples {
        Samples::Numbered(self.validation.len())
    }
}

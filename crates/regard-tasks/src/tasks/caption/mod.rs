//! `caption`: a picture in, a sentence about it out.

mod config;
mod data;
mod model;
mod scenes;

use crate::metric::scores::Scores;
use crate::options::requirement::Requirement;
use crate::options::template::Checked;
use crate::options::template::Options;
use crate::options::training::{self, TrainingConfig};
use crate::task::json_file::JsonFile;
use crate::task::learner::Learner;
use crate::task::lengths::lengths;
use crate::task::lesson::{Lengths, Lesson, Samples, learner};
use crate::task::model::Model;
use crate::task::part::Part;
use crate::task::splits::check_some;
use crate::task::{Description, Task, Variant};
use crate::tasks::captioned::{self, Pictures};
use crate::tasks::seq2seq::{Sources, tokens};
use crate::tasks::{components, seq2seq};
use config::Config;
use data::Dataset;
use model::{Captioner, Preprocessor};
use regard::Tensor;
use regard::attention::Reinforce;
use regard::tensor::Random;
use regard_data::Result;

/// Captions pictures: patches on one side, words on the other, attention between them.
#[derive(Clone, Copy, Debug)]
pub struct CaptionTask;

/// A captioner and the pictures it learns from.
struct CaptionLesson {
    captioner: Captioner,
    pictures: Pictures,
    /// Which picture each training sentence is about.
    which: Vec<usize>,
    targets: Vec<Vec<usize>>,
    validation: Pictures,
}

impl Task for CaptionTask {
    fn name(&self) -> &'static str {
        "caption"
    }

    fn about(&self) -> &'static str {
        "a picture in, a sentence about it out"
    }

    fn template(&self) -> String {
        [
            include_str!("options.toml"),
            seq2seq::TEMPLATE,
            components::ENCODER,
            components::MECHANISM,
            "\n",
            training::TEMPLATE,
        ]
        .concat()
    }

    fn defaults(&self) -> &'static [&'static str] {
        &[
            "encoder=transformer",
            "embedding=64",
            "hidden=128",
            "layers=2",
            "feed_forward=256",
            "score_hidden=64",
            "dropout=0.0",
            "epochs=10",
            "batch_size=64",
            "learning_rate=0.002",
            "schedule=cosine",
            "warmup_steps=100",
        ]
    }

    fn requirements(&self) -> Vec<Requirement> {
        captioned::needs()
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Learner>> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let (pictures, validation) = dataset.learned()?;
        drop(dataset);
        check_some(pictures.len(), validation.len(), "pictures", None)?;
        let preprocessor = Preprocessor::fit(&config, &pictures)?;
        let captioner = Captioner::new(config, preprocessor)?;
        let (which, targets) = captioner.pairs(&pictures);
        let reinforce = captioner.writer.reinforce()?;
        let lesson = CaptionLesson { captioner, pictures, which, targets, validation };
        learner(lesson, Vec::new(), reinforce)
    }

    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
        Ok(Box::new(Captioner::new(Config::of(options)?, vocabulary.parse()?)?))
    }

    fn describe(&self, options: &Options) -> Result<Description> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let training = dataset.part(Part::Training)?;
        let preprocessor = Preprocessor::fit(&config, &training)?;
        let sentences: Vec<&String> = training.sentences.iter().flatten().collect();
        let tokens = sentences.iter().map(|text| preprocessor.tokenizer.encode(text).len());
        let side = config.data.image_size;
        let facts = [
            ("training pictures", training.len().to_string()),
            ("validation pictures", dataset.count(Part::Validation)?),
            ("test pictures", dataset.count(Part::Test)?),
            ("training sentences", sentences.len().to_string()),
            ("sentences", lengths(tokens.collect(), "tokens")),
            ("vocabulary", preprocessor.tokenizer.len().to_string()),
            ("pixels", format!("{side}×{side}, {} channels", config.data.channels())),
            ("patches", (config.patches() * config.patches()).to_string()),
        ];
        let examples = training.sentences.iter().take(5).enumerate();
        let examples = examples.map(|(at, all)| format!("train:{at} → {}", all.join(" | ")));
        Ok(Description {
            source: config.data.source("captions"),
            facts: facts.map(|(name, text)| (name.to_string(), text)).into(),
            labels: Vec::new(),
            examples: examples.collect(),
        })
    }

    fn comparison(&self) -> Vec<Variant> {
        vec![
            Variant::new("fixed vector", &["context=fixed"]),
            Variant::new("soft", &["context=attention", "weighting=softmax"]),
            Variant::new("sampled", &["context=attention", "weighting=sample"]),
            Variant::new("Transformer", &["context=multi-head", "decoder=transformer"]),
        ]
    }

    fn alike(&self, all: &[Options]) -> Result<Option<(&'static str, &'static str)>> {
        seq2seq::alike(all)
    }
}

impl Lesson for CaptionLesson {
    fn model(&self) -> &dyn Model {
        &self.captioner
    }

    fn training(&self) -> &TrainingConfig {
        &self.captioner.config.training
    }

    fn lengths(&self) -> Lengths {
        // Pictures are all alike; only what counts tokens asks for their sentences.
        if self.captioner.config.training.batch_tokens == 0 {
            return Lengths::Alike(self.which.len());
        }
        let patches = self.captioner.config.patches().pow(2);
        Lengths::Each(self.targets.iter().map(|target| target.len().max(patches)).collect())
    }

    fn loss(
        &self,
        batch: &[usize],
        reinforce: &mut Option<Reinforce>,
        random: &Random,
    ) -> Result<Tensor> {
        let which = batch.iter().map(|&i| self.which[i]).collect();
        let all: Vec<usize> = (0..batch.len()).collect();
        let source = self.captioner.sources(&self.pictures, which).batch(&all)?;
        let targets: Vec<&[usize]> = batch.iter().map(|&i| &self.targets[i][..]).collect();
        let smoothing = self.captioner.config.training.label_smoothing;
        self.captioner.writer.loss(&source, &targets, smoothing, reinforce, random)
    }

    fn weight(&self, batch: &[usize]) -> f64 {
        tokens(batch, &self.targets)
    }

    fn measure(&self) -> Result<Scores> {
        Ok(self.captioner.measure(&self.validation, 1)?.0)
    }

    fn samples(&self) -> Samples {
        Samples::Numbered(self.validation.len())
    }
}

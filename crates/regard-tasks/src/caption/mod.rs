//! `caption`: a picture in, a sentence about it out.

mod config;
mod data;
mod model;
mod scenes;

use crate::lengths::lengths;
use crate::options::Checked;
use crate::seq2seq::{Sources, tokens};
use crate::{
    Description, Error, JsonFile, Learner, Model, Options, Part, Result, Scores, Task, Variant,
    components, seq2seq, train,
};
use config::Config;
use data::{Dataset, Pictures};
use model::{Captioner, Preprocessor};
use regard::Tensor;
use regard::attention::Reinforce;
use regard::tensor::Random;

/// Captions pictures: patches on one side, words on the other, attention between them.
#[derive(Clone, Copy, Debug)]
pub struct CaptionTask;

/// A captioner and the pictures it learns from.
struct CaptionLearner {
    captioner: Captioner,
    pictures: Pictures,
    /// Which picture each training sentence is about.
    which: Vec<usize>,
    targets: Vec<Vec<usize>>,
    validation: Pictures,
    /// Trains hard attention that samples.
    reinforce: Option<Reinforce>,
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
            train::TEMPLATE,
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
            "batch=64",
            "rate=0.002",
            "schedule=cosine",
            "warmup=100",
        ]
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Learner>> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let (pictures, validation) =
            (dataset.part(Part::Training)?, dataset.part(Part::Validation)?);
        drop(dataset);
        if pictures.len() == 0 || validation.len() == 0 {
            return Err(Error::invalid(format!(
                "{} training pictures and {} validation pictures: training needs \
                 some of each; name validation files or raise `data.held_out`",
                pictures.len(),
                validation.len()
            )));
        }
        let preprocessor = Preprocessor::fit(&config, &pictures)?;
        let captioner = Captioner::new(config, preprocessor)?;
        let (which, targets) = captioner.pairs(&pictures);
        let reinforce = captioner.writer.reinforce()?;
        let learner = CaptionLearner { captioner, pictures, which, targets, validation, reinforce };
        Ok(Box::new(learner))
    }

    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
        Ok(Box::new(Captioner::new(Config::of(options)?, vocabulary.parse()?)?))
    }

    fn describe(&self, options: &Options) -> Result<Description> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let training = dataset.part(Part::Training)?;
        let preprocessor = Preprocessor::fit(&config, &training)?;
        let count = |part| Ok::<_, Error>(dataset.part(part)?.len().to_string());
        let sentences: Vec<&String> = training.sentences.iter().flatten().collect();
        let tokens = sentences.iter().map(|text| preprocessor.tokenizer.encode(text).len());
        let side = config.data.side;
        let facts = [
            ("training pictures", training.len().to_string()),
            ("validation pictures", count(Part::Validation)?),
            ("test pictures", count(Part::Test)?),
            ("training sentences", sentences.len().to_string()),
            ("sentences", lengths(tokens.collect(), "tokens")),
            ("vocabulary", preprocessor.tokenizer.len().to_string()),
            ("pixels", format!("{side}×{side}, {} channels", config.channels())),
            ("patches", (config.patches() * config.patches()).to_string()),
        ];
        let source = match &config.data.train {
            Some(path) => path.display().to_string(),
            None => format!("embedded {:?} captions", config.data.embedded).to_lowercase(),
        };
        let examples = training.sentences.iter().take(5).enumerate();
        let examples = examples.map(|(at, all)| format!("train:{at} → {}", all.join(" | ")));
        Ok(Description {
            source,
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
}

impl Learner for CaptionLearner {
    fn model(&self) -> &dyn Model {
        &self.captioner
    }

    fn batches(&self, batch: usize, random: &Random) -> Result<Vec<Vec<usize>>> {
        let order = random.order(self.which.len());
        Ok(order.chunks(batch).map(<[usize]>::to_vec).collect())
    }

    fn loss(&mut self, batch: &[usize], random: &Random) -> Result<Tensor> {
        let which = batch.iter().map(|&i| self.which[i]).collect();
        let all: Vec<usize> = (0..batch.len()).collect();
        let source = self.captioner.sources(&self.pictures, which).batch(&all)?;
        let targets: Vec<&[usize]> = batch.iter().map(|&i| &self.targets[i][..]).collect();
        let smoothing = self.captioner.config.training.label_smoothing;
        self.captioner.writer.loss(&source, &targets, smoothing, &mut self.reinforce, random)
    }

    fn weight(&self, batch: &[usize]) -> f64 {
        tokens(batch, &self.targets)
    }

    fn validate(&self) -> Result<Scores> {
        Ok(self.captioner.measure(&self.validation, 1)?.0)
    }

    fn samples(&self, n: usize) -> Vec<String> {
        (0..n.min(self.validation.len())).map(|at| format!("validation:{at}")).collect()
    }

    fn reinforce(&self) -> Option<&Reinforce> {
        self.reinforce.as_ref()
    }

    fn reinforce_mut(&mut self) -> Option<&mut Reinforce> {
        self.reinforce.as_mut()
    }
}

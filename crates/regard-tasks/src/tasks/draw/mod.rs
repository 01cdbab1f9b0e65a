//! `draw`: a sentence in, a picture of what it says out, written patch by patch.

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
use crate::task::named_rows::all_tokens;
use crate::task::part::Part;
use crate::task::splits::check_some;
use crate::task::{Description, Task, Variant};
use crate::tasks::captioned::{self, Pictures};
use crate::tasks::seq2seq::{Sources, TokenSources, tokens};
use crate::tasks::{components, seq2seq};
use config::Config;
use data::Dataset;
use model::{Artist, Preprocessor};
use regard::Tensor;
use regard::attention::Reinforce;
use regard::tensor::Random;
use regard_data::Result;

/// Draws what a sentence says: words on one side, patches of a picture on the other, attention between
/// them.
#[derive(Clone, Copy, Debug)]
pub struct Draw;

/// An artist and the pictures it learns from: each once for each of its sentences.
struct DrawLesson {
    artist: Artist,
    sources: TokenSources,
    targets: Vec<Vec<usize>>,
    validation: Pictures,
}

impl Task for Draw {
    fn name(&self) -> &'static str {
        "draw"
    }

    fn about(&self) -> &'static str {
        "a sentence in, a picture of what it says out"
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
            "context=multi-head",
            "encoder=transformer",
            "decoder=transformer",
            "position=learned",
            "embedding=64",
            "hidden=64",
            "layers=2",
            "feed_forward=256",
            "score_hidden=64",
            "dropout=0.0",
            "epochs=10",
            "batch_size=16",
            "learning_rate=0.002",
            "schedule=cosine",
            "warmup_steps=200",
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
        let artist = Artist::new(config, preprocessor)?;
        let (sources, targets) = artist.pairs(&pictures)?;
        let reinforce = artist.writer.reinforce()?;
        learner(DrawLesson { artist, sources, targets, validation }, Vec::new(), reinforce)
    }

    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
        Ok(Box::new(Artist::new(Config::of(options)?, vocabulary.parse()?)?))
    }

    fn describe(&self, options: &Options) -> Result<Description> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let training = dataset.part(Part::Training)?;
        let preprocessor = Preprocessor::fit(&config, &training)?;
        let tokens = training.pairs().map(|(_, text)| preprocessor.tokenizer.encode(text).len());
        let tokens: Vec<usize> = tokens.collect();
        let (side, patch) = (config.data.image_size, config.model.patch_size);
        let facts = [
            ("training pictures", training.len().to_string()),
            ("validation pictures", dataset.count(Part::Validation)?),
            ("test pictures", dataset.count(Part::Test)?),
            ("training sentences", tokens.len().to_string()),
            ("sentences", lengths(tokens, "tokens")),
            ("vocabulary", preprocessor.tokenizer.len().to_string()),
            ("pixels", format!("{side}×{side}, {} channels", config.data.channels())),
            ("patches", format!("{} of {patch}×{patch} pixels", config.patches().pow(2))),
            ("codes", preprocessor.codebook.len().to_string()),
            ("error of the codes", format!("{:.4}", preprocessor.error(&training)?)),
        ];
        let examples = training.sentences.iter().take(5).enumerate();
        let examples = examples.map(|(at, all)| format!("{} → train:{at}", all.join(" | ")));
        Ok(Description {
            source: config.data.source("scenes"),
            facts: facts.map(|(name, text)| (name.to_string(), text)).into(),
            labels: Vec::new(),
            examples: examples.collect(),
        })
    }

    fn comparison(&self) -> Vec<Variant> {
        vec![
            Variant::new("fixed vector", &["context=fixed", "decoder=gru"]),
            Variant::new("GRU, additive", &["context=attention", "decoder=gru"]),
            Variant::new("Transformer", &["context=multi-head", "decoder=transformer"]),
        ]
    }

    fn alike(&self, all: &[Options]) -> Result<Option<(&'static str, &'static str)>> {
        seq2seq::alike(all)
    }
}

impl Lesson for DrawLesson {
    fn model(&self) -> &dyn Model {
        &self.artist
    }

    fn start(&self) -> Result<Vec<String>> {
        let Artist { preprocessor, config, .. } = &self.artist;
        let (words, vectors) =
            (all_tokens(&preprocessor.tokenizer), config.text.vectors.as_deref());
        components::pretrained(self.artist.parameters(), "source.weight", &words, vectors)
    }

    fn training(&self) -> &TrainingConfig {
        &self.artist.config.training
    }

    fn lengths(&self) -> Lengths {
        // Pictures are all alike; only what counts tokens asks for their sentences.
        if self.artist.config.training.batch_tokens == 0 {
            return Lengths::Alike(self.targets.len());
        }
        let length = |(at, target): (usize, &Vec<usize>)| self.sources.length(at).max(target.len());
        Lengths::Each(self.targets.iter().enumerate().map(length).collect())
    }

    fn loss(
        &self,
        batch: &[usize],
        reinforce: &mut Option<Reinforce>,
        random: &Random,
    ) -> Result<Tensor> {
        let source = self.sources.batch(batch)?;
        let targets: Vec<&[usize]> = batch.iter().map(|&i| &self.targets[i][..]).collect();
        let smoothing = self.artist.config.training.label_smoothing;
        self.artist.writer.loss(&source, &targets, smoothing, reinforce, random)
    }

    fn weight(&self, batch: &[usize]) -> f64 {
        tokens(batch, &self.targets)
    }

    fn measure(&self) -> Result<Scores> {
        Ok(self.artist.measure(&self.validation)?.scores)
    }

    fn samples(&self) -> Samples {
        Samples::Typed(self.validation.sentences.iter().map(|all| all[0].clone()).collect())
    }
}

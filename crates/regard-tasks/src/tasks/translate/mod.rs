//! `translate`: a sentence in, a sentence out.

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
use crate::task::lengths::{lengths, remark_left_out};
use crate::task::lesson::{Lengths, Lesson, Samples, learner};
use crate::task::model::Model;
use crate::task::part::Part;
use crate::task::splits::check_some;
use crate::task::{Description, Task, Variant};
use crate::tasks::seq2seq::{Sources, tokens};
use crate::tasks::{components, seq2seq};
use config::Config;
pub(super) use config::needs;
use data::{Dataset, Pair};
use model::{EncodedPairs, Preprocessor, Translator};
use regard::Tensor;
use regard::attention::Reinforce;
use regard::tensor::Random;
use regard_data::Result;
use regard_data::remark;

/// Translates sentences: any encoder, any decoder, any attention between them.
#[derive(Clone, Copy, Debug)]
pub struct Translate;

/// A translation model and the pairs it learns from.
struct TranslateLesson {
    translator: Translator,
    pairs: EncodedPairs,
    validation: Vec<Pair>,
}

impl Task for Translate {
    fn name(&self) -> &'static str {
        "translate"
    }

    fn about(&self) -> &'static str {
        "a sentence in, a sentence out"
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
            "epochs=12",
            "learning_rate=0.002",
            "schedule=cosine",
            "model.dropout=0.2",
            "label_smoothing=0.1",
        ]
    }

    fn requirements(&self) -> Vec<Requirement> {
        config::needs()
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Learner>> {
        begin(options)
    }

    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
        open(options, vocabulary)
    }

    fn describe(&self, options: &Options) -> Result<Description> {
        describe(options)
    }

    fn comparison(&self) -> Vec<Variant> {
        vec![
            Variant::new("fixed vector", &["context=fixed"]),
            Variant::new("additive", &["context=attention", "score=additive"]),
            Variant::new("dot", &["context=attention", "score=dot"]),
            Variant::new(
                "Transformer",
                &["context=multi-head", "encoder=transformer", "decoder=transformer", "layers=2"],
            ),
        ]
    }

    fn alike(&self, all: &[Options]) -> Result<Option<(&'static str, &'static str)>> {
        seq2seq::alike(all)
    }
}

/// A learner of pairs of texts.
pub(crate) fn begin(options: &Options) -> Result<Box<dyn Learner>> {
    let config = Config::of(options)?;
    let dataset = Dataset::new(&config);
    let (mut training, validation) = dataset.learned()?;
    drop(dataset);
    let preprocessor = Preprocessor::fit(&config, &training)?;
    let longest = config.data.max_length;
    let lengths = |(source, target): &Pair| {
        (preprocessor.source.encode(source).len(), preprocessor.target().encode(target).len())
    };
    let (all, long) = (training.len(), remark_long(&training, lengths, longest));
    training.retain(|pair| {
        let (source, target) = lengths(pair);
        source > 0 && source <= longest && target <= longest
    });
    let blank = all - long - training.len();
    if blank > 0 {
        remark(format!("{blank} of {all} training sources have no token, and are left out"));
    }
    check_some(training.len(), validation.len(), "pairs", Some((longest, "tokens")))?;
    let translator = Translator::new(config, preprocessor)?;
    let (pairs, reinforce) = (translator.encode(&training), translator.writer.reinforce()?);
    learner(TranslateLesson { translator, pairs, validation }, Vec::new(), reinforce)
}

/// Says how many pairs have a side that is longer than what is learned from, and gives their number.
fn remark_long(pairs: &[Pair], lengths: impl Fn(&Pair) -> (usize, usize), longest: usize) -> usize {
    let is_long = |pair: &&Pair| {
        let (source, target) = lengths(pair);
        source > longest || target > longest
    };
    let long = pairs.iter().filter(is_long).count();
    remark_left_out(long, pairs.len(), "pairs", longest, "tokens in a side");
    long
}

/// The model of a run.
pub(crate) fn open(options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
    Ok(Box::new(Translator::new(Config::of(options)?, vocabulary.parse()?)?))
}

/// What the pairs hold.
pub(crate) fn describe(options: &Options) -> Result<Description> {
    let config = Config::of(options)?;
    let dataset = Dataset::new(&config);
    let training = dataset.part(Part::Training)?;
    let preprocessor = Preprocessor::fit(&config, &training)?;
    let length =
        |encode: &dyn Fn(&Pair) -> usize| lengths(training.iter().map(encode).collect(), "tokens");
    let both = |(source, target): &Pair| {
        (preprocessor.source.encode(source).len(), preprocessor.target().encode(target).len())
    };
    remark_long(&training, both, config.data.max_length);
    let facts = [
        ("training pairs", training.len().to_string()),
        ("validation pairs", dataset.count(Part::Validation)?),
        ("test pairs", dataset.count(Part::Test)?),
        ("source sentences", length(&|(s, _)| preprocessor.source.encode(s).len())),
        ("target sentences", length(&|(_, t)| preprocessor.target().encode(t).len())),
        ("source vocabulary", preprocessor.source.len().to_string()),
        ("target vocabulary", preprocessor.target().len().to_string()),
    ];
    let source = match (&config.data.train_source, &config.data.train_pairs) {
        (Some(path), _) | (_, Some(path)) => path.display().to_string(),
        _ => format!("embedded {:?}", config.data.embedded).to_lowercase(),
    };
    Ok(Description {
        source,
        facts: facts.map(|(name, text)| (name.to_string(), text)).into(),
        labels: Vec::new(),
        examples: training.iter().take(5).map(|(s, t)| format!("{s} → {t}")).collect(),
    })
}

impl Lesson for TranslateLesson {
    fn model(&self) -> &dyn Model {
        &self.translator
    }

    fn start(&self) -> Result<Vec<String>> {
        let Translator { preprocessor, config, .. } = &self.translator;
        let text = &config.text;
        let tables = [
            ("source.weight", &preprocessor.source, &text.tokens.vectors),
            ("target.weight", preprocessor.target(), &text.target_vectors),
        ];
        let mut notes = Vec::new();
        for (name, tokenizer, vectors) in tables {
            let tokens: Vec<String> =
                (0..tokenizer.len()).map(|id| tokenizer.token(id).into()).collect();
            let parameters = self.translator.parameters();
            notes.extend(components::pretrained(parameters, name, &tokens, vectors.as_deref())?);
        }
        Ok(notes)
    }

    fn training(&self) -> &TrainingConfig {
        &self.translator.config.training
    }

    fn lengths(&self) -> Lengths {
        let length =
            |(at, target): (usize, &Vec<usize>)| self.pairs.sources.length(at).max(target.len());
        Lengths::Each(self.pairs.targets.iter().enumerate().map(length).collect())
    }

    fn loss(
        &self,
        batch: &[usize],
        reinforce: &mut Option<Reinforce>,
        random: &Random,
    ) -> Result<Tensor> {
        let source = self.pairs.sources.batch(batch)?;
        let targets: Vec<&[usize]> = batch.iter().map(|&i| &self.pairs.targets[i][..]).collect();
        let smoothing = self.translator.config.training.label_smoothing;
        self.translator.writer.loss(&source, &targets, smoothing, reinforce, random)
    }

    fn weight(&self, batch: &[usize]) -> f64 {
        tokens(batch, &self.pairs.targets)
    }

    fn measure(&self) -> Result<Scores> {
        self.translator.measure(&self.validation)
    }

    fn samples(&self) -> Samples {
        Samples::Typed(self.validation.iter().map(|(source, _)| source.clone()).collect())
    }
}

//! `classify`: a text, a recording or vectors in, one label out.

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
use crate::task::lengths::lengths;
use crate::task::lesson::{Lengths, Lesson, Samples, learner};
use crate::task::model::Model;
use crate::task::part::Part;
use crate::task::splits::check_some;
use crate::task::{Description, Task, Variant};
use crate::tasks::components;
use crate::tasks::labels::check::{check_labels, describe_labels};
use crate::tasks::labels::truth::Truth;
use crate::tasks::labels::weights::LabelWeights;
use config::{Config, Kind, Source};
use data::Dataset;
use model::{Batch, Classifier, EncodedExamples, InputEncoding, Preprocessor, Sequence};
use regard::attention::{Need, Reinforce, ReinforceConfig};
use regard::tensor::{CrossEntropy, Random};
use regard::{Mode, Tensor};
use regard_data::Result;
use regard_data::remark;
use regard_data::text::{UNKNOWN, by_count};

/// Classifies sequences: texts, recordings, vectors, with any encoder and any pooling.
#[derive(Clone, Copy, Debug)]
pub struct Classify;

/// A classifier and the examples it learns from.
struct ClassifyLesson {
    classifier: Classifier,
    training: EncodedExamples,
    validation: EncodedExamples,
    weights: Option<LabelWeights>,
}

impl Task for Classify {
    fn name(&self) -> &'static str {
        "classify"
    }

    fn about(&self) -> &'static str {
        "a text, a recording or vectors in, one label out"
    }

    fn template(&self) -> String {
        [
            include_str!("options.toml"),
            components::ENCODER,
            components::MECHANISM,
            "\n",
            training::TEMPLATE,
            training::CLASS_WEIGHTS,
        ]
        .concat()
    }

    fn defaults(&self) -> &'static [&'static str] {
        &[
            "encoder=none",
            "hidden=64",
            "score_hidden=64",
            "epochs=12",
            "batch_size=32",
            "learning_rate=0.005",
            "schedule=cosine",
        ]
    }

    fn requirements(&self) -> Vec<Requirement> {
        config::needs()
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Learner>> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let (training, validation) = dataset.learned()?;
        drop(dataset);
        check_labels(
            training.iter().map(|example| &example.label[..]),
            "examples",
            config.data.label_source(),
        )?;
        check_some(training.len(), validation.len(), "examples", None)?;
        let preprocessor = Preprocessor::fit(&config, &training)?;
        let classifier = Classifier::new(config, preprocessor)?;
        let rates = classifier.note_of_rates(&training);
        let (training, validation) =
            (classifier.encode_all(&training)?, classifier.encode_all(&validation)?);
        let reinforce = classifier.config.samples();
        let reinforce =
            reinforce.then(|| Reinforce::new(ReinforceConfig::default())).transpose()?;
        let weights = LabelWeights::new(
            &classifier.config.training.class_weights,
            classifier.preprocessor.labels.names(),
            &training.truth.ids,
        )?;
        let long = classifier.note_of_long(&training, "training");
        let notes = rates.into_iter().chain(long).chain(validation.truth.note("validation"));
        let notes = notes.collect();
        let lesson = ClassifyLesson { classifier, training, validation, weights };
        learner(lesson, notes, reinforce)
    }

    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
        Ok(Box::new(Classifier::new(Config::of(options)?, vocabulary.parse()?)?))
    }

    fn describe(&self, options: &Options) -> Result<Description> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let training = dataset.part(Part::Training)?;
        let labels_of = |part| {
            let examples = dataset.part(part)?.into_iter();
            Result::Ok(examples.map(|example| example.label).collect::<Vec<String>>())
        };
        let [validation, test] = [labels_of(Part::Validation)?, labels_of(Part::Test)?];
        drop(dataset);
        let preprocessor = Preprocessor::fit(&config, &training)?;
        let classifier = Classifier::new(config, preprocessor)?;
        let config = &classifier.config;
        let encoded = classifier.encode_all(&training)?;
        describe_labels(
            training.iter().map(|example| &example.label[..]),
            "examples",
            config.data.label_source(),
        );
        classifier.note_of_long(&encoded, "training").into_iter().for_each(remark);
        let what = match config.data.kind {
            Kind::Text => "tokens",
            Kind::Audio => "frames",
            Kind::Vectors => "vectors",
        };
        let unseen = |labels: &[String]| {
            Truth::new(&classifier.preprocessor.labels, labels.iter().map(String::as_str)).fact()
        };
        let mut facts = vec![
            ("training examples", training.len().to_string()),
            ("validation examples", validation.len().to_string()),
            ("test examples", test.len().to_string()),
            ("examples", lengths(encoded.read.iter().map(Sequence::len).collect(), what)),
            ("labels", classifier.preprocessor.labels.len().to_string()),
            ("unseen in validation", unseen(&validation)),
            ("unseen in test", unseen(&test)),
        ];
        facts.push(match &classifier.preprocessor.input {
            InputEncoding::Tokens(tokenizer) => ("vocabulary", tokenizer.len().to_string()),
            InputEncoding::Frames { mel, .. } => {
                ("recordings", format!("{} samples a second", mel.rate))
            }
            InputEncoding::Vectors(standard) => {
                ("width of a vector", standard.mean.len().to_string())
            }
        });
        let labels = by_count(training.iter().map(|example| &example.label[..]));
        let examples = training.iter().zip(&encoded.names).take(5);
        Ok(Description {
            source: source(config)?,
            facts: facts.into_iter().map(|(name, text)| (name.to_string(), text)).collect(),
            labels: labels.into_iter().map(|(label, n)| (label.to_string(), n)).collect(),
            examples: examples.map(|(e, name)| format!("{} ← {name}", e.label)).collect(),
        })
    }

    /// With attention over words alone: what an encoder had mixed, a wrong choice could hide.
    fn comparison(&self) -> Vec<Variant> {
        let variant =
            |name, weighting| Variant::new(name, &["encoder=none", "pooling=attention", weighting]);
        vec![
            variant("soft", "weighting=softmax"),
            variant("argmax", "weighting=argmax"),
            variant("argmax, straight through", "weighting=straight-through"),
            variant("sampled", "weighting=sample"),
            Variant::new("max", &["encoder=none", "pooling=max"]),
            Variant::new("gate", &["encoder=none", "pooling=gate"]),
        ]
    }
}

/// Where the training data come from.
fn source(config: &Config) -> Result<String> {
    Ok(match config.data.source(Part::Training)? {
        None => format!("embedded {:?}", config.data.kind).to_lowercase(),
        Some(Source::One(path)) => path.display().to_string(),
        Some(Source::Many(paths)) => {
            let all: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            all.join(", ")
        }
    })
}

impl ClassifyLesson {
    /// An example in which a share of the tokens is unknown.
    fn token_dropout(&self, example: &Sequence, random: &Random) -> Sequence {
        let share = self.classifier.config.text.token_dropout;
        let mut example = example.clone();
        if let Sequence::Tokens(ids) = &mut example {
            ids.iter_mut().filter(|_| random.number() < share).for_each(|id| *id = UNKNOWN);
        }
        example
    }
}

impl Lesson for ClassifyLesson {
    fn model(&self) -> &dyn Model {
        &self.classifier
    }

    fn start(&self) -> Result<Vec<String>> {
        let vectors = self.classifier.config.text.tokens.vectors.as_deref();
        let InputEncoding::Tokens(tokenizer) = &self.classifier.preprocessor.input else {
            return Ok(Vec::new());
        };
        let tokens: Vec<String> =
            (0..tokenizer.len()).map(|id| tokenizer.token(id).into()).collect();
        components::pretrained(self.classifier.parameters(), "input.weight", &tokens, vectors)
    }

    fn training(&self) -> &TrainingConfig {
        &self.classifier.config.training
    }

    fn lengths(&self) -> Lengths {
        Lengths::Each(self.training.read.iter().map(Sequence::len).collect())
    }

    fn loss(
        &self,
        batch: &[usize],
        reinforce: &mut Option<Reinforce>,
        random: &Random,
    ) -> Result<Tensor> {
        let examples = batch.iter().map(|&i| self.token_dropout(&self.training.read[i], random));
        let examples: Vec<Sequence> = examples.collect();
        let ids: Vec<i64> = batch.iter().map(|&i| self.training.truth.ids[i] as i64).collect();
        let batch = Batch::new(&examples.iter().collect::<Vec<_>>())?;
        let model = &self.classifier.model;
        let attended = model.classify(&batch.sequences(), Mode::Train(random), Need::OUTPUT)?;
        let label_smoothing = self.classifier.config.training.label_smoothing;
        let rule = CrossEntropy { label_smoothing, ..CrossEntropy::default() };
        LabelWeights::attended_loss(self.weights.as_ref(), &attended, ids, rule, reinforce)
    }

    fn weight(&self, batch: &[usize]) -> f64 {
        LabelWeights::sum(self.weights.as_ref(), batch.iter().map(|&i| &self.training.truth.ids[i]))
    }

    fn measure(&self) -> Result<Scores> {
        let EncodedExamples { read, truth, .. } = &self.validation;
        let probabilities = self.classifier.label_probabilities(read)?;
        probabilities.with_unseen(&truth.unseen).scores(&truth.ids)
    }

    fn samples(&self) -> Samples {
        match self.classifier.config.data.kind {
            Kind::Text => Samples::Typed(self.validation.names.clone()),
            Kind::Audio | Kind::Vectors => Samples::Numbered(self.validation.names.len()),
        }
    }
}

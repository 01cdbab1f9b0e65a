//! `label`: a sequence in, a label for each of its words or vectors out.

mod asked;
mod config;
mod data;
mod encoded_sentence;
mod model;
mod vectors;

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
use crate::tasks::components;
use crate::tasks::labels::check::{LabelSource, check_labels, describe_labels};
use crate::tasks::labels::truth::Truth;
use crate::tasks::labels::weights::LabelWeights;
use config::Config;
use data::{Dataset, Sentences};
use encoded_sentence::EncodedSentence;
use model::{Labeler, Preprocessor};
use regard::attention::Reinforce;
use regard::tensor::Random;
use regard::{Mode, Tensor};
use regard_data::files::Tagged;
use regard_data::remark;
use regard_data::text::{UNKNOWN, by_count};
use regard_data::{Error, Result};
use std::collections::BTreeSet;
use vectors::Kind;

/// Labels every word of a sentence: each alone, in a window, by a recurrent network, or by
/// attention to all or some of the others.
#[derive(Clone, Copy, Debug)]
pub struct Label;

/// A labeler and the sentences it learns from.
struct LabelLesson {
    labeler: Labeler,
    sentences: Vec<EncodedSentence>,
    targets: Vec<Vec<usize>>,
    /// How often each word occurs, by its id.
    counts: Vec<usize>,
    weights: Option<LabelWeights>,
    validation: Sentences,
}

impl Task for Label {
    fn name(&self) -> &'static str {
        "label"
    }

    fn about(&self) -> &'static str {
        "a sequence in, a label for each of its words or vectors out"
    }

    fn template(&self) -> String {
        [
            include_str!("options.toml"),
            include_str!("vectors.toml"),
            components::SOUND,
            include_str!("model.toml"),
            components::ENCODER,
            "\n",
            training::TEMPLATE,
            training::CLASS_WEIGHTS,
        ]
        .concat()
    }

    fn defaults(&self) -> &'static [&'static str] {
        &[
            "encoder=transformer",
            "hidden=64",
            "layers=2",
            "feed_forward=128",
            "epochs=10",
            "batch_size=16",
            "learning_rate=0.002",
            "schedule=cosine",
            "warmup_steps=50",
            "stack=2",
            "stride=2",
        ]
    }

    fn requirements(&self) -> Vec<Requirement> {
        config::needs()
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Learner>> {
        if !labels_words(options)? {
            return vectors::begin(options);
        }
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let (mut training, validation) = dataset.learned()?;
        drop(dataset);
        let longest = config.data.max_length;
        let all = training.all.len();
        training.all.retain(|sentence| sentence.words.len() <= longest);
        remark_left_out(all - training.all.len(), all, "sentences", longest, "words");
        check_some(
            training.all.len(),
            validation.all.len(),
            "sentences",
            Some((longest, "words")),
        )?;
        check_labels(all_labels(&training), "words", LabelSource::Lines)?;
        remark_swapped(&training);
        let preprocessor = Preprocessor::fit(&config, &training.all)?;
        let labeler = Labeler::new(config, preprocessor)?;
        if labeler.preprocessor.pieces().is_some() {
            let pieces = |sentence: &Tagged| labeler.encode(&sentence.words).words.len();
            let all = training.all.len();
            training.all.retain(|sentence| pieces(sentence) <= longest);
            remark_left_out(all - training.all.len(), all, "sentences", longest, "pieces");
            if training.all.is_empty() {
                return Err(Error::invalid(format!(
                    "no training sentence has at most {longest} pieces; raise `data.max_length`"
                )));
            }
        }
        let targets = labeler.targets(&training.all).1;
        let sentences: Vec<EncodedSentence> =
            training.all.iter().map(|s| labeler.encode(&s.words)).collect();
        let mut counts = vec![0; labeler.preprocessor.vocabulary()];
        sentences.iter().flat_map(|s| &s.words).for_each(|&word| counts[word] += 1);
        let weights = LabelWeights::new(
            &labeler.config.training.class_weights,
            labeler.preprocessor.labels.names(),
            targets.iter().flatten(),
        )?;
        let truth = labeler.targets(&validation.all).0.note("validation");
        let notes = truth.into_iter().chain(labeler.note_of_parts(&validation)).collect();
        let lesson = LabelLesson { labeler, sentences, targets, counts, weights, validation };
        learner(lesson, notes, None)
    }

    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
        if !labels_words(options)? {
            return vectors::open(options, vocabulary);
        }
        Ok(Box::new(Labeler::new(Config::of(options)?, vocabulary.parse()?)?))
    }

    fn describe(&self, options: &Options) -> Result<Description> {
        if !labels_words(options)? {
            return vectors::describe(options);
        }
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let training = dataset.part(Part::Training)?;
        describe_labels(all_labels(&training), "words", LabelSource::Lines);
        remark_swapped(&training);
        let Sentences { file, all, .. } = training;
        let longest = config.data.max_length;
        let long = all.iter().filter(|sentence| sentence.words.len() > longest).count();
        remark_left_out(long, all.len(), "sentences", longest, "words");
        let preprocessor = Preprocessor::fit(&config, &all)?;
        let [validation, test] = [dataset.part(Part::Validation)?, dataset.part(Part::Test)?];
        let unseen = |part: &Sentences| {
            let labels = part.all.iter().flat_map(|sentence| &sentence.labels);
            Truth::new(&preprocessor.labels, labels.map(String::as_str)).fact()
        };
        let words: usize = all.iter().map(|sentence| sentence.words.len()).sum();
        let facts = [
            ("training sentences", all.len().to_string()),
            ("validation sentences", validation.all.len().to_string()),
            ("test sentences", test.all.len().to_string()),
            ("training words", words.to_string()),
            ("sentences", lengths(all.iter().map(|s| s.words.len()).collect(), "words")),
            ("vocabulary", preprocessor.words.len().to_string()),
            ("characters", preprocessor.characters.len().to_string()),
            ("labels", preprocessor.labels.len().to_string()),
            ("unseen in validation", unseen(&validation)),
            ("unseen in test", unseen(&test)),
        ];
        let labels = by_count(all.iter().flat_map(|s| &s.labels).map(String::as_str));
        let example =
            |s: &regard_data::files::Tagged| model::tagged(s.words.iter().zip(&s.labels)).join(" ");
        Ok(Description {
            source: file.display().to_string(),
            facts: facts.map(|(name, text)| (name.to_string(), text)).into(),
            labels: labels.into_iter().map(|(label, n)| (label.to_string(), n)).collect(),
            examples: all.iter().take(5).map(example).collect(),
        })
    }

    fn comparison(&self) -> Vec<Variant> {
        vec![
            Variant::new("per-vector", &["encoder=none", "head_hidden=128"]),
            Variant::new("window", &["encoder=none", "neighbors=2", "head_hidden=128"]),
            Variant::new("fully connected", &["encoder=fully-connected", "max_length=100"]),
            Variant::new("recurrent", &["encoder=lstm", "layers=1"]),
            Variant::new("self-attention", &["encoder=transformer"]),
            Variant::new("without positions", &["encoder=transformer", "position=none"]),
            Variant::new("truncated, 2", &["encoder=transformer", "window=2"]),
            Variant::new("truncated, 8", &["encoder=transformer", "window=8"]),
            Variant::new("truncated, 32", &["encoder=transformer", "window=32"]),
        ]
    }
}

fn all_labels(sentences: &Sentences) -> impl Iterator<Item = &str> {
    sentences.all.iter().flat_map(|sentence| &sentence.labels).map(String::as_str)
}

/// Says so where there are more labels than words: columns may be swapped.
fn remark_swapped(sentences: &Sentences) {
    let words: BTreeSet<&str> =
        sentences.all.iter().flat_map(|s| &s.words).map(String::as_str).collect();
    let labels: BTreeSet<&str> = all_labels(sentences).collect();
    if labels.len() > words.len() && labels.len() > 20 {
        remark(format!(
            "there are {} different labels for {} different words, as if their columns were swapped; \
             `data.column` and `data.word_column` say which is which",
            labels.len(),
            words.len()
        ));
    }
}

/// Whether words are labeled, not vectors.
fn labels_words(options: &Options) -> Result<bool> {
    Ok(Config::of(options)?.data.kind == Kind::Words)
}

impl LabelLesson {
    /// A sentence in which words are now and then unknown, rare ones more often.
    fn word_dropout(&self, sentence: &EncodedSentence, random: &Random) -> EncodedSentence {
        let a = self.labeler.config.text.word_dropout;
        let mut sentence = sentence.clone();
        // Pieces make any word: none is unknown.
        if self.labeler.preprocessor.pieces().is_some() {
            return sentence;
        }
        for word in &mut sentence.words {
            if random.number() < a / (a + self.counts[*word] as f64) {
                *word = UNKNOWN;
            }
        }
        sentence
    }
}

impl Lesson for LabelLesson {
    fn model(&self) -> &dyn Model {
        &self.labeler
    }

    fn start(&self) -> Result<Vec<String>> {
        let words = &self.labeler.preprocessor.words;
        let name = |id: usize| match self.labeler.preprocessor.pieces() {
            Some(pieces) => pieces.name(id).to_owned(),
            None => words.name(id).to_owned(),
        };
        let count = self.labeler.preprocessor.vocabulary();
        let tokens: Vec<String> = (0..count).map(name).collect();
        let vectors = self.labeler.config.text.tokens.vectors.as_deref();
        components::pretrained(self.labeler.parameters(), "input.weight", &tokens, vectors)
    }

    fn training(&self) -> &TrainingConfig {
        &self.labeler.config.training
    }

    fn lengths(&self) -> Lengths {
        Lengths::Each(self.sentences.iter().map(|sentence| sentence.words.len()).collect())
    }

    fn loss(&self, batch: &[usize], _: &mut Option<Reinforce>, random: &Random) -> Result<Tensor> {
        let sentences =
            batch.iter().map(|&index| self.word_dropout(&self.sentences[index], random));
        let sentences: Vec<EncodedSentence> = sentences.collect();
        let targets: Vec<&[usize]> = batch.iter().map(|&index| &self.targets[index][..]).collect();
        let batch = self.labeler.batch(&sentences.iter().collect::<Vec<_>>())?;
        let targets = batch.targets(&sentences, &targets)?;
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
        let typed = self.validation.all.iter().map(|sentence| sentence.words.join(" "));
        Samples::Typed(typed.collect())
    }
}

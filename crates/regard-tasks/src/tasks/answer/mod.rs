//! `answer`: a text and a question in, an answer out.

mod config;
mod data;
mod encoding;
mod explained;
mod model;
mod outcome;
mod spans;

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
use crate::tasks::labels::truth::Truth;
use config::{Config, Kind};
use data::{Dataset, Questions};
use encoding::{
    EncodedPassage, EncodedStory, PassageBatch, Preprocessor, StoryBatch, first_answer,
};
use model::{Answerer, Network, joined};
use regard::attention::{Need, Reinforce, ReinforceConfig};
use regard::models::{Sentences, Sequences, SpanReader};
use regard::tensor::{CrossEntropy, Random};
use regard::{Mode, Tensor};
use regard_data::files::Unfound;
use regard_data::remark;
use regard_data::text::{PADDING, by_count};
use regard_data::{Error, Result};

/// Answers questions about texts: from a memory of sentences, or with a span of the text.
#[derive(Clone, Copy, Debug)]
pub struct Answer;

/// What is learned from.
enum Training {
    Stories(Vec<EncodedStory>),
    Passages(Vec<EncodedPassage>),
}

/// A model and the questions it learns from.
struct AnswerLesson {
    answerer: Answerer,
    training: Training,
    validation: Questions,
}

impl Task for Answer {
    fn name(&self) -> &'static str {
        "answer"
    }

    fn about(&self) -> &'static str {
        "a text and a question in, an answer out"
    }

    fn template(&self) -> String {
        [
            include_str!("options.toml"),
            components::ENCODER,
            components::MECHANISM,
            "\n",
            training::TEMPLATE,
        ]
        .concat()
    }

    fn defaults(&self) -> &'static [&'static str] {
        &[
            "encoder=auto",
            "hidden=64",
            "score=scaled-dot",
            "score_hidden=64",
            "dropout=0.0",
            "hop_supervision=1.0",
            "epochs=15",
            "batch_size=64",
            "learning_rate=0.003",
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
        check_some(training.all.len(), validation.all.len(), "questions", None)?;
        if let Some(what) = unanswered(&training.all) {
            return Err(Error::file(&training.file, what));
        }
        let preprocessor = Preprocessor::fit(&config, &training.all)?;
        let answerer = Answerer::new(config, preprocessor)?;
        let long = answerer.note_of_long_stories(&training, "training");
        let training = match answerer.config.model.model {
            Kind::Memory => Training::Stories(answerer.encoder().stories(&training)?),
            Kind::Reader => Training::Passages(with_spans(&answerer, &training)?),
        };
        let reinforce = answerer.config.samples();
        let reinforce =
            reinforce.then(|| Reinforce::new(ReinforceConfig::default())).transpose()?;
        let notes = long.into_iter().chain(answerer.notes(&validation, "validation")).collect();
        learner(AnswerLesson { answerer, training, validation }, notes, reinforce)
    }

    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
        Ok(Box::new(Answerer::new(Config::of(options)?, vocabulary.parse()?)?))
    }

    fn describe(&self, options: &Options) -> Result<Description> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let Questions { file, all } = dataset.part(Part::Training)?;
        let [validation, test] = [dataset.part(Part::Validation)?, dataset.part(Part::Test)?];
        unanswered(&all).into_iter().for_each(remark);
        let preprocessor = Preprocessor::fit(&config, &all)?;
        let text = &config.text;
        let long = |asked: &regard_data::files::Asked| {
            encoding::words(&asked.passage.text, text.tokenizer, false).len()
        };
        let none = all.iter().filter(|asked| asked.answers.is_empty()).count();
        let mut facts = vec![
            ("training questions", all.len().to_string()),
            ("validation questions", validation.all.len().to_string()),
            ("test questions", test.all.len().to_string()),
            ("texts", lengths(all.iter().map(long).collect(), "words")),
            ("stories", lengths(all.iter().map(|a| a.passage.ranges.len()).collect(), "sentences")),
            ("vocabulary", preprocessor.words.len().to_string()),
            ("questions without an answer", none.to_string()),
        ];
        if config.model.model == Kind::Memory {
            let unseen = |part: &Questions| {
                Truth::new(&preprocessor.answers, part.all.iter().map(first_answer)).fact()
            };
            facts.push(("unseen in validation", unseen(&validation)));
            facts.push(("unseen in test", unseen(&test)));
        }
        let answers = by_count(all.iter().map(first_answer));
        Ok(Description {
            source: file.display().to_string(),
            facts: facts.into_iter().map(|(name, text)| (name.to_string(), text)).collect(),
            labels: answers.into_iter().take(20).map(|(a, n)| (a.to_string(), n)).collect(),
            examples: all.iter().take(3).map(example).collect(),
        })
    }

    fn comparison(&self) -> Vec<Variant> {
        vec![
            Variant::new("1 hop", &["hops=1"]),
            Variant::new("2 hops", &["hops=2"]),
            Variant::new("3 hops", &["hops=3"]),
            Variant::new("2 hops, hard", &["hops=2", "weighting=straight-through"]),
            Variant::new("without attention", &["attention=false"]),
        ]
    }
}

/// What is wrong with questions of which none has an answer.
fn unanswered(all: &[regard_data::files::Asked]) -> Option<String> {
    let none = !all.is_empty() && all.iter().all(|asked| asked.answers.is_empty());
    let count = all.len();
    none.then(|| {
        format!(
            "none of {count} training questions has an answer: there is nothing to learn; a row is \
             text, question, answer, with tabs between, or `data.text_column`, `data.question_column` \
             and `data.answer_columns` say where they are"
        )
    })
}

fn example(asked: &regard_data::files::Asked) -> String {
    let answer = if asked.answers.is_empty() { "(none)" } else { first_answer(asked) };
    let start: String = asked.passage.text.chars().take(200).collect();
    format!("{start} — {} → {answer}", asked.question)
}

/// The training texts of a reader. Refuses an answer that is not in its text, by where it stands;
/// leaves out those that are cut off, and those that were searched for and not found.
fn with_spans(answerer: &Answerer, training: &Questions) -> Result<Vec<EncodedPassage>> {
    let search = answerer.config.data.unfound == Unfound::Search;
    if let Some(asked) = training.all.iter().find(|asked| {
        !search && !asked.answers.is_empty() && asked.answers.iter().all(|a| a.start.is_none())
    }) {
        let what = format!("the answer `{}` is not in the text", first_answer(asked));
        return Err(asked.wrong(&training.file, &what));
    }
    let mut passages = answerer.encoder().passages(training)?;
    let all = passages.len();
    passages.retain(|passage| passage.span.is_some());
    if passages.len() < all {
        let longest = answerer.config.data.max_length;
        remark(format!(
            "{all} training questions: {} used, {} left out: their answer is not within the first \
             `data.max_length` = {longest} words of the text",
            passages.len(),
            all - passages.len()
        ));
    }
    if passages.is_empty() {
        return Err(Error::file(&training.file, "no answer is in its text"));
    }
    Ok(passages)
}

impl AnswerLesson {
    fn story_loss(
        &self,
        all: &[&EncodedStory],
        reinforce: &mut Option<Reinforce>,
        random: &Random,
    ) -> Result<Tensor> {
        let targets: Vec<i64> =
            all.iter().map(|story| story.answer.unwrap_or_default() as i64).collect();
        let targets = Tensor::from_vec(targets, &[all.len()])?;
        let label_smoothing = self.answerer.config.training.label_smoothing;
        let rule = CrossEntropy { label_smoothing, ..CrossEntropy::default() };
        let mode = Mode::Train(random);
        match &self.answerer.network {
            Network::Memory(network) => {
                let batch = StoryBatch::new(all)?;
                let taught = self.answerer.config.model.hop_supervision;
                let need = if taught > 0.0 { Need::WEIGHTS } else { Need::OUTPUT };
                let answered = network.answer(&batch.stories(), mode, need)?;
                let losses = answered.logits.cross_entropy_rows(&targets, rule)?;
                let mut loss = losses.mean_all()?;
                for (hop, weights) in answered.weights.iter().enumerate() {
                    loss = loss.add(&missed(weights, all, hop)?.scale(taught)?)?;
                }
                match (reinforce, &answered.log_prob) {
                    (Some(reinforce), Some(log_prob)) => {
                        let rewards = losses.scale(-1.0)?.detach();
                        Ok(loss.add(&reinforce.loss(&rewards, log_prob, None)?)?)
                    }
                    _ => Ok(loss),
                }
            }
            Network::LastState(classifier) => {
                let longest = self.answerer.config.data.max_length;
                let joined: Vec<Vec<usize>> =
                    all.iter().map(|story| joined(story, longest)).collect();
                let batch = Sentences::new(&joined, PADDING)?;
                let sequences =
                    Sequences { lengths: Some(&batch.lengths), ..Sequences::new(&batch.ids) };
                Ok(classifier.forward(&sequences, mode)?.cross_entropy(&targets, rule)?)
            }
            Network::Reader(_) => Err(Error::invalid("a reader learns no stories")),
        }
    }
}

/// −ln of the weight that a hop gives to the sentence it should look at, the mean over the stories
/// that say which: the first hop at the first, and those beyond the last at the last.
fn missed(weights: &Tensor, all: &[&EncodedStory], hop: usize) -> Result<Tensor> {
    let wanted = |story: &&EncodedStory| {
        story.supporting.get(hop).or(story.supporting.last()).map(|&sentence| sentence as i64)
    };
    let wanted: Vec<Option<i64>> = all.iter().map(wanted).collect();
    let said = wanted.iter().flatten().count().max(1) as f32;
    let shares = wanted.iter().map(|at| if at.is_some() { 1.0 / said } else { 0.0 });
    let shares = Tensor::from_vec(shares.collect::<Vec<f32>>(), &[all.len(), 1])?;
    let at: Vec<i64> = wanted.into_iter().map(Option::unwrap_or_default).collect();
    let given = weights.gather(1, &Tensor::from_vec(at, &[all.len(), 1])?)?;
    // A weight of 0 would have no logarithm.
    Ok(given.shift(1e-6)?.ln()?.mul(&shares)?.sum_all()?.scale(-1.0)?)
}

fn passage_loss(reader: &SpanReader, all: &[&EncodedPassage], random: &Random) -> Result<Tensor> {
    let batch = PassageBatch::new(all)?;
    let targets = |of: fn((usize, usize)) -> usize| {
        let one = |passage: &&EncodedPassage| of(passage.span.unwrap_or_default()) as i64;
        Tensor::from_vec(all.iter().map(one).collect::<Vec<i64>>(), &[all.len()])
    };
    let (starts, ends) = (targets(|span| span.0)?, targets(|span| span.1)?);
    Ok(reader.loss(&batch.passages(), &starts, &ends, Mode::Train(random))?)
}

impl Lesson for AnswerLesson {
    fn model(&self) -> &dyn Model {
        &self.answerer
    }

    fn training(&self) -> &TrainingConfig {
        &self.answerer.config.training
    }

    fn lengths(&self) -> Lengths {
        let words = |story: &EncodedStory| story.sentences.iter().map(Vec::len).sum();
        let counts_tokens = self.answerer.config.training.batch_tokens > 0;
        Lengths::Each(match &self.training {
            Training::Stories(all) if counts_tokens => all.iter().map(words).collect(),
            Training::Stories(all) => all.iter().map(|story| story.sentences.len()).collect(),
            Training::Passages(all) => all.iter().map(|passage| passage.text.len()).collect(),
        })
    }

    fn loss(
        &self,
        batch: &[usize],
        reinforce: &mut Option<Reinforce>,
        random: &Random,
    ) -> Result<Tensor> {
        match (&self.training, &self.answerer.network) {
            (Training::Passages(all), Network::Reader(reader)) => {
                let passages: Vec<&EncodedPassage> = batch.iter().map(|&i| &all[i]).collect();
                passage_loss(reader, &passages, random)
            }
            (Training::Stories(all), _) => {
                let stories: Vec<EncodedStory> = batch.iter().map(|&i| all[i].clone()).collect();
                self.story_loss(&stories.iter().collect::<Vec<_>>(), reinforce, random)
            }
            _ => Err(Error::invalid("the model and its training data are of different kinds")),
        }
    }

    fn weight(&self, batch: &[usize]) -> f64 {
        batch.len() as f64
    }

    fn measure(&self) -> Result<Scores> {
        Ok(self.answerer.measure(&self.validation)?.scores)
    }

    fn samples(&self) -> Samples {
        Samples::Numbered(self.validation.all.len())
    }
}

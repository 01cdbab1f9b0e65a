//! A model that answers: a memory network, a reader, or an encoder's last state.

use super::config::{Config, Kind};
use super::data::{Dataset, Questions};
use super::encoding::{
    EncodedStory, Preprocessor, StoryBatch, TextEncoder, first_answer, parsed, words,
};
use super::explained::self_attention;
use super::outcome::{Deciding, Outcome, Outcomes};
use crate::metric::judged::Judged;
use crate::task::abilities::{Abilities, Explains, Exports};
use crate::task::input::{Asks, Input, InputForm};
use crate::task::lengths::read_so_far;
use crate::task::looked_up::LookedUp;
use crate::task::model::Model;
use crate::task::named_rows::NamedRows;
use crate::task::network::Exported;
use crate::task::part::Part;
use crate::task::prediction::{Alternative, Prediction};
use crate::task::report::{Report, ValuesRead};
use crate::task::saliency::{How, Saliency};
use crate::tasks::components::{is_hard, made_up};
use crate::tasks::labels::probabilities::likeliest;
use crate::tasks::labels::truth::Truth;
use regard::attention::{Need, Site};
use regard::models::{MemoryNetwork, Sentences, SequenceClassifier, Sequences, SpanReader};
use regard::tensor::{Parameters, without_gradients};
use regard::{DType, Mode, Tensor};
use regard_data::files::{Asked, BatchSize, batches};
use regard_data::tick;
use regard_data::{Error, Result};
use regard_picture::scene::{Map, Maps, Place, Scene};

/// Questions that are read at once where nothing is learned.
const EVALUATION_BATCH: usize = 64;

/// Words of a text around an answer that a picture shows.
const SHOWN_WORDS: usize = 40;

pub(super) enum Network {
    Memory(MemoryNetwork),
    LastState(SequenceClassifier),
    Reader(SpanReader),
}

pub(super) struct Answerer {
    pub(super) config: Config,
    pub(super) preprocessor: Preprocessor,
    parameters: Parameters,
    pub(super) network: Network,
    looked_up: LookedUp<Asked>,
}

/// Story and question as one sequence, of which the last so many words are read.
pub(super) fn joined(story: &EncodedStory, longest: usize) -> Vec<usize> {
    let mut all = story.sentences.concat();
    all.extend_from_slice(&story.question);
    let skipped = all.len().saturating_sub(longest);
    all.split_off(skipped)
}

/// The index of the greatest number; the first of equals.
fn argmax(numbers: &[f32]) -> usize {
    let greater = |best: usize, at: usize| if numbers[at] > numbers[best] { at } else { best };
    (0..numbers.len()).fold(0, greater)
}

impl Answerer {
    pub(super) fn new(config: Config, preprocessor: Preprocessor) -> Result<Self> {
        let parameters = Parameters::new(DType::F32, config.training.seed);
        let (words, answers) = (preprocessor.words.len(), preprocessor.answers.len());
        let network = match (config.model.model, config.model.attention) {
            (Kind::Memory, true) => {
                let memory = config.memory(words, answers);
                Parameters::check_fit(DType::F32, |p| MemoryNetwork::new(p, &memory))?;
                Network::Memory(MemoryNetwork::new(&parameters, &memory)?)
            }
            (Kind::Memory, false) => {
                let classifier = config.last_state(words, answers);
                Parameters::check_fit(DType::F32, |p| SequenceClassifier::new(p, &classifier))?;
                Network::LastState(SequenceClassifier::new(&parameters, &classifier)?)
            }
            (Kind::Reader, _) => {
                let reader = config.reader(words);
                Parameters::check_fit(DType::F32, |p| SpanReader::new(p, &reader))?;
                Network::Reader(SpanReader::new(&parameters, &reader)?)
            }
        };
        Ok(Self { config, preprocessor, parameters, network, looked_up: LookedUp::new() })
    }

    pub(super) fn encoder(&self) -> TextEncoder<'_> {
        TextEncoder { config: &self.config, preprocessor: &self.preprocessor }
    }

    /// What it answers to each, in order. Reads batches of similar lengths.
    pub(super) fn outcomes(&self, questions: &Questions) -> Result<Vec<Outcome>> {
        match &self.network {
            Network::Reader(reader) => {
                let encoded = self.encoder().passages(questions)?;
                let lengths: Vec<usize> = encoded.iter().map(|p| p.text.len()).collect();
                in_batches(&lengths, |indices| {
                    let all: Vec<_> =
                        indices.iter().map(|&i| (&questions.all[i], &encoded[i])).collect();
                    self.read(reader, &all)
                })
            }
            Network::Memory(_) | Network::LastState(_) => {
                let encoded = self.encoder().stories(questions)?;
                let lengths: Vec<usize> = encoded.iter().map(|s| s.sentences.len()).collect();
                in_batches(&lengths, |indices| {
                    let all: Vec<_> = indices.iter().map(|&i| &encoded[i]).collect();
                    self.choose(&all)
                })
            }
        }
    }

    /// The scores of the answers `[B, answers]` and the weights of the sentences, hop by hop.
    fn chosen(&self, all: &[&EncodedStory]) -> Result<(Tensor, Vec<Tensor>)> {
        match &self.network {
            Network::Memory(network) => {
                let batch = StoryBatch::new(all)?;
                let answered = without_gradients(|| {
                    network.answer(&batch.stories(), Mode::Infer, Need::WEIGHTS)
                })?;
                Ok((answered.logits, answered.weights))
            }
            Network::LastState(classifier) => {
                let joined: Vec<Vec<usize>> =
                    all.iter().map(|story| joined(story, self.config.data.max_length)).collect();
                let batch = Sentences::new(&joined, regard_data::text::PADDING)?;
                let sequences =
                    Sequences { lengths: Some(&batch.lengths), ..Sequences::new(&batch.ids) };
                let logits = without_gradients(|| classifier.forward(&sequences, Mode::Infer))?;
                Ok((logits, Vec::new()))
            }
            Network::Reader(_) => Err(Error::invalid("a reader chooses no answers")),
        }
    }

    /// The likeliest answer to a story's question.
    pub(super) fn best_answer(&self, story: &EncodedStory) -> Result<usize> {
        Ok(argmax(&self.chosen(&[story])?.0.to_vec::<f32>()?))
    }

    fn choose(&self, all: &[&EncodedStory]) -> Result<Vec<Outcome>> {
        let (logits, weights) = self.chosen(all)?;
        let answers = logits.shape()[1];
        let probabilities = logits.softmax(1)?.to_vec::<f32>()?;
        let weights: Vec<(usize, Vec<f32>)> = weights
            .iter()
            .map(|hop| Ok((hop.shape()[1], hop.to_vec::<f32>()?)))
            .collect::<Result<_>>()?;
        let outcome = |(row, story): (usize, &&EncodedStory)| {
            let probabilities = &probabilities[row * answers..][..answers];
            let best = argmax(probabilities);
            let of_hop = |(wide, hop): &(usize, Vec<f32>)| {
                let read = &hop[row * wide..][..story.sentences.len()];
                [vec![0.0; story.skipped], read.to_vec()].concat()
            };
            Outcome {
                answer: self.preprocessor.answers.name(best).into(),
                probability: f64::from(probabilities[best]),
                loss: story.answer.map(|right| -f64::from(probabilities[right]).max(1e-30).ln()),
                weights: weights.iter().map(of_hop).collect(),
                seen: story.sentences.len(),
            }
        };
        Ok(all.iter().enumerate().map(outcome).collect())
    }

    /// How good it is on questions.
    pub(super) fn measure(&self, questions: &Questions) -> Result<Report> {
        let outcomes = self.outcomes(questions)?;
        let unanswerable = self.preprocessor.unanswerable
            || questions.all.iter().any(|asked| asked.answers.is_empty());
        let deciding = match self.config.model.model {
            Kind::Memory => Deciding::Accuracy,
            Kind::Reader => Deciding::F1,
        };
        let rule = self.config.rule(unanswerable);
        let report = Outcomes { questions, outcomes: &outcomes, rule, deciding }.report();
        Ok(Report { values_read: self.values_read(&outcomes), ..report })
    }

    /// How many sentences a memory network read for each question and hop.
    fn values_read(&self, outcomes: &[Outcome]) -> Option<ValuesRead> {
        let Network::Memory(network) = &self.network else { return None };
        let hard = is_hard(network.config().mechanism.weighting);
        let (mut read, mut seen, mut outputs) = (0, 0, 0);
        for one in outcomes.iter().filter(|one| one.seen > 0) {
            for hop in &one.weights {
                let chosen = || hop.iter().filter(|weight| **weight != 0.0).count();
                read += if hard { chosen() } else { one.seen };
                (seen, outputs) = (seen + one.seen, outputs + 1);
            }
        }
        let mean = |count: usize| count as f64 / outputs as f64;
        (outputs > 0).then(|| ValuesRead { per_output: mean(read), of: mean(seen) })
    }

    /// What should be known of questions that are measured on: answers that a memory network cannot
    /// give, texts that a reader does not read to their end.
    pub(super) fn notes(&self, questions: &Questions, part: &str) -> Vec<String> {
        let note = match self.config.model.model {
            Kind::Memory => {
                let answers = questions.all.iter().map(first_answer);
                let truth = Truth::new(&self.preprocessor.answers, answers);
                return truth
                    .note_of("answers", part)
                    .into_iter()
                    .chain(self.note_of_long_stories(questions, part))
                    .collect();
            }
            Kind::Reader => {
                let (longest, kind) = (self.config.data.max_length, self.config.text.tokenizer);
                let is_long =
                    |asked: &&Asked| words(&asked.passage.text, kind, false).len() > longest;
                let long = questions.all.iter().filter(is_long).count();
                read_so_far(long, questions.all.len(), "texts", longest, "words")
            }
        };
        note.into_iter().collect()
    }

    /// What to say of stories of which a memory network reads the end alone, where there are some.
    pub(super) fn note_of_long_stories(&self, questions: &Questions, part: &str) -> Option<String> {
        let most = self.config.data.max_sentences;
        let is_long = |asked: &&Asked| asked.passage.ranges.len() > most;
        let long = questions.all.iter().filter(is_long).count();
        (long > 0 && self.config.model.model == Kind::Memory).then(|| {
            format!(
                "{long} of the {part} part's {} stories have more than `data.max_sentences` = {most} \
                 sentences, of which the last are read",
                questions.all.len()
            )
        })
    }

    /// What inputs mean: each a text and a question with a tab between, or a question of the data,
    /// as `test:3`.
    fn asked(&self, inputs: &[Input]) -> Result<Questions> {
        let examples = self.looked_up.within(&self.config, "questions");
        let one = |input: &Input| match input.as_example() {
            None => parsed(input.text()?),
            Some(key) => examples.get(input, key),
        };
        Ok(Questions {
            file: "the input".into(),
            all: inputs.iter().map(one).collect::<Result<_>>()?,
        })
    }

    /// How much of a text is read: a reader's words, or the sentences that a memory holds.
    fn read_of(&self, asked: &Asked) -> (usize, usize, &'static str) {
        let (longest, most) = (self.config.data.max_length, self.config.data.max_sentences);
        match self.network {
            Network::Reader(_) => {
                let words = self.encoder().words(&asked.passage.text).len();
                (words.min(longest), words, "tokens")
            }
            Network::Memory(_) | Network::LastState(_) => {
                let sentences = asked.passage.sentences().count();
                (sentences.min(most), sentences, "sentences")
            }
        }
    }

    /// The weight of every sentence, hop by hop.
    fn sentences(&self, asked: &Asked, outcome: &Outcome) -> Maps {
        let reader = matches!(self.network, Network::Reader(_));
        let columns = match reader {
            true => vec!["start".to_string(), "end".into()],
            false => (1..=outcome.weights.len()).map(|hop| format!("hop {hop}")).collect(),
        };
        let row = |(at, sentence): (usize, &str)| {
            let mark = if asked.supporting.contains(&at) { " ←" } else { "" };
            format!("{sentence}{mark}")
        };
        let rows: Vec<String> = asked.passage.sentences().enumerate().map(row).collect();
        let weights = (0..rows.len()).flat_map(|at| outcome.weights.iter().map(move |hop| hop[at]));
        let answer = if outcome.answer.is_empty() { "(none)" } else { &outcome.answer };
        Maps {
            row_axis: "sentence".into(),
            column_axis: format!("{} → {answer}", asked.question),
            columns,
            maps: vec![
                self.changeable(asked, Map::new("weight of the sentence", weights.collect())),
            ],
            rows,
        }
    }

    /// The words around an answer over those of the question, and the words over each other where a
    /// Transformer reads them.
    fn reader_scenes(
        &self,
        reader: &SpanReader,
        questions: &Questions,
    ) -> Result<Vec<(String, Scene)>> {
        let (asked, passage) =
            (&questions.all[0], self.encoder().passage(&questions.file, &questions.all[0])?);
        let pointed = self.pointed(reader, &[&passage], Need::WEIGHTS)?;
        let span = pointed.spans(&[passage.text.len()], self.config.model.max_answer_length)?[0];
        let name = |at: usize| match &asked.passage.text[passage.ranges[at].clone()] {
            "" => "(none)".to_string(),
            word if (span.start..=span.end).contains(&at) => format!("{word} ←"),
            word => word.to_string(),
        };
        let mut scenes = Vec::new();
        if let Some(alignment) = pointed.alignment {
            let from = span.start.saturating_sub(SHOWN_WORDS / 2);
            let until = passage.text.len().min(from + SHOWN_WORDS);
            let m = alignment.shape()[2];
            let shown = alignment.narrow(1, from, until - from)?.contiguous()?.to_vec::<f32>()?;
            let asked_words = words(&asked.question, self.config.text.tokenizer, false);
            let maps = Maps {
                row_axis: "text, the answer ←".into(),
                column_axis: "question".into(),
                rows: (from..until).map(name).collect(),
                columns: asked_words.into_iter().map(|word| word.text).take(m).collect(),
                maps: vec![
                    Map::new("weight of the question's word", shown)
                        .at(Place { row: from, ..Place::new(Site::Question, 0, 0) }),
                ],
            };
            scenes.push(("question".into(), Scene::Maps(maps)));
        }
        let names = (0..passage.text.len()).map(name).collect();
        scenes.extend(self_attention(&pointed.encoder, names, self.config.model.encoder.window)?);
        Ok(scenes)
    }
}

/// What is done to batches of similar lengths, in the order of the examples.
fn in_batches(
    lengths: &[usize],
    each: impl Fn(&[usize]) -> Result<Vec<Outcome>>,
) -> Result<Vec<Outcome>> {
    let mut all = vec![Outcome::default(); lengths.len()];
    let mut done = 0;
    for indices in batches(lengths, BatchSize::Sequences(EVALUATION_BATCH), None)? {
        for (outcome, &index) in each(&indices)?.into_iter().zip(&indices) {
            all[index] = outcome;
        }
        done += indices.len();
        tick("answering", done, lengths.len())?;
    }
    Ok(all)
}

impl Model for Answerer {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn named_rows(&self) -> Vec<NamedRows> {
        let words = &self.preprocessor.words;
        let words: Vec<String> = (0..words.len()).map(|id| words.name(id).to_string()).collect();
        let answers = self.preprocessor.answers.names();
        let read = match &self.network {
            Network::LastState(_) => "input.weight",
            Network::Memory(_) | Network::Reader(_) => "embedding.weight",
        };
        let answers = match &self.network {
            // It points at words of the text.
            Network::Reader(_) => Vec::new(),
            Network::Memory(_) | Network::LastState(_) => {
                NamedRows::of(&["out.weight", "out.bias"], answers)
            }
        };
        [NamedRows::of(&[read], &words), answers].concat()
    }

    fn vocabulary(&self) -> Result<String> {
        serde_json::to_string(&self.preprocessor).map_err(|e| Error::invalid(e.to_string()))
    }

    fn evaluate(&self, part: Part) -> Result<Report> {
        let questions = Dataset::new(&self.config).part(part)?;
        let notes = self.notes(&questions, part.name());
        Ok(Report { notes, ..self.measure(&questions)? })
    }

    fn asks(&self) -> Asks {
        // A reader points at words of the text; a memory network chooses among answers.
        let answers = match self.network {
            Network::Reader(_) => &[],
            Network::Memory(_) | Network::LastState(_) => self.preprocessor.answers.names(),
        };
        Asks::new(InputForm::PassageQuestion, answers)
    }

    fn judge(&self, part: Part) -> Result<Vec<Judged>> {
        let questions = Dataset::new(&self.config).part(part)?;
        let outcomes = self.outcomes(&questions)?;
        let chooses = !matches!(self.network, Network::Reader(_));
        let judged = |(index, outcome): (usize, Outcome)| {
            let asked = &questions.all[index];
            let answers: Vec<&str> = asked.answers.iter().map(|answer| &answer.text[..]).collect();
            // One of the answers is as right as another.
            let same = answers.iter().find(|answer| **answer == outcome.answer);
            let truth = same.map_or_else(|| answers.join(" | "), |answer| answer.to_string());
            let labels = chooses.then(|| (truth.clone(), outcome.answer.clone()));
            Judged {
                index,
                input: format!("{}\t{}", asked.passage.text, asked.question),
                truth,
                output: outcome.answer,
                loss: outcome.loss.unwrap_or(f64::NAN),
                length: asked.passage.text.split_whitespace().count(),
                labels: labels.into_iter().collect(),
                numbers: None,
            }
        };
        Ok(outcomes.into_iter().enumerate().map(judged).collect())
    }

    fn predict(&self, inputs: &[Input]) -> Result<Vec<Prediction>> {
        let questions = self.asked(inputs)?;
        let outcomes = self.outcomes(&questions)?;
        let prediction = |((input, asked), outcome): ((&Input, &Asked), Outcome)| {
            let details = serde_json::json!({
                "question": asked.question,
                "probability": outcome.probability,
                "sentences": asked.passage.sentences().collect::<Vec<_>>(),
                "weights": outcome.weights,
            });
            let (input, output) = (input.to_string(), outcome.answer);
            let one = Prediction { input, output, details };
            let (read, of, unit) = self.read_of(asked);
            one.with_unknown(self.encoder().unknown(asked)).with_cut(read, of, unit)
        };
        Ok(inputs.iter().zip(&questions.all).zip(outcomes).map(prediction).collect())
    }

    fn typed(&self, input: &Input) -> Result<Option<String>> {
        let asked = self.asked(std::slice::from_ref(input))?.all.remove(0);
        Ok(Some(format!("{}\t{}", asked.passage.text, asked.question)))
    }

    /// The likeliest answers: of those that a memory network knows, or of a reader's spans.
    fn n_best(&self, inputs: &[Input], n: usize) -> Result<Vec<Vec<Alternative>>> {
        let questions = self.asked(inputs)?;
        if let Network::Reader(reader) = &self.network {
            let all = self.encoder().passages(&questions)?.into_iter().zip(&questions.all);
            return all.map(|(text, asked)| self.best_spans(reader, asked, &text, n)).collect();
        }
        let stories = self.encoder().stories(&questions)?;
        let mut all = Vec::new();
        for some in stories.iter().collect::<Vec<_>>().chunks(EVALUATION_BATCH) {
            let (logits, _) = self.chosen(some)?;
            let (answers, names) = (logits.shape()[1], self.preprocessor.answers.names());
            let probabilities = logits.softmax(1)?.to_vec::<f32>()?;
            all.extend(probabilities.chunks(answers.max(1)).map(|row| likeliest(names, row, n)));
        }
        Ok(all)
    }

    fn show(&self, input: &Input) -> Result<Vec<(String, Scene)>> {
        let questions = self.asked(std::slice::from_ref(input))?;
        let outcome = self.outcomes(&questions)?.pop().unwrap_or_default();
        let mut scenes = Vec::new();
        if !outcome.weights.is_empty() {
            let sentences = self.sentences(&questions.all[0], &outcome);
            scenes.push(("sentences".to_string(), Scene::Maps(sentences)));
        }
        match &self.network {
            Network::Memory(network) => {
                let hops = self.hops(&questions.all[0], &outcome);
                scenes.extend(hops.map(|hops| ("hops".to_string(), Scene::Maps(hops))));
                scenes.extend(self.inside_sentences(network, &questions)?);
            }
            Network::Reader(reader) => scenes.extend(self.reader_scenes(reader, &questions)?),
            Network::LastState(classifier) => {
                scenes.extend(self.last_state_scene(classifier, &questions)?);
            }
        }
        match scenes.is_empty() {
            false => Ok(scenes),
            true => Err(Error::invalid(
                "this model attends to nothing: it was trained with `attention = false`",
            )),
        }
    }

    /// The answers to a question of the data.
    fn truth(&self, input: &Input) -> Option<String> {
        let answers = self.looked_up.within(&self.config, "questions").find(input)?.answers;
        let texts: Vec<&str> = answers.iter().map(|answer| &answer.text[..]).collect();
        Some(if texts.is_empty() { "(none)".into() } else { texts.join(" | ") })
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities { explains: Some(self), exports: Some(self), ..Abilities::default() }
    }
}

impl Explains for Answerer {
    fn saliency(&self, input: &Input, how: How) -> Result<Saliency> {
        let questions = self.asked(std::slice::from_ref(input))?;
        match &self.network {
            Network::Reader(reader) => self.span_saliency(reader, &questions, how),
            Network::Memory(_) | Network::LastState(_) => self.story_saliency(&questions, how),
        }
    }
}

impl Exports for Answerer {
    fn exported(&self) -> Result<Exported> {
        match &self.network {
            Network::Memory(network) => made_up::memory_network(network),
            Network::LastState(network) => {
                made_up::token_classifier(network, self.preprocessor.words.len())
            }
            Network::Reader(network) => made_up::span_reader(network),
        }
    }
}

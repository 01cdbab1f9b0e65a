//! A classifier: tokens, frames or vectors, and one label for all of them.

use super::config::{Config, Kind};
use super::data::{Content, Dataset, Example, frames, vectors};
use crate::data::{BatchSize, LogMel, MelFilters, Standard, Waveform, batches};
use crate::guesses::Guesses;
use crate::parts::{Cached, place};
use crate::text::{Labels, PADDING, Tokenizer};
use crate::{Error, Map, Maps, Model, Part, Prediction, Report, Result, Scene};
use regard::{
    DType, InputConfig, Mode, Parameters, Sentences, SequenceClassifier, Sequences, Tensor,
    without_gradients,
};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Sequences that are read at once where nothing is learned.
const TOGETHER: usize = 64;

/// How an input becomes numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Senses {
    /// Text as tokens.
    Tokens(Tokenizer),
    /// Recordings as log-mel frames, less their mean.
    Frames { mel: LogMel, standard: Standard },
    /// Vectors, less their mean.
    Vectors(Standard),
}

/// What a classifier knows of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Knowledge {
    pub(super) senses: Senses,
    pub(super) labels: Labels,
}

/// An example as numbers.
#[derive(Clone, Debug)]
pub(super) enum Read {
    Tokens(Vec<usize>),
    /// Vectors one after the other, and how wide each is.
    Vectors(Vec<f32>, usize),
}

impl Read {
    /// How many tokens or vectors.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Tokens(ids) => ids.len(),
            Self::Vectors(numbers, width) => numbers.len() / width,
        }
    }

    fn cut(&mut self, longest: usize) {
        match self {
            Self::Tokens(ids) => ids.truncate(longest),
            Self::Vectors(numbers, width) => numbers.truncate(longest.saturating_mul(*width)),
        }
    }
}

/// Examples as numbers, filled up to one length.
pub(super) struct Batch {
    x: Tensor,
    lengths: Vec<usize>,
}

impl Batch {
    pub(super) fn new(examples: &[&Read]) -> Result<Self> {
        let lengths: Vec<usize> = examples.iter().map(|example| example.len()).collect();
        let n = lengths.iter().copied().max().unwrap_or(0);
        let mut ids: Vec<&[usize]> = Vec::new();
        let (mut vectors, mut wide) = (Vec::new(), 0);
        for example in examples {
            match example {
                Read::Tokens(tokens) => ids.push(tokens),
                Read::Vectors(numbers, width) => {
                    wide = *width;
                    vectors.extend_from_slice(numbers);
                    vectors.resize(vectors.len().next_multiple_of((n * wide).max(1)), 0.0);
                }
            }
        }
        let x = match wide {
            0 => Sentences::new(&ids, PADDING)?.ids,
            _ => Tensor::from_vec(vectors, &[examples.len(), n, wide])?,
        };
        Ok(Self { x, lengths })
    }

    pub(super) fn sequences(&self) -> Sequences<'_> {
        Sequences { lengths: Some(&self.lengths), ..Sequences::new(&self.x) }
    }
}

impl Senses {
    /// What the training part tells.
    fn learn(config: &Config, examples: &[Example]) -> Result<Self> {
        match config.data.kind {
            Kind::Text => {
                let text = |example: &Example| match &example.content {
                    Content::Text(text) => Some(text.clone()),
                    _ => None,
                };
                let texts: Vec<String> = examples.iter().filter_map(text).collect();
                Ok(Self::Tokens(Tokenizer::learn(&texts, &config.text.tokens.config())?))
            }
            Kind::Audio => {
                let rate = examples.iter().find_map(|example| match &example.content {
                    Content::Sound(sound) => Some(sound.rate),
                    _ => None,
                });
                let rate = rate.ok_or_else(|| Error::asked("there are no recordings to learn"))?;
                let mel = config.audio.mel(rate);
                let filters = mel.filters()?;
                let frames = |example: &Example| match &example.content {
                    Content::Sound(sound) => {
                        filters.frames(sound).map_err(|e| example.wrong(e.to_string()))
                    }
                    _ => Ok(vec![]),
                };
                let frames = examples.iter().map(frames).collect::<Result<Vec<_>>>()?;
                Ok(Self::Frames { standard: Standard::measured(&frames, mel.mels)?, mel })
            }
            Kind::Vectors => {
                let mut all = Vec::new();
                let mut wide = 1;
                for example in examples {
                    if let Content::Vectors { numbers, width } = &example.content {
                        all.push(numbers.clone());
                        wide = *width;
                    }
                }
                Ok(Self::Vectors(Standard::measured(&all, wide)?))
            }
        }
    }

    /// What the library's model reads.
    fn input(&self, width: usize) -> InputConfig {
        match self {
            Self::Tokens(tokenizer) => {
                InputConfig::Tokens { vocabulary: tokenizer.len(), width, padding: Some(PADDING) }
            }
            Self::Frames { standard, .. } | Self::Vectors(standard) => {
                InputConfig::vectors(standard.mean.len())
            }
        }
    }

    /// The filters that make frames, where there are frames.
    fn filters(&self) -> Result<Option<MelFilters>> {
        match self {
            Self::Frames { mel, .. } => Ok(Some(mel.filters()?)),
            _ => Ok(None),
        }
    }
}

impl Knowledge {
    pub(super) fn learn(config: &Config, examples: &[Example]) -> Result<Self> {
        let labels = Labels::learn(examples.iter().map(|example| &example.label[..]));
        Ok(Self { senses: Senses::learn(config, examples)?, labels })
    }
}

pub(super) struct Classifier {
    pub(super) config: Config,
    pub(super) knowledge: Knowledge,
    filters: Option<MelFilters>,
    parameters: Parameters,
    pub(super) model: SequenceClassifier,
}

/// Examples as numbers, with their names and the numbers of their labels.
pub(super) struct Lesson {
    pub(super) names: Vec<String>,
    pub(super) read: Vec<Read>,
    pub(super) labels: Vec<usize>,
}

impl Classifier {
    pub(super) fn new(config: Config, knowledge: Knowledge) -> Result<Self> {
        let parameters = Parameters::new(DType::F32, config.training.seed);
        let input = knowledge.senses.input(config.model.embedding);
        let classifier = config.classifier(input, knowledge.labels.len());
        let model = SequenceClassifier::new(&parameters, &classifier)?;
        let filters = knowledge.senses.filters()?;
        Ok(Self { config, knowledge, filters, parameters, model })
    }

    /// An input as numbers. Refuses another kind of input, another width and another rate.
    fn read(&self, content: &Content) -> Result<Read> {
        let mut read = match (&self.knowledge.senses, content) {
            (Senses::Tokens(tokenizer), Content::Text(text)) => {
                Read::Tokens(tokenizer.encode(text))
            }
            (Senses::Frames { mel, standard }, Content::Sound(sound)) => {
                let Some(filters) = &self.filters else {
                    return Err(Error::asked("there are no filters to make frames with"));
                };
                standardized(frames(filters, mel, sound)?, standard)?
            }
            (Senses::Vectors(standard), vectors @ Content::Vectors { .. }) => {
                standardized(vectors.clone(), standard)?
            }
            _ => return Err(Error::asked("the run has learned another kind of input")),
        };
        read.cut(self.config.data.longest);
        Ok(read)
    }

    /// Examples as numbers; refuses a label unseen in training, by its place.
    pub(super) fn lesson(&self, examples: &[Example]) -> Result<Lesson> {
        let label = |example: &Example| {
            let unseen = || {
                let seen = self.knowledge.labels.len();
                let label = &example.label;
                example.wrong(format!("label `{label}` is not among the {seen} seen in training"))
            };
            self.knowledge.labels.id(&example.label).ok_or_else(unseen)
        };
        let read = |example: &Example| {
            self.read(&example.content).map_err(|e| example.wrong(e.to_string()))
        };
        Ok(Lesson {
            names: examples.iter().map(Example::name).collect(),
            read: examples.iter().map(read).collect::<Result<_>>()?,
            labels: examples.iter().map(label).collect::<Result<_>>()?,
        })
    }

    /// What it makes of each, in order. Reads batches of similar lengths.
    pub(super) fn guess(&self, examples: &[Read]) -> Result<Guesses<'_>> {
        let classes = self.knowledge.labels.len();
        let mut all = vec![0f32; examples.len() * classes];
        let lengths: Vec<usize> = examples.iter().map(Read::len).collect();
        for places in batches(&lengths, BatchSize::Sequences(TOGETHER), None)? {
            let batch: Vec<&Read> = places.iter().map(|&place| &examples[place]).collect();
            let batch = Batch::new(&batch)?;
            let logits = without_gradients(|| self.model.forward(&batch.sequences(), Mode::Infer))?;
            for (row, place) in logits.to_vec::<f32>()?.chunks(classes).zip(places) {
                all[place * classes..][..classes].copy_from_slice(row);
            }
        }
        let logits = Tensor::from_vec(all, &[examples.len(), classes])?;
        Guesses::new(self.knowledge.labels.names(), logits)
    }

    /// What inputs mean: each a text; or the path of a recording, or vectors, or an example of the
    /// data, as `validation:3`.
    fn contents(&self, inputs: &[String]) -> Result<Vec<Content>> {
        let dataset = Dataset::new(&self.config);
        let parts = [const { Cached::new() }; 3];
        let kind = self.config.data.kind;
        let content = |input: &String| match (kind, place(input)) {
            (Kind::Text, _) => Ok(Content::Text(input.into())),
            (_, Some((part, at))) => {
                let all = parts[part as usize].get(|| dataset.part(part))?;
                let beyond = || format!("`{input}`: the part has {} examples, from 0", all.len());
                let found = all.get(at).ok_or_else(|| Error::asked(beyond()))?;
                Ok(found.content.clone())
            }
            (Kind::Audio, None) => Ok(Content::Sound(Waveform::read(Path::new(input.trim()))?)),
            (Kind::Vectors, None) => {
                vectors(input).map_err(|what| Error::asked(format!("`{input}`: {what}")))
            }
        };
        inputs.iter().map(content).collect()
    }

    /// What the model reads of an input's content.
    fn read_input(&self, input: &str, content: &Content) -> Result<Read> {
        self.read(content).map_err(|error| match content {
            Content::Sound(_) => Error::file(input, error),
            _ => error,
        })
    }

    /// What the tokens or vectors of an input are called in a picture.
    fn places(&self, content: &Content, read: &Read) -> Vec<String> {
        let mut names = match (&self.knowledge.senses, content) {
            (Senses::Tokens(tokenizer), Content::Text(text)) => tokenizer.tokens(text),
            (Senses::Frames { .. }, _) => {
                let at = |n: usize| format!("{:.2} s", n as f64 * self.config.audio.seconds());
                (0..read.len()).map(at).collect()
            }
            _ => (1..=read.len()).map(|n| n.to_string()).collect(),
        };
        names.truncate(read.len());
        names
    }
}

fn standardized(content: Content, standard: &Standard) -> Result<Read> {
    let Content::Vectors { mut numbers, width } = content else {
        return Err(Error::asked("these are no vectors"));
    };
    let learned = standard.mean.len();
    if width != learned {
        let what =
            format!("vectors of {width} numbers; the model has learned vectors of {learned}");
        return Err(Error::asked(what));
    }
    standard.apply(&mut numbers)?;
    Ok(Read::Vectors(numbers, width))
}

impl Model for Classifier {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn knowledge(&self) -> Result<String> {
        serde_json::to_string(&self.knowledge).map_err(|e| Error::asked(e.to_string()))
    }

    fn evaluate(&self, part: Part) -> Result<Report> {
        let lesson = self.lesson(&Dataset::new(&self.config).part(part)?)?;
        self.guess(&lesson.read)?.report(&lesson.names, &lesson.labels)
    }

    fn predict(&self, inputs: &[String]) -> Result<Vec<Prediction>> {
        let contents = self.contents(inputs)?;
        let read = inputs.iter().zip(&contents);
        let read = read.map(|(input, content)| self.read_input(input, content));
        let read = read.collect::<Result<Vec<_>>>()?;
        Ok(self.guess(&read)?.predictions(inputs))
    }

    fn show(&self, input: &str) -> Result<Vec<(String, Scene)>> {
        let content = self.contents(&[input.to_string()])?.remove(0);
        let read = self.read_input(input, &content)?;
        let columns = self.places(&content, &read);
        if columns.is_empty() {
            return Err(Error::asked("there is nothing to look at"));
        }
        let batch = Batch::new(&[&read])?;
        let seen = without_gradients(|| self.model.attend(&batch.sequences(), Mode::Infer, true))?;
        let guess = self.guess(&[read])?.best();
        let label = guess.first().map_or("", |&label| self.knowledge.labels.name(label));
        let mut scenes = Vec::new();
        if let Some(weights) = &seen.pooling {
            let maps = Maps {
                row_axis: "answer".into(),
                column_axis: "input".into(),
                rows: vec![label.into()],
                columns: columns.clone(),
                maps: vec![Map::new("share in the answer", weights.to_vec::<f32>()?)],
            };
            scenes.push(("attention".into(), Scene::Maps(maps)));
        }
        if !seen.weights.is_empty() {
            // A class token stands before the input.
            let longer = seen.weights[0].shape()[2] > columns.len();
            let token = longer.then(|| format!("→ {label}"));
            let places: Vec<String> = token.into_iter().chain(columns).collect();
            let maps = Maps {
                row_axis: "attends".into(),
                column_axis: "is attended to".into(),
                rows: places.clone(),
                columns: places,
                maps: Map::of_layers(&seen.weights)?,
            };
            scenes.push(("self-attention".into(), Scene::Maps(maps)));
        }
        if scenes.is_empty() {
            return Err(Error::asked(
                "this model attends to nothing: its pooling gives no weights and its encoder has \
                 no attention",
            ));
        }
        Ok(scenes)
    }
}

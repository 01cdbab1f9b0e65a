//! A classifier: tokens, frames or vectors, and one label for all of them.

use super::config::{Config, Kind};
use super::data::{Content, Dataset, Example, frames, vectors};
use crate::metric::judged::Judged;
use crate::task::abilities::{Abilities, Explains, Exports, Hears};
use crate::task::input::{Asks, Input, InputForm};
use crate::task::lengths::read_so_far;
use crate::task::looked_up::LookedUp;
use crate::task::model::Model;
use crate::task::named_rows::{NamedRows, all_tokens};
use crate::task::network::{Exported, Network};
use crate::task::part::Part;
use crate::task::prediction::unknown_words;
use crate::task::prediction::{Alternative, Prediction};
use crate::task::report::{Report, ValuesRead};
use crate::task::saliency::{How, Probe, Saliency};
use crate::tasks::components::made_up::made_up_lengths;
use crate::tasks::components::{note_of_rates, together};
use crate::tasks::labels::probabilities::LabelProbabilities;
use crate::tasks::labels::truth::Truth;
use regard::attention::{Need, Site};
use regard::models::{Classified, InputConfig, Sentences, SequenceClassifier, Sequences};
use regard::tensor::{Parameters, Random, without_gradients};
use regard::{DType, Mode, Tensor};
use regard_data::files::{BatchSize, LogMel, MelFilters, StandardScaler, Waveform, batches};
use regard_data::text::{Labels, PADDING, Tokenizer};
use regard_data::tick;
use regard_data::{Error, Result};
use regard_picture::scene::SoundScene;
use regard_picture::scene::{Map, Maps, Place, Scene};
use serde::{Deserialize, Serialize};

/// Sequences that are read at once where nothing is learned.
const EVALUATION_BATCH: usize = 64;

/// How an input becomes numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InputEncoding {
    /// Text as tokens.
    Tokens(Tokenizer),
    /// Recordings as log-mel frames, less their mean.
    Frames { mel: LogMel, standard: StandardScaler },
    /// Vectors, less their mean.
    Vectors(StandardScaler),
}

/// What a classifier knows of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Preprocessor {
    #[serde(rename = "senses")]
    pub(super) input: InputEncoding,
    pub(super) labels: Labels,
}

/// An example as numbers.
#[derive(Clone, Debug)]
pub(super) enum Sequence {
    Tokens(Vec<usize>),
    /// Vectors one after the other, and how wide each is.
    Vectors(Vec<f32>, usize),
}

impl Sequence {
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
    pub(super) fn new(examples: &[&Sequence]) -> Result<Self> {
        let lengths: Vec<usize> = examples.iter().map(|example| example.len()).collect();
        let n = lengths.iter().copied().max().unwrap_or(0);
        let mut ids: Vec<&[usize]> = Vec::new();
        let (mut vectors, mut wide) = (Vec::new(), 0);
        for example in examples {
            match example {
                Sequence::Tokens(tokens) => ids.push(tokens),
                Sequence::Vectors(numbers, width) => {
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

impl InputEncoding {
    /// What the training part tells.
    fn fit(config: &Config, examples: &[Example]) -> Result<Self> {
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
                let rate = config.audio.sample_rate.or(rate);
                let rate =
                    rate.ok_or_else(|| Error::invalid("there are no recordings to learn"))?;
                let mel = config.audio.mel(rate);
                let filters = mel.filters()?;
                let frames = |example: &Example| match &example.content {
                    Content::Sound(sound) => {
                        filters.frames(sound).map_err(|e| example.wrong(e.to_string()))
                    }
                    _ => Ok(vec![]),
                };
                let frames = together(examples, frames)?;
                Ok(Self::Frames { standard: StandardScaler::fit(&frames, mel.mels)?, mel })
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
                Ok(Self::Vectors(StandardScaler::fit(&all, wide)?))
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

impl Preprocessor {
    pub(super) fn fit(config: &Config, examples: &[Example]) -> Result<Self> {
        let labels = Labels::learn(examples.iter().map(|example| &example.label[..]));
        Ok(Self { input: InputEncoding::fit(config, examples)?, labels })
    }
}

pub(super) struct Classifier {
    pub(super) config: Config,
    pub(super) preprocessor: Preprocessor,
    filters: Option<MelFilters>,
    parameters: Parameters,
    pub(super) model: SequenceClassifier,
    looked_up: LookedUp<Example>,
}

/// Examples as numbers, with their names and the numbers of their labels.
pub(super) struct EncodedExamples {
    pub(super) names: Vec<String>,
    pub(super) read: Vec<Sequence>,
    /// How many were cut.
    long: usize,
    pub(super) truth: Truth,
}

impl Classifier {
    pub(super) fn new(config: Config, preprocessor: Preprocessor) -> Result<Self> {
        let parameters = Parameters::new(DType::F32, config.training.seed);
        let input = preprocessor.input.input(config.model.embedding);
        let classifier = config.classifier(input, preprocessor.labels.len());
        Parameters::check_fit(DType::F32, |p| SequenceClassifier::new(p, &classifier))?;
        let model = SequenceClassifier::new(&parameters, &classifier)?;
        let filters = preprocessor.input.filters()?;
        Ok(Self { config, preprocessor, filters, parameters, model, looked_up: LookedUp::new() })
    }

    /// An input as numbers. Refuses another kind of input and another width.
    fn read(&self, content: &Content) -> Result<Sequence> {
        let mut read = self.read_whole(content)?;
        read.cut(self.config.data.max_length);
        Ok(read)
    }

    /// As [`Classifier::read`], of any length.
    fn read_whole(&self, content: &Content) -> Result<Sequence> {
        Ok(match (&self.preprocessor.input, content) {
            (InputEncoding::Tokens(tokenizer), Content::Text(text)) => {
                Sequence::Tokens(tokenizer.encode(text))
            }
            (InputEncoding::Frames { mel, standard }, Content::Sound(sound)) => {
                let Some(filters) = &self.filters else {
                    return Err(Error::invalid("there are no filters to make frames with"));
                };
                standardized(frames(filters, mel, sound)?, standard)?
            }
            (InputEncoding::Vectors(standard), vectors @ Content::Vectors { .. }) => {
                standardized(vectors.clone(), standard)?
            }
            _ => return Err(Error::invalid("the run has learned another kind of input")),
        })
    }

    /// What to say of examples that are longer than what is read of one, where there are some.
    pub(super) fn note_of_long(&self, examples: &EncodedExamples, part: &str) -> Option<String> {
        let unit = match self.config.data.kind {
            Kind::Text => "tokens",
            Kind::Audio => "frames",
            Kind::Vectors => "vectors",
        };
        let things = format!("{part} examples");
        read_so_far(examples.long, examples.read.len(), &things, self.config.data.max_length, unit)
    }

    /// What to say of examples that are recordings of several rates.
    pub(super) fn note_of_rates(&self, examples: &[Example]) -> Option<String> {
        let rate = |example: &Example| match &example.content {
            Content::Sound(sound) => Some(sound.rate),
            _ => None,
        };
        match &self.preprocessor.input {
            InputEncoding::Frames { mel, .. } => {
                note_of_rates(&examples.iter().filter_map(rate).collect::<Vec<_>>(), mel.rate)
            }
            _ => None,
        }
    }

    /// Examples as numbers.
    pub(super) fn encode_all(&self, examples: &[Example]) -> Result<EncodedExamples> {
        let labels = examples.iter().map(|example| &example.label[..]);
        let longest = self.config.data.max_length;
        let mut long = 0;
        let read = |example: &Example| {
            let whole = self.read_whole(&example.content);
            let mut read = whole.map_err(|e| example.wrong(e.to_string()))?;
            long += usize::from(read.len() > longest);
            read.cut(longest);
            Ok(read)
        };
        let read = examples.iter().map(read).collect::<Result<_>>()?;
        Ok(EncodedExamples {
            names: examples.iter().map(Example::name).collect(),
            read,
            long,
            truth: Truth::new(&self.preprocessor.labels, labels),
        })
    }

    /// What it makes of each, in order.
    pub(super) fn label_probabilities(
        &self,
        examples: &[Sequence],
    ) -> Result<LabelProbabilities<'_>> {
        Ok(self.classified(examples)?.0)
    }

    /// What it makes of each, in order, and how many values its pooling read where that attends. Reads
    /// batches of similar lengths.
    fn classified(
        &self,
        examples: &[Sequence],
    ) -> Result<(LabelProbabilities<'_>, Option<ValuesRead>)> {
        let queries = self.config.model.queries;
        let (mut values_read, mut outputs) = (0, 0);
        let classes = self.preprocessor.labels.len();
        let mut all = vec![0f32; examples.len() * classes];
        let lengths: Vec<usize> = examples.iter().map(Sequence::len).collect();
        let mut done = 0;
        for indices in batches(&lengths, BatchSize::Sequences(EVALUATION_BATCH), None)? {
            let batch: Vec<&Sequence> = indices.iter().map(|&index| &examples[index]).collect();
            let batch = Batch::new(&batch)?;
            let classify = || self.model.classify(&batch.sequences(), Mode::Infer, Need::OUTPUT);
            let Classified { logits, index, .. } = without_gradients(classify)?;
            done += indices.len();
            outputs += indices.len() * queries;
            values_read += match &index {
                Some(chosen) => chosen.to_vec::<i64>()?.iter().filter(|at| **at >= 0).count(),
                None => queries * batch.lengths.iter().sum::<usize>(),
            };
            for (row, index) in logits.to_vec::<f32>()?.chunks(classes).zip(indices) {
                all[index * classes..][..classes].copy_from_slice(row);
            }
            tick("classifying", done, examples.len())?;
        }
        let logits = Tensor::from_vec(all, &[examples.len(), classes])?;
        let values_read = (self.config.attends_pooling() && outputs > 0).then(|| ValuesRead {
            per_output: values_read as f64 / outputs as f64,
            of: (queries * lengths.iter().sum::<usize>()) as f64 / outputs as f64,
        });
        Ok((LabelProbabilities::new(self.preprocessor.labels.names(), logits)?, values_read))
    }

    /// What inputs mean: each a text; or a recording, or vectors; or an example of the data, as
    /// `validation:3` where no text is read.
    fn contents(&self, inputs: &[Input]) -> Result<Vec<Content>> {
        let examples = self.looked_up.within(&self.config, "examples");
        let kind = self.config.data.kind;
        let content = |input: &Input| match (kind, input, input.as_example()) {
            (Kind::Text, Input::Text(text), _) => Ok(Content::Text(text.clone())),
            (_, _, Some(key)) => Ok(examples.get(input, key)?.content),
            (Kind::Text, _, None) => Ok(Content::Text(input.text()?.into())),
            (Kind::Audio, _, None) => {
                let (name, bytes) = input.content("a recording")?;
                Ok(Content::Sound(Waveform::decode(name, bytes)?))
            }
            (Kind::Vectors, _, None) => {
                let text = input.text()?;
                vectors(text).map_err(|what| Error::invalid(format!("`{text}`: {what}")))
            }
        };
        inputs.iter().map(content).collect()
    }

    /// What the model reads of an input's content.
    fn read_input(&self, input: &Input, content: &Content) -> Result<Sequence> {
        self.read(content).map_err(|error| match content {
            Content::Sound(_) => Error::file(input.to_string(), error),
            _ => error,
        })
    }

    /// What the model reads of inputs.
    fn read_inputs(&self, inputs: &[Input]) -> Result<Vec<Sequence>> {
        let contents = self.contents(inputs)?;
        let read = inputs.iter().zip(&contents);
        read.map(|(input, content)| self.read_input(input, content)).collect()
    }

    /// The words of a text that are not known.
    fn unknown(&self, content: &Content, read: &Sequence) -> Vec<String> {
        match (content, read) {
            (Content::Text(_), Sequence::Tokens(ids)) => {
                unknown_words(self.token_names(content, read), ids)
            }
            _ => Vec::new(),
        }
    }

    /// The scene of the weights in one answer: over a recording's spectrogram, or over tokens.
    fn pooled(&self, label: &str, columns: &[String], read: &Sequence, map: Map) -> Scene {
        let weights = Maps {
            row_axis: match self.config.model.queries {
                1 => "answer".into(),
                _ => format!("queries, for {label}"),
            },
            column_axis: "input".into(),
            rows: match self.config.model.queries {
                1 => vec![label.into()],
                queries => (1..=queries).map(|query| format!("query {query}")).collect(),
            },
            columns: columns.to_vec(),
            maps: vec![map],
        };
        match (&self.preprocessor.input, read) {
            (InputEncoding::Frames { .. }, Sequence::Vectors(numbers, width)) => {
                let step = self.config.audio.seconds();
                Scene::Sound(SoundScene {
                    spectrogram: numbers.clone(),
                    features: *width,
                    step,
                    unit: "seconds".into(),
                    key_step: step,
                    weights: Maps { column_axis: "time".into(), ..weights },
                    tracks: Vec::new(),
                    moment: None,
                })
            }
            _ => Scene::Maps(weights),
        }
    }

    /// What the tokens or vectors of an input are called in a picture.
    fn token_names(&self, content: &Content, read: &Sequence) -> Vec<String> {
        let mut names = match (&self.preprocessor.input, content) {
            (InputEncoding::Tokens(tokenizer), Content::Text(text)) => tokenizer.tokens(text),
            (InputEncoding::Frames { .. }, _) => {
                let at = |n: usize| format!("{:.2} s", n as f64 * self.config.audio.seconds());
                (0..read.len()).map(at).collect()
            }
            _ => (1..=read.len()).map(|n| n.to_string()).collect(),
        };
        names.truncate(read.len());
        names
    }
}

fn standardized(content: Content, standard: &StandardScaler) -> Result<Sequence> {
    let Content::Vectors { mut numbers, width } = content else {
        return Err(Error::invalid("these are no vectors"));
    };
    let learned = standard.mean.len();
    if width != learned {
        let what =
            format!("vectors of {width} numbers; the model has learned vectors of {learned}");
        return Err(Error::invalid(what));
    }
    standard.apply(&mut numbers)?;
    Ok(Sequence::Vectors(numbers, width))
}

impl Model for Classifier {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn named_rows(&self) -> Vec<NamedRows> {
        let read = match &self.preprocessor.input {
            InputEncoding::Tokens(tokenizer) => {
                NamedRows::of(&["input.weight"], &all_tokens(tokenizer))
            }
            InputEncoding::Frames { .. } | InputEncoding::Vectors(_) => Vec::new(),
        };
        let labels = self.preprocessor.labels.names();
        [read, NamedRows::of(&["out.weight", "out.bias"], labels)].concat()
    }

    fn vocabulary(&self) -> Result<String> {
        serde_json::to_string(&self.preprocessor).map_err(|e| Error::invalid(e.to_string()))
    }

    fn evaluate(&self, part: Part) -> Result<Report> {
        let encoded = self.encode_all(&Dataset::new(&self.config).part(part)?)?;
        let EncodedExamples { names, read, truth, .. } = &encoded;
        let (probabilities, values_read) = self.classified(read)?;
        let probabilities = probabilities.with_unseen(&truth.unseen);
        let long = self.note_of_long(&encoded, part.name());
        let notes = truth.note(part.name()).into_iter().chain(long).collect();
        Ok(Report { notes, values_read, ..probabilities.report(names, &truth.ids)? })
    }

    fn asks(&self) -> Asks {
        let form = match self.config.data.kind {
            Kind::Text => InputForm::Text,
            Kind::Audio => InputForm::Recording,
            Kind::Vectors => InputForm::Vectors,
        };
        Asks::new(form, self.preprocessor.labels.names())
    }

    fn judge(&self, part: Part) -> Result<Vec<Judged>> {
        let encoded = self.encode_all(&Dataset::new(&self.config).part(part)?)?;
        let EncodedExamples { names, read, truth, .. } = &encoded;
        let lengths: Vec<usize> = read.iter().map(Sequence::len).collect();
        let probabilities = self.label_probabilities(read)?.with_unseen(&truth.unseen);
        Ok(probabilities.judged(names, &lengths, &truth.ids))
    }

    fn predict(&self, inputs: &[Input]) -> Result<Vec<Prediction>> {
        let (contents, read) = (self.contents(inputs)?, self.read_inputs(inputs)?);
        let predictions = self.label_probabilities(&read)?.predictions(inputs).into_iter();
        let each = predictions.zip(contents.iter().zip(&read));
        let described = |(one, (content, read)): (Prediction, (&Content, &Sequence))| {
            let whole = match read.len() < self.config.data.max_length {
                true => read.len(),
                false => self.read_whole(content)?.len(),
            };
            let unit = if matches!(read, Sequence::Tokens(_)) { "tokens" } else { "vectors" };
            let one = one.with_unknown(self.unknown(content, read));
            Ok(one.with_cut(read.len(), whole, unit))
        };
        each.map(described).collect()
    }

    fn typed(&self, input: &Input) -> Result<Option<String>> {
        Ok(match self.contents(std::slice::from_ref(input))?.remove(0) {
            Content::Text(text) => Some(text),
            _ => None,
        })
    }

    fn n_best(&self, inputs: &[Input], n: usize) -> Result<Vec<Vec<Alternative>>> {
        Ok(self.label_probabilities(&self.read_inputs(inputs)?)?.n_best(n))
    }

    fn show(&self, input: &Input) -> Result<Vec<(String, Scene)>> {
        let content = self.contents(std::slice::from_ref(input))?.remove(0);
        let read = self.read_input(input, &content)?;
        let columns = self.token_names(&content, &read);
        if columns.is_empty() {
            return Err(Error::invalid("there is nothing to look at"));
        }
        let batch = Batch::new(&[&read])?;
        let attended = without_gradients(|| {
            self.model.classify(&batch.sequences(), Mode::Infer, Need::WEIGHTS)
        })?;
        let labels = self.label_probabilities(std::slice::from_ref(&read))?.best();
        let label = labels.first().map_or("", |&label| self.preprocessor.labels.name(label));
        let mut scenes = Vec::new();
        let gate = self.config.has_gate();
        if let Some(weights) = &attended.pooling {
            let what = if gate { "how far the gate is open" } else { "share in the answer" };
            let mut map = Map::new(what, weights.to_vec::<f32>()?);
            map = match (self.config.attends_pooling(), gate) {
                (true, _) => map.at(Place::new(Site::Pooling, 0, 0)),
                (false, true) => map.fixed("A gate opens for each token by itself: it is no attention."),
                (false, false) => map.fixed(
                    "This is what pooling took of each token, and no attention that could be changed.",
                ),
            };
            let name = if gate { "gate" } else { "attention" };
            scenes.push((name.into(), self.pooled(label, &columns, &read, map)));
        }
        if !attended.weights.is_empty() {
            // A class token stands before the input.
            let longer = attended.weights[0].shape()[2] > columns.len();
            let token = longer.then(|| format!("→ {label}"));
            let tokens: Vec<String> = token.into_iter().chain(columns).collect();
            let maps = Maps::of_encoder(&attended.weights, tokens)?;
            let maps = maps.map(|maps| maps.truncated(self.config.model.encoder.window));
            scenes.extend(maps.map(|maps| ("self-attention".into(), Scene::Maps(maps))));
        }
        if scenes.is_empty() {
            return Err(Error::invalid(
                "this model attends to nothing: its pooling gives no weights and its encoder has \
                 no attention",
            ));
        }
        Ok(scenes)
    }

    /// The label of an example, or of a text that the validation or the test part holds.
    fn truth(&self, input: &Input) -> Option<String> {
        let text = match input {
            Input::Text(text) if self.config.data.kind == Kind::Text => text,
            _ => return Some(self.looked_up.within(&self.config, "examples").find(input)?.label),
        };
        let dataset = Dataset::new(&self.config);
        let labeled = |example: Example| match example.content {
            Content::Text(text) => Some((text, example.label)),
            _ => None,
        };
        self.looked_up.truth(text, |part| Ok(dataset.part(part)?.into_iter().filter_map(labeled)))
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities {
            explains: Some(self),
            hears: Some(self),
            exports: Some(self),
            ..Abilities::default()
        }
    }
}

impl Explains for Classifier {
    fn saliency(&self, input: &Input, how: How) -> Result<Saliency> {
        let content = self.contents(std::slice::from_ref(input))?.remove(0);
        let read = self.read_input(input, &content)?;
        let label = self.label_probabilities(std::slice::from_ref(&read))?.best()[0];
        let batch = Batch::new(&[&read])?;
        let score = |x: &Tensor| {
            let sequences = Sequences { x, ..batch.sequences() };
            let logits = self.model.forward(&sequences, Mode::Infer)?;
            Ok(logits.log_softmax(1)?.narrow(1, label, 1)?)
        };
        let found = match &read {
            Sequence::Tokens(_) => Probe::embedding(&|| score(&batch.x)).explain(how)?,
            Sequence::Vectors(..) => Probe::input(batch.x.clone(), &score).explain(how)?,
        };
        let names = self.token_names(&content, &read);
        let name = self.preprocessor.labels.name(label);
        Ok(found.named(format!("the log-probability of {name}"), names, None))
    }
}

impl Hears for Classifier {
    fn sound(&self, input: &Input) -> Result<Option<Waveform>> {
        Ok(match self.contents(std::slice::from_ref(input))?.remove(0) {
            Content::Sound(sound) => Some(sound),
            _ => None,
        })
    }
}

impl Exports for Classifier {
    fn exported(&self) -> Result<Exported> {
        let random = Random::named(1, "export");
        let sequence = |n: usize| match &self.preprocessor.input {
            InputEncoding::Tokens(tokenizer) => Ok(Sequence::Tokens(
                (0..n).map(|_| 1 + random.below(tokenizer.len() - 1)).collect(),
            )),
            InputEncoding::Frames { standard, .. } | InputEncoding::Vectors(standard) => {
                let width = standard.mean.len();
                let numbers = random.normal(&[n, width], 0.0, 1.0, DType::F32)?.to_vec::<f32>()?;
                Result::Ok(Sequence::Vectors(numbers, width))
            }
        };
        let lengths = made_up_lengths(&self.model.config().encoder, 1).into_iter();
        let sequences = lengths.map(sequence).collect::<Result<Vec<_>>>()?;
        let batch = Batch::new(&sequences.iter().collect::<Vec<_>>())?;
        let output = without_gradients(|| self.model.forward(&batch.sequences(), Mode::Infer))?;
        let lengths: Vec<i64> = batch.lengths.iter().map(|&n| n as i64).collect();
        let lengths = Tensor::from_vec(lengths, &[batch.lengths.len()])?;
        let inputs = [("x".to_string(), batch.x.clone()), ("lengths".to_string(), lengths)].into();
        Ok(Exported { network: Network::Classifier(self.model.config().clone()), inputs, output })
    }
}

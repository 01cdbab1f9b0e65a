//! A labeler of vectors: frames of sound or numbers from elsewhere, and a label for each.

use super::config::Config;
use super::data::{Content, Dataset, Example, label_at};
use crate::metric::judged::Judged;
use crate::metric::{Confusion, SegmentScore, label_runs};
use crate::task::abilities::{Abilities, Explains, Exports, Hears};
use crate::task::input::{Asks, Input, InputForm};
use crate::task::looked_up::LookedUp;
use crate::task::model::Model;
use crate::task::named_rows::NamedRows;
use crate::task::network::{Exported, Network};
use crate::task::part::Part;
use crate::task::prediction::{Alternative, Prediction};
use crate::task::report::{PerExample, Report};
use crate::task::saliency::{How, Probe, Saliency};
use crate::tasks::components::made_up::made_up_lengths;
use crate::tasks::components::{SoundFrames, note_of_rates};
use crate::tasks::labels::labelings::likeliest_labelings;
use crate::tasks::labels::probabilities::check_finite;
use crate::tasks::labels::truth::Truth;
use regard::attention::{Need, Site};
use regard::models::{SequenceLabeler, Sequences};
use regard::tensor::{Parameters, Random, without_gradients};
use regard::{DType, Mode, Tensor};
use regard_data::files::Segment;
use regard_data::files::{BatchSize, MelFilters, StandardScaler, Waveform, batches};
use regard_data::text::Labels;
use regard_data::tick;
use regard_data::{Error, Result};
use regard_picture::scene::{Map, Maps, Place, Scene};
use regard_picture::scene::{SoundScene, Track};
use serde::{Deserialize, Serialize};

/// Sequences that are read at once where nothing is learned.
const EVALUATION_BATCH: usize = 32;

/// How a sequence becomes numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum InputEncoding {
    Sound(SoundFrames),
    Vectors(StandardScaler),
}

/// What a labeler knows of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Preprocessor {
    input: InputEncoding,
    pub(super) labels: Labels,
}

/// A sequence as numbers.
#[derive(Clone, Debug)]
pub(super) struct Encoded {
    /// `[N, width]`
    pub(super) vectors: Vec<f32>,
    /// What is drawn: frames of sound before they are stacked, or the vectors.
    frames: Vec<f32>,
    features: usize,
}

impl Preprocessor {
    pub(super) fn fit(config: &Config, examples: &[Example]) -> Result<Self> {
        let sounds: Vec<&Waveform> = examples
            .iter()
            .filter_map(|example| match &example.content {
                Content::Sound { sound, .. } => Some(sound),
                Content::Vectors { .. } => None,
            })
            .collect();
        let input = match sounds.is_empty() {
            false => InputEncoding::Sound(config.audio.fit(&sounds)?),
            true => {
                let (mut all, mut wide) = (Vec::new(), 1);
                for example in examples {
                    if let Content::Vectors { numbers, width, .. } = &example.content {
                        all.push(numbers.clone());
                        wide = *width;
                    }
                }
                InputEncoding::Vectors(StandardScaler::fit(&all, wide)?)
            }
        };
        let mut labels: Vec<&str> = examples.iter().flat_map(Example::labels).collect();
        let has_gaps = matches!(input, InputEncoding::Sound(_)) && examples.iter().any(has_gaps);
        labels.extend(has_gaps.then_some(&config.data.gap[..]));
        Ok(Self { input, labels: Labels::learn(labels) })
    }

    fn width(&self) -> usize {
        match &self.input {
            InputEncoding::Sound(frames) => frames.width(),
            InputEncoding::Vectors(standard) => standard.mean.len(),
        }
    }
}

/// Whether there is time that no segment covers.
fn has_gaps(example: &Example) -> bool {
    let Content::Sound { sound, segments } = &example.content else { return false };
    let seconds = sound.samples.len() as f64 / f64::from(sound.rate);
    let ends = std::iter::once(0.0).chain(segments.iter().map(|segment| segment.end));
    let starts = segments.iter().map(|segment| segment.start).chain(std::iter::once(seconds));
    ends.zip(starts).any(|(end, start)| start - end > 1e-6)
}

pub(super) struct Labeler {
    pub(super) config: Config,
    pub(super) preprocessor: Preprocessor,
    /// Made once: they depend on the options alone.
    filters: Option<MelFilters>,
    parameters: Parameters,
    pub(super) model: SequenceLabeler,
    looked_up: LookedUp<Example>,
}

/// Sequences as numbers, filled up to one length.
pub(super) struct Batch {
    x: Tensor,
    lengths: Vec<usize>,
}

impl Batch {
    pub(super) fn sequences(&self) -> Sequences<'_> {
        Sequences { lengths: Some(&self.lengths), ..Sequences::new(&self.x) }
    }

    /// The labels of each sequence, `[B, N]`, filled up.
    pub(super) fn targets(&self, all: &[&[usize]]) -> Result<Tensor> {
        let n = self.x.shape()[1];
        let mut numbers = vec![0i64; all.len() * n];
        for (row, one) in numbers.chunks_mut(n.max(1)).zip(all) {
            row.iter_mut().zip(*one).for_each(|(to, &from)| *to = from as i64);
        }
        Ok(Tensor::from_vec(numbers, &[all.len(), n])?)
    }
}

impl Labeler {
    pub(super) fn new(config: Config, preprocessor: Preprocessor) -> Result<Self> {
        let parameters = Parameters::new(DType::F32, config.training.seed);
        let labeler = config.labeler(preprocessor.width(), preprocessor.labels.len());
        Parameters::check_fit(DType::F32, |p| SequenceLabeler::new(p, &labeler))?;
        let model = SequenceLabeler::new(&parameters, &labeler)?;
        let filters = match &preprocessor.input {
            InputEncoding::Sound(frames) => Some(frames.filters()?),
            InputEncoding::Vectors(_) => None,
        };
        let looked_up = LookedUp::new();
        Ok(Self { config, preprocessor, filters, parameters, model, looked_up })
    }

    fn encode(&self, content: &Content) -> Result<Encoded> {
        match (&self.preprocessor.input, content, &self.filters) {
            (InputEncoding::Sound(own), Content::Sound { sound, .. }, Some(filters)) => {
                let frames = own.frames(filters, sound)?;
                Ok(Encoded { vectors: own.stacked(&frames), frames, features: own.mel.mels })
            }
            (InputEncoding::Vectors(standard), Content::Vectors { numbers, width, .. }, _) => {
                let learned = standard.mean.len();
                if *width != learned {
                    return Err(Error::invalid(format!(
                        "vectors of {width} numbers; the model has learned vectors of {learned}"
                    )));
                }
                let mut vectors = numbers.clone();
                standard.apply(&mut vectors)?;
                Ok(Encoded { frames: vectors.clone(), vectors, features: *width })
            }
            _ => Err(Error::invalid("sound and vectors cannot be read by one model")),
        }
    }

    /// What to say of recordings of several rates.
    pub(super) fn note_of_rates(&self, examples: &[Example]) -> Option<String> {
        let rate = |example: &Example| match &example.content {
            Content::Sound { sound, .. } => Some(sound.rate),
            Content::Vectors { .. } => None,
        };
        let rates: Vec<u32> = examples.iter().filter_map(rate).collect();
        match &self.preprocessor.input {
            InputEncoding::Sound(frames) => note_of_rates(&rates, frames.mel.rate),
            InputEncoding::Vectors(_) => None,
        }
    }

    /// Sequences as numbers; an error names the sequence.
    pub(super) fn encode_all(&self, examples: &[Example]) -> Result<Vec<Encoded>> {
        let one = |example: &Example| {
            let encoded = self.encode(&example.content);
            encoded.map_err(|error| example.wrong(error.to_string()))
        };
        examples.iter().map(one).collect()
    }

    /// How many vectors a sequence has.
    pub(super) fn length(&self, encoded: &Encoded) -> usize {
        encoded.vectors.len() / self.preprocessor.width()
    }

    /// The labels of a sequence's vectors.
    fn labels_of<'a>(&'a self, example: &'a Example, encoded: &Encoded) -> Result<Vec<&'a str>> {
        match (&example.content, &self.preprocessor.input) {
            (Content::Vectors { labels, .. }, _) => Ok(labels.iter().map(String::as_str).collect()),
            (Content::Sound { sound, segments }, InputEncoding::Sound(frames)) => {
                let label =
                    |at| label_at(segments, sound, frames.middle(at), &self.config.data.gap);
                Ok((0..self.length(encoded)).map(label).collect())
            }
            _ => Err(Error::invalid("sound and vectors cannot be read by one model")),
        }
    }

    /// The numbers of all vectors' labels, and of each sequence's.
    pub(super) fn targets(
        &self,
        examples: &[Example],
        encoded: &[Encoded],
    ) -> Result<(Truth, Vec<Vec<usize>>)> {
        let labels =
            examples.iter().zip(encoded).map(|(one, encoded)| self.labels_of(one, encoded));
        let labels = labels.collect::<Result<Vec<_>>>()?;
        let truth = Truth::new(&self.preprocessor.labels, labels.iter().flatten().copied());
        let mut rest = &truth.ids[..];
        let own = |labels: &Vec<&str>| {
            let (own, others) = rest.split_at(labels.len());
            rest = others;
            own.to_vec()
        };
        let each = labels.iter().map(own).collect();
        Ok((truth, each))
    }

    /// Vectors of sequences, filled up to one length.
    pub(super) fn batch(&self, sequences: &[&[f32]]) -> Result<Batch> {
        let width = self.preprocessor.width();
        let lengths: Vec<usize> = sequences.iter().map(|one| one.len() / width).collect();
        let n = lengths.iter().copied().max().unwrap_or(0);
        let mut numbers = Vec::with_capacity(sequences.len() * n * width);
        for (row, one) in sequences.iter().enumerate() {
            numbers.extend_from_slice(one);
            numbers.resize((row + 1) * n * width, 0.0);
        }
        Ok(Batch { x: Tensor::from_vec(numbers, &[sequences.len(), n, width])?, lengths })
    }

    /// The probability of every label of every vector, `[N][labels]`, sequence by sequence. One of
    /// more vectors than `data.max_length` is read in pieces.
    fn probabilities(&self, all: &[Encoded]) -> Result<Vec<Vec<f32>>> {
        let most = self.config.data.max_length.max(1) * self.preprocessor.width();
        let pieces: Vec<Vec<&[f32]>> =
            all.iter().map(|one| one.vectors.chunks(most).collect()).collect();
        let mut found = self.of_pieces(&pieces.concat())?.into_iter();
        let mut joined = |count: usize| found.by_ref().take(count).flatten().collect();
        Ok(pieces.iter().map(|pieces| joined(pieces.len())).collect())
    }

    /// The same of sequences that are read whole.
    fn of_pieces(&self, all: &[&[f32]]) -> Result<Vec<Vec<f32>>> {
        let (labels, width) = (self.preprocessor.labels.len(), self.preprocessor.width());
        let lengths: Vec<usize> = all.iter().map(|one| one.len() / width).collect();
        let mut found = vec![Vec::new(); all.len()];
        let mut done = 0;
        for indices in batches(&lengths, BatchSize::Sequences(EVALUATION_BATCH), None)? {
            let batch: Vec<&[f32]> = indices.iter().map(|&index| all[index]).collect();
            let batch = self.batch(&batch)?;
            let logits = without_gradients(|| self.model.forward(&batch.sequences(), Mode::Infer))?;
            let n = logits.shape()[1];
            let numbers = logits.softmax(-1)?.to_vec::<f32>()?;
            done += indices.len();
            for (row, index) in numbers.chunks((n * labels).max(1)).zip(indices) {
                found[index] = row[..lengths[index] * labels].to_vec();
                check_finite(&found[index], labels, "vector")?;
            }
            tick("labeling", done, all.len())?;
        }
        Ok(found)
    }

    /// The likeliest label of every vector.
    fn best(&self, probabilities: &[f32]) -> Vec<usize> {
        let likeliest = |row: &[f32]| {
            (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]).then(b.cmp(&a))).unwrap_or(0)
        };
        probabilities.chunks(self.preprocessor.labels.len().max(1)).map(likeliest).collect()
    }

    /// How good it is on sequences, by vector and by segment.
    pub(super) fn measure(&self, examples: &[Example], part: Part) -> Result<Report> {
        let encoded = self.encode_all(examples)?;
        let (truth, targets) = self.targets(examples, &encoded)?;
        let probabilities = self.probabilities(&encoded)?;
        let predicted: Vec<Vec<usize>> = probabilities.iter().map(|rows| self.best(rows)).collect();
        let names = [self.preprocessor.labels.names(), &truth.unseen].concat();
        let given = predicted.concat();
        let confusion = Confusion::count(&truth.ids, &given, &names)?;
        let segments = SegmentScore::count(&targets, &predicted)?;
        let scores = confusion
            .scores(self.loss(&targets, &probabilities))
            .with("segment F1", segments.f1())
            .with("segment error rate", segments.error_rate());
        let right = truth.ids.iter().zip(&given).map(|(a, b)| f64::from(a == b));
        Ok(Report {
            scores,
            examples: examples.len(),
            confusion: Some(confusion),
            each: Some(PerExample { measure: "accuracy".into(), values: right.collect() }),
            notes: truth.note(part.name()).into_iter().collect(),
            outputs: predicted.iter().map(|labels| written(&self.segments(labels))).collect(),
            ..Report::default()
        })
    }

    /// The mean of −ln p of what is true, over the vectors whose label the model knows.
    fn loss(&self, targets: &[Vec<usize>], probabilities: &[Vec<f32>]) -> f64 {
        let labels = self.preprocessor.labels.len();
        let vectors = targets
            .iter()
            .zip(probabilities)
            .flat_map(|(targets, rows)| targets.iter().zip(rows.chunks(labels.max(1))));
        let (mut sum, mut known) = (0.0, 0);
        for (&label, row) in vectors.filter(|(label, _)| **label < labels) {
            sum -= f64::from(row[label].max(f32::MIN_POSITIVE)).ln();
            known += 1;
        }
        sum / known.max(1) as f64
    }

    /// Stretches of equal labels, in seconds or in steps.
    fn segments(&self, labels: &[usize]) -> Vec<Segment> {
        self.named_segments(labels, self.preprocessor.labels.names())
    }

    fn named_segments(&self, labels: &[usize], names: &[String]) -> Vec<Segment> {
        let step = self.key_step();
        let segment = |(label, start, end): (usize, usize, usize)| Segment {
            start: start as f64 * step,
            end: end as f64 * step,
            label: names[label].clone(),
        };
        label_runs(labels).into_iter().map(segment).collect()
    }

    fn is_sound(&self) -> bool {
        matches!(self.preprocessor.input, InputEncoding::Sound(_))
    }

    /// From one frame to the next, in seconds; 1 for vectors, which are counted.
    fn step(&self) -> f64 {
        if self.is_sound() { self.config.audio.seconds() } else { 1.0 }
    }

    /// From one vector to the next.
    fn key_step(&self) -> f64 {
        self.step() * if self.is_sound() { self.config.audio.stride as f64 } else { 1.0 }
    }

    /// What an input means: an example of the data, as `validation:3`, or a recording or features.
    fn example(&self, input: &Input) -> Result<Example> {
        if let Some(key) = input.as_example() {
            return self.looked_up.within(&self.config, "sequences").get(input, key);
        }
        let content = match self.is_sound() {
            true => {
                let (name, bytes) = input.content("a recording")?;
                Content::Sound { sound: Waveform::decode(name, bytes)?, segments: Vec::new() }
            }
            false => {
                let (name, bytes) = input.content("a NumPy file")?;
                let (numbers, width) = regard_data::files::feature_array(name, bytes)?;
                Content::Vectors { numbers, width, labels: Vec::new() }
            }
        };
        Ok(Example { content, file: input.to_string().into(), line: 0 })
    }

    /// The vector at the moment that an input is looked at, or in the middle.
    fn chosen(&self, input: &Input, count: usize) -> usize {
        let step = self.key_step();
        let moment = input.moment().unwrap_or((count as f64 / 2.0) * step);
        ((moment / step).max(0.0) as usize).min(count.max(1) - 1)
    }

    /// The truth of an example, where it is known.
    fn truth(&self, example: &Example) -> Option<Vec<Segment>> {
        let segments = match &example.content {
            Content::Sound { segments, .. } => segments.clone(),
            Content::Vectors { labels, .. } => {
                let labels = labels.iter().map(String::as_str);
                let truth = Truth::new(&self.preprocessor.labels, labels);
                let names = [self.preprocessor.labels.names(), &truth.unseen].concat();
                self.named_segments(&truth.ids, &names)
            }
        };
        Some(segments).filter(|segments| !segments.is_empty())
    }
}

/// "0.00–0.12 pause, 0.12–0.31 three"
fn written(segments: &[Segment]) -> String {
    let one = |s: &Segment| format!("{:.2}–{:.2} {}", s.start, s.end, s.label);
    segments.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl Model for Labeler {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn named_rows(&self) -> Vec<NamedRows> {
        NamedRows::of(&["out.weight", "out.bias"], self.preprocessor.labels.names())
    }

    fn vocabulary(&self) -> Result<String> {
        serde_json::to_string(&self.preprocessor).map_err(|e| Error::invalid(e.to_string()))
    }

    fn evaluate(&self, part: Part) -> Result<Report> {
        let examples = Dataset::new(&self.config).part(part)?;
        let report = self.measure(&examples, part)?;
        let samples = examples.iter().zip(&report.outputs).enumerate().take(3);
        let samples = samples.map(|(at, (example, output))| {
            let truth = self.truth(example).map_or(String::new(), |truth| written(&truth));
            (format!("{}:{at}", part.name()), truth, output.clone())
        });
        Ok(Report { samples: samples.collect(), ..report })
    }

    fn asks(&self) -> Asks {
        let form = if self.is_sound() { InputForm::Recording } else { InputForm::Features };
        Asks { moments: true, ..Asks::new(form, self.preprocessor.labels.names()) }
    }

    fn judge(&self, part: Part) -> Result<Vec<Judged>> {
        let examples = Dataset::new(&self.config).part(part)?;
        let encoded = self.encode_all(&examples)?;
        let (truth, targets) = self.targets(&examples, &encoded)?;
        let names = [self.preprocessor.labels.names(), &truth.unseen].concat();
        let probabilities = self.probabilities(&encoded)?;
        let judged = |(index, rows): (usize, &Vec<f32>)| {
            let (given, right) = (self.best(rows), &targets[index]);
            let pairs = right.iter().zip(&given);
            Judged {
                index,
                input: format!("{}:{index}", part.name()),
                truth: written(&self.named_segments(right, &names)),
                output: written(&self.segments(&given)),
                loss: self.loss(&targets[index..=index], std::slice::from_ref(rows)),
                length: right.len(),
                labels: pairs.map(|(&a, &b)| (names[a].clone(), names[b].clone())).collect(),
                numbers: None,
            }
        };
        Ok(probabilities.iter().enumerate().map(judged).collect())
    }

    fn predict(&self, inputs: &[Input]) -> Result<Vec<Prediction>> {
        let examples = inputs.iter().map(|input| self.example(input));
        let examples = examples.collect::<Result<Vec<_>>>()?;
        let probabilities = self.probabilities(&self.encode_all(&examples)?)?;
        let labels = self.preprocessor.labels.len();
        let prediction = |(input, rows): (&Input, Vec<f32>)| {
            let best = self.best(&rows);
            let names = best.iter().map(|&id| self.preprocessor.labels.name(id));
            let likely = best.iter().zip(rows.chunks(labels.max(1))).map(|(&id, row)| row[id]);
            Prediction {
                input: input.to_string(),
                output: written(&self.segments(&best)),
                details: serde_json::json!({
                    "segments": self.segments(&best),
                    "labels": names.collect::<Vec<_>>(),
                    "probabilities": likely.collect::<Vec<_>>(),
                    "step": self.key_step(),
                }),
            }
        };
        Ok(inputs.iter().zip(probabilities).map(prediction).collect())
    }

    /// The likeliest labelings of whole sequences.
    fn n_best(&self, inputs: &[Input], n: usize) -> Result<Vec<Vec<Alternative>>> {
        let examples = inputs.iter().map(|input| self.example(input));
        let examples = examples.collect::<Result<Vec<_>>>()?;
        let labels = self.preprocessor.labels.len().max(1);
        let alternatives = |rows: Vec<f32>| {
            let log_probs =
                |row: &[f32]| row.iter().map(|p| p.max(f32::MIN_POSITIVE).ln()).collect();
            let rows: Vec<Vec<f32>> = rows.chunks(labels).map(log_probs).collect();
            let found = likeliest_labelings(&rows, n).into_iter();
            found
                .map(|(labels, score)| {
                    let output = written(&self.segments(&labels));
                    Alternative { output, score }
                })
                .collect()
        };
        Ok(self
            .probabilities(&self.encode_all(&examples)?)?
            .into_iter()
            .map(alternatives)
            .collect())
    }

    fn show(&self, input: &Input) -> Result<Vec<(String, Scene)>> {
        let example = self.example(input)?;
        let encoded = self.encode_all(std::slice::from_ref(&example))?.remove(0);
        let count = self.length(&encoded);
        let key_step = self.key_step();
        let chosen = self.chosen(input, count);
        let batch = self.batch(&[&encoded.vectors[..]])?;
        let attended =
            without_gradients(|| self.model.label(&batch.sequences(), Mode::Infer, Need::WEIGHTS))?;
        let row = |map: Map| {
            let place = map.place.map(|place| Place { row: chosen, ..place });
            Map { place, ..Map::new(map.name, map.weights[chosen * count..][..count].to_vec()) }
        };
        let maps: Vec<Map> =
            Map::of_layers(&attended.weights, Site::Encoder)?.into_iter().map(row).collect();
        let best = self.best(&self.probabilities(std::slice::from_ref(&encoded))?[0]);
        let predicted = Track { name: "predicted".into(), segments: self.segments(&best) };
        let truth = self.truth(&example);
        let truth = truth.map(|segments| Track { name: "truth".into(), segments });
        let at = chosen as f64 * key_step;
        let name = match self.is_sound() {
            true => format!("{at:.2} s"),
            false => format!("{chosen}"),
        };
        let columns = match self.is_sound() {
            true => SoundScene::times(count, key_step),
            false => (0..count).map(|at| at.to_string()).collect(),
        };
        let scene = SoundScene {
            features: encoded.features,
            spectrogram: encoded.frames,
            step: self.step(),
            unit: if self.is_sound() { "seconds" } else { "steps" }.into(),
            key_step,
            weights: Maps {
                row_axis: "attends".into(),
                column_axis: "is attended to".into(),
                rows: vec![name],
                columns,
                maps,
            },
            tracks: truth.into_iter().chain(std::iter::once(predicted)).collect(),
            moment: (!attended.weights.is_empty()).then_some(at + key_step / 2.0),
        };
        Ok(vec![("segments".into(), Scene::Sound(scene))])
    }

    /// The segments of a sequence of the data.
    fn truth(&self, input: &Input) -> Option<String> {
        input.as_example()?;
        let example = self.example(input).ok()?;
        Labeler::truth(self, &example).map(|segments| written(&segments))
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

impl Explains for Labeler {
    fn saliency(&self, input: &Input, how: How) -> Result<Saliency> {
        let encoded = self.encode_all(&[self.example(input)?])?.remove(0);
        let count = self.length(&encoded);
        let chosen = self.chosen(input, count);
        let batch = self.batch(&[&encoded.vectors[..]])?;
        let score = |x: &Tensor| {
            let sequences = Sequences { x, ..batch.sequences() };
            let logits = self.model.forward(&sequences, Mode::Infer)?;
            Ok(logits.narrow(1, chosen, 1)?.log_softmax(-1)?.max(2)?.0.sum_all()?)
        };
        let found = Probe::input(batch.x.clone(), &score).explain(how)?;
        let names = match self.is_sound() {
            true => SoundScene::times(count, self.key_step()),
            false => (0..count).map(|at| at.to_string()).collect(),
        };
        let of = format!("the log-probability of the label at {}", names[chosen]);
        Ok(found.named(of, names, None))
    }
}

impl Hears for Labeler {
    fn sound(&self, input: &Input) -> Result<Option<Waveform>> {
        Ok(match self.example(input)?.content {
            Content::Sound { sound, .. } => Some(sound),
            Content::Vectors { .. } => None,
        })
    }
}

impl Exports for Labeler {
    /// The spectrogram with true and predicted segments, and the attention of a chosen moment:
    /// `validation:3@0.75`, or the middle.
    fn exported(&self) -> Result<Exported> {
        let (random, width) = (Random::named(1, "export"), self.preprocessor.width());
        let sequence = |n: usize| {
            Result::Ok(random.normal(&[n, width], 0.0, 1.0, DType::F32)?.to_vec::<f32>()?)
        };
        let lengths = made_up_lengths(&self.model.config().encoder, 0).into_iter();
        let sequences = lengths.map(sequence).collect::<Result<Vec<_>>>()?;
        let batch = self.batch(&sequences.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let output = without_gradients(|| self.model.forward(&batch.sequences(), Mode::Infer))?;
        let lengths: Vec<i64> = batch.lengths.iter().map(|&n| n as i64).collect();
        let lengths = Tensor::from_vec(lengths, &[batch.lengths.len()])?;
        let inputs = [("x".to_string(), batch.x.clone()), ("lengths".to_string(), lengths)].into();
        Ok(Exported { network: Network::Labeler(self.model.config().clone()), inputs, output })
    }
}

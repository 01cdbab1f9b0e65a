//! A transcriber: log-mel frames on one side, a tokenizer on the other, and a sequence-to-sequence
//! model between them.

use super::config::Config;
use super::data::{Dataset, Recording};
use crate::metric::ErrorRate;
use crate::metric::judged::Judged;
use crate::metric::scores::Scores;
use crate::task::abilities::{Abilities, Explains, Exports, Hears, Searches};
use crate::task::input::{Asks, Input, InputForm};
use crate::task::lengths::read_so_far;
use crate::task::looked_up::LookedUp;
use crate::task::model::Model;
use crate::task::named_rows::{NamedRows, all_tokens};
use crate::task::network::Exported;
use crate::task::part::Part;
use crate::task::prediction::{Alternative, Prediction};
use crate::task::report::{Groups, PerExample, Report};
use crate::task::saliency::{How, Probe, Saliency};
use crate::task::search_tree::SearchTree;
use crate::tasks::components::made_up;
use crate::tasks::components::{SoundFrames, together};
use crate::tasks::seq2seq::{
    Limit, Sources, VectorSources, Writer, alternatives, decoder_scene, encoder_scene, some_scene,
    weight_maps,
};
use regard::Tensor;
use regard::attention::Need;
use regard::models::{Hypothesis, Source};
use regard::tensor::{Better, Parameters};
use regard_data::files::{MelFilters, Waveform};
use regard_data::text::Tokenizer;
use regard_data::{Error, Result};
use regard_picture::scene::SoundScene;
use regard_picture::scene::{Maps, Scene};
use serde::{Deserialize, Serialize};

/// What a transcriber knows of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Preprocessor {
    pub(super) tokenizer: Tokenizer,
    pub(super) frames: SoundFrames,
    /// The most tokens of a training transcript.
    longest: usize,
}

impl Preprocessor {
    pub(super) fn fit(config: &Config, recordings: &[Recording]) -> Result<Self> {
        let texts: Vec<&str> = recordings.iter().map(|one| &one.text[..]).collect();
        let sounds: Vec<&Waveform> = recordings.iter().map(|one| &one.sound).collect();
        let tokenizer = Tokenizer::learn(&texts, &config.text.config())?;
        let longest = texts.iter().map(|text| tokenizer.encode(text).len()).max().unwrap_or(0);
        Ok(Self { frames: config.audio.fit(&sounds)?, tokenizer, longest })
    }
}

pub(super) struct Transcriber {
    pub(super) config: Config,
    pub(super) preprocessor: Preprocessor,
    pub(super) writer: Writer,
    /// Made once: they depend on the options alone.
    pub(super) filters: MelFilters,
    looked_up: LookedUp<Recording>,
}

impl Transcriber {
    pub(super) fn new(config: Config, preprocessor: Preprocessor) -> Result<Self> {
        // An output may be longer than what was learned, but not without end.
        let longest = 2 * preprocessor.longest + 10;
        let (width, vocabulary) = (preprocessor.frames.width(), preprocessor.tokenizer.len());
        let seq2seq = config.seq2seq(width, vocabulary, longest);
        let limit = Limit::Tokens(longest);
        let writer =
            Writer::new(&seq2seq, &config.model, config.search, limit, config.training.seed)?;
        let filters = preprocessor.frames.filters()?;
        Ok(Self { config, preprocessor, writer, filters, looked_up: LookedUp::new() })
    }

    /// The frames of recordings, before they are stacked.
    pub(super) fn frames(&self, recordings: &[Recording]) -> Result<Vec<Vec<f32>>> {
        let frames = |one: &Recording| {
            let frames = self.preprocessor.frames.frames(&self.filters, &one.sound);
            frames.map_err(|error| one.wrong(error.to_string()))
        };
        together(recordings, frames)
    }

    /// The frames of recordings, as many as are heard, and how many recordings are longer.
    fn heard(&self, recordings: &[Recording]) -> Result<(Vec<Vec<f32>>, usize)> {
        let mut frames = self.frames(recordings)?;
        let own = &self.preprocessor.frames;
        let most = self.config.data.max_length * self.config.audio.stride * own.mel.mels;
        let long = frames.iter().filter(|one| one.len() > most).count();
        frames.iter_mut().for_each(|one| one.truncate(most));
        Ok((frames, long))
    }

    /// Frames as the model reads them.
    pub(super) fn sources<'a>(&self, frames: impl Iterator<Item = &'a [f32]>) -> VectorSources {
        let own = &self.preprocessor.frames;
        VectorSources { width: own.width(), all: frames.map(|one| own.stacked(one)).collect() }
    }

    pub(super) fn targets(&self, recordings: &[Recording]) -> Vec<Vec<usize>> {
        let encode = |one: &Recording| self.preprocessor.tokenizer.encode(&one.text);
        recordings.iter().map(encode).collect()
    }

    fn decode(&self, written: &[Hypothesis]) -> Vec<String> {
        written.iter().map(|h| self.preprocessor.tokenizer.decode(&h.tokens)).collect()
    }

    /// What is true, as far as it can be written: in small letters where the model has only those.
    fn truth(&self, recordings: &[Recording]) -> Vec<String> {
        let text = |one: &Recording| match self.config.text.lowercase {
            true => one.text.to_lowercase(),
            false => one.text.clone(),
        };
        recordings.iter().map(text).collect()
    }

    /// How good it is on recordings, and all outputs. A beam of 1 is quick.
    pub(super) fn measure(&self, recordings: &[Recording], beam: usize) -> Result<Report> {
        let (frames, long) = self.heard(recordings)?;
        let sources = self.sources(frames.iter().map(Vec::as_slice));
        let outputs = self.decode(&self.writer.write(&sources, beam, Need::OUTPUT)?);
        let truth = self.truth(recordings);
        let same = outputs.iter().zip(&truth).filter(|(a, b)| a == b).count();
        let perplexity = self.writer.perplexity(&sources, &self.targets(recordings))?;
        let words = ErrorRate::words(&outputs, &truth)?.rate();
        let scores = Scores::new("WER", words, Better::Lower)
            .with("CER", ErrorRate::characters(&outputs, &truth)?.rate())
            .with("perplexity", perplexity)
            .with("exact", same as f64 / recordings.len().max(1) as f64);
        // Fewer errors are better, and a higher number is.
        let one = |(output, truth): (&String, &String)| {
            Ok(-ErrorRate::words(&[output], &[truth])?.rate())
        };
        let values = outputs.iter().zip(&truth).map(one).collect::<Result<_>>()?;
        let (examples, longest) = (recordings.len(), self.config.data.max_length);
        let notes = read_so_far(long, examples, "recordings", longest, "vectors");
        Ok(Report {
            scores,
            examples,
            each: Some(PerExample { measure: "WER".into(), values }),
            notes: notes.into_iter().collect(),
            outputs,
            ..Report::default()
        })
    }

    /// Word errors by how many words were said.
    fn by_words(&self, recordings: &[Recording], outputs: &[String]) -> Result<Groups> {
        let truth = self.truth(recordings);
        let words: Vec<usize> = truth.iter().map(|text| text.split_whitespace().count()).collect();
        let mut counts = words.clone();
        counts.sort_unstable();
        counts.dedup();
        let mut values = Vec::new();
        for count in counts {
            let of = (0..words.len()).filter(|&i| words[i] == count);
            let (a, b): (Vec<&String>, Vec<&String>) = of.map(|i| (&outputs[i], &truth[i])).unzip();
            // The errors of a few recordings say nothing.
            if a.len() >= 5 {
                values.push((count.to_string(), ErrorRate::words(&a, &b)?.rate()));
            }
        }
        Ok(Groups { measure: "WER".into(), by: "words said".into(), values })
    }

    /// What inputs mean: a recording, or one of the data, as `validation:3`.
    fn recordings(&self, inputs: &[Input]) -> Result<Vec<Recording>> {
        let examples = self.looked_up.within(&self.config, "recordings");
        let recording = |input: &Input| match input.as_example() {
            Some(key) => examples.get(input, key),
            None => {
                let (name, bytes) = input.content("a recording")?;
                let sound = Waveform::decode(name, bytes)?;
                Ok(Recording { sound, text: String::new(), file: name.into() })
            }
        };
        inputs.iter().map(recording).collect()
    }
}

impl Model for Transcriber {
    fn parameters(&self) -> &Parameters {
        &self.writer.parameters
    }

    fn named_rows(&self) -> Vec<NamedRows> {
        let tokens = all_tokens(&self.preprocessor.tokenizer);
        NamedRows::of(&["target.weight", "output.weight", "output.bias"], &tokens)
    }

    fn vocabulary(&self) -> Result<String> {
        serde_json::to_string(&self.preprocessor).map_err(|e| Error::invalid(e.to_string()))
    }

    fn evaluate(&self, part: Part) -> Result<Report> {
        let recordings = Dataset::new(&self.config).part(part)?;
        let report = self.measure(&recordings, self.config.search.beam)?;
        let samples = recordings.iter().zip(&report.outputs).enumerate().take(3);
        let samples = samples.map(|(at, (one, output))| {
            (format!("{}:{at}", part.name()), one.text.clone(), output.clone())
        });
        Ok(Report {
            groups: Some(self.by_words(&recordings, &report.outputs)?),
            samples: samples.collect(),
            ..report
        })
    }

    fn n_best(&self, inputs: &[Input], n: usize) -> Result<Vec<Vec<Alternative>>> {
        let (frames, _) = self.heard(&self.recordings(inputs)?)?;
        let sources = self.sources(frames.iter().map(Vec::as_slice));
        let found = self.writer.write_n_best(&sources, n)?;
        Ok(alternatives(&found, &self.preprocessor.tokenizer))
    }

    fn asks(&self) -> Asks {
        Asks::new(InputForm::Recording, &[])
    }

    fn judge(&self, part: Part) -> Result<Vec<Judged>> {
        let recordings = Dataset::new(&self.config).part(part)?;
        let (frames, _) = self.heard(&recordings)?;
        let sources = self.sources(frames.iter().map(Vec::as_slice));
        let outputs = self.decode(&self.writer.write(&sources, 1, Need::OUTPUT)?);
        let losses = self.writer.losses(&sources, &self.targets(&recordings))?;
        let truth = self.truth(&recordings);
        let judged = |(index, output): (usize, String)| Judged {
            index,
            input: format!("{}:{index}", part.name()),
            truth: truth[index].clone(),
            output,
            loss: losses[index],
            length: sources.length(index),
            labels: Vec::new(),
            numbers: None,
        };
        Ok(outputs.into_iter().enumerate().map(judged).collect())
    }

    fn predict(&self, inputs: &[Input]) -> Result<Vec<Prediction>> {
        self.predict_with_beam(inputs, self.config.search.beam)
    }

    fn show(&self, input: &Input) -> Result<Vec<(String, Scene)>> {
        let (frames, _) = self.heard(&self.recordings(std::slice::from_ref(input))?)?;
        let sources = self.sources(frames.iter().map(Vec::as_slice));
        let h = self.writer.write_one(&sources)?;
        let tokenizer = &self.preprocessor.tokenizer;
        let rows = h.tokens.iter().map(|&id| tokenizer.token(id).to_string());
        let rows: Vec<String> = rows.chain(h.ended.then(|| "<end>".to_string())).collect();
        let step = self.config.audio.seconds();
        let key_step = step * self.config.audio.stride as f64;
        let count = sources.all[0].len() / sources.width;
        let columns = SoundScene::times(count, key_step);
        let mut scenes = Vec::new();
        if let Some(heads) = &h.heads {
            let scene = SoundScene {
                spectrogram: frames[0].clone(),
                features: self.preprocessor.frames.mel.mels,
                step,
                unit: "seconds".into(),
                key_step,
                weights: Maps {
                    row_axis: "output".into(),
                    column_axis: "time".into(),
                    rows: rows.clone(),
                    columns: columns.clone(),
                    maps: weight_maps(heads)?,
                },
                tracks: Vec::new(),
                moment: None,
            };
            scenes.push(("alignment".into(), Scene::Sound(scene)));
        }
        scenes.extend(encoder_scene(
            &self.writer.encode_one(&sources)?,
            columns,
            self.config.model.encoder.window,
        )?);
        scenes.extend(decoder_scene(&self.writer.self_attention(&sources, &h)?, &rows)?);
        some_scene(scenes)
    }

    /// What is said in a recording of the data.
    fn truth(&self, input: &Input) -> Option<String> {
        Some(self.looked_up.within(&self.config, "recordings").find(input)?.text)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities {
            explains: Some(self),
            searches: Some(self),
            hears: Some(self),
            exports: Some(self),
            ..Abilities::default()
        }
    }
}

impl Explains for Transcriber {
    fn saliency(&self, input: &Input, how: How) -> Result<Saliency> {
        let (frames, _) = self.heard(&self.recordings(std::slice::from_ref(input))?)?;
        let sources = self.sources(frames.iter().map(Vec::as_slice));
        let tokens = self.writer.write_one(&sources)?.tokens;
        let source = sources.batch(&[0])?;
        let score =
            |x: &Tensor| self.writer.log_prob(&Source { x: x.clone(), ..source.clone() }, &tokens);
        let found = Probe::input(source.x.clone(), &score).explain(how)?;
        let step = self.config.audio.seconds() * self.config.audio.stride as f64;
        let names = SoundScene::times(found.values.len(), step);
        Ok(found.named("the log-probability of the output".into(), names, None))
    }
}

impl Searches for Transcriber {
    fn search_tree(&self, input: &Input) -> Result<SearchTree> {
        let (frames, _) = self.heard(&self.recordings(std::slice::from_ref(input))?)?;
        let sources = self.sources(frames.iter().map(Vec::as_slice));
        let tokenizer = &self.preprocessor.tokenizer;
        let token = |id: usize| tokenizer.token(id).to_string();
        self.writer.search_tree(&sources, token, |ids| tokenizer.decode(ids))
    }

    fn predict_with_beam(&self, inputs: &[Input], beam: usize) -> Result<Vec<Prediction>> {
        let recordings = self.recordings(inputs)?;
        let (frames, long) = self.heard(&recordings)?;
        let sources = self.sources(frames.iter().map(Vec::as_slice));
        let whole = match long {
            0 => None,
            _ => Some(self.sources(self.frames(&recordings)?.iter().map(Vec::as_slice))),
        };
        let written = self.writer.write(&sources, beam, Need::OUTPUT)?;
        let tokenizer = &self.preprocessor.tokenizer;
        let prediction = |(input, h): (&Input, Hypothesis)| Prediction {
            input: input.to_string(),
            output: tokenizer.decode(&h.tokens),
            details: serde_json::json!({
                "score": h.score,
                "log_probability": h.log_prob,
                "tokens": h.tokens.iter().map(|&id| tokenizer.token(id)).collect::<Vec<_>>(),
                "token_scores": h.token_scores.iter().take(h.tokens.len()).collect::<Vec<_>>(),
                "end_score": h.token_scores.get(h.tokens.len()),
                "ended": h.ended,
            }),
        };
        let described = |(at, one): (usize, Prediction)| {
            let heard = sources.length(at);
            let all = whole.as_ref().map_or(heard, |whole| whole.length(at));
            one.with_cut(heard, all, "vectors")
        };
        let predictions = inputs.iter().zip(written).map(prediction);
        Ok(predictions.enumerate().map(described).collect())
    }
}

impl Hears for Transcriber {
    fn sound(&self, input: &Input) -> Result<Option<Waveform>> {
        Ok(Some(self.recordings(std::slice::from_ref(input))?.remove(0).sound))
    }
}

impl Exports for Transcriber {
    /// The spectrogram with the alignment over it, time in seconds.
    fn exported(&self) -> Result<Exported> {
        made_up::seq2seq(&self.writer.model)
    }
}

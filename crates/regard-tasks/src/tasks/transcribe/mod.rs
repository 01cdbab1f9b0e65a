//! `transcribe`: a recording in, what is said in it out.

mod augmentation;
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
use data::{Dataset, Recording};
use model::{Preprocessor, Transcriber};
use regard::Tensor;
use regard::attention::Reinforce;
use regard::tensor::Random;
use regard_data::Result;

/// Transcribes recordings: listens, attends, and writes.
#[derive(Clone, Copy, Debug)]
pub struct Transcribe;

/// A transcriber and the recordings it learns from.
struct TranscribeLesson {
    transcriber: Transcriber,
    recordings: Vec<Recording>,
    /// Of each recording, before chance changes it.
    frames: Vec<Vec<f32>>,
    targets: Vec<Vec<usize>>,
    validation: Vec<Recording>,
}

impl Task for Transcribe {
    fn name(&self) -> &'static str {
        "transcribe"
    }

    fn about(&self) -> &'static str {
        "a recording in, what is said in it out"
    }

    fn template(&self) -> String {
        [
            include_str!("options.toml"),
            components::SOUND,
            include_str!("augmentation.toml"),
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
            "embedding=64",
            "hidden=64",
            "score_hidden=64",
            "epochs=15",
            "batch_size=32",
            "learning_rate=0.004",
            "schedule=cosine",
            "model.dropout=0.1",
        ]
    }

    fn requirements(&self) -> Vec<Requirement> {
        config::needs()
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Learner>> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let (mut recordings, validation) = dataset.learned()?;
        drop(dataset);
        let preprocessor = Preprocessor::fit(&config, &recordings)?;
        let longest = config.data.max_length;
        let transcriber = Transcriber::new(config, preprocessor)?;
        let own = &transcriber.preprocessor.frames;
        let rates: Vec<u32> = recordings.iter().map(|one| one.sound.rate).collect();
        let notes = components::note_of_rates(&rates, own.mel.rate).into_iter().collect();
        // Once, and not whenever a recording is heard.
        for one in &mut recordings {
            one.sound = one.sound.resampled(own.mel.rate).map_err(|e| one.wrong(e.to_string()))?;
        }
        let vectors = |frames: &[f32]| own.count(frames.len() / own.mel.mels);
        let mut frames = transcriber.frames(&recordings)?;
        let short: Vec<bool> = frames.iter().map(|one| vectors(one) <= longest).collect();
        let long = short.iter().filter(|&&short| !short).count();
        remark_left_out(long, short.len(), "recordings", longest, "vectors");
        let mut keep = short.iter();
        recordings.retain(|_| *keep.next().unwrap_or(&false));
        let mut keep = short.iter();
        frames.retain(|_| *keep.next().unwrap_or(&false));
        check_some(recordings.len(), validation.len(), "recordings", Some((longest, "vectors")))?;
        let targets = transcriber.targets(&recordings);
        let reinforce = transcriber.writer.reinforce()?;
        let lesson = TranscribeLesson { transcriber, recordings, frames, targets, validation };
        learner(lesson, notes, reinforce)
    }

    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
        Ok(Box::new(Transcriber::new(Config::of(options)?, vocabulary.parse()?)?))
    }

    fn describe(&self, options: &Options) -> Result<Description> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let training = dataset.part(Part::Training)?;
        let preprocessor = Preprocessor::fit(&config, &training)?;
        let [validation, test] = [dataset.count(Part::Validation)?, dataset.count(Part::Test)?];
        drop(dataset);
        let source = match config.data.source(Part::Training) {
            Some(path) => path.display().to_string(),
            None => "embedded numbers".into(),
        };
        let transcriber = Transcriber::new(config, preprocessor)?;
        let own = &transcriber.preprocessor;
        let frames = transcriber.frames(&training)?;
        let vectors = frames.iter().map(|one| own.frames.count(one.len() / own.frames.mel.mels));
        let tokens = transcriber.targets(&training).iter().map(Vec::len).collect();
        let facts = [
            ("training recordings", training.len().to_string()),
            ("validation recordings", validation),
            ("test recordings", test),
            ("recordings", lengths(vectors.collect(), "vectors")),
            ("transcripts", lengths(tokens, "tokens")),
            ("vocabulary", own.tokenizer.len().to_string()),
            ("samples a second", own.frames.mel.rate.to_string()),
        ];
        let examples = training.iter().take(5).enumerate();
        Ok(Description {
            source,
            facts: facts.map(|(name, text)| (name.to_string(), text)).into(),
            labels: Vec::new(),
            examples: examples.map(|(at, one)| format!("train:{at} → {}", one.text)).collect(),
        })
    }

    fn comparison(&self) -> Vec<Variant> {
        vec![
            Variant::new("fixed vector", &["context=fixed"]),
            Variant::new("additive", &["context=attention", "score=additive"]),
            Variant::new("dot", &["context=attention", "score=dot"]),
            Variant::new("convolutions", &["encoder=cnn", "decoder=cnn", "layers=3"]),
        ]
    }

    fn alike(&self, all: &[Options]) -> Result<Option<(&'static str, &'static str)>> {
        seq2seq::alike(all)
    }
}

impl TranscribeLesson {
    /// The frames of a recording, changed by chance.
    fn augmented(&self, at: usize, random: &Random) -> Result<Vec<f32>> {
        let augmentation = &self.transcriber.config.augmentation;
        let own = &self.transcriber.preprocessor.frames;
        let mut frames = match augmentation.changes_sound() {
            true => {
                let sound = augmentation.sound(&self.recordings[at].sound, random)?;
                own.frames(&self.transcriber.filters, &sound)?
            }
            false => self.frames[at].clone(),
        };
        augmentation.hide(&mut frames, own.mel.mels, random);
        Ok(frames)
    }
}

impl Lesson for TranscribeLesson {
    fn model(&self) -> &dyn Model {
        &self.transcriber
    }

    fn training(&self) -> &TrainingConfig {
        &self.transcriber.config.training
    }

    fn lengths(&self) -> Lengths {
        let mels = self.transcriber.preprocessor.frames.mel.mels;
        Lengths::Each(self.frames.iter().map(|one| one.len() / mels).collect())
    }

    fn loss(
        &self,
        batch: &[usize],
        reinforce: &mut Option<Reinforce>,
        random: &Random,
    ) -> Result<Tensor> {
        let frames = batch.iter().map(|&at| self.augmented(at, random));
        let frames = frames.collect::<Result<Vec<_>>>()?;
        let sources = self.transcriber.sources(frames.iter().map(Vec::as_slice));
        let source = sources.batch(&(0..batch.len()).collect::<Vec<_>>())?;
        let targets: Vec<&[usize]> = batch.iter().map(|&i| &self.targets[i][..]).collect();
        let smoothing = self.transcriber.config.training.label_smoothing;
        self.transcriber.writer.loss(&source, &targets, smoothing, reinforce, random)
    }

    fn weight(&self, batch: &[usize]) -> f64 {
        tokens(batch, &self.targets)
    }

    fn measure(&self) -> Result<Scores> {
        Ok(self.transcriber.measure(&self.validation, 1)?.scores)
    }

    fn samples(&self) -> Samples {
        Samples::Numbered(self.validation.len())
    }
}

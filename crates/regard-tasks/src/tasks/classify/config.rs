//! The options of `classify`.

use crate::options::requirement::Condition::{Given, Is};
use crate::options::requirement::Requirement;
use crate::options::template::Checked;
use crate::options::training::TrainingConfig;
use crate::task::held_out::HeldOutOptions;
use crate::task::part::Part;
use crate::tasks::components::{
    EncoderOptions, MechanismOptions, TextOptions, check_frames, check_rate, needs,
};
use crate::tasks::labels::check::LabelSource;
use regard::attention::Weighting;
use regard::models::{ClassifierConfig, ClassifierPooling, InputConfig};
use regard_data::files::{Column, ColumnFormat, FileColumns, LogMel, SoundOptions};
use regard_data::{Error, Result};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Config {
    pub(super) data: Data,
    pub(super) text: Text,
    pub(super) audio: Audio,
    pub(super) model: Model,
    pub(super) training: TrainingConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Text,
    Audio,
    Vectors,
}

/// Which embedded texts are classified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Embedded {
    Cues,
    Opinions,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Data {
    pub(super) kind: Kind,
    pub(super) embedded: Embedded,
    pub(super) size: usize,
    train: Option<PathBuf>,
    pub(super) train_files: Option<Vec<PathBuf>>,
    validation: Option<PathBuf>,
    pub(super) validation_files: Option<Vec<PathBuf>>,
    test: Option<PathBuf>,
    test_files: Option<Vec<PathBuf>>,
    #[serde(flatten)]
    pub(super) format: ColumnFormat,
    label_column: Column,
    text_column: Column,
    label_field: Option<usize>,
    pub(super) split_field: Option<usize>,
    split_test_below: u64,
    #[serde(flatten)]
    pub(super) held_out: HeldOutOptions,
    pub(super) encoding: Option<String>,
    pub(super) max_length: usize,
}

/// Where a part of the data comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    /// One file or folder.
    One(&'a PathBuf),
    /// One file per label.
    Many(&'a [PathBuf]),
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Text {
    #[serde(flatten)]
    pub(super) tokens: TextOptions,
    pub(super) token_dropout: f64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Audio {
    pub(super) sample_rate: Option<u32>,
    mels: usize,
    frame_length: f64,
    frame_shift: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PoolingKind {
    Mean,
    Max,
    Last,
    Gate,
    ClassToken,
    Attention,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Model {
    pub(super) embedding: usize,
    neighbors: Option<usize>,
    pooling: PoolingKind,
    pub(super) queries: usize,
    head_hidden: Option<usize>,
    #[serde(flatten)]
    pub(super) encoder: EncoderOptions,
    #[serde(flatten)]
    mechanism: MechanismOptions,
}

impl Data {
    /// Where a part comes from; none where nothing is given for it. Refuses both ways at once, and
    /// files per label for what is no text.
    pub(super) fn source(&self, part: Part) -> Result<Option<Source<'_>>> {
        let (name, one, many) = match part {
            Part::Training => ("train", &self.train, &self.train_files),
            Part::Validation => ("validation", &self.validation, &self.validation_files),
            Part::Test => ("test", &self.test, &self.test_files),
        };
        match (one, many) {
            (None, None) => Ok(None),
            (Some(one), None) => Ok(Some(Source::One(one))),
            (None, Some(many)) if self.kind == Kind::Text => Ok(Some(Source::Many(many))),
            (None, Some(_)) => {
                Err(Error::invalid(format!("`data.{name}_files` is for text alone")))
            }
            (Some(_), Some(_)) => Err(Error::invalid(format!(
                "`data.{name}` and `data.{name}_files` are both given; give one of them"
            ))),
        }
    }

    /// Whether recordings say themselves which of them are for the test.
    pub(super) fn splits(&self) -> bool {
        self.kind == Kind::Audio && self.split_field.is_some()
    }

    /// Where labels are read: recordings lie in folders, or are listed under names of any kind.
    pub(super) fn label_source(&self) -> LabelSource {
        match self.kind {
            Kind::Audio => LabelSource::Others,
            Kind::Text | Kind::Vectors => LabelSource::Lines,
        }
    }

    /// The columns of label and text.
    pub(super) fn columns(&self) -> [Column; 2] {
        [self.label_column.clone(), self.text_column.clone()]
    }

    /// The same of a list of recordings.
    pub(super) fn file_columns(&self) -> FileColumns {
        let [text, path] = self.columns();
        FileColumns { format: self.format, path, text }
    }

    pub(super) fn sounds(&self) -> SoundOptions {
        let &Self { label_field, split_field, split_test_below, .. } = self;
        SoundOptions { label_field, split_field, split_test_below }
    }
}

impl Audio {
    /// How frames of recordings of a rate are made.
    pub(super) fn mel(&self, rate: u32) -> LogMel {
        let samples = |milliseconds: f64| (f64::from(rate) * milliseconds / 1000.0) as usize;
        let (window, hop) = (samples(self.frame_length), samples(self.frame_shift));
        LogMel { window, hop, mels: self.mels, ..LogMel::new(rate) }
    }

    /// Seconds from one frame's start to the next one's.
    pub(super) fn seconds(&self) -> f64 {
        self.frame_shift / 1000.0
    }
}

/// What the options need of each other to have an effect.
pub(super) fn needs() -> Vec<Requirement> {
    let kind = "data.kind";
    let (text, audio) = (Is(kind, &["text"]), Is(kind, &["audio"]));
    let attends = [vec![Is("model.pooling", &["attention"])]];
    let of_text = [
        "data.embedded",
        "text.tokenizer",
        "text.tokenizer_file",
        "text.vocabulary_size",
        "text.min_frequency",
        "text.lowercase",
        "text.vectors",
        "text.token_dropout",
        "model.embedding",
    ];
    let files = ["data.train", "data.validation", "data.test"];
    let columns = ["data.separator", "data.header", "data.label_column", "data.text_column"];
    let frames = [vec![audio], [&[Is(kind, &["vectors"])], &needs::embedded()[..]].concat()];
    let of_frames = ["audio.mels", "audio.frame_length", "audio.frame_shift"];
    let of_folders = ["data.label_field", "data.split_field", "data.split_test_below"];
    let mut all = [needs::common(), needs::text(), needs::encoder()].concat();
    all.extend(needs::mechanism(&attends));
    all.extend(Requirement::each(&of_text, &[vec![text]]));
    all.extend(Requirement::each(&columns, &needs::given(&files)));
    all.extend(Requirement::each(&of_frames, &frames));
    all.extend(Requirement::each(&of_folders, &[vec![audio, Given("data.train")]]));
    all.extend([
        Requirement::new("data.split_test_below", &[Given("data.split_field")]),
        Requirement::new("data.embedded", &needs::embedded()),
        Requirement::new("audio.sample_rate", &[audio]),
        Requirement::any("model.queries", &attends),
    ]);
    all
}

impl Checked for Config {
    fn check(&self) -> Result<()> {
        self.data.held_out.check()?;
        self.model.encoder.check()?;
        check_rate(self.audio.sample_rate)?;
        check_frames(self.audio.mels, self.audio.frame_length, self.audio.frame_shift)?;
        if self.model.queries == 0 {
            return Err(Error::invalid("`model.queries` cannot be 0"));
        }
        if self.data.max_length == 0 {
            return Err(Error::invalid("`data.max_length` cannot be 0"));
        }
        let share = self.text.token_dropout;
        if !(0.0..1.0).contains(&share) {
            return Err(Error::invalid(format!("`text.token_dropout` cannot be {share}")));
        }
        for part in [Part::Training, Part::Validation, Part::Test] {
            self.data.source(part)?;
        }
        self.training.check()
    }
}

impl Config {
    /// Whether vectors are chosen by chance during training, which REINFORCE trains.
    pub(super) fn samples(&self) -> bool {
        self.model.pooling == PoolingKind::Attention
            && self.model.mechanism.weighting == Weighting::Sample
    }

    /// Whether vectors are gated, each by itself.
    pub(super) fn has_gate(&self) -> bool {
        self.model.pooling == PoolingKind::Gate
    }

    /// Whether a learned query attends to the vectors.
    pub(super) fn attends_pooling(&self) -> bool {
        self.model.pooling == PoolingKind::Attention
    }

    /// The library's configuration.
    pub(super) fn classifier(&self, input: InputConfig, classes: usize) -> ClassifierConfig {
        let m = &self.model;
        let pooling = match m.pooling {
            PoolingKind::Mean => ClassifierPooling::Mean,
            PoolingKind::Max => ClassifierPooling::Max,
            PoolingKind::Last => ClassifierPooling::Last,
            PoolingKind::Gate => ClassifierPooling::Gate,
            PoolingKind::ClassToken => ClassifierPooling::ClassToken,
            PoolingKind::Attention if m.queries > 1 => {
                ClassifierPooling::Queries { queries: m.queries, mechanism: m.mechanism.config() }
            }
            PoolingKind::Attention => ClassifierPooling::Attention(m.mechanism.config()),
        };
        ClassifierConfig {
            neighbors: m.neighbors,
            pooling,
            hidden: m.head_hidden,
            dropout: m.encoder.dropout,
            label_smoothing: self.training.label_smoothing,
            // The class token takes a place too.
            ..ClassifierConfig::new(input, m.encoder.config(self.data.max_length + 1), classes)
        }
    }
}

//! The options of `label`.

use crate::options::requirement::Condition::Is;
use crate::options::requirement::Requirement;
use crate::options::template::Checked;
use crate::options::training::TrainingConfig;
use crate::task::held_out::HeldOutOptions;
use crate::tasks::components::{EncoderKind, EncoderOptions, TextOptions, needs};
use regard::layers::Position;
use regard::models::{CharactersConfig, InputConfig, LabelerConfig};
use regard_data::files::{ConllColumns, LabelColumn};
use regard_data::text::{PADDING, TokenizerKind};
use regard_data::{Error, Result};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Config {
    pub(super) data: Data,
    pub(super) text: Text,
    pub(super) model: Model,
    pub(super) training: TrainingConfig,
}

/// Which embedded sentences are labeled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Embedded {
    Tagged,
    Distance,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Data {
    pub(super) kind: super::vectors::Kind,
    pub(super) embedded: Embedded,
    pub(super) distance: usize,
    pub(super) size: usize,
    pub(super) train: Option<PathBuf>,
    pub(super) validation: Option<PathBuf>,
    pub(super) test: Option<PathBuf>,
    column: LabelColumn,
    word_column: Option<usize>,
    #[serde(flatten)]
    pub(super) held_out: HeldOutOptions,
    pub(super) encoding: Option<String>,
    pub(super) max_length: usize,
}

impl Data {
    /// The columns of words and labels.
    pub(super) fn columns(&self) -> ConllColumns {
        ConllColumns { label: self.column, word: self.word_column }
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Text {
    #[serde(flatten)]
    pub(super) tokens: TextOptions,
    pub(super) word_dropout: f64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Model {
    pub(super) embedding: usize,
    pub(super) neighbors: Option<usize>,
    pub(super) characters: bool,
    pub(super) character_embedding: usize,
    pub(super) character_encoder: EncoderKind,
    pub(super) character_hidden: usize,
    pub(super) head_hidden: Option<usize>,
    #[serde(flatten)]
    pub(super) encoder: EncoderOptions,
}

/// What the options need of each other to have an effect.
pub(super) fn needs() -> Vec<Requirement> {
    let kind = "data.kind";
    let (words, sound) = (Is(kind, &["words"]), Is(kind, &["sound"]));
    let of_words = [
        "data.embedded",
        "data.distance",
        "data.column",
        "data.word_column",
        "text.tokenizer",
        "text.tokenizer_file",
        "text.vocabulary_size",
        "text.min_frequency",
        "text.lowercase",
        "text.vectors",
        "text.word_dropout",
        "model.embedding",
        "model.characters",
        "model.character_embedding",
        "model.character_encoder",
        "model.character_hidden",
    ];
    let of_letters =
        ["model.character_embedding", "model.character_encoder", "model.character_hidden"];
    let of_tables = ["data.sequence_column", "data.label_column"];
    let of_files = ["data.column", "data.word_column", "data.sequence_column", "data.label_column"];
    let of_frames = [
        "audio.mels",
        "audio.frame_length",
        "audio.frame_shift",
        "audio.stack",
        "audio.stride",
        "data.gap",
    ];
    let others = Is(kind, &["vectors", "table"]);
    let frames = [vec![sound], [&[others], &needs::embedded()[..]].concat()];
    let mut all = [needs::common(), needs::text(), needs::encoder()].concat();
    all.extend(Requirement::each(&of_words, &[vec![words]]));
    all.extend(Requirement::each(&of_letters, &[vec![Is("model.characters", &["true"])]]));
    all.extend(Requirement::each(&of_tables, &[vec![Is(kind, &["table"])]]));
    all.extend(Requirement::each(&of_files, &needs::any_file()));
    all.extend(Requirement::each(&of_frames, &frames));
    all.extend([
        Requirement::new("data.embedded", &needs::embedded()),
        Requirement::new("data.distance", &needs::embedded()),
        Requirement::new("data.distance", &[Is("data.embedded", &["distance"])]),
        Requirement::new("audio.sample_rate", &[sound]),
    ]);
    all
}

impl Checked for Config {
    fn check(&self) -> Result<()> {
        self.data.held_out.check()?;
        self.model.encoder.check()?;
        if matches!(self.text.tokens.tokenizer, TokenizerKind::Characters | TokenizerKind::Bpe) {
            return Err(Error::invalid(
                "`text.tokenizer` is \"words\", \"whitespace\" or \"pretrained\" here",
            ));
        }
        if self.text.tokens.tokenizer == TokenizerKind::Pretrained && self.model.characters {
            return Err(Error::invalid(
                "`model.characters` is for whole words; a pretrained tokenizer makes pieces of them",
            ));
        }
        let a = self.text.word_dropout;
        if !(a.is_finite() && a >= 0.0) {
            return Err(Error::invalid(format!("`text.word_dropout` cannot be {a}")));
        }
        if self.model.characters {
            self.letters().check()?;
        }
        self.training.check()
    }
}

impl Config {
    /// The library's configuration for so many words, characters and labels.
    pub(super) fn labeler(&self, words: usize, characters: usize, labels: usize) -> LabelerConfig {
        let m = &self.model;
        let input =
            InputConfig::Tokens { vocabulary: words, width: m.embedding, padding: Some(PADDING) };
        LabelerConfig {
            characters: m.characters.then(|| self.characters(characters)),
            neighbors: m.neighbors,
            hidden: m.head_hidden,
            dropout: m.encoder.dropout,
            label_smoothing: self.training.label_smoothing,
            ..LabelerConfig::new(input, m.encoder.config(self.data.max_length), labels)
        }
    }

    /// What reads a word's letters.
    fn letters(&self) -> EncoderOptions {
        let m = &self.model;
        EncoderOptions {
            encoder: m.character_encoder,
            hidden: m.character_hidden,
            layers: 1,
            bidirectional: true,
            // A letter's vector knows no other place than the one the network finds it at.
            position: Position::None,
            window: None,
            key_width: None,
            value_width: None,
            bias: None,
            dropout: 0.0,
            ..m.encoder.clone()
        }
    }

    fn characters(&self, vocabulary: usize) -> CharactersConfig {
        let m = &self.model;
        CharactersConfig {
            vocabulary,
            width: m.character_embedding,
            padding: PADDING,
            encoder: self.letters().config(super::model::LONGEST_WORD),
        }
    }
}

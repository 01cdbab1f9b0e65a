//! The options of `translate`.

use crate::components::{EncoderOptions, MechanismOptions, TextOptions};
use crate::metric::Tokenization;
use crate::options::Checked;
use crate::parts::HeldOut;
use crate::train::TrainingConfig;
use crate::{Error, Result};
use regard::layers::Cell;
use regard::models::{ContextConfig, DecoderConfig, SearchConfig, Seq2SeqConfig, Tied};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Config {
    pub(super) data: Data,
    pub(super) text: Text,
    pub(super) search: Search,
    pub(super) model: Model,
    pub(super) training: TrainingConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Embedded {
    Phrases,
    Dates,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Data {
    pub(super) embedded: Embedded,
    pub(super) size: usize,
    pub(super) train_source: Option<PathBuf>,
    pub(super) train_target: Option<PathBuf>,
    pub(super) train_pairs: Option<PathBuf>,
    pub(super) validation_source: Option<PathBuf>,
    pub(super) validation_target: Option<PathBuf>,
    pub(super) validation_pairs: Option<PathBuf>,
    pub(super) test_source: Option<PathBuf>,
    pub(super) test_target: Option<PathBuf>,
    pub(super) test_pairs: Option<PathBuf>,
    pub(super) held_out: f64,
    pub(super) encoding: Option<String>,
    pub(super) longest: usize,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Text {
    #[serde(flatten)]
    pub(super) tokens: TextOptions,
    pub(super) shared: bool,
    /// Pretrained vectors of the target's tokens.
    pub(super) target_vectors: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Search {
    pub(super) beam: usize,
    pub(super) length_penalty: f64,
    #[serde(deserialize_with = "tokenization")]
    pub(super) bleu: Option<Tokenization>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ContextKind {
    Attention,
    Fixed,
    MultiHead,
}

/// Which decoder writes the output, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) enum DecoderKind {
    Recurrent(Cell),
    Transformer,
}

impl TryFrom<String> for DecoderKind {
    type Error = String;

    fn try_from(name: String) -> std::result::Result<Self, String> {
        match (name.as_str(), name.parse()) {
            ("transformer", _) => Ok(Self::Transformer),
            (_, Ok(cell)) => Ok(Self::Recurrent(cell)),
            _ => Err(format!(
                "there is no decoder {name:?}; there are rnn, rnn-relu, gru, lstm, transformer"
            )),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Model {
    pub(super) context: ContextKind,
    pub(super) decoder: DecoderKind,
    pub(super) embedding: usize,
    pub(super) tied: Tied,
    pub(super) scheduled_sampling: f64,
    #[serde(flatten)]
    pub(super) encoder: EncoderOptions,
    #[serde(flatten)]
    pub(super) mechanism: MechanismOptions,
}

/// The widest beam.
const MAX_BEAM: usize = 1000;

impl Checked for Config {
    fn check(&self) -> Result<()> {
        HeldOut::check(self.data.held_out)?;
        if !(0.0..=1.0).contains(&self.model.scheduled_sampling) {
            let share = self.model.scheduled_sampling;
            return Err(Error::invalid(format!("`model.scheduled_sampling` cannot be {share}")));
        }
        let Search { beam, length_penalty, .. } = self.search;
        if !(1..=MAX_BEAM).contains(&beam) {
            let what = format!("`search.beam` cannot be {beam}; 1 to {MAX_BEAM} can be searched");
            return Err(Error::invalid(what));
        }
        if !(length_penalty.is_finite() && length_penalty >= 0.0) {
            let what = format!("`search.length_penalty` cannot be {length_penalty}");
            return Err(Error::invalid(what));
        }
        let twice = self.model.encoder.both_directions && self.model.encoder.is_recurrent();
        let attends = self.model.context == ContextKind::Attention;
        if attends && twice && self.model.mechanism.wants_one_width() {
            return Err(Error::invalid(
                "this `model.score` compares vectors of one width, and an encoder in both \
                 directions gives twice the decoder's; `model.both_directions=false` makes them one",
            ));
        }
        self.training.check()
    }
}

impl Config {
    /// How many learned positions there are: what is written may be longer than what was read.
    pub(super) fn reach(&self) -> usize {
        2 * self.data.longest + 1
    }

    /// The library's configuration for vocabularies of these sizes.
    pub(super) fn seq2seq(&self, source: usize, target: usize) -> Seq2SeqConfig {
        let m = &self.model;
        let longest = self.reach();
        let decoder = match m.decoder {
            DecoderKind::Recurrent(cell) => {
                DecoderConfig::Recurrent(m.encoder.recurrent(cell, false))
            }
            DecoderKind::Transformer => {
                let window = None;
                let transformer =
                    regard::layers::TransformerConfig { window, ..m.encoder.transformer(longest) };
                DecoderConfig::Transformer(transformer)
            }
        };
        let context = match m.context {
            ContextKind::Fixed => ContextConfig::Fixed,
            ContextKind::MultiHead => ContextConfig::MultiHead,
            ContextKind::Attention => ContextConfig::Attention(m.mechanism.config()),
        };
        Seq2SeqConfig {
            embedding: m.embedding,
            tied: m.tied,
            dropout: m.encoder.dropout,
            ..Seq2SeqConfig::new(source, target, m.encoder.config(longest), decoder, context)
        }
    }

    /// How a source of so many tokens is searched for its output, with the attention weights where
    /// they are asked for.
    pub(super) fn search(&self, source: usize, weights: bool) -> SearchConfig {
        SearchConfig {
            width: self.search.beam,
            length_penalty: self.search.length_penalty,
            longest: 2 * source + 20,
            best: 1,
            weights,
        }
    }
}

/// How BLEU splits; none where the references decide.
fn tokenization<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<Tokenization>, D::Error> {
    match String::deserialize(from)?.as_str() {
        "auto" => Ok(None),
        name => Tokenization::named(name).map(Some).map_err(serde::de::Error::custom),
    }
}

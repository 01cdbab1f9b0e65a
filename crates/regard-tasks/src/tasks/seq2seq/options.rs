//! How a text is written, as plain options in `[model]` and `[search]`.

use crate::metric::Tokenization;
use crate::options::template::Options;
use crate::task::abilities::check_beam;
use crate::tasks::components::{EncoderOptions, MechanismOptions, ScoreKind};
use regard::layers::{Cell, ConvolutionConfig, PoolingConfig, TransformerConfig};
use regard::models::{
    ContextConfig, DecoderConfig, SearchConfig, Seq2SeqConfig, SourceConfig, Tied,
};
use regard_data::{Error, Result};
use serde::Deserialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ContextKind {
    Attention,
    Fixed,
    MultiHead,
}

/// What a fixed vector is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FixedKind {
    Last,
    Mean,
    Max,
    Learned,
}

/// Which decoder writes the output, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum DecoderKind {
    Recurrent(Cell),
    Cnn,
    Transformer,
}

impl TryFrom<String> for DecoderKind {
    type Error = String;

    fn try_from(name: String) -> std::result::Result<Self, String> {
        match (name.as_str(), name.parse()) {
            ("cnn", _) => Ok(Self::Cnn),
            ("transformer", _) => Ok(Self::Transformer),
            (_, Ok(cell)) => Ok(Self::Recurrent(cell)),
            _ => Err(format!(
                "there is no decoder {name:?}; there are rnn, rnn-relu, gru, lstm, cnn, transformer"
            )),
        }
    }
}

/// How a text is written, as plain options in `[model]`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Seq2SeqOptions {
    pub(crate) context: ContextKind,
    fixed: Option<FixedKind>,
    decoder: DecoderKind,
    embedding: usize,
    tied_embeddings: Tied,
    pub(crate) scheduled_sampling: f64,
    /// Whether a recurrent decoder's scaled dot has a learned gain.
    query_gain: bool,
    /// Where words can be copied: whether they are.
    #[serde(default)]
    pub(crate) copy: bool,
    #[serde(flatten)]
    pub(crate) encoder: EncoderOptions,
    #[serde(flatten)]
    pub(crate) mechanism: MechanismOptions,
}

/// How outputs are searched for, as plain options in `[search]`.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct SearchOptions {
    pub(crate) beam: usize,
    length_penalty: f64,
    pub(crate) max_output_length: usize,
}

impl Seq2SeqOptions {
    pub(crate) fn check(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.scheduled_sampling) {
            let share = self.scheduled_sampling;
            return Err(Error::invalid(format!("`model.scheduled_sampling` cannot be {share}")));
        }
        self.encoder.check()?;
        let twice = self.encoder.bidirectional && self.encoder.is_recurrent();
        let attends = self.context == ContextKind::Attention;
        if attends && twice && self.mechanism.wants_one_width() {
            return Err(Error::invalid(
                "this `model.score` compares vectors of one width, and an encoder in both \
                 directions gives twice the decoder's; `model.bidirectional=false` makes them one",
            ));
        }
        if self.copy && self.context == ContextKind::Fixed {
            return Err(Error::invalid(
                "`model.copy` copies what is attended to, and `model.context=fixed` attends to \
                 nothing",
            ));
        }
        Ok(())
    }

    /// Whether the query has a gain: where bounded states are compared by the scaled dot.
    fn has_gain(&self) -> bool {
        self.query_gain
            && self.context == ContextKind::Attention
            && matches!(self.decoder, DecoderKind::Recurrent(_))
            && self.mechanism.score == ScoreKind::ScaledDot
    }

    fn context(&self) -> ContextConfig {
        let pooled = |pooling| ContextConfig::Pooled { pooling };
        match (self.context, self.fixed) {
            (ContextKind::MultiHead, _) => ContextConfig::MultiHead,
            (ContextKind::Attention, _) => ContextConfig::Attention(self.mechanism.config()),
            (ContextKind::Fixed, None) => ContextConfig::Fixed,
            // The last states of both directions, not the last vector of each.
            (_, Some(FixedKind::Last)) if self.encoder.is_recurrent() => ContextConfig::Fixed,
            (_, Some(FixedKind::Last)) => pooled(PoolingConfig::Last),
            (_, Some(FixedKind::Mean)) => pooled(PoolingConfig::Mean),
            (_, Some(FixedKind::Max)) => pooled(PoolingConfig::Max),
            (_, Some(FixedKind::Learned)) => {
                pooled(PoolingConfig::Attention(self.mechanism.config()))
            }
        }
    }

    /// The library's configuration for this source, a target vocabulary of this size, and sequences
    /// of at most so many tokens or vectors.
    pub(crate) fn config(
        &self,
        source: SourceConfig,
        target: usize,
        longest: usize,
    ) -> Seq2SeqConfig {
        let encoder = self.encoder.config(longest);
        let decoder = match self.decoder {
            DecoderKind::Recurrent(cell) => {
                DecoderConfig::Recurrent(self.encoder.recurrent(cell, false))
            }
            DecoderKind::Cnn => DecoderConfig::Cnn(ConvolutionConfig {
                width: self.encoder.hidden,
                layers: self.encoder.layers,
                kernel: self.encoder.kernel_size,
                dropout: self.encoder.dropout,
                position: self.encoder.position,
                longest,
                ..ConvolutionConfig::default()
            }),
            DecoderKind::Transformer => {
                let window = None;
                let transformer = TransformerConfig { window, ..self.encoder.transformer(longest) };
                DecoderConfig::Transformer(transformer)
            }
        };
        Seq2SeqConfig {
            embedding: self.embedding,
            tied: self.tied_embeddings,
            dropout: self.encoder.dropout,
            query_gain: self.has_gain(),
            copying: self.copy,
            ..Seq2SeqConfig::new(source, target, encoder, decoder, self.context())
        }
    }
}

impl SearchOptions {
    /// A beam over outputs that are all of one length, which no penalty changes.
    pub(crate) fn of_one_length(beam: usize) -> Self {
        Self { beam, length_penalty: 0.0, max_output_length: usize::MAX }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let Self { beam, length_penalty, max_output_length } = *self;
        check_beam("search.beam", beam)?;
        if !(length_penalty.is_finite() && length_penalty >= 0.0) {
            let what = format!("`search.length_penalty` cannot be {length_penalty}");
            return Err(Error::invalid(what));
        }
        if max_output_length == 0 {
            return Err(Error::invalid("`search.max_output_length` cannot be 0"));
        }
        Ok(())
    }

    /// How an output of at most so many tokens, and of `max_output_length`, is searched for, with the
    /// attention weights where they are asked for.
    pub(crate) fn config(&self, longest: usize, weights: bool) -> SearchConfig {
        SearchConfig {
            width: self.beam,
            length_penalty: self.length_penalty,
            longest: longest.min(self.max_output_length),
            // A source that says something has an output that does.
            shortest: 1,
            best: 1,
            weights,
        }
    }
}

/// As [`Task::alike`](crate::task::Task::alike): where one variant's score compares vectors of one width,
/// all recurrent encoders read in one direction.
pub(crate) fn alike(all: &[Options]) -> Result<Option<(&'static str, &'static str)>> {
    #[derive(Deserialize)]
    struct Whole {
        model: Seq2SeqOptions,
    }
    let mut narrow = false;
    for options in all {
        let model = options.read::<Whole>()?.model;
        let attends = model.context == ContextKind::Attention;
        let twice = model.encoder.is_recurrent() && model.encoder.bidirectional;
        narrow |= attends && twice && model.mechanism.wants_one_width();
    }
    Ok(narrow.then_some((
        "bidirectional=false",
        "a score among them compares vectors of one width, and an encoder in both directions gives \
         twice the decoder's: every encoder reads in one direction here \
         (`model.bidirectional=false`), so that like is compared with like",
    )))
}

/// How BLEU splits, as a name; none where the references decide ("auto").
pub(crate) fn tokenization<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<Tokenization>, D::Error> {
    match String::deserialize(from)?.as_str() {
        "auto" => Ok(None),
        name => Tokenization::named(name).map(Some).map_err(serde::de::Error::custom),
    }
}

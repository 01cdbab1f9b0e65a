//! What a sequence-to-sequence model is made of.

use super::SourceConfig;
use crate::mode::check_dropout;
use crate::{
    ConvolutionConfig, EncoderConfig, MechanismConfig, PoolingConfig, RecurrentConfig,
    TransformerConfig, Weighting,
};
use regard_tensor::{Result, ensure};

/// What a [`Seq2Seq`](crate::Seq2Seq) is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::{ContextConfig, Seq2SeqConfig};
/// let config: Seq2SeqConfig = serde_json::from_str(r#"{
///     "source": { "kind": "tokens", "vocabulary": 100 },
///     "target_vocabulary": 120,
///     "encoder": { "kind": "recurrent", "cell": "gru", "hidden": 32, "both_directions": true },
///     "decoder": { "kind": "recurrent", "cell": "gru", "hidden": 32 },
///     "context": { "kind": "attention", "score": { "additive": { "hidden": 32 } } }
/// }"#).unwrap();
/// assert!(matches!(config.context, ContextConfig::Attention(_)));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Seq2SeqConfig {
    /// What it reads: tokens, vectors or images.
    pub source: SourceConfig,
    /// Tokens of the target.
    pub target_vocabulary: usize,
    /// Width of the tokens' vectors.
    #[cfg_attr(feature = "serde", serde(default = "Seq2SeqConfig::usual_embedding"))]
    pub embedding: usize,
    /// What reads the source.
    pub encoder: EncoderConfig,
    /// What writes the target.
    pub decoder: DecoderConfig,
    /// What the decoder knows of the source.
    pub context: ContextConfig,
    /// Which tables of vectors are one.
    #[cfg_attr(feature = "serde", serde(default))]
    pub tied: Tied,
    /// The share of the tokens' vectors, and of what the output is made of, left out during
    /// training.
    #[cfg_attr(feature = "serde", serde(default))]
    pub dropout: f64,
    /// Whether a recurrent decoder's query is multiplied by a number that is learned, from √D on. Its states
    /// are bounded: their dot products are as large as those of vectors of variance 1 over √D already, and
    /// a scaled dot starts where the plain one does.
    #[cfg_attr(feature = "serde", serde(default))]
    pub query_gain: bool,
    /// Whether words are copied from the source: the attention weights are a distribution over its
    /// words, mixed with the vocabulary's.
    #[cfg_attr(feature = "serde", serde(default))]
    pub copying: bool,
    /// The token that fills up shorter sequences, in source and target.
    #[cfg_attr(feature = "serde", serde(default = "Seq2SeqConfig::usual_padding"))]
    pub padding: usize,
    /// The target's token before the first.
    #[cfg_attr(feature = "serde", serde(default = "Seq2SeqConfig::usual_start"))]
    pub start: usize,
    /// The target's token behind the last.
    #[cfg_attr(feature = "serde", serde(default = "Seq2SeqConfig::usual_end"))]
    pub end: usize,
    /// The target's token that a copied word is read as, where the vocabulary lacks it.
    #[cfg_attr(feature = "serde", serde(default = "Seq2SeqConfig::usual_unknown"))]
    pub unknown: usize,
}

/// Which decoder, and what it is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{Cell, RecurrentConfig};
/// use regard::models::DecoderConfig;
/// let config: DecoderConfig = serde_json::from_str(r#"{ "kind": "recurrent", "cell": "lstm", "hidden": 32 }"#).unwrap();
/// assert_eq!(config, DecoderConfig::Recurrent(RecurrentConfig::new(Cell::Lstm, 32)));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum DecoderConfig {
    /// An RNN, GRU or LSTM.
    Recurrent(RecurrentConfig),
    /// Causal convolutions, with attention at each layer.
    Cnn(ConvolutionConfig),
    /// A Transformer.
    Transformer(TransformerConfig),
}

/// What a decoder knows of the source.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::ContextConfig;
/// let config = r#"{ "kind": "attention", "score": "dot" }"#;
/// let config: ContextConfig = serde_json::from_str(config).unwrap();
/// assert_eq!(config, ContextConfig::Attention(MechanismConfig::new(ScoreConfig::Dot)));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum ContextConfig {
    /// One vector C for the whole source, given to every step: a recurrent encoder's last states,
    /// the mean of another's vectors.
    Fixed,
    /// As `Fixed`, but C is made of all of the encoder's vectors in another way: the last, the mean,
    /// the largest number of each feature, or attention with a learned query.
    Pooled {
        /// How.
        pooling: PoolingConfig,
    },
    /// Attention by a mechanism, anew at every step.
    Attention(MechanismConfig),
    /// Attention with the Transformer's heads.
    MultiHead,
}

/// Which tables of vectors are one.
///
/// ```
/// # use regard::prelude::*;
/// # use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
/// # use regard::models::{ContextConfig, DecoderConfig, Seq2SeqConfig, Tied};
/// # let gru = RecurrentConfig::new(Cell::Gru, 8);
/// # let config = Seq2SeqConfig::new(
/// #     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed);
/// let config = Seq2SeqConfig { tied: Tied::All, ..config };
/// let error = config.check().unwrap_err().to_string();
/// assert_eq!(error, "tied source and target have vocabularies of 10 and 12; they want one");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Tied {
    /// None.
    #[default]
    None,
    /// The target's vectors are the output's weights.
    Output,
    /// The source's too: one vocabulary for all.
    All,
}

impl Seq2SeqConfig {
    /// For tokens of a vocabulary, or another source, with vectors of width 64, and the tokens 0, 1,
    /// 2 and 3 as padding, start, end and unknown.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
    /// use regard::models::{ContextConfig, DecoderConfig, Seq2SeqConfig};
    /// let gru = RecurrentConfig::new(Cell::Gru, 32);
    /// let config = Seq2SeqConfig::new(
    ///     100, 120, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed,
    /// );
    /// config.check()?;
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(
        source: impl Into<SourceConfig>,
        target_vocabulary: usize,
        encoder: EncoderConfig,
        decoder: DecoderConfig,
        context: ContextConfig,
    ) -> Self {
        Self {
            source: source.into(),
            target_vocabulary,
            embedding: Self::usual_embedding(),
            encoder,
            decoder,
            context,
            tied: Tied::None,
            dropout: 0.0,
            query_gain: false,
            copying: false,
            padding: Self::usual_padding(),
            start: Self::usual_start(),
            end: Self::usual_end(),
            unknown: Self::usual_unknown(),
        }
    }

    fn usual_embedding() -> usize {
        64
    }

    fn usual_padding() -> usize {
        0
    }

    fn usual_start() -> usize {
        1
    }

    fn usual_end() -> usize {
        2
    }

    fn usual_unknown() -> usize {
        3
    }

    /// Refuses what cannot be built, by name.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
    /// # use regard::models::{ContextConfig, DecoderConfig, Seq2SeqConfig};
    /// # let gru = RecurrentConfig::new(Cell::Gru, 8);
    /// # let config = Seq2SeqConfig::new(
    /// #     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed);
    /// let error = Seq2SeqConfig { start: 0, ..config }.check().unwrap_err().to_string();
    /// assert_eq!(error, "padding, start and end are the tokens 0, 0 and 2; they want to be three");
    /// ```
    pub fn check(&self) -> Result<()> {
        ensure!(self.embedding > 0, "an embedding of width 0");
        check_dropout(self.dropout)?;
        for (name, token) in [("padding", self.padding), ("start", self.start), ("end", self.end)] {
            ensure!(
                token < self.target_vocabulary,
                "the {name} token {token} is not within a target vocabulary of {}",
                self.target_vocabulary
            );
        }
        ensure!(
            self.padding != self.start && self.padding != self.end && self.start != self.end,
            "padding, start and end are the tokens {}, {} and {}; they want to be three",
            self.padding,
            self.start,
            self.end
        );
        self.source.check(self.padding)?;
        self.check_tied()?;
        ensure!(
            !matches!(
                &self.context,
                ContextConfig::Pooled { pooling: PoolingConfig::Queries { .. } }
            ),
            "a fixed vector is pooled by one query; several make several vectors"
        );
        let attends = matches!(self.context, ContextConfig::Attention(_));
        ensure!(
            !self.query_gain || attends && matches!(self.decoder, DecoderConfig::Recurrent(_)),
            "a gain of the query is of a recurrent decoder that attends"
        );
        self.check_copying()
    }

    fn check_tied(&self) -> Result<()> {
        match (self.tied, self.source) {
            (Tied::All, SourceConfig::Tokens { vocabulary }) => ensure!(
                vocabulary == self.target_vocabulary,
                "tied source and target have vocabularies of {vocabulary} and {}; they want one",
                self.target_vocabulary
            ),
            (Tied::All, _) => {
                ensure!(false, "a source without tokens has no vectors to be tied to the target's");
            }
            _ => {}
        }
        let width = match &self.decoder {
            DecoderConfig::Transformer(c) => c.width,
            DecoderConfig::Cnn(c) => c.width,
            DecoderConfig::Recurrent(_) => self.embedding,
        };
        ensure!(
            self.tied == Tied::None || width == self.embedding,
            "tied vectors of width {} and a decoder of width {width}; they want one width",
            self.embedding
        );
        Ok(())
    }

    /// Copying wants tokens to copy, and weights that are a distribution over them.
    fn check_copying(&self) -> Result<()> {
        if let ContextConfig::Pooled { pooling: PoolingConfig::Attention(mechanism) } =
            &self.context
        {
            ensure!(
                mechanism.weighting != Weighting::Sample,
                "a fixed vector pooled by weights that are drawn by chance cannot be learned"
            );
        }
        if !self.copying {
            return Ok(());
        }
        ensure!(
            matches!(self.source, SourceConfig::Tokens { .. }),
            "only tokens can be copied; the source has none"
        );
        ensure!(
            self.unknown < self.target_vocabulary,
            "the unknown token {} is not within a target vocabulary of {}",
            self.unknown,
            self.target_vocabulary
        );
        match &self.context {
            ContextConfig::MultiHead => Ok(()),
            ContextConfig::Attention(mechanism) => {
                let weighting = mechanism.weighting;
                ensure!(
                    !matches!(weighting, Weighting::Sigmoid | Weighting::None),
                    "copying wants weights that sum to 1; those of {weighting:?} do not"
                );
                Ok(())
            }
            _ => Err(crate::Error::new("copying wants attention; the context is a fixed vector")),
        }
    }
}

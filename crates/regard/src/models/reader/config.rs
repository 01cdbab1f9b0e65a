//! What a reader is made of.

use crate::mode::check_dropout;
use crate::{EncoderConfig, MechanismConfig};
use regard_tensor::Result;

/// What a [`SpanReader`](crate::SpanReader) is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::SpanReaderConfig;
/// let config = r#"{ "vocabulary": 40, "encoder": { "kind": "recurrent", "cell": "gru" } }"#;
/// let config: SpanReaderConfig = serde_json::from_str(config).unwrap();
/// assert!(config.attention);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct SpanReaderConfig {
    /// How many words there are.
    pub vocabulary: usize,
    /// Width of their vectors.
    pub width: usize,
    /// The word that fills up.
    pub padding: usize,
    /// Numbers known of each word of the text.
    pub features: usize,
    /// What reads the text and, with parameters of its own, the question.
    pub encoder: EncoderConfig,
    /// Whether words of the text attend to the question's, and a learned query to the question;
    /// without it all that is known of the question is its encoder's summary.
    pub attention: bool,
    /// The score of attention, and of a word as the start and as the end of the answer.
    pub mechanism: MechanismConfig,
    /// The share left out of words during training.
    pub dropout: f64,
}

impl Default for SpanReaderConfig {
    fn default() -> Self {
        Self {
            vocabulary: 1000,
            width: 64,
            padding: 0,
            features: 0,
            encoder: EncoderConfig::None,
            attention: true,
            mechanism: MechanismConfig::default(),
            dropout: 0.0,
        }
    }
}

impl SpanReaderConfig {
    /// Of this many words, with an encoder.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::EncoderConfig;
    /// use regard::models::SpanReaderConfig;
    /// assert_eq!(SpanReaderConfig::new(40, EncoderConfig::None).vocabulary, 40);
    /// ```
    pub fn new(vocabulary: usize, encoder: EncoderConfig) -> Self {
        Self { vocabulary, encoder, ..Self::default() }
    }

    /// Refuses what cannot be built, by name. The parts check themselves as they are built.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::SpanReaderConfig;
    /// let config = SpanReaderConfig { dropout: 1.0, ..SpanReaderConfig::default() };
    /// assert_eq!(config.check().unwrap_err().to_string(), "a dropout of 1 is not within 0..1");
    /// ```
    pub fn check(&self) -> Result<()> {
        check_dropout(self.dropout)?;
        Ok(())
    }
}

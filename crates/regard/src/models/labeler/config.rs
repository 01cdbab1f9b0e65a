//! What a labeler is made of.

use crate::{CharactersConfig, EncoderConfig, InputConfig};
use regard_tensor::{Result, ensure};

/// What a [`SequenceLabeler`](crate::SequenceLabeler) is made of.
///
/// Each vector alone is an encoder of kind `none`; truncated self-attention is a Transformer with
/// a window.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::EncoderConfig;
/// use regard::models::{InputConfig, LabelerConfig};
/// let config = r#"{
///     "input": { "kind": "tokens", "vocabulary": 100, "width": 16 },
///     "encoder": { "kind": "recurrent", "cell": "gru", "hidden": 32, "both_directions": true },
///     "labels": 5
/// }"#;
/// let config: LabelerConfig = serde_json::from_str(config).unwrap();
/// assert_eq!(config.labels, 5);
/// let alone = LabelerConfig::new(InputConfig::vectors(8), EncoderConfig::None, 5);
/// let window = LabelerConfig { neighbors: Some(2), ..alone };
/// window.check()?;
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct LabelerConfig {
    /// What it reads: tokens or vectors.
    pub input: InputConfig,
    /// Features of words from their characters, beside the words' own vectors.
    #[cfg_attr(feature = "serde", serde(default))]
    pub characters: Option<CharactersConfig>,
    /// How many neighbors on each side are put beside each vector.
    #[cfg_attr(feature = "serde", serde(default))]
    pub neighbors: Option<usize>,
    /// What makes vectors that know the sequence.
    pub encoder: EncoderConfig,
    /// Width of a hidden layer, with ReLU, before the labels.
    #[cfg_attr(feature = "serde", serde(default))]
    pub hidden: Option<usize>,
    /// How many labels there are.
    pub labels: usize,
    /// The share left out before and after the encoder during training.
    #[cfg_attr(feature = "serde", serde(default))]
    pub dropout: f64,
    /// The share of the target that the loss spreads over all labels.
    #[cfg_attr(feature = "serde", serde(default))]
    pub label_smoothing: f64,
}

impl LabelerConfig {
    /// An input, an encoder and a number of labels, and nothing else.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::EncoderConfig;
    /// use regard::models::{InputConfig, LabelerConfig};
    /// let config = LabelerConfig::new(InputConfig::vectors(8), EncoderConfig::None, 5);
    /// assert_eq!((config.labels, config.hidden, config.neighbors), (5, None, None));
    /// ```
    pub fn new(input: InputConfig, encoder: EncoderConfig, labels: usize) -> Self {
        Self {
            input,
            characters: None,
            neighbors: None,
            encoder,
            hidden: None,
            labels,
            dropout: 0.0,
            label_smoothing: 0.0,
        }
    }

    /// Refuses numbers that cannot be meant, by name. The parts check themselves as they are
    /// built.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::EncoderConfig;
    /// use regard::models::{InputConfig, LabelerConfig};
    /// let config = LabelerConfig::new(InputConfig::vectors(8), EncoderConfig::None, 5);
    /// let error = LabelerConfig { label_smoothing: 1.0, ..config }.check().unwrap_err();
    /// assert_eq!(error.to_string(), "a label smoothing of 1 is not within 0..1");
    /// ```
    pub fn check(&self) -> Result<()> {
        ensure!(self.labels > 0, "a labeler of 0 labels");
        ensure!(
            (0.0..1.0).contains(&self.label_smoothing),
            "a label smoothing of {} is not within 0..1",
            self.label_smoothing
        );
        Ok(())
    }
}

//! What a classifier is made of.

use crate::{CharactersConfig, EncoderConfig, InputConfig, MechanismConfig, PoolingConfig};
use regard_tensor::{Result, ensure};

/// How a classifier makes one vector of a sequence.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::ClassifierPooling;
/// let known: ClassifierPooling = serde_json::from_str("\"class-token\"").unwrap();
/// assert_eq!(known, ClassifierPooling::ClassToken);
/// let error = serde_json::from_str::<ClassifierPooling>("\"median\"").unwrap_err().to_string();
/// assert!(error.contains("unknown variant `median`"), "{error}");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum ClassifierPooling {
    /// The mean.
    #[default]
    Mean,
    /// The largest number of each feature.
    Max,
    /// The last state of a recurrent encoder, of both directions where there are two; the last
    /// vector of the other kinds.
    Last,
    /// The mean of the vectors, each gated by itself.
    Gate,
    /// A learned vector goes before each sequence, and what the encoder makes of it is the answer.
    ClassToken,
    /// Attention with a learned query.
    Attention(MechanismConfig),
    /// Attention with several learned queries, whose outputs stand side by side.
    Queries {
        /// How many.
        queries: usize,
        /// How each attends.
        mechanism: MechanismConfig,
    },
}

impl ClassifierPooling {
    /// As a pooling over what the encoder gives; none for the class token.
    pub(super) fn pooling(&self) -> Option<PoolingConfig> {
        Some(match self {
            Self::Mean => PoolingConfig::Mean,
            Self::Max => PoolingConfig::Max,
            Self::Last => PoolingConfig::Last,
            Self::Gate => PoolingConfig::Gate,
            Self::Attention(mechanism) => PoolingConfig::Attention(mechanism.clone()),
            Self::Queries { queries, mechanism } => {
                PoolingConfig::Queries { queries: *queries, mechanism: mechanism.clone() }
            }
            Self::ClassToken => return None,
        })
    }
}

/// What a [`SequenceClassifier`](crate::SequenceClassifier) is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::EncoderConfig;
/// use regard::models::{ClassifierConfig, ClassifierPooling, InputConfig};
/// let config = r#"{
///     "input": { "kind": "vectors", "width": 40 },
///     "encoder": { "kind": "transformer", "width": 64, "heads": 4 },
///     "pooling": { "attention": { "score": { "additive": { "hidden": 16 } } } },
///     "classes": 10
/// }"#;
/// let config: ClassifierConfig = serde_json::from_str(config).unwrap();
/// assert!(matches!(config.pooling, ClassifierPooling::Attention(_)));
/// let alone = ClassifierConfig::new(InputConfig::tokens(100, 8), EncoderConfig::None, 2);
/// let error = ClassifierConfig { pooling: ClassifierPooling::ClassToken, ..alone }.check();
/// assert!(error.unwrap_err().to_string().starts_with("a class token before an encoder of kind none"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ClassifierConfig {
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
    /// What makes one vector of them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub pooling: ClassifierPooling,
    /// Width of a hidden layer, with ReLU, before the classes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub hidden: Option<usize>,
    /// How many classes there are.
    pub classes: usize,
    /// The share left out before and after the encoder during training.
    #[cfg_attr(feature = "serde", serde(default))]
    pub dropout: f64,
    /// The share of the target that the loss spreads over all classes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub label_smoothing: f64,
}

impl ClassifierConfig {
    /// An input, an encoder and a number of classes, pooled by the mean.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::EncoderConfig;
    /// use regard::models::{ClassifierConfig, ClassifierPooling, InputConfig};
    /// let config = ClassifierConfig::new(InputConfig::vectors(8), EncoderConfig::None, 3);
    /// assert_eq!((config.pooling, config.classes), (ClassifierPooling::Mean, 3));
    /// ```
    pub fn new(input: InputConfig, encoder: EncoderConfig, classes: usize) -> Self {
        Self {
            input,
            characters: None,
            neighbors: None,
            encoder,
            pooling: ClassifierPooling::Mean,
            hidden: None,
            classes,
            dropout: 0.0,
            label_smoothing: 0.0,
        }
    }

    /// Refuses what cannot be meant, by name. The parts check themselves as they are built.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::EncoderConfig;
    /// use regard::models::{ClassifierConfig, InputConfig};
    /// let config = ClassifierConfig::new(InputConfig::vectors(8), EncoderConfig::None, 0);
    /// assert_eq!(config.check().unwrap_err().to_string(), "a classifier of 0 classes");
    /// ```
    pub fn check(&self) -> Result<()> {
        ensure!(self.classes > 0, "a classifier of 0 classes");
        ensure!(
            (0.0..1.0).contains(&self.label_smoothing),
            "a label smoothing of {} is not within 0..1",
            self.label_smoothing
        );
        let blind = match &self.encoder {
            EncoderConfig::None => Some("of kind none"),
            EncoderConfig::Recurrent(c) if !c.both_directions => Some("that runs forward only"),
            _ => None,
        };
        if let (Some(blind), ClassifierPooling::ClassToken) = (blind, &self.pooling) {
            ensure!(false, "a class token before an encoder {blind} sees nothing of the sequence");
        }
        Ok(())
    }
}

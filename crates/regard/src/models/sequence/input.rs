//! Tokens or vectors.

use crate::Embedding;
use regard_tensor::{DType, Parameters, Result, Tensor, ensure};

/// What a model reads.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::InputConfig;
/// let tokens = r#"{ "kind": "tokens", "vocabulary": 100, "width": 16 }"#;
/// let tokens: InputConfig = serde_json::from_str(tokens).unwrap();
/// assert_eq!(tokens, InputConfig::tokens(100, 16));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum InputConfig {
    /// Token ids, each with a learned vector.
    Tokens {
        /// How many tokens there are.
        vocabulary: usize,
        /// Width of their vectors.
        width: usize,
        /// The token whose vector is 0 and learns nothing.
        #[cfg_attr(feature = "serde", serde(default))]
        padding: Option<usize>,
    },
    /// Vectors from elsewhere: frames of sound, pretrained embeddings.
    Vectors {
        /// Their width.
        width: usize,
    },
}

impl InputConfig {
    /// Tokens of a vocabulary, with vectors of a width.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::InputConfig;
    /// let tokens = InputConfig::Tokens { vocabulary: 100, width: 16, padding: None };
    /// assert_eq!(InputConfig::tokens(100, 16), tokens);
    /// ```
    pub fn tokens(vocabulary: usize, width: usize) -> Self {
        Self::Tokens { vocabulary, width, padding: None }
    }

    /// Vectors of a width.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::InputConfig;
    /// assert_eq!(InputConfig::vectors(40), InputConfig::Vectors { width: 40 });
    /// ```
    pub fn vectors(width: usize) -> Self {
        Self::Vectors { width }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Input {
    Tokens(Embedding),
    Vectors,
}

impl Input {
    /// The input and the width of its vectors.
    pub(super) fn new(parameters: &Parameters, config: &InputConfig) -> Result<(Self, usize)> {
        match *config {
            InputConfig::Tokens { vocabulary, width, padding } => {
                let embedding = Embedding::new(parameters, vocabulary, width, padding)?;
                Ok((Self::Tokens(embedding), width))
            }
            InputConfig::Vectors { width } => {
                ensure!(width > 0, "input vectors of width 0");
                Ok((Self::Vectors, width))
            }
        }
    }

    /// Ids `[B, N]` or vectors `[B, N, width]` → `[B, N, width]`.
    pub(super) fn vectors(&self, x: &Tensor, width: usize) -> Result<Tensor> {
        match self {
            Self::Tokens(embedding) => {
                ensure!(
                    x.rank() == 2 && matches!(x.dtype(), DType::I64 | DType::U32),
                    "the model reads token ids [B, N], was given {} {:?}",
                    x.dtype(),
                    x.shape()
                );
                embedding.forward(x)
            }
            Self::Vectors => {
                ensure!(
                    x.rank() == 3 && x.shape()[2] == width && x.dtype().is_float(),
                    "the model reads vectors [B, N, {width}], was given {} {:?}",
                    x.dtype(),
                    x.shape()
                );
                Ok(x.clone())
            }
        }
    }
}

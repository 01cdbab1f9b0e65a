//! Plain self-attention.

use super::{CrossAttention, CrossAttentionConfig};
use crate::{Attended, Mask, Mode, Need, ScoreConfig, Weighting};
use regard_tensor::{Parameters, Result, Tensor, ensure};

/// What a [`SelfAttention`] is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::SelfAttentionConfig;
/// let config: SelfAttentionConfig =
///     serde_json::from_str(r#"{ "width": 6, "key_width": 4, "weighting": "sparsemax" }"#).unwrap();
/// assert_eq!((config.heads, config.weighting), (1, Weighting::Sparsemax));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct SelfAttentionConfig {
    /// Width of the vectors.
    pub width: usize,
    /// Heads, each with projections and a score of its own.
    pub heads: usize,
    /// Dk: width of a head's queries and keys.
    pub key_width: usize,
    /// Dv: width of a head's values.
    pub value_width: usize,
    /// Whether the projections have biases.
    pub bias: bool,
    /// The score.
    pub score: ScoreConfig,
    /// How scores become weights.
    pub weighting: Weighting,
    /// The share of weights left out during training.
    pub dropout: f64,
    /// Truncated self-attention: how far a vector sees to each side; all there is where none is given.
    pub window: Option<usize>,
}

impl SelfAttentionConfig {
    /// One head over vectors of a width, whose keys and values are as wide; all else as usual.
    ///
    /// ```
    /// use regard::layers::SelfAttentionConfig;
    /// let config = SelfAttentionConfig { heads: 2, ..SelfAttentionConfig::new(6) };
    /// assert_eq!((config.width, config.key_width, config.value_width), (6, 6, 6));
    /// ```
    pub fn new(width: usize) -> Self {
        Self { width, key_width: width, value_width: width, ..Self::default() }
    }
}

impl Default for SelfAttentionConfig {
    fn default() -> Self {
        Self {
            width: 64,
            heads: 1,
            key_width: 64,
            value_width: 64,
            bias: false,
            score: ScoreConfig::ScaledDot,
            weighting: Weighting::Softmax,
            dropout: 0.0,
            window: None,
        }
    }
}

impl SelfAttentionConfig {
    fn cross(&self) -> CrossAttentionConfig {
        CrossAttentionConfig {
            width: self.width,
            memory_width: self.width,
            heads: self.heads,
            key_width: self.key_width,
            value_width: self.value_width,
            bias: self.bias,
            score: self.score.clone(),
            weighting: self.weighting,
            dropout: self.dropout,
        }
    }
}

/// Attention of a sequence to itself: q = x W_qᵀ, k = x W_kᵀ, v = x W_vᵀ, and
/// softmax(q kᵀ / √Dk) v, or any other score and weighting. Dk and Dv are free, and the heads'
/// outputs stand side by side. [`MultiHeadAttention`](crate::MultiHeadAttention) projects them once
/// more, knows positions and decodes step by step.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{SelfAttention, SelfAttentionConfig};
/// let config = SelfAttentionConfig { width: 6, key_width: 4, value_width: 3, ..Default::default() };
/// let attention = SelfAttention::new(&Parameters::new(DType::F32, 1), &config)?;
/// let x = Random::new(1).normal(&[5, 6], 0.0, 1.0, DType::F32)?;
/// let attended = attention.attend(&x, &Mask::causal(), Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(attended.out.shape(), [5, 3]);
/// // the first vector sees itself alone
/// assert_eq!(attended.weights.unwrap().to_vec::<f32>()?[..5], [1.0, 0.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SelfAttention {
    config: SelfAttentionConfig,
    attention: CrossAttention,
}

impl SelfAttention {
    /// New, with Glorot's weights: `W_q`, `W_k` and `W_v`, and what the score learns below `score`.
    /// Refuses a configuration that does not fit together, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{SelfAttention, SelfAttentionConfig};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let config = SelfAttentionConfig { width: 6, heads: 2, value_width: 3, ..Default::default() };
    /// SelfAttention::new(&parameters, &config)?;
    /// assert_eq!(parameters.tensors()["W_v.weight"].shape(), [6, 6]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &SelfAttentionConfig) -> Result<Self> {
        ensure!(config.window != Some(0), "a window of 0 sees no neighbor; it wants at least 1");
        let attention = CrossAttention::new(parameters, &config.cross())?;
        Ok(Self { config: config.clone(), attention })
    }

    /// How it was made.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{SelfAttention, SelfAttentionConfig};
    /// let config = SelfAttentionConfig::default();
    /// let attention = SelfAttention::new(&Parameters::new(DType::F32, 1), &config)?;
    /// assert_eq!(attention.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &SelfAttentionConfig {
        &self.config
    }

    /// x `[B, N, width]` → `[B, N, H · Dv]`, or `[N, width]` → `[N, H · Dv]`.
    /// Refuses an input of another width or type, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{SelfAttention, SelfAttentionConfig};
    /// let config = SelfAttentionConfig { width: 6, heads: 2, value_width: 3, ..Default::default() };
    /// let attention = SelfAttention::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let x = Tensor::zeros(&[2, 5, 6], DType::F32)?;
    /// assert_eq!(attention.forward(&x, &Mask::none(), Mode::Infer)?.shape(), [2, 5, 6]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor, mask: &Mask, mode: Mode) -> Result<Tensor> {
        Ok(self.attend(x, mask, mode, Need::OUTPUT)?.out)
    }

    /// As [`SelfAttention::forward`], with the weights `[B, H, N, N]` where they are needed.
    /// Refuses an input of another width or type, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{SelfAttention, SelfAttentionConfig};
    /// let score = ScoreConfig::Additive { hidden: 8 };
    /// let config = SelfAttentionConfig { width: 6, heads: 2, score, ..Default::default() };
    /// let attention = SelfAttention::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let x = Tensor::zeros(&[1, 5, 6], DType::F32)?;
    /// let attended = attention.attend(&x, &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
    /// assert_eq!(attended.weights.unwrap().shape(), [1, 2, 5, 5]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn attend(&self, x: &Tensor, mask: &Mask, mode: Mode, need: Need) -> Result<Attended> {
        let window = self.config.window.map_or_else(Mask::none, Mask::within);
        self.attention.attend(x, x, &window.and(mask)?, mode, need)
    }
}

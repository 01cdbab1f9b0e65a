//! Queries from one sequence, keys and values from another.

use super::Linear;
use crate::attention::{HeadCount, Request};
use crate::{Attended, Bias, Mask, Mechanism, MechanismConfig, Mode, Need, ScoreConfig, Weighting};
use regard_tensor::{Parameters, Result, Tensor, ensure};

/// What a [`CrossAttention`] is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::CrossAttentionConfig;
/// let config: CrossAttentionConfig =
///     serde_json::from_str(r#"{ "width": 6, "memory_width": 10, "key_width": 4 }"#).unwrap();
/// assert_eq!((config.heads, config.value_width), (1, 64));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct CrossAttentionConfig {
    /// Width of what queries are made of.
    pub width: usize,
    /// Width of what keys and values are made of.
    pub memory_width: usize,
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
}

impl CrossAttentionConfig {
    /// One head of vectors of a width over a memory of another; keys and values are as wide as the first. All
    /// else as usual.
    ///
    /// ```
    /// use regard::layers::CrossAttentionConfig;
    /// let config = CrossAttentionConfig { bias: true, ..CrossAttentionConfig::new(6, 10) };
    /// assert_eq!((config.memory_width, config.key_width, config.value_width), (10, 6, 6));
    /// ```
    pub fn new(width: usize, memory_width: usize) -> Self {
        Self { width, memory_width, key_width: width, value_width: width, ..Self::default() }
    }
}

impl Default for CrossAttentionConfig {
    fn default() -> Self {
        Self {
            width: 64,
            memory_width: 64,
            heads: 1,
            key_width: 64,
            value_width: 64,
            bias: false,
            score: ScoreConfig::ScaledDot,
            weighting: Weighting::Softmax,
            dropout: 0.0,
        }
    }
}

/// Attention from one sequence to another: q = x W_qᵀ, k = m W_kᵀ, v = m W_vᵀ, and
/// softmax(q kᵀ / √Dk) v, or any other score and weighting. Dk and Dv are free, and the heads'
/// outputs stand side by side, with no projection after them.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{CrossAttention, CrossAttentionConfig};
/// let config = CrossAttentionConfig {
///     width: 6, memory_width: 10, key_width: 4, value_width: 3, ..Default::default()
/// };
/// let attention = CrossAttention::new(&Parameters::new(DType::F32, 1), &config)?;
/// let random = Random::new(1);
/// let x = random.normal(&[2, 5, 6], 0.0, 1.0, DType::F32)?;
/// let memory = random.normal(&[2, 7, 10], 0.0, 1.0, DType::F32)?;
/// let attended = attention.attend(&x, &memory, &Mask::lengths(&[7, 4]), Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(attended.out.shape(), [2, 5, 3]);
/// assert_eq!(attended.weights.unwrap().shape(), [2, 1, 5, 7]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CrossAttention {
    config: CrossAttentionConfig,
    q: Linear,
    k: Linear,
    v: Linear,
    mechanism: Mechanism,
}

impl CrossAttention {
    /// New, with Glorot's weights: `W_q`, `W_k` and `W_v`, and what the score learns below `score`.
    /// Refuses a configuration that does not fit together, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{CrossAttention, CrossAttentionConfig};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let config = CrossAttentionConfig { width: 6, heads: 2, key_width: 4, ..Default::default() };
    /// CrossAttention::new(&parameters, &config)?;
    /// assert_eq!(parameters.tensors()["W_q.weight"].shape(), [8, 6]);
    /// let error = CrossAttention::new(&parameters, &CrossAttentionConfig { heads: 0, ..config });
    /// let said = "attention of 0 heads with a key width of 4 and a value width of 64";
    /// assert_eq!(error.unwrap_err().to_string(), said);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &CrossAttentionConfig) -> Result<Self> {
        let CrossAttentionConfig { width, memory_width, heads, key_width, value_width, .. } =
            *config;
        ensure!(
            heads > 0 && key_width > 0 && value_width > 0,
            "attention of {heads} heads with a key width of {key_width} and a value width of \
             {value_width}"
        );
        ensure!(
            width > 0 && memory_width > 0,
            "attention from vectors of width {width} to vectors of width {memory_width}"
        );
        let linear = |name: &str, input, output| {
            Linear::new(&parameters.at(name), input, heads.saturating_mul(output), config.bias)
        };
        let mechanism = MechanismConfig {
            weighting: config.weighting,
            dropout: config.dropout,
            ..MechanismConfig::new(config.score.clone())
        };
        let (at, count) = (parameters.at("score"), HeadCount { queries: heads, keys: heads });
        Ok(Self {
            config: config.clone(),
            q: linear("W_q", width, key_width)?,
            k: linear("W_k", memory_width, key_width)?,
            v: linear("W_v", memory_width, value_width)?,
            mechanism: Mechanism::per_head(&at, &mechanism, count, key_width, key_width)?,
        })
    }

    /// How it was made.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{CrossAttention, CrossAttentionConfig};
    /// let config = CrossAttentionConfig::default();
    /// let attention = CrossAttention::new(&Parameters::new(DType::F32, 1), &config)?;
    /// assert_eq!(attention.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &CrossAttentionConfig {
        &self.config
    }

    /// x `[B, N, width]` over a memory `[B, M, memory width]` → `[B, N, H · Dv]`; without a batch
    /// `[N, width]` and `[M, memory width]` do as well.
    /// Refuses an input or a memory of another width or type, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{CrossAttention, CrossAttentionConfig};
    /// # let config = CrossAttentionConfig { width: 6, memory_width: 10, ..Default::default() };
    /// # let attention = CrossAttention::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let (x, memory) = (Tensor::zeros(&[5, 6], DType::F32)?, Tensor::zeros(&[7, 10], DType::F32)?);
    /// assert_eq!(attention.forward(&x, &memory, &Mask::none(), Mode::Infer)?.shape(), [5, 64]);
    /// let error = attention.forward(&memory, &x, &Mask::none(), Mode::Infer).unwrap_err().to_string();
    /// assert_eq!(error, "attention from x [7, 10] to a memory [5, 6]; it wants [B, N, 6] and [B, M, 10], or neither with a batch");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor, memory: &Tensor, mask: &Mask, mode: Mode) -> Result<Tensor> {
        Ok(self.attend(x, memory, mask, mode, Need::OUTPUT)?.out)
    }

    /// As [`CrossAttention::forward`], with the weights `[B, H, N, M]` where they are needed.
    /// Refuses an input or a memory of another width or type, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{CrossAttention, CrossAttentionConfig};
    /// # let config = CrossAttentionConfig { width: 6, memory_width: 10, heads: 2, ..Default::default() };
    /// # let attention = CrossAttention::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let (x, memory) = (Tensor::zeros(&[5, 6], DType::F32)?, Tensor::zeros(&[7, 10], DType::F32)?);
    /// let attended = attention.attend(&x, &memory, &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
    /// assert_eq!(attended.weights.unwrap().shape(), [2, 5, 7]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn attend(
        &self,
        x: &Tensor,
        memory: &Tensor,
        mask: &Mask,
        mode: Mode,
        need: Need,
    ) -> Result<Attended> {
        let CrossAttentionConfig { width, memory_width, heads, .. } = self.config;
        let fits = |x: &Tensor, wide| x.rank() >= 2 && x.shape()[x.rank() - 1] == wide;
        ensure!(
            x.rank() <= 3
                && x.rank() == memory.rank()
                && fits(x, width)
                && fits(memory, memory_width),
            "attention from x {:?} to a memory {:?}; it wants [B, N, {width}] and [B, M, \
             {memory_width}], or neither with a batch",
            x.shape(),
            memory.shape()
        );
        let (q, k) = (split(&self.q.forward(x)?, heads)?, split(&self.k.forward(memory)?, heads)?);
        let (v, keys, bias) =
            (&split(&self.v.forward(memory)?, heads)?, &self.mechanism.keys(&k)?, &Bias::default());
        let attended =
            self.mechanism.answer(&Request { q: &q, keys, v, mask, mode, need, bias })?;
        let s = attended.out.shape();
        let joined = [s[0], s[2], s[1] * s[3]];
        let out = attended.out.transpose(1, 2)?.reshape(&joined)?;
        let attended = Attended { out, ..attended };
        if x.rank() == 3 { Ok(attended) } else { without_batch(attended) }
    }
}

/// `[B, N, H · D]` or `[N, H · D]` seen as `[B, H, N, D]`.
fn split(x: &Tensor, heads: usize) -> Result<Tensor> {
    let s = x.shape();
    let (n, width) = (s[s.len() - 2], s[s.len() - 1]);
    let batch = if s.len() == 3 { s[0] } else { 1 };
    x.reshape(&[batch, n, heads, width / heads])?.transpose(1, 2)
}

fn without_batch(attended: Attended) -> Result<Attended> {
    let out = attended.out.squeeze(0)?;
    attended.changed(out, |x| x.squeeze(0))
}

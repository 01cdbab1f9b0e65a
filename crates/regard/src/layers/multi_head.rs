//! Multi-head attention.

use super::position::Rotary;
use super::{KeyValue, KeyValueCache, Linear, Position, alibi_slopes};
use crate::attention::{HeadCount, Request};
use crate::dtype;
use crate::mode::check_dropout;
use crate::{
    Attended, Bias, Mask, Mechanism, MechanismConfig, Memory, Mode, Need, ScoreConfig, Weighting,
};
use regard_tensor::{Init, Parameter, Parameters, Result, Tensor, ensure, without_gradients};

/// What a [`MultiHeadAttention`] is made of.
///
/// ```
/// use regard::prelude::*;
/// let config: MultiHeadConfig =
///     serde_json::from_str(r#"{ "heads": 8, "key_heads": 2, "position": "rotary" }"#).unwrap();
/// assert_eq!((config.key_heads, config.position), (Some(2), Position::Rotary));
/// config.check()?;
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct MultiHeadConfig {
    /// Width of the queries and of the output.
    pub width: usize,
    /// Query heads; they divide the width, unless both of their widths are given.
    pub heads: usize,
    /// Key and value heads, which divide the query heads; as many as these where none are given.
    pub key_heads: Option<usize>,
    /// Width of what keys are made of; the width where none is given.
    pub key_width: Option<usize>,
    /// Width of what values are made of; the width where none is given.
    pub value_width: Option<usize>,
    /// Dk: width of a head's queries and keys; the width over the heads where none is given.
    pub head_key_width: Option<usize>,
    /// Dv: width of a head's values; the width over the heads where none is given.
    pub head_value_width: Option<usize>,
    /// Whether the projections have biases.
    pub bias: bool,
    /// The score of each head, with parameters of its own: below `score` there, `[H, …]`. Heads
    /// that share keys share what is applied to these.
    pub score: ScoreConfig,
    /// How scores become weights.
    pub weighting: Weighting,
    /// The share of weights left out during training.
    pub dropout: f64,
    /// Rotary, ALiBi and relative positions act here; the others on the input.
    pub position: Position,
    /// The longest distance that relative positions tell apart.
    pub max_distance: usize,
}

impl Default for MultiHeadConfig {
    fn default() -> Self {
        Self {
            width: 64,
            heads: 4,
            key_heads: None,
            key_width: None,
            value_width: None,
            head_key_width: None,
            head_value_width: None,
            bias: true,
            score: ScoreConfig::ScaledDot,
            weighting: Weighting::Softmax,
            dropout: 0.0,
            position: Position::None,
            max_distance: 32,
        }
    }
}

impl MultiHeadConfig {
    /// Heads of a width, all else as usual.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let config = MultiHeadConfig::new(32, 8);
    /// assert_eq!(config, MultiHeadConfig { width: 32, heads: 8, ..Default::default() });
    /// ```
    pub fn new(width: usize, heads: usize) -> Self {
        Self { width, heads, ..Self::default() }
    }

    /// Refuses what cannot be built, by name.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let error = MultiHeadConfig { key_heads: Some(3), ..MultiHeadConfig::new(32, 4) }.check();
    /// assert_eq!(error.unwrap_err().to_string(), "3 key heads do not divide 4 query heads");
    /// ```
    pub fn check(&self) -> Result<()> {
        let (width, heads) = (self.width, self.heads);
        ensure!(width > 0, "width is 0");
        let given = self.head_key_width.is_some() && self.head_value_width.is_some();
        ensure!(
            heads > 0 && (given || width.is_multiple_of(heads)),
            "{heads} heads do not divide a width of {width}"
        );
        let (key, value) = (self.key_dim(), self.value_dim());
        ensure!(
            key > 0 && value > 0,
            "heads with a key width of {key} and a value width of {value}"
        );
        let key_heads = self.key_heads.unwrap_or(heads);
        ensure!(
            key_heads > 0 && heads.is_multiple_of(key_heads),
            "{key_heads} key heads do not divide {heads} query heads"
        );
        check_dropout(self.dropout)?;
        ensure!(
            self.position != Position::Rotary || key.is_multiple_of(2),
            "rotary positions turn pairs; a head width of {key} is odd"
        );
        ensure!(
            self.position != Position::Relative || self.max_distance > 0,
            "relative positions with a max_distance of 0"
        );
        Ok(())
    }

    /// Dk.
    fn key_dim(&self) -> usize {
        self.head_key_width.unwrap_or(self.width / self.heads.max(1))
    }

    /// Dv.
    fn value_dim(&self) -> usize {
        self.head_value_width.unwrap_or(self.width / self.heads.max(1))
    }

    /// How wide the projections of q, k and v are, all heads together. Sizes that no number holds
    /// become one that no memory holds, and are refused for that.
    fn projected(&self) -> [usize; 3] {
        let key_heads = self.key_heads.unwrap_or(self.heads);
        [(self.heads, self.key_dim()), (key_heads, self.key_dim()), (key_heads, self.value_dim())]
            .map(|(heads, width)| heads.saturating_mul(width))
    }

    fn mechanism(&self) -> MechanismConfig {
        MechanismConfig {
            weighting: self.weighting,
            dropout: self.dropout,
            ..MechanismConfig::new(self.score.clone())
        }
    }
}

/// H projections of q, k and v, attention in each, the outputs side by side and projected once
/// more. Self-attention where q, k and v are the same, cross attention otherwise.
///
/// The parameters have the names of PyTorch's `nn.MultiheadAttention`, so its weights load; those of
/// other scores than the dot stand below `score`.
///
/// ```
/// use regard::prelude::*;
/// let parameters = Parameters::new(DType::F32, 1);
/// let attention = MultiHeadAttention::new(&parameters, &MultiHeadConfig::new(32, 4))?;
/// let x = Random::new(1).normal(&[2, 5, 32], 0.0, 1.0, DType::F32)?;
/// let y = attention.forward(&x, &x, &x, &Mask::causal(), Mode::Infer)?;
/// assert_eq!(y.shape(), [2, 5, 32]);
///
/// let score = ScoreConfig::Additive { hidden: 6 };
/// let config = MultiHeadConfig { score, weighting: Weighting::Sparsemax, ..MultiHeadConfig::new(32, 4) };
/// let parameters = Parameters::new(DType::F32, 1);
/// MultiHeadAttention::new(&parameters, &config)?;
/// // four heads of width 8, each with its own
/// assert_eq!(parameters.tensors()["score.W_q.weight"].shape(), [4, 6, 8]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MultiHeadAttention {
    config: MultiHeadConfig,
    /// The three projections in one where their inputs are equally wide, each on its own
    /// otherwise.
    projection: Projection,
    bias: Option<Parameter>,
    out: Linear,
    relative: Option<Parameter>,
    mechanism: Mechanism,
    rotary: Rotary,
}

#[derive(Clone, Debug)]
enum Projection {
    Joint(Parameter),
    Apart(Parameter, Parameter, Parameter),
}

impl MultiHeadAttention {
    /// New, with Glorot's weights.
    /// Refuses a configuration that does not fit together, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let parameters = Parameters::new(DType::F32, 1);
    /// MultiHeadAttention::new(&parameters, &MultiHeadConfig::new(32, 4))?;
    /// // the projections of q, k and v in one
    /// assert_eq!(parameters.tensors()["in_proj_weight"].shape(), [3 * 32, 32]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &MultiHeadConfig) -> Result<Self> {
        config.check()?;
        let MultiHeadConfig { width, heads, .. } = *config;
        let (dk, key_heads) = (config.key_dim(), config.key_heads.unwrap_or(heads));
        let [q_rows, k_rows, v_rows] = config.projected();
        let rows = q_rows.saturating_add(k_rows).saturating_add(v_rows);
        let distances = config.max_distance.saturating_mul(2).saturating_add(1);
        let (kw, vw) = (config.key_width.unwrap_or(width), config.value_width.unwrap_or(width));
        let new =
            |name: &str, rows, columns| parameters.parameter(name, &[rows, columns], Init::Glorot);
        let projection = if kw == width && vw == width {
            Projection::Joint(new("in_proj_weight", rows, width)?)
        } else {
            Projection::Apart(
                new("q_proj_weight", q_rows, width)?,
                new("k_proj_weight", k_rows, kw)?,
                new("v_proj_weight", v_rows, vw)?,
            )
        };
        let bias = config
            .bias
            .then(|| parameters.parameter("in_proj_bias", &[rows], Init::Zeros))
            .transpose()?;
        let relative = (config.position == Position::Relative)
            .then(|| parameters.parameter("relative", &[heads, distances], Init::Zeros))
            .transpose()?;
        let count = HeadCount { queries: heads, keys: key_heads };
        let score = &config.mechanism();
        let mechanism = Mechanism::per_head(&parameters.at("score"), score, count, dk, dk)?;
        let joined = heads.saturating_mul(config.value_dim());
        Ok(Self {
            config: config.clone(),
            projection,
            bias,
            out: Linear::new(&parameters.at("out_proj"), joined, width, config.bias)?,
            relative,
            mechanism,
            rotary: Rotary::default(),
        })
    }

    /// q `[B, Nq, width]`, k `[B, Nk, key width]`, v `[B, Nk, value width]` → `[B, Nq, width]`.
    /// Refuses inputs of other widths or types, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let parameters = Parameters::new(DType::F64, 1);
    /// # let attention = MultiHeadAttention::new(&parameters, &MultiHeadConfig::new(8, 2))?;
    /// # let random = Random::new(1);
    /// let x = random.normal(&[2, 3, 8], 0.0, 1.0, DType::F64)?;
    /// let memory = random.normal(&[2, 5, 8], 0.0, 1.0, DType::F64)?;
    /// let y = attention.forward(&x, &memory, &memory, &Mask::none(), Mode::Infer)?;
    /// assert_eq!(y.shape(), [2, 3, 8]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        mask: &Mask,
        mode: Mode,
    ) -> Result<Tensor> {
        Ok(self.attend(q, k, v, mask, mode, Need::OUTPUT)?.out)
    }

    /// As [`MultiHeadAttention::forward`], with the weights `[B, H, Nq, Nk]` where they are needed.
    /// Refuses inputs of other widths or types, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let parameters = Parameters::new(DType::F64, 1);
    /// # let attention = MultiHeadAttention::new(&parameters, &MultiHeadConfig::new(8, 2))?;
    /// # let random = Random::new(1);
    /// let x = random.normal(&[2, 3, 8], 0.0, 1.0, DType::F64)?;
    /// let weights = attention.attend(&x, &x, &x, &Mask::causal(), Mode::Infer, Need::WEIGHTS)?.weights.unwrap();
    /// assert_eq!(weights.shape(), [2, 2, 3, 3]);
    /// assert_eq!(weights.to_vec::<f64>()?[1..3], [0.0, 0.0]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn attend(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        mask: &Mask,
        mode: Mode,
        need: Need,
    ) -> Result<Attended> {
        let [q, k, v] = self.project(q, k, v)?;
        let offset = k.shape()[2] as isize - q.shape()[2] as isize;
        let at = offset.max(0) as usize;
        let (q, k) = match self.config.position {
            Position::Rotary => (self.rotary.rotate(&q, at)?, self.rotary.rotate(&k, 0)?),
            _ => (q, k),
        };
        let memory = Memory { keys: self.mechanism.keys(&k)?, values: v };
        self.join(&q, &memory, mask, mode, need)
    }

    /// Decoding: attends from new places to all there were before and to themselves, and keeps
    /// their keys and values, off the tape: no gradient flows through a cache. x is `[B, N, width]`.
    /// Refuses an input of another width, type or batch than the cache's.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::KeyValueCache;
    /// # let parameters = Parameters::new(DType::F64, 1);
    /// # let attention = MultiHeadAttention::new(&parameters, &MultiHeadConfig::new(8, 2))?;
    /// # let random = Random::new(1);
    /// let x = random.normal(&[1, 2, 8], 0.0, 1.0, DType::F64)?;
    /// let mut cache = KeyValueCache::default();
    /// attention.extend(&x.narrow(1, 0, 1)?, &mut cache, &Mask::causal(), Need::OUTPUT)?;
    /// let second = attention.extend(&x.narrow(1, 1, 1)?, &mut cache, &Mask::causal(), Need::OUTPUT)?.out;
    /// let whole = attention.forward(&x, &x, &x, &Mask::causal(), Mode::Infer)?;
    /// assert!(second.squared_error(&whole.narrow(1, 1, 1)?)?.item()? < 1e-20);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn extend(
        &self,
        x: &Tensor,
        cache: &mut KeyValueCache,
        mask: &Mask,
        need: Need,
    ) -> Result<Attended> {
        // The cache is off the tape, and a gradient of one of its parts alone would be a wrong one.
        without_gradients(|| {
            let [q, k, v] = self.project(x, x, x)?;
            let start = cache.len();
            let (q, k) = match self.config.position {
                Position::Rotary => {
                    (self.rotary.rotate(&q, start)?, self.rotary.rotate(&k, start)?)
                }
                _ => (q, k),
            };
            let KeyValue { k, v } = cache.extend(&k, &v)?;
            let memory = Memory { keys: self.mechanism.keys(&k)?, values: v };
            self.join(&q, &memory, mask, Mode::Infer, need)
        })
    }

    /// Decoding: the keys and values of a memory, projected once for all steps.
    /// Refuses a memory of another width or type.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let parameters = Parameters::new(DType::F64, 1);
    /// # let attention = MultiHeadAttention::new(&parameters, &MultiHeadConfig::new(8, 2))?;
    /// # let random = Random::new(1);
    /// let memory = attention.remember(&random.normal(&[3, 5, 8], 0.0, 1.0, DType::F64)?)?;
    /// // [B, heads, N, head width]
    /// assert_eq!(memory.values.shape(), [3, 2, 5, 4]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn remember(&self, memory: &Tensor) -> Result<Memory> {
        let [_, k, v] = self.project(&memory.narrow(1, 0, 0)?, memory, memory)?;
        Ok(Memory { keys: self.mechanism.keys(&k)?, values: v })
    }

    /// Decoding: attends from x `[B, N, width]` to a remembered memory, off the tape.
    /// Refuses an input of another width or type than the memory was made for, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let parameters = Parameters::new(DType::F64, 1);
    /// # let attention = MultiHeadAttention::new(&parameters, &MultiHeadConfig::new(8, 2))?;
    /// # let random = Random::new(1);
    /// let x = random.normal(&[1, 1, 8], 0.0, 1.0, DType::F64)?;
    /// let memory = random.normal(&[1, 5, 8], 0.0, 1.0, DType::F64)?;
    /// let recalled = attention.recall(&x, &attention.remember(&memory)?, &Mask::none(), Need::OUTPUT)?.out;
    /// let attended = attention.forward(&x, &memory, &memory, &Mask::none(), Mode::Infer)?;
    /// assert!(recalled.squared_error(&attended)?.item()? < 1e-20);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn recall(&self, x: &Tensor, memory: &Memory, mask: &Mask, need: Need) -> Result<Attended> {
        without_gradients(|| {
            let (weight, bias) = self.query_projection()?;
            dtype::check("multi-head attention", "x", x, "the weight", &weight)?;
            let q = self.heads(&x.linear(&weight, bias.as_ref())?, self.config.heads)?;
            self.join(&q, memory, mask, Mode::Infer, need)
        })
    }

    /// Attention in each head, and the heads joined.
    fn join(
        &self,
        q: &Tensor,
        memory: &Memory,
        mask: &Mask,
        mode: Mode,
        need: Need,
    ) -> Result<Attended> {
        let MultiHeadConfig { heads, position, .. } = self.config;
        let bias = &Bias {
            alibi: (position == Position::Alibi).then(|| alibi_slopes(heads)),
            relative: self.relative.as_ref().map(Parameter::tensor),
            ..Bias::default()
        };
        let Memory { keys, values: v } = memory;
        let mut attended =
            self.mechanism.answer(&Request { q, keys, v, mask, mode, need, bias })?;
        let s = attended.out.shape().to_vec();
        let joined = attended.out.transpose(1, 2)?.reshape(&[s[0], s[2], s[1] * s[3]])?;
        attended.out = self.out.forward(&joined)?;
        Ok(attended)
    }

    /// `[B, N, H · D]` seen as `[B, H, N, D]`.
    fn heads(&self, x: &Tensor, heads: usize) -> Result<Tensor> {
        let s = x.shape();
        x.reshape(&[s[0], s[1], heads, s[2] / heads])?.transpose(1, 2)
    }

    fn query_projection(&self) -> Result<(Tensor, Option<Tensor>)> {
        let [rows, ..] = self.config.projected();
        let weight = match &self.projection {
            Projection::Joint(all) => all.tensor().narrow(0, 0, rows)?,
            Projection::Apart(q, _, _) => q.tensor(),
        };
        let bias = self.bias.as_ref().map(|b| b.tensor().narrow(0, 0, rows)).transpose()?;
        Ok((weight, bias))
    }

    /// The projections of q, k and v, split into heads.
    fn project(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<[Tensor; 3]> {
        let MultiHeadConfig { width, heads, .. } = self.config;
        let key_heads = self.config.key_heads.unwrap_or(heads);
        let sizes = self.config.projected();
        let weight = match &self.projection {
            Projection::Joint(all) => &all.tensor(),
            Projection::Apart(q, _, _) => &q.tensor(),
        };
        for (name, x, wide) in [
            ("q", q, width),
            ("k", k, self.config.key_width.unwrap_or(width)),
            ("v", v, self.config.value_width.unwrap_or(width)),
        ] {
            ensure!(
                x.rank() == 3 && x.shape()[2] == wide,
                "multi-head attention: {name} has shape {:?}; it wants [B, N, {wide}]",
                x.shape()
            );
            dtype::check("multi-head attention", name, x, "the weight", weight)?;
        }
        let parts = match &self.projection {
            Projection::Joint(all) if q.is_same(k) && k.is_same(v) => {
                let bias = self.bias.as_ref().map(Parameter::tensor);
                q.linear(&all.tensor(), bias.as_ref())?.split(2, &sizes)?
            }
            projection => {
                let biases = match &self.bias {
                    Some(bias) => bias.tensor().split(0, &sizes)?.into_iter().map(Some).collect(),
                    None => vec![None; 3],
                };
                let weights = match projection {
                    Projection::Joint(all) => all.tensor().split(0, &sizes)?,
                    Projection::Apart(q, k, v) => vec![q.tensor(), k.tensor(), v.tensor()],
                };
                let each = [q, k, v].into_iter().zip(&weights).zip(&biases);
                each.map(|((x, w), b)| x.linear(w, b.as_ref())).collect::<Result<Vec<_>>>()?
            }
        };
        Ok([
            self.heads(&parts[0], heads)?,
            self.heads(&parts[1], key_heads)?,
            self.heads(&parts[2], key_heads)?,
        ])
    }
}

//! Mechanisms: a score with its parameters and a way from scores to weights.

mod config;
mod keys;
mod learned_queries;
mod own_config;
mod request;
mod score_config;
mod scorer;
mod steps;
mod weighting;

pub use config::MechanismConfig;
pub use keys::{Keys, Memory};
pub use learned_queries::LearnedQueries;
pub use own_config::OwnConfig;
pub(crate) use request::Request;
pub use score_config::{BilinearScale, ScoreConfig};
pub(crate) use scorer::HeadCount;
pub use weighting::Weighting;

use super::axes::{Axes, lift};
use crate::{Attended, Bias, Mask, Mode, Need};
use regard_kernels::Normalizer;
use regard_tensor::{DType, Parameters, Result, Tensor, ensure};
use scorer::Scorer;

/// Attention with any score and any weighting. All heads, where there are several, share its
/// parameters; in [`MultiHeadAttention`](crate::MultiHeadAttention) each has its own.
///
/// ```
/// use regard::prelude::*;
/// let parameters = Parameters::new(DType::F32, 1);
/// let config = MechanismConfig::new(ScoreConfig::Additive { hidden: 16 });
/// let additive = Mechanism::new(&parameters, &config, 6, 10)?;
/// let random = Random::new(1);
/// let q = random.normal(&[2, 3, 6], 0.0, 1.0, DType::F32)?;
/// let memory = random.normal(&[2, 7, 10], 0.0, 1.0, DType::F32)?;
/// let attended = additive.attend(&q, &memory, &memory, &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(attended.out.shape(), [2, 3, 10]);
/// assert_eq!(attended.weights.unwrap().shape(), [2, 3, 7]);
/// assert_eq!(parameters.numel(), 16 * (1 + 6 + 10));
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Mechanism {
    config: MechanismConfig,
    /// Of the parameters.
    dtype: DType,
    /// Of queries.
    dq: usize,
    /// Of keys.
    dk: usize,
    scorer: Scorer,
}

impl Mechanism {
    /// For queries of width `dq` and keys of width `dk`; refuses a score that cannot join them.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let config = MechanismConfig { temperature: 0.0, ..MechanismConfig::default() };
    /// let error = Mechanism::new(&Parameters::new(DType::F32, 1), &config, 4, 4).unwrap_err();
    /// assert_eq!(error.to_string(), "a temperature of 0");
    /// ```
    pub fn new(
        parameters: &Parameters,
        config: &MechanismConfig,
        dq: usize,
        dk: usize,
    ) -> Result<Self> {
        config.check()?;
        let scorer = Scorer::new(parameters, &config.score, None, dq, dk)?;
        Ok(Self { config: config.clone(), dtype: parameters.dtype(), dq, dk, scorer })
    }

    /// For heads of these widths, each with parameters of its own.
    pub(crate) fn per_head(
        parameters: &Parameters,
        config: &MechanismConfig,
        heads: HeadCount,
        dq: usize,
        dk: usize,
    ) -> Result<Self> {
        config.check()?;
        let scorer = Scorer::new(parameters, &config.score, Some(heads), dq, dk)?;
        Ok(Self { config: config.clone(), dtype: parameters.dtype(), dq, dk, scorer })
    }

    /// How it was made.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let config = MechanismConfig::default();
    /// let plain = Mechanism::new(&Parameters::new(DType::F32, 1), &config, 4, 4)?;
    /// assert_eq!(plain.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &MechanismConfig {
        &self.config
    }

    /// Keys `[B, H, Nk, Dk]`, `[B, Nk, Dk]` or `[Nk, Dk]` made ready, once for many queries.
    /// Refuses keys of another width or type than the mechanism's.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = MechanismConfig::new(ScoreConfig::Additive { hidden: 16 });
    /// # let additive = Mechanism::new(&Parameters::new(DType::F64, 1), &config, 6, 10)?;
    /// # let random = Random::new(1);
    /// let q = random.normal(&[2, 3, 6], 0.0, 1.0, DType::F64)?;
    /// let memory = random.normal(&[2, 7, 10], 0.0, 1.0, DType::F64)?;
    /// assert!(additive.keys(&memory).is_ok());
    /// let error = additive.keys(&memory.select(0, 0)?.select(0, 0)?).unwrap_err().to_string();
    /// assert_eq!(error, "keys of shape [10]; they are [B, H, Nk, Dk], [B, Nk, Dk] or [Nk, Dk]");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn keys(&self, k: &Tensor) -> Result<Keys> {
        ensure!(
            (2..=4).contains(&k.rank()),
            "keys of shape {:?}; they are [B, H, Nk, Dk], [B, Nk, Dk] or [Nk, Dk]",
            k.shape()
        );
        self.check("k", k, self.dk)?;
        let keys = lift(k)?;
        let center = self.scorer.center(&keys)?;
        let prepared = self.scorer.keys(&keys, center.as_ref())?;
        Ok(Keys { k: prepared.x, bias: prepared.own, center, shape: k.shape().to_vec() })
    }

    /// q `[B, Nq, Dq]`, k `[B, Nk, Dk]`, v `[B, Nk, Dv]` → `[B, Nq, Dv]`, with the weights
    /// `[B, Nq, Nk]` where they are asked for; with heads `[B, H, N, D]`, without a batch `[N, D]`,
    /// and a single query `[D]` over `[N, D]`, as in [`Attention`](crate::Attention).
    /// Refuses shapes that do not fit, two types, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = MechanismConfig::new(ScoreConfig::Additive { hidden: 16 });
    /// # let additive = Mechanism::new(&Parameters::new(DType::F64, 1), &config, 6, 10)?;
    /// # let random = Random::new(1);
    /// let q = random.normal(&[2, 3, 6], 0.0, 1.0, DType::F64)?;
    /// let memory = random.normal(&[2, 7, 10], 0.0, 1.0, DType::F64)?;
    /// let attended = additive.attend(&q, &memory, &memory, &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
    /// assert_eq!(attended.out.shape(), [2, 3, 10]);
    /// assert_eq!(attended.weights.unwrap().shape(), [2, 3, 7]);
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
        Axes::of(q.shape(), k.shape(), v.shape())?;
        self.attend_keys(q, &self.keys(k)?, v, mask, mode, need)
    }

    /// As [`Mechanism::attend`], with keys made ready before.
    /// Refuses shapes that do not fit, two types, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = MechanismConfig::new(ScoreConfig::Additive { hidden: 16 });
    /// # let additive = Mechanism::new(&Parameters::new(DType::F64, 1), &config, 6, 10)?;
    /// # let random = Random::new(1);
    /// let q = random.normal(&[2, 3, 6], 0.0, 1.0, DType::F64)?;
    /// let memory = random.normal(&[2, 7, 10], 0.0, 1.0, DType::F64)?;
    /// let keys = additive.keys(&memory)?;
    /// let mask = Mask::lengths(&[7, 2]);
    /// let seen = additive.attend_keys(&q, &keys, &memory, &mask, Mode::Infer, Need::WEIGHTS)?.weights.unwrap();
    /// assert_eq!(seen.select(0, 1)?.select(0, 0)?.to_vec::<f64>()?[2..], [0.0; 5]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn attend_keys(
        &self,
        q: &Tensor,
        keys: &Keys,
        v: &Tensor,
        mask: &Mask,
        mode: Mode,
        need: Need,
    ) -> Result<Attended> {
        let axes = Axes::of(q.shape(), keys.shape(), v.shape())?;
        self.check("q", q, self.dq)?;
        let (q, v) = (&lift(q)?, &lift(v)?);
        let bias = &Bias::default();
        axes.drop_from(self.answer(&Request { q, keys, v, mask, mode, need, bias })?)
    }

    /// The softmax probabilities `[B, Nq, Nk]` of the keys, whatever the weighting: what hard
    /// attention draws from. The ranks are those of [`Mechanism::attend`].
    /// Refuses shapes that do not fit, two types, and a mask of another shape.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let hard = MechanismConfig { weighting: Weighting::Sample, ..MechanismConfig::default() };
    /// let hard = Mechanism::new(&Parameters::new(DType::F64, 1), &hard, 4, 4)?;
    /// let x = Random::new(1).normal(&[2, 7, 4], 0.0, 1.0, DType::F64)?;
    /// let p = hard.probabilities(&x.narrow(1, 0, 1)?, &x, &Mask::none())?;
    /// assert!(p.sum(2)?.to_vec::<f64>()?.iter().all(|sum| (sum - 1.0).abs() < 1e-9));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn probabilities(&self, q: &Tensor, k: &Tensor, mask: &Mask) -> Result<Tensor> {
        let keys = self.keys(k)?;
        let (b, h, nk) = (keys.k.shape()[0], keys.k.shape()[1], keys.k.shape()[2]);
        let v = &Tensor::zeros(&[b, h, nk, 1], k.dtype())?.to_device(k.device())?;
        let axes = Axes::of(q.shape(), k.shape(), k.shape())?;
        self.check("q", q, self.dq)?;
        let (q, keys, mode, bias) = (&lift(q)?, &keys, Mode::Infer, &Bias::default());
        let request = Request { q, keys, v, mask, mode, need: Need::WEIGHTS, bias };
        let attended = axes.drop_from(self.soft(&request, Normalizer::Softmax)?)?;
        attended.weights.ok_or_else(|| crate::Error::new("attention gave no weights"))
    }

    /// Refuses vectors of another width, and of another type than the parameters.
    fn check(&self, name: &str, x: &Tensor, width: usize) -> Result<()> {
        let shape = x.shape();
        ensure!(
            shape.last() == Some(&width),
            "mechanism: {name} has shape {shape:?}; it was made for queries of width {} and keys of \
             width {}",
            self.dq,
            self.dk
        );
        let (given, own) = (x.dtype(), self.dtype);
        ensure!(
            given == own || !self.scorer.has_parameters(),
            "mechanism: {name} is {given}, the parameters are {own}; they want one type"
        );
        Ok(())
    }
}

//! Mechanisms: a score with its parameters and a way from scores to weights, over sequences
//! `[B, N, D]` with one head.

mod learned_queries;
mod score;
mod steps;
mod weighting;

pub use learned_queries::LearnedQueries;
pub use score::{BilinearScale, ScoreConfig};
pub use weighting::Weighting;

use crate::{Attended, Attention, Bias, Mask, Mode};
use regard_kernels::Normalizer;
use regard_tensor::{Parameters, Result, Tensor, ensure};
use score::Scorer;
use serde::{Deserialize, Serialize};

/// What a [`Mechanism`] is made of.
///
/// ```
/// use regard::prelude::*;
/// let config = r#"{ "score": "dot", "weighting": "sparsemax" }"#;
/// let config: MechanismConfig = serde_json::from_str(config).unwrap();
/// assert_eq!((config.score, config.weighting), (ScoreConfig::Dot, Weighting::Sparsemax));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MechanismConfig {
    /// The score.
    pub score: ScoreConfig,
    /// How scores become weights.
    pub weighting: Weighting,
    /// What scores are divided by under Gumbel noise.
    pub temperature: f64,
    /// The share of weights left out while learning.
    pub dropout: f64,
}

impl Default for MechanismConfig {
    fn default() -> Self {
        Self {
            score: ScoreConfig::ScaledDot,
            weighting: Weighting::Softmax,
            temperature: 1.0,
            dropout: 0.0,
        }
    }
}

impl MechanismConfig {
    /// A score under softmax.
    ///
    /// ```
    /// use regard::prelude::*;
    /// assert_eq!(MechanismConfig::new(ScoreConfig::Dot).weighting, Weighting::Softmax);
    /// ```
    pub fn new(score: ScoreConfig) -> Self {
        Self { score, ..Self::default() }
    }
}

/// Attention of one head over sequences `[B, N, D]`, with any score and any weighting.
///
/// ```
/// use regard::prelude::*;
/// let parameters = Parameters::new(DType::F32, 1);
/// let config = MechanismConfig::new(ScoreConfig::Additive { hidden: 16 });
/// let additive = Mechanism::new(&parameters, &config, 6, 10)?;
/// let random = Random::new(1);
/// let q = random.normal(&[2, 3, 6], 0.0, 1.0, DType::F32)?;
/// let memory = random.normal(&[2, 7, 10], 0.0, 1.0, DType::F32)?;
/// let attended = additive.attend(&q, &memory, &memory, &Mask::none(), Mode::Infer, true)?;
/// assert_eq!(attended.out.shape(), [2, 3, 10]);
/// assert_eq!(attended.weights.unwrap().shape(), [2, 3, 7]);
/// assert_eq!(parameters.numel(), 16 * (1 + 6 + 10));
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Mechanism {
    pub(super) config: MechanismConfig,
    scorer: Scorer,
}

/// Keys made ready to be scored, once for many queries.
///
/// ```
/// # use regard::prelude::*;
/// # let config = MechanismConfig::new(ScoreConfig::Additive { hidden: 16 });
/// # let additive = Mechanism::new(&Parameters::new(DType::F64, 1), &config, 6, 10)?;
/// # let random = Random::new(1);
/// let q = random.normal(&[2, 3, 6], 0.0, 1.0, DType::F64)?;
/// let memory = random.normal(&[2, 7, 10], 0.0, 1.0, DType::F64)?;
/// let keys = additive.keys(&memory)?;
/// for q in [&q, &q.scale(2.0)?] {
///     let ready = additive.attend_keys(q, &keys, &memory, &Mask::none(), Mode::Infer, false)?.out;
///     let anew = additive.attend(q, &memory, &memory, &Mask::none(), Mode::Infer, false)?.out;
///     assert!(ready.squared_error(&anew)?.item()? < 1e-20);
/// }
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Keys {
    pub(super) k: Tensor,
    pub(super) bias: Option<Tensor>,
    pub(super) center: Option<Tensor>,
}

impl Keys {
    /// Keeps and repeats batch items: what a beam does when its hypotheses change places.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = MechanismConfig::new(ScoreConfig::Additive { hidden: 16 });
    /// # let additive = Mechanism::new(&Parameters::new(DType::F64, 1), &config, 6, 10)?;
    /// # let random = Random::new(1);
    /// let q = random.normal(&[2, 3, 6], 0.0, 1.0, DType::F64)?;
    /// let memory = random.normal(&[2, 7, 10], 0.0, 1.0, DType::F64)?;
    /// let twice = additive.keys(&memory)?.reorder(&[1, 1])?;
    /// let (q, v) = (q.pick(&[0, 0])?, memory.pick(&[1, 1])?);
    /// let out = additive.attend_keys(&q, &twice, &v, &Mask::none(), Mode::Infer, false)?.out;
    /// assert_eq!(out.select(0, 0)?.to_vec::<f64>()?, out.select(0, 1)?.to_vec::<f64>()?);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn reorder(&self, items: &[usize]) -> Result<Self> {
        let pick = |x: &Option<Tensor>| x.as_ref().map(|x| x.pick(items)).transpose();
        Ok(Self { k: self.k.pick(items)?, bias: pick(&self.bias)?, center: pick(&self.center)? })
    }
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
        ensure!(
            config.temperature.is_finite() && config.temperature > 0.0,
            "a temperature of {}",
            config.temperature
        );
        ensure!(
            (0.0..1.0).contains(&config.dropout),
            "a dropout of {} is not within 0..1",
            config.dropout
        );
        let scorer = Scorer::new(parameters, &config.score, dq, dk)?;
        Ok(Self { config: config.clone(), scorer })
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

    /// Keys `[B, Nk, Dk]` made ready, once for many queries.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = MechanismConfig::new(ScoreConfig::Additive { hidden: 16 });
    /// # let additive = Mechanism::new(&Parameters::new(DType::F64, 1), &config, 6, 10)?;
    /// # let random = Random::new(1);
    /// let q = random.normal(&[2, 3, 6], 0.0, 1.0, DType::F64)?;
    /// let memory = random.normal(&[2, 7, 10], 0.0, 1.0, DType::F64)?;
    /// assert!(additive.keys(&memory).is_ok());
    /// let error = additive.keys(&memory.select(0, 0)?).unwrap_err();
    /// assert_eq!(error.to_string(), "keys of shape [7, 10]; they are [B, Nk, Dk]");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn keys(&self, k: &Tensor) -> Result<Keys> {
        ensure!(k.rank() == 3, "keys of shape {:?}; they are [B, Nk, Dk]", k.shape());
        let center = self.scorer.center(k)?;
        let prepared = self.scorer.keys(k, center.as_ref())?;
        Ok(Keys { k: prepared.x, bias: prepared.own, center })
    }

    /// q `[B, Nq, Dq]`, k `[B, Nk, Dk]`, v `[B, Nk, Dv]` → `[B, Nq, Dv]`, with the weights
    /// `[B, Nq, Nk]` where they are asked for.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = MechanismConfig::new(ScoreConfig::Additive { hidden: 16 });
    /// # let additive = Mechanism::new(&Parameters::new(DType::F64, 1), &config, 6, 10)?;
    /// # let random = Random::new(1);
    /// let q = random.normal(&[2, 3, 6], 0.0, 1.0, DType::F64)?;
    /// let memory = random.normal(&[2, 7, 10], 0.0, 1.0, DType::F64)?;
    /// let attended = additive.attend(&q, &memory, &memory, &Mask::none(), Mode::Infer, true)?;
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
        weights: bool,
    ) -> Result<Attended> {
        self.attend_keys(q, &self.keys(k)?, v, mask, mode, weights)
    }

    /// As [`Mechanism::attend`], with keys made ready before.
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
    /// let seen = additive.attend_keys(&q, &keys, &memory, &mask, Mode::Infer, true)?.weights.unwrap();
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
        weights: bool,
    ) -> Result<Attended> {
        match (self.config.weighting, mode) {
            (Weighting::Softmax, _) | (Weighting::Gumbel, Mode::Infer) => {
                self.soft(q, keys, v, mask, mode, Normalizer::Softmax, weights)
            }
            (Weighting::Sparsemax, _) => {
                self.soft(q, keys, v, mask, mode, Normalizer::Sparsemax, weights)
            }
            (Weighting::Entmax15, _) => {
                self.soft(q, keys, v, mask, mode, Normalizer::Entmax15, weights)
            }
            (Weighting::Sigmoid, _) => {
                self.soft(q, keys, v, mask, mode, Normalizer::Sigmoid, weights)
            }
            (Weighting::None, _) => self.soft(q, keys, v, mask, mode, Normalizer::None, weights),
            (Weighting::Argmax, _)
            | (
                Weighting::Sample | Weighting::StraightThrough | Weighting::GumbelHard,
                Mode::Infer,
            ) => self.soft(q, keys, v, mask, Mode::Infer, Normalizer::Argmax, weights),
            (Weighting::Sample, Mode::Train(random)) => {
                let sample = Normalizer::Sample { seed: random.key() };
                self.soft(q, keys, v, mask, Mode::Infer, sample, weights)
            }
            (Weighting::StraightThrough, Mode::Train(_)) => {
                let (attention, q) = self.attention(q, keys, mask, Normalizer::Softmax, 1.0)?;
                straight_through(&attention, &q, &keys.k, v)
            }
            (Weighting::Gumbel | Weighting::GumbelHard, Mode::Train(random)) => {
                let temperature = self.config.temperature;
                let (mut attention, q) =
                    self.attention(q, keys, mask, Normalizer::Softmax, temperature)?;
                let shape = [q.shape()[0], 1, q.shape()[1], keys.k.shape()[1]];
                let u = random.uniform(&shape, 1e-9, 1.0 - 1e-9, q.dtype())?;
                // −ln(−ln u), over the temperature, joins whatever bias there is.
                let noise = u.ln()?.scale(-1.0)?.ln()?.scale(-1.0 / temperature)?;
                attention.bias.full = Some(match attention.bias.full.take() {
                    Some(bias) => bias.add(&noise)?,
                    None => noise,
                });
                if self.config.weighting == Weighting::GumbelHard {
                    straight_through(&attention, &q, &keys.k, v)
                } else {
                    attention.attend(&q, &keys.k, v, weights)
                }
            }
        }
    }

    /// The softmax probabilities `[B, Nq, Nk]` of the keys, whatever the weighting: what hard
    /// attention draws from.
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
        let nothing = Tensor::zeros(&[k.shape()[0], k.shape()[1], 1], k.dtype())?;
        let attended =
            self.soft(q, &keys, &nothing, mask, Mode::Infer, Normalizer::Softmax, true)?;
        attended.weights.ok_or_else(|| crate::Error::new("attention gave no weights"))
    }

    #[allow(clippy::too_many_arguments)]
    fn soft(
        &self,
        q: &Tensor,
        keys: &Keys,
        v: &Tensor,
        mask: &Mask,
        mode: Mode,
        normalizer: Normalizer,
        weights: bool,
    ) -> Result<Attended> {
        let (mut attention, q) = self.attention(q, keys, mask, normalizer, 1.0)?;
        attention.dropout = mode.weights_dropout(self.config.dropout);
        attention.attend(&q, &keys.k, v, weights)
    }

    /// The operator for these keys, and the queries as it scores them.
    pub(super) fn attention(
        &self,
        q: &Tensor,
        keys: &Keys,
        mask: &Mask,
        normalizer: Normalizer,
        temperature: f64,
    ) -> Result<(Attention, Tensor)> {
        ensure!(q.rank() == 3, "queries of shape {:?}; they are [B, Nq, Dq]", q.shape());
        let prepared = self.scorer.queries(q, keys.center.as_ref())?;
        let by = |x: Tensor| if temperature == 1.0 { Ok(x) } else { x.scale(1.0 / temperature) };
        let mut bias = Bias { key: keys.bias.clone().map(by).transpose()?, ..Bias::default() };
        // A term of the query alone cancels where a shift of the scores changes nothing.
        let shifts_matter = matches!(normalizer, Normalizer::Sigmoid | Normalizer::None);
        if let (Some(own), true) = (prepared.own, shifts_matter) {
            let (b, n) = (own.shape()[0], own.shape()[1]);
            bias.full = Some(own.reshape(&[b, 1, n, 1])?);
        }
        let attention = Attention {
            mask: mask.clone(),
            bias,
            normalizer,
            ..Attention::new(self.scorer.score(temperature)?)
        };
        Ok((attention, prepared.x))
    }
}

/// The best key forward, softmax backward: weights whose value is one choice and whose gradient is
/// that of the probabilities.
fn straight_through(attention: &Attention, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Attended> {
    let soft = attention.attend(q, k, v, true)?;
    let hard = Attention { normalizer: Normalizer::Argmax, ..attention.clone() };
    let chosen = hard.attend(&q.detach(), &k.detach(), &v.detach(), true)?;
    let (Some(p), Some(choice)) = (soft.weights, chosen.weights) else {
        return Err(crate::Error::new("attention gave no weights"));
    };
    let weights = p.add(&choice.sub(&p.detach())?)?;
    Ok(Attended {
        out: weights.matmul(v)?,
        weights: Some(weights),
        index: chosen.index,
        log_prob: None,
    })
}

//! Learning from choices: the score-function estimator, with a baseline and an entropy bonus.

use regard_tensor::{DType, Error, Result, Tensor, ensure};
use std::collections::BTreeMap;

/// What [`Reinforce`] is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::attention::ReinforceConfig;
/// let config: ReinforceConfig = serde_json::from_str(r#"{ "entropy": 0.1 }"#).unwrap();
/// assert_eq!(config, ReinforceConfig { keep: 0.9, entropy: 0.1 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct ReinforceConfig {
    /// How much of the baseline is kept at each step; the rest comes of the new rewards.
    pub keep: f64,
    /// β: how much an entropy of 1 counts, so that choices stay open while little is known.
    pub entropy: f64,
}

impl Default for ReinforceConfig {
    fn default() -> Self {
        Self { keep: 0.9, entropy: 0.01 }
    }
}

/// Trains what was drawn: ∇ ≈ (R − b) ∇ log p, with b a moving average of the reward R
/// (Williams 1992), plus a bonus for entropy.
///
/// ```
/// use regard::prelude::*;
/// use regard::attention::{Reinforce, ReinforceConfig};
/// let parameters = Parameters::new(DType::F32, 1);
/// let hard = MechanismConfig {
///     score: ScoreConfig::Additive { hidden: 4 },
///     weighting: Weighting::Sample,
///     ..MechanismConfig::default()
/// };
/// let hard = Mechanism::new(&parameters, &hard, 3, 3)?;
/// let random = Random::new(1);
/// let x = random.normal(&[8, 5, 3], 0.0, 1.0, DType::F32)?;
/// let q = x.narrow(1, 0, 1)?;
/// let seen = hard.attend(&q, &x, &x, &Mask::none(), Mode::Train(&random), Need::OUTPUT)?;
/// // The reward is whatever the choice was good for; it needs no gradient.
/// let reward = seen.out.sum(2)?;
/// let p = hard.probabilities(&q, &x, &Mask::none())?;
/// let mut reinforce = Reinforce::new(ReinforceConfig::default())?;
/// let loss = reinforce.loss(&reward, &seen.log_prob.unwrap(), Some(&p))?;
/// assert!(loss.backward()?.get(&parameters.all()[0]).is_some());
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reinforce {
    config: ReinforceConfig,
    /// An f64, where the rewards lie: nobody waits for it within a step.
    baseline: Option<Tensor>,
}

impl Reinforce {
    /// Without a baseline yet; refuses a share that is none.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::attention::{Reinforce, ReinforceConfig};
    /// let config = ReinforceConfig { keep: 1.0, ..ReinforceConfig::default() };
    /// let error = Reinforce::new(config).unwrap_err();
    /// assert_eq!(error.to_string(), "a baseline that keeps 1 of itself is not within 0..1");
    /// ```
    pub fn new(config: ReinforceConfig) -> Result<Self> {
        ensure!(
            (0.0..1.0).contains(&config.keep),
            "a baseline that keeps {} of itself is not within 0..1",
            config.keep
        );
        ensure!(
            config.entropy.is_finite() && config.entropy >= 0.0,
            "an entropy bonus of {}",
            config.entropy
        );
        Ok(Self { config, baseline: None })
    }

    /// How it was made.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::attention::{Reinforce, ReinforceConfig};
    /// let config = ReinforceConfig::default();
    /// assert_eq!(Reinforce::new(config)?.config(), config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> ReinforceConfig {
        self.config
    }

    /// The moving average of the rewards, 0 before the first. Refuses only where it cannot be read from a GPU.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::attention::{Reinforce, ReinforceConfig};
    /// # let config = ReinforceConfig { entropy: 0.0, ..ReinforceConfig::default() };
    /// let mut reinforce = Reinforce::new(config)?;
    /// let log_prob = Tensor::from_vec(vec![-1.0, -1.0], &[2])?;
    /// assert_eq!(reinforce.baseline()?, 0.0);
    /// reinforce.loss(&Tensor::from_vec(vec![1.0, 3.0], &[2])?, &log_prob, None)?;
    /// assert_eq!(reinforce.baseline()?, 2.0);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn baseline(&self) -> Result<f64> {
        self.baseline.as_ref().map_or(Ok(0.0), Tensor::item)
    }

    /// The loss whose gradient is the estimator: −mean((R − b) · log p) − β · mean entropy.
    ///
    /// Rewards and log-probabilities have one shape, one number for each choice; the rewards are
    /// taken off the tape. Probabilities `[…, N]`, what was drawn from, bring the entropy bonus.
    /// The baseline is that of the steps before, so that it does not depend on this step's
    /// choices; it moves afterwards.
    /// Refuses rewards and log-probabilities of two shapes or types.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::attention::{Reinforce, ReinforceConfig};
    /// # let config = ReinforceConfig { entropy: 0.0, ..ReinforceConfig::default() };
    /// let mut reinforce = Reinforce::new(config)?;
    /// let log_prob = Tensor::from_vec(vec![-1.0, -1.0], &[2])?;
    /// let reward = Tensor::from_vec(vec![1.0, 3.0], &[2])?;
    /// assert_eq!(reinforce.loss(&reward, &log_prob, None)?.item()?, 2.0);
    /// // the same again is no better than expected
    /// assert_eq!(reinforce.loss(&reward, &log_prob, None)?.item()?, 0.0);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn loss(
        &mut self,
        reward: &Tensor,
        log_prob: &Tensor,
        probabilities: Option<&Tensor>,
    ) -> Result<Tensor> {
        ensure!(
            reward.shape() == log_prob.shape() && reward.numel() > 0,
            "reinforce: rewards of shape {:?} and log-probabilities of shape {:?}; one each",
            reward.shape(),
            log_prob.shape()
        );
        let reward = reward.detach();
        let mean = reward.mean_all()?.to_dtype(DType::F64)?;
        let advantage = match &self.baseline {
            Some(baseline) => {
                reward.sub(&baseline.to_device(reward.device())?.to_dtype(reward.dtype())?)?
            }
            None => reward,
        };
        let mut loss = advantage.mul(log_prob)?.mean_all()?.scale(-1.0)?;
        if let (Some(p), true) = (probabilities, self.config.entropy > 0.0) {
            let bonus = entropy(p)?.mean_all()?.scale(-self.config.entropy)?;
            loss = loss.add(&bonus)?;
        }
        let keep = self.config.keep;
        self.baseline = Some(match &self.baseline {
            Some(before) => {
                let before = before.to_device(mean.device())?;
                before.scale(keep)?.add(&mean.scale(1.0 - keep)?)?
            }
            None => mean,
        });
        Ok(loss)
    }

    /// All it keeps, by name, for a checkpoint: the baseline, as bits, and whether there is one.
    /// Refuses only where there is no memory for it.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::attention::{Reinforce, ReinforceConfig};
    /// let mut a = Reinforce::new(ReinforceConfig::default())?;
    /// let x = Tensor::from_vec(vec![0.1f64, 0.7], &[2])?;
    /// a.loss(&x, &x, None)?;
    /// let mut b = Reinforce::new(ReinforceConfig::default())?;
    /// b.set_state(&a.state()?)?;
    /// assert_eq!(a.baseline()?, b.baseline()?);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn state(&self) -> Result<BTreeMap<String, Tensor>> {
        let kept = match &self.baseline {
            Some(baseline) => vec![baseline.item()?],
            None => Vec::new(),
        };
        let shape = [kept.len()];
        Ok(BTreeMap::from([("baseline".to_string(), Tensor::from_vec(kept, &shape)?)]))
    }

    /// What [`Reinforce::state`] gave; refuses what is missing or of another shape.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::attention::{Reinforce, ReinforceConfig};
    /// let mut reinforce = Reinforce::new(ReinforceConfig::default())?;
    /// let error = reinforce.set_state(&Default::default()).unwrap_err();
    /// assert_eq!(error.to_string(), "the \"baseline\" of reinforce is missing");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn set_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        let kept = state.get("baseline");
        let kept = kept.ok_or_else(|| Error::new("the \"baseline\" of reinforce is missing"))?;
        ensure!(
            kept.dtype() == DType::F64 && kept.rank() == 1 && kept.numel() <= 1,
            "the \"baseline\" of reinforce is {} {:?}; it wants f64 [0] or [1]",
            kept.dtype(),
            kept.shape()
        );
        self.baseline = kept.to_vec::<f64>()?.first().map(|x| Tensor::scalar(*x)).transpose()?;
        Ok(())
    }
}

/// −Σ p ln p over the last axis, where 0 · ln 0 is 0: `[…, N]` → `[…]`. Differentiable.
/// Refuses whole numbers, and a tensor without axes.
///
/// ```
/// use regard::prelude::*;
/// use regard::attention::entropy;
/// let p = Tensor::from_vec(vec![0.5, 0.5, 1.0, 0.0], &[2, 2])?;
/// let h = entropy(&p)?.to_vec::<f64>()?;
/// assert!((h[0] - 2f64.ln()).abs() < 1e-12 && h[1] == 0.0);
/// # Ok::<(), regard::Error>(())
/// ```
pub fn entropy(p: &Tensor) -> Result<Tensor> {
    // Below this a probability adds nothing that either precision could hold.
    let least = Tensor::full(&[], 1e-30, p.dtype())?;
    p.mul(&p.maximum(&least)?.ln()?)?.sum(-1)?.scale(-1.0)
}

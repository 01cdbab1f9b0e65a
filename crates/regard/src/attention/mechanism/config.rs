//! What a mechanism is made of.

use super::{ScoreConfig, Weighting};
use crate::mode::check_dropout;
use regard_tensor::{Result, ensure};

/// What a [`Mechanism`](super::Mechanism) is made of.
///
/// ```
/// use regard::prelude::*;
/// let config = r#"{ "score": "dot", "weighting": "sparsemax" }"#;
/// let config: MechanismConfig = serde_json::from_str(config).unwrap();
/// assert_eq!((config.score, config.weighting), (ScoreConfig::Dot, Weighting::Sparsemax));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct MechanismConfig {
    /// The score.
    pub score: ScoreConfig,
    /// How scores become weights.
    pub weighting: Weighting,
    /// What scores are divided by under Gumbel noise.
    pub temperature: f64,
    /// The share of weights left out during training.
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

    /// Refuses what cannot be built, by name.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(
            self.temperature.is_finite() && self.temperature > 0.0,
            "a temperature of {}",
            self.temperature
        );
        check_dropout(self.dropout)?;
        Ok(())
    }
}

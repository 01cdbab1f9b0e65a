//! A mechanism of attention, as plain options in `[model]`.

use regard::attention::{BilinearScale, MechanismConfig, ScoreConfig, Weighting};
use serde::Deserialize;

/// Which score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ScoreKind {
    /// q·k
    Dot,
    /// q·k / √D
    ScaledDot,
    /// wᵀ tanh(W_q q + W_k k)
    Additive,
    /// wᵀ [q; k], or wᵀ tanh(W [q; k]) where a hidden width is given.
    Concat,
    /// qᵀ W k
    Bilinear,
    /// (U q)·(V k)
    LowRank,
    /// −½ ‖w ∘ (q − k)‖²
    Gaussian,
    /// The cosine of the angle, over a learned temperature.
    Cosine,
    /// Written as text.
    Expression,
}

/// A mechanism of attention, as plain options in `[model]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct MechanismOptions {
    /// Which score.
    pub(crate) score: ScoreKind,
    /// The text of a score that is written.
    pub(crate) expression: String,
    /// Which of its parameters are one number.
    pub(crate) expression_numbers: Vec<String>,
    /// Width inside an additive or concat score, and the rank of a low-rank one.
    pub(crate) score_hidden: usize,
    /// How scores become weights.
    pub(crate) weighting: Weighting,
    /// What scores are divided by under Gumbel noise.
    pub(crate) temperature: f64,
    /// What a bilinear score is multiplied by.
    pub(crate) bilinear_scale: BilinearScale,
    /// The share of weights left out during training.
    pub(crate) attention_dropout: f64,
}

/// A score and what it is made of.
pub(crate) struct ScoreOptions<'a> {
    /// Which.
    pub(crate) score: ScoreKind,
    /// Width inside an additive or concat score, and the rank of a low-rank one.
    pub(crate) hidden: usize,
    /// The text of a score that is written.
    pub(crate) expression: &'a str,
    /// Which of its parameters are one number.
    pub(crate) numbers: &'a [String],
    /// What a bilinear score is multiplied by.
    pub(crate) scale: BilinearScale,
}

impl ScoreOptions<'_> {
    /// As the library's configuration.
    pub(crate) fn config(&self) -> ScoreConfig {
        let hidden = self.hidden;
        match self.score {
            ScoreKind::Dot => ScoreConfig::Dot,
            ScoreKind::ScaledDot => ScoreConfig::ScaledDot,
            ScoreKind::Additive => ScoreConfig::Additive { hidden },
            ScoreKind::Concat => ScoreConfig::Concat { hidden: Some(hidden).filter(|h| *h > 0) },
            ScoreKind::Bilinear => ScoreConfig::Bilinear { scale: self.scale },
            ScoreKind::LowRank => ScoreConfig::LowRank { rank: hidden },
            ScoreKind::Gaussian => {
                ScoreConfig::Gaussian { inverse_width: 1.0, learned: true, per_feature: false }
            }
            ScoreKind::Cosine => ScoreConfig::Cosine { temperature: 10.0, learned: true },
            ScoreKind::Expression => ScoreConfig::Expression {
                score: self.expression.into(),
                numbers: self.numbers.to_vec(),
            },
        }
    }
}

/// Whether one value is chosen in use, and no other read.
pub(crate) fn is_hard(weighting: Weighting) -> bool {
    use Weighting::{Argmax, GumbelHard, Sample, StraightThrough};
    matches!(weighting, Argmax | Sample | StraightThrough | GumbelHard)
}

impl MechanismOptions {
    /// Whether queries and keys must be equally wide.
    pub(crate) fn wants_one_width(&self) -> bool {
        use ScoreKind::{Cosine, Dot, Expression, Gaussian, ScaledDot};
        matches!(self.score, Dot | ScaledDot | Gaussian | Cosine | Expression)
    }

    /// As the library's configuration.
    pub(crate) fn config(&self) -> MechanismConfig {
        let score = ScoreOptions {
            score: self.score,
            hidden: self.score_hidden,
            expression: &self.expression,
            numbers: &self.expression_numbers,
            scale: self.bilinear_scale,
        };
        MechanismConfig {
            weighting: self.weighting,
            temperature: self.temperature,
            dropout: self.attention_dropout,
            ..MechanismConfig::new(score.config())
        }
    }
}

//! Measures by name, and the one that decides.

use regard::tensor::Better;
use serde::{Deserialize, Deserializer, Serialize};

/// Measures by name; the first decides which epoch is the best.
///
/// ```
/// use regard::tensor::Better;
/// use regard_tasks::metric::Scores;
/// let scores = Scores::new("accuracy", 0.9, Better::Higher).with("loss", 0.3);
/// assert_eq!(scores.first(), ("accuracy", 0.9));
/// assert!(scores.beats(Some(0.8)) && !scores.beats(Some(0.9)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Names and values, in the order in which they are shown.
    #[serde(deserialize_with = "values")]
    pub values: Vec<(String, f64)>,
    /// Which way the first gets better.
    pub better: Better,
}

/// A number; JSON has no NaN and no ∞, which are written as null.
pub(crate) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

fn values<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, f64)>, D::Error> {
    let values = Vec::<(String, Option<f64>)>::deserialize(from)?;
    Ok(values.into_iter().map(|(name, value)| (name, value.unwrap_or(f64::NAN))).collect())
}

impl Scores {
    /// The measure that decides.
    pub fn new(name: &str, value: f64, better: Better) -> Self {
        Self { values: vec![(name.into(), value)], better }
    }

    /// And another.
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.values.push((name.into(), value));
        self
    }

    /// The measure that decides; `("", NaN)` where there is none.
    pub fn first(&self) -> (&str, f64) {
        self.values.first().map_or(("", f64::NAN), |(name, value)| (name, *value))
    }

    /// A measure by its name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// The loss, or what follows from it, where one of the measures is it: lower is better.
    pub fn loss(&self) -> Option<f64> {
        let known = ["loss", "perplexity", "MSE"].iter().find_map(|name| self.get(name));
        known.filter(|loss| loss.is_finite())
    }

    /// As [`Scores::beats`]; where the first is as good as the best, the lower loss decides.
    ///
    /// ```
    /// use regard::tensor::Better;
    /// use regard_tasks::metric::Scores;
    /// let scores = Scores::new("BLEU", 0.0, Better::Higher).with("perplexity", 7.0);
    /// assert!(scores.beats_or_ties(Some(0.0), Some(9.0)));
    /// assert!(!scores.beats_or_ties(Some(0.0), Some(7.0)));
    /// ```
    pub fn beats_or_ties(&self, best: Option<f64>, loss: Option<f64>) -> bool {
        let lower = matches!((self.loss(), loss), (Some(now), Some(then)) if now < then);
        self.beats(best) || (best == Some(self.first().1) && lower)
    }

    /// Whether the first is better than the best so far.
    pub fn beats(&self, best: Option<f64>) -> bool {
        let (_, now) = self.first();
        match (best, self.better) {
            (None, _) => !now.is_nan(),
            (Some(best), Better::Higher) => now > best,
            (Some(best), Better::Lower) => now < best,
        }
    }
}

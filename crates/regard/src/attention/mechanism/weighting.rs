//! How scores become weights, by the names that configurations use.

/// How scores become weights.
///
/// ```
/// use regard::prelude::*;
/// assert_eq!(serde_json::from_str::<Weighting>("\"straight-through\"").unwrap(), Weighting::StraightThrough);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Weighting {
    /// eˢ / Σ eˢ.
    #[default]
    Softmax,
    /// The nearest point of the simplex: exact zeros.
    Sparsemax,
    /// Between softmax and sparsemax.
    Entmax15,
    /// Each weight on its own, between 0 and 1.
    Sigmoid,
    /// The scores themselves.
    None,
    /// The best key alone; the scores learn nothing from the output.
    Argmax,
    /// A key drawn by its softmax probability during training (by REINFORCE, through the
    /// log-probability), the best one in use.
    Sample,
    /// The best key forward, softmax backward.
    StraightThrough,
    /// Softmax of scores with Gumbel noise at a temperature during training, softmax in use.
    Gumbel,
    /// The best key of the noisy scores forward, their softmax backward; the best one in use.
    GumbelHard,
}

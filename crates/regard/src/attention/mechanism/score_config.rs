//! Scores by the names that configurations use.

use super::OwnConfig;
use crate::OwnScore;
use std::sync::Arc;

/// A score s(k, q), with keys of width Dk and queries of width Dq.
///
/// ```
/// use regard::prelude::*;
/// let score: ScoreConfig = serde_json::from_str(r#"{ "low-rank": { "rank": 4 } }"#).unwrap();
/// assert_eq!(score, ScoreConfig::LowRank { rank: 4 });
/// let dot = MechanismConfig::new(ScoreConfig::Dot);
/// let error = Mechanism::new(&Parameters::new(DType::F32, 1), &dot, 6, 10).unwrap_err().to_string();
/// assert_eq!(error, "the dot score needs equal widths; queries have 6, keys 10");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)
)]
#[non_exhaustive]
pub enum ScoreConfig {
    /// k·q
    Dot,
    /// k·q / √D
    #[default]
    ScaledDot,
    /// w · tanh(W_k k + W_q q) with W of `hidden` rows.
    Additive {
        /// Rows of W_k and W_q.
        hidden: usize,
    },
    /// w · [q; k], or w · tanh(W [q; k]) with a W of `hidden` rows.
    Concat {
        /// Rows of W; none for the plain form.
        hidden: Option<usize>,
    },
    /// kᵀ W q, scaled.
    Bilinear {
        /// The factor.
        scale: BilinearScale,
    },
    /// (U k) · (V q) with U and V of `rank` rows.
    LowRank {
        /// Rows of U and V.
        rank: usize,
    },
    /// −½ ‖ w ∘ (q − k) ‖²: Nadaraya and Watson's kernel.
    Gaussian {
        /// The first w, one over the kernel's width.
        inverse_width: f64,
        /// Whether w is learned.
        learned: bool,
        /// Whether each feature has its own w.
        per_feature: bool,
    },
    /// τ · k·q / (‖k‖ ‖q‖)
    Cosine {
        /// The first τ.
        temperature: f64,
        /// Whether τ is learned.
        learned: bool,
    },
    /// One written as text over q, k and named parameters, all learned; see
    /// [`Score::expression`](crate::Score::expression) for what may stand in it.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let score: ScoreConfig = serde_json::from_str(
    ///     r#"{ "expression": { "score": "tau * sum(w * q * k)", "numbers": ["tau"] } }"#,
    /// ).unwrap();
    /// let parameters = Parameters::new(DType::F32, 1);
    /// Mechanism::new(&parameters, &MechanismConfig::new(score), 6, 6)?;
    /// assert_eq!(parameters.tensors()["tau"].shape(), [1]);
    /// assert_eq!(parameters.tensors()["w"].shape(), [6]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    Expression {
        /// The text.
        score: String,
        /// The parameters that are one number, 1 at first; the others are rows as wide as a head,
        /// drawn within ±√(3/D).
        #[cfg_attr(feature = "serde", serde(default))]
        numbers: Vec<String>,
    },
    /// Your own; see [`ScoreConfig::own`]. It is code, so it cannot be written to a file.
    #[cfg_attr(feature = "serde", serde(skip_deserializing, serialize_with = "refuse_own"))]
    Own(OwnConfig),
}

#[cfg(feature = "serde")]
fn refuse_own<S: serde::Serializer>(_: &OwnConfig, _: S) -> Result<S::Ok, S::Error> {
    Err(serde::ser::Error::custom("a custom score is code and has no text form"))
}

impl ScoreConfig {
    /// A score of your own, and the first values of its learned numbers.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::attention::{OwnGrads, OwnScore, Real};
    /// /// a · Σ |q − k|
    /// struct Distance;
    /// impl<T: Real> OwnScore<T> for Distance {
    ///     fn parameters(&self) -> usize {
    ///         1
    ///     }
    ///     fn score(&self, a: &[T], q: &[T], k: &[T]) -> T {
    ///         a[0] * q.iter().zip(k).map(|(&q, &k)| (q - k).abs()).sum::<T>()
    ///     }
    ///     fn backward(&self, a: &[T], q: &[T], k: &[T], grad: T, to: OwnGrads<T>) {
    ///         for d in 0..q.len() {
    ///             let sign = if q[d] > k[d] { T::ONE } else { -T::ONE };
    ///             to.q[d] += grad * a[0] * sign;
    ///             to.k[d] -= grad * a[0] * sign;
    ///             to.parameters[0] += grad * (q[d] - k[d]).abs();
    ///         }
    ///     }
    /// }
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let config = MechanismConfig::new(ScoreConfig::own(Distance, &[-1.0]));
    /// let nearest = Mechanism::new(&parameters, &config, 2, 2)?;
    /// assert_eq!(parameters.tensors()["own"].to_vec::<f32>()?, [-1.0]);
    /// let error = serde_json::to_string(&config).unwrap_err().to_string();
    /// assert_eq!(error, "a custom score is code and has no text form");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn own(score: impl OwnScore<f32> + OwnScore<f64> + 'static, parameters: &[f64]) -> Self {
        Self::Own(OwnConfig { score: Arc::new(score), parameters: parameters.to_vec() })
    }
}

/// What a bilinear score is multiplied by.
///
/// ```
/// use regard::prelude::*;
/// use regard::attention::BilinearScale;
/// let score = ScoreConfig::Bilinear { scale: BilinearScale::Root };
/// let config = MechanismConfig { weighting: Weighting::None, ..MechanismConfig::new(score) };
/// let parameters = Parameters::new(DType::F32, 1);
/// let plain = Mechanism::new(&parameters, &config, 4, 4)?;
/// let ones = |shape: &[usize]| Tensor::full(shape, 1.0, DType::F32);
/// parameters.all()[0].set(&ones(&[4, 4])?)?;
/// let one = ones(&[1, 1, 4])?;
/// // 16 over the root of 4
/// let weights = plain.attend(&one, &one, &one, &Mask::none(), Mode::Infer, Need::WEIGHTS)?.weights.unwrap();
/// assert_eq!(weights.item()?, 8.0);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum BilinearScale {
    /// 1
    #[default]
    None,
    /// 1 / √D_k
    Root,
    /// 1 / ⁴√(D_q · D_k), for unequal widths.
    FourthRoot,
}

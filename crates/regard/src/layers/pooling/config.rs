//! How a set of vectors becomes one, by the names that configurations use.

use crate::MechanismConfig;

/// How a set of vectors becomes one.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::PoolingConfig;
/// let mean: PoolingConfig = serde_json::from_str("\"mean\"").unwrap();
/// assert_eq!(mean, PoolingConfig::Mean);
/// let attention = r#"{"attention": {"score": {"additive": {"hidden": 16}}}}"#;
/// let attention: PoolingConfig = serde_json::from_str(attention).unwrap();
/// assert!(matches!(attention, PoolingConfig::Attention(MechanismConfig { .. })));
/// let error = serde_json::from_str::<PoolingConfig>("\"median\"").unwrap_err().to_string();
/// assert!(error.contains("unknown variant `median`"), "{error}");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum PoolingConfig {
    /// The mean.
    #[default]
    Mean,
    /// The largest number of each feature: winner takes all.
    Max,
    /// The last vector that is no padding.
    Last,
    /// The mean of the vectors, each gated by itself: σ(W x) ∘ x.
    Gate,
    /// Attention with a learned query.
    Attention(MechanismConfig),
    /// Attention with several learned queries, whose outputs stand side by side.
    Queries {
        /// How many.
        queries: usize,
        /// How each attends.
        mechanism: MechanismConfig,
    },
}

//! The operator on tensors: `normalize(score(q, k) + bias, where mask) · v`, with gradients by the
//! fused backward.
//!
//! | what | which |
//! |---|---|
//! | the operator, what it is asked for and what it gives | [`Attention`], [`Need`], [`Attended`] |
//! | its choices | [`Score`], [`Mask`], [`Bias`], [`Normalizer`], [`Dropout`] |
//! | a score of your own | [`OwnScore`], [`OwnGrads`], [`AnyOwnScore`] |
//! | scores with parameters, from a configuration | [`Mechanism`], [`MechanismConfig`], [`ScoreConfig`], [`Weighting`] |
//! | keys and values made ready once for many queries | [`Keys`], [`Memory`] |
//! | learned queries | [`LearnedQueries`] |
//! | changes to a trained model's attention, while it is used | [`Intervention`], [`HeadPatch`], [`Site`] |
//! | what a model's attentions give while it computes | [`recorded`], [`Recorded`] |
//! | learning from choices | [`Reinforce`], [`entropy`] |

mod attended;
mod axes;
mod bias;
mod call;
mod inputs;
pub(crate) mod intervention;
mod mask;
mod mechanism;
mod need;
mod operator;
mod own;
mod patch;
mod recorded;
mod reinforce;
mod score;
mod strided_output;
mod traced;

pub use attended::Attended;
pub use bias::Bias;
pub use intervention::{CellChange, HeadRef, Intervention, Site};
pub use mask::{Mask, Segments};
pub use mechanism::{
    BilinearScale, Keys, LearnedQueries, Mechanism, MechanismConfig, Memory, OwnConfig,
    ScoreConfig, Weighting,
};
pub(crate) use mechanism::{HeadCount, Request};
pub use need::Need;
pub use operator::Attention;
pub use own::{AnyOwnScore, OwnGrads, OwnScore};
pub use patch::{HeadPatch, Patched};
pub use recorded::{Recorded, recorded};
pub use reinforce::{Reinforce, ReinforceConfig, entropy};
pub use score::Score;
pub use traced::{Traced, traced};

pub use regard_kernels::{
    Activation, Dropout, Edges, Expression, ExpressionError, Normalizer, Real, Window,
};

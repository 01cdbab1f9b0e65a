//! The operator on tensors: `normalize(score(q, k) + bias, where mask) · v`, with gradients by the
//! fused backward.

mod bias;
mod mask;
mod mechanism;
mod operator;
mod own;
mod reinforce;
mod score;

pub use bias::Bias;
pub use mask::{Mask, Segments};
pub use mechanism::{
    BilinearScale, Keys, LearnedQueries, Mechanism, MechanismConfig, ScoreConfig, Weighting,
};
pub use operator::{Attended, Attention};
pub use own::OwnScore;
pub use reinforce::{Reinforce, ReinforceConfig, entropy};
pub use score::Score;

pub use regard_kernels::{Activation, Dropout, Edges, Normalizer, Real, Window};

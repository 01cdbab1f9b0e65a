//! The operator on tensors: `normalize(score(q, k) + bias, where mask) · v`, with gradients by the
//! fused backward.

mod bias;
mod mask;
mod operator;
mod own;
mod score;

pub use bias::Bias;
pub use mask::{Mask, Segments};
pub use operator::{Attended, Attention};
pub use own::OwnScore;
pub use score::Score;

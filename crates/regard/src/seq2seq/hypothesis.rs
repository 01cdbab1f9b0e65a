//! One output of a search.

use regard_tensor::Tensor;

/// One output for one source.
#[derive(Clone, Debug)]
pub struct Hypothesis {
    /// Its tokens, without start and end.
    pub tokens: Vec<usize>,
    /// What it is ranked by: its log-probability over the length penalty.
    pub score: f64,
    /// The sum of the token scores.
    pub log_prob: f64,
    /// The log-probability of each token, and of the end where it came.
    pub token_scores: Vec<f64>,
    /// Whether it came to its end; otherwise it was cut at the longest length.
    pub ended: bool,
    /// The weights over the source `[n, N]` with which each token, and the end, was written: the
    /// mean over the last layer's heads. None where the context is fixed.
    pub alignment: Option<Tensor>,
    /// All weights over the source `[layers, heads, n, N]`; a recurrent decoder has one of each.
    pub heads: Option<Tensor>,
}

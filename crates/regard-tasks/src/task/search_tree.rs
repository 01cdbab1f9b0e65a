//! What a search for an output considered.

use serde::Serialize;

/// What a beam search considered, step by step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SearchTree {
    /// How many hypotheses are kept at a step.
    pub width: usize,
    /// Every token that was considered; parents stand before their children.
    pub nodes: Vec<SearchNode>,
    /// What came of it, the best first.
    pub hypotheses: Vec<Searched>,
}

/// A token behind those of its parents.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchNode {
    /// Its place among the nodes.
    pub id: usize,
    /// The node before it.
    pub parent: Option<usize>,
    /// How many tokens stand before it.
    pub step: usize,
    /// The token.
    pub token: String,
    /// Its log-probability behind those before it.
    pub log_prob: f64,
    /// The log-probability of all tokens so far.
    pub total: f64,
    /// Whether it stayed in the beam.
    pub kept: bool,
    /// Whether the output ends here.
    pub ended: bool,
}

/// An output that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Searched {
    /// Its text.
    pub output: String,
    /// What decides: the log-probability over the length penalty.
    pub score: f64,
    /// The log-probability of its tokens.
    pub log_prob: f64,
    /// Its nodes, the first token first.
    pub nodes: Vec<usize>,
}

//! Mechanisms: a score with its parameters and a way from scores to weights, over sequences
//! `[B, N, D]` with one head.

mod learned;
mod score;
mod steps;
mod weighting;
mod whole;

pub use learned::LearnedQueries;
pub use score::{BilinearScale, ScoreConfig};
pub use weighting::Weighting;
pub use whole::{Keys, Mechanism, MechanismConfig};

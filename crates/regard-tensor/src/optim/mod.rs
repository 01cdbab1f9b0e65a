//! Optimizers and the rates they learn at.

mod optimizer;
mod plateau;
mod schedule;

pub use optimizer::{Optimizer, Rule};
pub use plateau::{Better, Plateau};
pub use schedule::{Decay, Schedule};

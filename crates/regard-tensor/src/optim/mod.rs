//! Optimizers and the rates they learn at.

mod optimizer;
mod plateau;
mod schedule;

pub use optimizer::{Optimizer, UpdateRule};
pub use plateau::{Better, Plateau};
pub use schedule::{Decay, Schedule};

//! Optimisers and the rates they learn at.

mod optimiser;
mod plateau;
mod schedule;

pub use optimiser::{Optimiser, Rule};
pub use plateau::{Better, Plateau};
pub use schedule::{Decay, Schedule};

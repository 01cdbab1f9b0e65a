//! One label per vector of a sequence: tagging.

mod config;
mod model;

pub use config::LabelerConfig;
pub use model::{Labeled, SequenceLabeler};

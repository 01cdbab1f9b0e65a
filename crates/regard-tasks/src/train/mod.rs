//! Training: the loop, its options, its checkpoints.

mod average;
mod checkpoint;
mod config;
mod record;
mod trainer;
mod watch;

/// The section `[training]` of a template.
pub(crate) const TEMPLATE: &str = include_str!("training.toml");

pub use checkpoint::{Checkpoint, Place};
pub use config::{OptimizerKind, ScheduleKind, TrainingConfig};
pub use record::Record;
pub use trainer::{Ended, train};
pub use watch::{Plan, Progress, Silent, Watch};

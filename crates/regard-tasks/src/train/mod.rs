//! Training: the loop, its options, its checkpoints.

mod average;
mod beginning;
mod callback;
mod checkpoint;
mod clock;
mod config;
mod curves;
pub(crate) mod events;
mod journal;
mod pace;
mod ranks;
mod record;
mod rehearsal;
mod start;
mod step;
mod trainer;

/// The section `[training]` of a template.
pub(crate) const TEMPLATE: &str = include_str!("training.toml");
/// What follows it where labels are told apart.
pub(crate) const CLASS_WEIGHTS: &str = include_str!("class_weights.toml");

pub use callback::{Callback, Plan, Progress, Silent};
pub use checkpoint::{Checkpoint, TrainerState};
pub use config::{OptimizerKind, ScheduleKind, TrainingConfig};
pub use pace::Pace;
pub use ranks::{Alone, Ranks, share};
pub use record::Record;
pub use rehearsal::{Rehearsal, rehearse};
pub use start::{is_frozen, take_weights};
pub use trainer::{Ended, train, train_together};

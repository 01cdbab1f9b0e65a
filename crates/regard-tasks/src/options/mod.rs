//! Options: a commented TOML template with other values.

pub(crate) mod class_weights;
pub(crate) mod groups;
mod renamed;
pub(crate) mod requirement;
pub(crate) mod template;
pub(crate) mod training;

pub use class_weights::ClassWeights;
pub use groups::{ListedOption, OptionGroup};
pub use requirement::{Condition, Requirement};
pub use template::Options;
pub use training::{OptimizerKind, ScheduleKind, TrainingConfig};

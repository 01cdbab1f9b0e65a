//! Variants of a model side by side: trained for it, or runs that are done.

pub(crate) mod folder;
mod runs;
pub(crate) mod trials;
mod variants;

pub use folder::ComparisonFolder;
pub use runs::{ComparedRuns, compare_runs};
pub use trials::{Compared, Comparison, Meter, Outcome, compare};
pub use variants::variants;

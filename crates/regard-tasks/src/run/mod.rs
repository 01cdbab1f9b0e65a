//! The folder of a run, the files in it, and the runs under a folder.

mod caption;
pub(crate) mod checkpoint;
pub(crate) mod clock;
pub(crate) mod events;
pub(crate) mod folder;
pub(crate) mod list;
pub(crate) mod lock;
pub(crate) mod protobuf;
pub(crate) mod record;
pub(crate) mod snapshot;

pub use checkpoint::{Checkpoint, TrainerState};
pub use clock::Pace;
pub use folder::Run;
pub use list::{RunState, RunSummary, runs_under};
pub use record::Record;
pub use snapshot::{Sample, Snapshot};

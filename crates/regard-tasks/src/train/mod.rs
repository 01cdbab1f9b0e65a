//! Training: the loop, what it writes, and several processes that share it.

mod average;
mod beginning;
pub(crate) mod callback;
mod curves;
mod journal;
mod pace;
mod ranks;
mod rehearsal;
mod start;
mod step;
pub(crate) mod trainer;

pub use callback::{Callback, Plan, Progress, Silent};
pub use ranks::{Alone, Ranks, share};
pub use rehearsal::{Rehearsal, rehearse};
pub use start::{is_frozen, take_weights};
pub use trainer::{Ended, train, train_together};

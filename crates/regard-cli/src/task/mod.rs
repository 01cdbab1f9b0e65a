//! The verbs on tasks: `train`, `eval`, `predict`, `show`, `ablate`, `heads`, `explain`, `compare`, `list`, `options`, `init`,
//! `data`, `export`, `import`.

pub mod ablate;
pub mod compare;
mod compare_runs;
mod comparison_table;
pub mod data;
mod device;
pub mod eval;
pub mod explain;
pub mod explore;
pub mod export;
pub mod heads;
pub mod import;
pub mod init;
pub mod interrupt;
pub mod list;
pub mod options;
mod phase_bar;
pub mod predict;
mod progress;
mod settings;
pub mod show;
mod table;
mod threads;
pub mod train;

pub use settings::{Settings, TaskArguments};

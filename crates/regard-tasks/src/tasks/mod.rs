//! The tasks there are, each with its options, its data and its model.

mod answer;
mod caption;
mod captioned;
mod classify;
mod components;
mod draw;
mod graph;
mod image;
mod label;
mod labels;
mod regress;
mod seq2seq;
mod summarize;
mod transcribe;
mod translate;

pub use answer::Answer;
pub use caption::CaptionTask;
pub use classify::Classify;
pub use draw::Draw;
pub use graph::GraphTask;
pub use image::ImageTask;
pub use label::Label;
pub use regress::Regress;
pub use summarize::Summarize;
pub use transcribe::Transcribe;
pub use translate::Translate;

use crate::task::Task;
use regard_data::{Error, Result};

/// All tasks.
pub fn tasks() -> &'static [&'static dyn Task] {
    &[
        &Regress,
        &Translate,
        &Summarize,
        &Transcribe,
        &CaptionTask,
        &Draw,
        &Answer,
        &Label,
        &Classify,
        &ImageTask,
        &GraphTask,
    ]
}

/// A task by its name; refuses another, with those there are.
///
/// ```
/// use regard_tasks::tasks::task_named;
/// assert_eq!(task_named("translate")?.name(), "translate");
/// assert!(task_named("translat").err().unwrap().to_string().contains("translate"));
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn task_named(name: &str) -> Result<&'static dyn Task> {
    let found = tasks().iter().copied().find(|task| task.name() == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = tasks().iter().map(|task| task.name()).collect();
        Error::invalid(format!("there is no task `{name}`; there are {}", names.join(", ")))
    })
}

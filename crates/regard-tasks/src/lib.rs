//! Data in, training, evaluation, checkpoints, pictures out. Knows files; knows no terminal.
//!
//! A [`Task`] reads its data and builds a [`Learner`]; [`train`] turns it in the folder of a
//! [`Run`], which describes itself; the run's [`Model`] is measured, used and looked at.
//!
//! ```
//! use regard_tasks::{Run, Silent, TrainingConfig, task_named, train};
//! let task = task_named("translate")?;
//! let small = ["size=60", "epochs=1", "hidden=8", "embedding=8", "score_hidden=8"];
//! let options = small.iter().try_fold(task.options()?, |options, s| options.set(s))?;
//! let mut learner = task.begin(&options)?;
//! let folder = tempfile::tempdir().unwrap();
//! let run = Run::create(&folder.path().join("run"), task, &options, learner.model())?;
//! train(learner.as_mut(), &TrainingConfig::of(&options)?, &run, &mut Silent)?;
//! let answers = run.model(&options)?.predict(&["I see a bird".into()])?;
//! assert_eq!(answers.len(), 1);
//! # Ok::<(), regard_tasks::Error>(())
//! ```

mod choice;
mod classify;
mod compare;
pub mod data;
mod error;
mod graph;
mod guesses;
mod image;
mod json_file;
mod label;
mod lengths;
pub mod metric;
mod options;
mod parts;
pub mod picture;
mod regress;
mod run;
mod scene;
mod scores;
mod task;
pub mod text;
pub mod toy;
mod train;
mod translate;

pub use classify::Classify;
pub use compare::{Compared, Meter, compare, variants};
pub use error::{Error, Result};
pub use graph::GraphTask;
pub use image::ImageTask;
pub use json_file::JsonFile;
pub use label::Label;
pub use options::Options;
pub use regress::Regress;
pub use run::Run;
pub use scene::{CurveScene, GraphScene, ImageScene, Map, Maps, Scene};
pub use scores::Scores;
pub use task::{
    Description, Groups, Learner, Model, Part, Prediction, Report, Task, Variant, task_named, tasks,
};
pub use train::{
    Checkpoint, Ended, OptimizerKind, Place, Plan, Progress, Record, ScheduleKind, Silent,
    TrainingConfig, Watch, train,
};
pub use translate::Translate;

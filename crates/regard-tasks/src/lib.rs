//! Attention models on files: datasets in; training, evaluation, checkpoints; pictures out. Knows
//! files; knows no terminal. The program `regard` is a thin layer over this crate.
//!
//! A [`Task`] reads its dataset and builds a [`Learner`]; [`train`] runs its epochs in the folder
//! of a [`Run`], which describes itself; the run's [`Model`] is evaluated, used and looked at.
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
//!
//! | to … | look at |
//! |---|---|
//! | find a task | [`task_named`], [`tasks`]: [`Regress`], [`Translate`], [`Summarize`], [`CaptionTask`], [`Transcribe`], [`Label`], [`Classify`], [`ImageTask`], [`GraphTask`], [`Answer`] |
//! | change its options | [`Options`]: a commented TOML template with other values, from a file or `key=value`; [`Options::groups`] lists them |
//! | train | [`train`], [`TrainingConfig`]; a [`Callback`] sees every batch and may stop it; [`rehearse`] says what it would take |
//! | train by several processes | [`train_together`], [`Ranks`] |
//! | stop, and go on with the same bits | [`Checkpoint`], [`TrainerState`] |
//! | evaluate, predict | [`Model::evaluate`] on a [`Part`] gives a [`Report`]; [`Model::predict`], [`Model::n_best`] |
//! | ask | [`Input`]: a text, an example, the content of a file; [`Model::asks`] says which |
//! | look at every example | [`Model::judge`] gives each one's output and loss |
//! | see what was attended to | [`Model::show`] gives [`Scene`]s; [`picture`] draws them as SVG, PNG, a page, in a terminal, as numbers |
//! | set variants, or runs that are done, side by side | [`compare`], [`variants`]; [`compare_runs`] |
//! | find runs | [`runs_under`] |
//! | read files | [`files`]: parallel text, CoNLL, CSV, WAV, IDX, PNG, JPEG, graphs, questions |
//! | turn text into ids | [`text`]: tokenizers, vocabularies, labels |
//! | compute a metric | [`metric`]: BLEU, chrF, ROUGE, error rates, F1, R², perplexity, answers |
//! | have data without a file | [`toy`]: datasets made by rules |
//!
//! Every refusal is one sentence that names the option, or the file and the line ([`Error`]).

mod answer;
mod caption;
mod class_weights;
mod classify;
mod compact;
mod compare;
mod compare_runs;
mod comparison_folder;
mod components;
mod export;
mod graph;
mod image;
mod import;
mod input;
mod json_file;
mod judged;
mod label;
mod label_check;
mod label_counts;
mod label_probabilities;
mod labelings;
mod lengths;
pub mod metric;
mod option_groups;
mod options;
mod parts;
pub mod picture;
mod protobuf;
mod regress;
mod run;
mod run_list;
mod run_lock;
mod saliency;
mod scene;
mod scores;
mod search_tree;
mod seq2seq;
mod snapshot;
mod sound_scene;
mod summarize;
mod task;
mod train;
mod transcribe;
mod translate;
mod truth;
mod unknown_words;
mod variants;
mod weights_file;

pub use answer::Answer;
pub use caption::CaptionTask;
pub use class_weights::ClassWeights;
pub use classify::Classify;
pub use compare::{Compared, Comparison, Meter, Outcome, compare};
pub use compare_runs::{ComparedRuns, compare_runs};
pub use comparison_folder::ComparisonFolder;
pub use export::{Export, Exported, Network, export};
pub use graph::GraphTask;
pub use image::ImageTask;
pub use import::{Imported, import};
pub use input::{Asks, Input, InputForm};
pub use json_file::JsonFile;
pub use judged::Judged;
pub use label::Label;
pub use option_groups::{ListedOption, OptionGroup};
pub use options::Options;
pub use regard_data::files::Segment;
pub use regard_data::{Error, Result, Watch, files, remarked, text, toy, watch};
pub use regress::Regress;
pub use run::Run;
pub use run_list::{RunState, RunSummary, runs_under};
pub use saliency::Saliency;
pub use scene::{CurveScene, GraphScene, ImageScene, Map, Maps, Place, Scene};
pub use scores::Scores;
pub use search_tree::{SearchNode, SearchTree, Searched};
pub use snapshot::{Sample, Snapshot};
pub use sound_scene::{SoundScene, Track};
pub use summarize::Summarize;
pub use task::{
    Alternative, Description, Groups, Learner, Model, Part, PerExample, Prediction, Report, Task,
    Variant, task_named, tasks,
};
pub use train::{
    Alone, Callback, Checkpoint, Ended, OptimizerKind, Pace, Plan, Progress, Ranks, Record,
    Rehearsal, ScheduleKind, Silent, TrainerState, TrainingConfig, is_frozen, rehearse, share,
    take_weights, train, train_together,
};
pub use transcribe::Transcribe;
pub use translate::Translate;
pub use variants::variants;
pub use weights_file::WeightsFile;

/// The README's snippet, compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Attention models on files: datasets in; training, evaluation, checkpoints; pictures out. Knows
//! files; knows no terminal. The program `regard` is a thin layer over this crate.
//!
//! A [`Task`](task::Task) reads its dataset and builds a [`Learner`](task::Learner);
//! [`train`](train::train) runs its epochs in the folder of a [`Run`](run::Run), which describes
//! itself; the run's [`Model`](task::Model) is evaluated, used and looked at.
//!
//! ```
//! use regard_tasks::options::TrainingConfig;
//! use regard_tasks::run::Run;
//! use regard_tasks::tasks::task_named;
//! use regard_tasks::train::{Silent, train};
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
//! | find a task | [`tasks`]: [`task_named`](tasks::task_named), [`tasks()`](tasks::tasks) |
//! | change its options | [`Options`](options::Options): a commented TOML template with other values, from a file or `key=value` |
//! | train, also by several processes | [`train`](mod@train): a [`Callback`](train::Callback) sees every batch and may stop it; [`rehearse`](train::rehearse) says what it would take |
//! | stop, and go on with the same bits | [`Checkpoint`](run::Checkpoint), [`TrainerState`](run::TrainerState) |
//! | evaluate, predict | [`Model::evaluate`](task::Model::evaluate) on a [`Part`](task::Part) gives a [`Report`](task::Report); [`Model::predict`](task::Model::predict), [`Model::n_best`](task::Model::n_best) |
//! | ask | [`Input`](task::Input): a text, an example, the content of a file; [`Model::asks`](task::Model::asks) says which |
//! | look at every example | [`Model::judge`](task::Model::judge) gives each one's output and loss |
//! | see what was attended to | [`Model::show`](task::Model::show) gives [`Scene`](regard_picture::scene::Scene)s; the crate `regard-picture` draws them as SVG, PNG, a page, in a terminal, as numbers |
//! | know what each head is worth, and what it does | [`Ablation`](inspect::Ablation), [`Profile`](inspect::Profile) |
//! | ask with a changed attention | [`Change`](inspect::Change) |
//! | set variants, or runs that are done, side by side | [`compare`](mod@compare) |
//! | find runs | [`runs_under`](run::runs_under) |
//! | compute a metric | [`metric`]: BLEU, chrF, ROUGE, error rates, F1, R², perplexity, answers |
//! | read files, turn text into ids, have data without a file | the crate `regard-data` |
//!
//! Every refusal is one sentence that names the option, or the file and the line ([`Error`]).

pub mod compare;
pub mod export;
pub mod import;
pub mod inspect;
pub mod metric;
pub mod options;
pub mod run;
pub mod task;
pub mod tasks;
pub mod train;

pub use regard_data::{Error, Result};

/// The README's snippet, compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

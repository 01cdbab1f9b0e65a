//! `summarize`: a long text in, a short one out. It is `translate`'s model, with copying, other data
//! and other measures.

use crate::options::requirement::Requirement;
use crate::options::template::Options;
use crate::options::training;
use crate::task::json_file::JsonFile;
use crate::task::learner::Learner;
use crate::task::model::Model;
use crate::task::{Description, Task, Variant};
use crate::tasks::{components, seq2seq, translate};
use regard_data::Result;

/// Summarizes texts, copying the words that it has never seen.
#[derive(Clone, Copy, Debug)]
pub struct Summarize;

impl Task for Summarize {
    fn name(&self) -> &'static str {
        "summarize"
    }

    fn about(&self) -> &'static str {
        "a long text in, a short one out"
    }

    fn template(&self) -> String {
        [
            include_str!("options.toml"),
            seq2seq::TEMPLATE,
            components::ENCODER,
            components::MECHANISM,
            "\n",
            training::TEMPLATE,
        ]
        .concat()
    }

    fn defaults(&self) -> &'static [&'static str] {
        &[
            "epochs=8",
            "learning_rate=0.003",
            "schedule=cosine",
            "embedding=64",
            "hidden=96",
            "score_hidden=64",
        ]
    }

    fn requirements(&self) -> Vec<Requirement> {
        translate::needs()
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Learner>> {
        translate::begin(options)
    }

    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
        translate::open(options, vocabulary)
    }

    fn describe(&self, options: &Options) -> Result<Description> {
        translate::describe(options)
    }

    fn comparison(&self) -> Vec<Variant> {
        vec![
            Variant::new("copying", &["copy=true"]),
            Variant::new("attention alone", &["copy=false"]),
            Variant::new("fixed vector", &["copy=false", "context=fixed"]),
        ]
    }

    fn alike(&self, all: &[Options]) -> Result<Option<(&'static str, &'static str)>> {
        seq2seq::alike(all)
    }
}

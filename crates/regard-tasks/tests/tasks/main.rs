//! Every task end to end: it learns, resumes, evaluates, draws, and refuses what is wrong. One program, so that the
//! crate is linked once and short trainings fill the other core.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

#[path = "../corpus/mod.rs"]
mod corpus;
#[path = "../course/mod.rs"]
mod course;

mod answer;
mod caption;
mod classify;
mod device;
mod draw;
mod files;
mod graph;
mod image;
mod label;
mod label_vectors;
mod regress;
mod summarize;
mod transcribe;
mod translate;
mod whole_graphs;

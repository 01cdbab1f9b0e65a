//! What the tasks are made of: readers, measures, runs, pictures, vocabularies.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

#[path = "../corpus/mod.rs"]
mod corpus;
#[path = "../course/mod.rs"]
mod course;

mod attribution;
mod bad_rows;
mod batches;
mod class_weights;
mod columns;
mod compare;
mod examples;
mod export;
mod import;
mod inspect;
mod judged;
mod measures;
mod metrics;
mod metrics_writing;
mod options;
#[cfg(unix)] // readers are counted by a pipe with a name
mod reads;
mod recordings;
mod resample;
mod sampling;
mod senses;
mod splits;
mod start;
mod stories;
mod tables;
mod text_readers;
mod tokenizer;
mod toy;

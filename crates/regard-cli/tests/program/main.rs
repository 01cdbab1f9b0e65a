//! The program as its users meet it: arguments and files in, files and sentences out.

// A test that cannot be set up should stop.
#![allow(clippy::unwrap_used)]

mod answers;
mod bench;
mod choices;
mod file;
mod help;
mod listing;
mod masks;
mod mutations;
mod numbers;
mod outputs;
mod overwriting;
mod projected;
mod refusals;
mod scores;
mod sentences;
mod settings;
mod shell;
mod stopping;
mod tasks;
mod tensorboard;
mod weights;
mod words;
mod writing;

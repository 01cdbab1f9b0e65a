//! The program as its users meet it: arguments and files in, files and sentences out.

// A test that cannot be set up should stop.
#![allow(clippy::unwrap_used)]

mod answers;
mod bench;
mod file;
mod help;
mod masks;
mod mutations;
mod numbers;
mod outputs;
mod refusals;
mod scores;
mod stopping;
mod tasks;
mod weights;
mod words;
mod writing;

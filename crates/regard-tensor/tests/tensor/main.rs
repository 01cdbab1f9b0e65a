//! Tensors and their gradients. What counts the memory of the whole program is a program of its own.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

#[path = "../known/mod.rs"]
mod known;

mod comparisons;
mod device;
mod edges;
mod file;
mod fixtures;
mod gradients;
mod halves;
mod held;
mod largest;
mod loading;
mod loss;
mod named;
mod operators;
mod precision;
mod rates;
mod refusals;
mod resume;
mod sizes;
mod storage;
mod tape;
mod types;
mod variables;

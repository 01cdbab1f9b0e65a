//! Tensors and their gradients. What counts the memory of the whole program is a program of its own.

#[path = "../known/mod.rs"]
mod known;

mod edges;
mod file;
mod fixtures;
mod gradients;
mod halves;
mod operators;
mod resume;
mod sizes;
mod storage;
mod tape;
mod types;
mod variables;

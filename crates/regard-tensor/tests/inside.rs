//! The tests that stand beside what they try, in the sources: these files alone are compiled once
//! more for them, not the whole crate.
#![allow(dead_code, unreachable_pub)] // what a file has for the rest of its crate

#[path = "../src/buffer.rs"]
mod buffer;
#[path = "../src/error.rs"]
mod error;
#[path = "../src/layout.rs"]
mod layout;
#[path = "../src/parallel.rs"]
mod parallel;

// What the files name as `crate::…`.
use error::{Error, Result};

//! The tests that stand beside what they try, in the sources: these files alone are compiled once
//! more for them, not the whole crate.
#![allow(dead_code, unused_imports, unreachable_pub)] // what a file has for the rest of its crate
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

// What the files name as `crate::…`.
use regard_data::*;

#[path = "../src/toy/mod.rs"]
mod toy;

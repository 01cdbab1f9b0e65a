//! The tests that stand beside what they try, in the sources.
#![allow(dead_code, unused_imports, unreachable_pub)] // what a file has for the rest of its crate
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

#[path = "../src/picture/mod.rs"]
mod picture;
#[path = "../src/scene/mod.rs"]
mod scene;

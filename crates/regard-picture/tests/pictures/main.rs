//! Pictures of scenes and of trainings.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

mod scenes;
mod sound;

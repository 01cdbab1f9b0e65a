//! Data in, training, evaluation, checkpoints, pictures out. Knows files; knows no terminal.

pub mod data;
mod error;
mod scene;

pub use error::{Error, Result};
pub use scene::{CurveScene, GraphScene, ImageScene, Map, Maps, Scene};

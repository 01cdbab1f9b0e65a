//! Data in, training, evaluation, checkpoints, pictures out. Knows files; knows no terminal.

mod error;
pub mod metric;
mod scene;
pub mod toy;

pub use error::{Error, Result};
pub use scene::{CurveScene, GraphScene, ImageScene, Map, Maps, Scene};

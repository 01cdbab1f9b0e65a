//! What a model is asked from Python: a text, or the content of a file that lies in memory.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use regard_tasks::Result;
use regard_tasks::task::{Input, Model};

/// An input as Python gives it.
#[derive(FromPyObject)]
pub(crate) enum Question {
    /// A text, a path, numbers.
    Text(String),
    /// What a file is called, and what it holds.
    File(String, PyBackedBytes),
}

impl Question {
    /// As the model takes it: a path names a file of the caller's own machine.
    pub(crate) fn input(&self, model: &dyn Model) -> Result<Input> {
        match self {
            Self::Text(text) => Input::named(model.asks().form, text),
            Self::File(name, bytes) => Ok(Input::file(name.as_str(), bytes.to_vec())),
        }
    }
}

//! What the tasks refuse, as Python's exceptions.

use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyKeyboardInterrupt, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;
use regard_tasks::Error;

/// `FileNotFoundError` where a file is missing, `FileExistsError` where a folder is taken,
/// `RuntimeError` where somebody trains in it; else `ValueError`: an option, an input or what a file
/// holds is wrong.
pub(crate) fn failure(error: Error) -> PyErr {
    let text = in_python(&error.to_string());
    match &error {
        Error::Stopped => PyKeyboardInterrupt::new_err(text),
        Error::File { file, .. } if !file.exists() => PyFileNotFoundError::new_err(text),
        // The words of `Run::check_free` and of a run's lock.
        Error::File { what, .. } if what.starts_with("holds ") => PyFileExistsError::new_err(text),
        Error::File { what, .. } if what.contains(" is training here;") => {
            PyRuntimeError::new_err(text)
        }
        _ => PyValueError::new_err(text),
    }
}

/// The program's options under the names that they have in Python.
fn in_python(text: &str) -> String {
    const WORDS: [(&str, &str); 6] = [
        ("the same `regard train`", "the same `regard.train`"),
        ("`regard train --resume ", "`regard.train(resume=…)` or `regard train --resume "),
        ("`--resume`", "`resume=`"),
        ("`--overwrite`", "`overwrite=True`"),
        ("`--out`", "`out=`"),
        ("`--seeds`", "`seeds=`"),
    ];
    WORDS.iter().fold(text.to_string(), |text, (from, to)| text.replace(from, to))
}

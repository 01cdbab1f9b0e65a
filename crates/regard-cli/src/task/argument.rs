//! What an argument of the program means: the only place where an input names a file.

use regard_tasks::{Error, Input, InputForm, Part, Result};

/// An argument, or a line, as a model's input: where the model reads files, an example of its data
/// (`test:17`) or a path, each with a moment behind an `@` if one is asked for.
pub(super) fn input(form: InputForm, text: &str) -> Result<Input> {
    if !form.is_file() || names_an_example(text) {
        return Ok(Input::from(text));
    }
    let read = |path: &str, moment: Option<f64>| {
        let path = path.trim();
        let bytes = std::fs::read(path).map_err(|error| Error::file(path, error))?;
        Ok(Input::File { name: path.into(), bytes: bytes.into(), moment })
    };
    // A file may have an @ in its name.
    let moment = text.rsplit_once('@').and_then(|(path, moment)| {
        let moment = moment.trim().parse::<f64>().ok().filter(|moment| moment.is_finite());
        Some((path, moment?))
    });
    match moment {
        Some((path, moment)) if !std::path::Path::new(text.trim()).exists() => {
            read(path, Some(moment))
        }
        _ => read(text, None),
    }
}

/// Whether a text is `test:17`, perhaps with a moment.
fn names_an_example(text: &str) -> bool {
    let text = text.trim();
    let name = text.split_once('@').map_or(text, |(name, _)| name);
    let Some((part, index)) = name.split_once(':') else { return false };
    Part::named(part).is_some() && index.trim().parse::<usize>().is_ok()
}

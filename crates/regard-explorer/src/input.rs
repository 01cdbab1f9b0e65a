//! An input as a request writes it.

use crate::refusal::Refusal;
use regard_picture::scene::base64_decoded;
use regard_tasks::task::{Input, InputForm, Part};
use serde::Deserialize;

/// An input as a request writes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Asked {
    Text {
        text: String,
    },
    Example {
        part: String,
        index: usize,
        #[serde(default)]
        moment: Option<f64>,
    },
    Bytes {
        name: String,
        base64: String,
        #[serde(default)]
        moment: Option<f64>,
    },
    /// A file of a form, as it is.
    #[serde(skip)]
    File {
        name: String,
        bytes: Vec<u8>,
    },
    Node {
        node: usize,
    },
    Point {
        at: Vec<f64>,
    },
}

/// A part by its name.
pub(crate) fn part(name: &str) -> Result<Part, Refusal> {
    Part::named(name).ok_or_else(|| {
        Refusal::bad(format!("there is no part `{name}`; there are train, validation and test"))
    })
}

impl Asked {
    /// What a model reads. Refuses what its form has not: a text where a file is read, a file where
    /// a text is.
    pub(crate) fn input(self, form: InputForm) -> Result<Input, Refusal> {
        let unfit = |what: &str| Err(Refusal::bad(format!("this model does not read {what}")));
        match self {
            Self::Text { text } => match form.is_file() {
                true => Err(Refusal::bad(
                    "this model reads files: send the content of one as {\"kind\": \"bytes\", \
                     \"name\": \"a.png\", \"base64\": \"…\"}, or as the field `input` of a form",
                )),
                false => Ok(Input::Text(text)),
            },
            Self::Example { part: name, index, moment } => {
                Ok(Input::Example { part: part(&name)?, index, moment })
            }
            Self::Bytes { name, base64, moment } => {
                if !form.is_file() {
                    return unfit("files");
                }
                let bytes = base64_decoded(&base64);
                let bytes = bytes.ok_or_else(|| Refusal::bad("`base64` is not base64"))?;
                Ok(Input::File { name, bytes: bytes.into(), moment })
            }
            Self::File { .. } if !form.is_file() => unfit("files"),
            Self::File { name, bytes } => {
                Ok(Input::File { name, bytes: bytes.into(), moment: None })
            }
            Self::Node { node } if form == InputForm::Node => Ok(Input::Text(node.to_string())),
            Self::Node { .. } => unfit("nodes"),
            Self::Point { at } if form == InputForm::Point => {
                let numbers: Vec<String> = at.iter().map(f64::to_string).collect();
                Ok(Input::Text(numbers.join(",")))
            }
            Self::Point { .. } => unfit("points"),
        }
    }
}

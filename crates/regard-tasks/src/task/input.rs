//! What a model is asked about.

use crate::task::part::Part;
use crate::task::part::example_reference;
use regard_data::{Error, Result};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// What a model is asked about. No input names a file: whoever has one reads it and gives its bytes.
///
/// ```
/// use regard_tasks::task::{Input, Part};
/// assert_eq!(Input::from("I see a bird").to_string(), "I see a bird");
/// assert_eq!(Input::example(Part::Test, 3).to_string(), "test:3");
/// assert_eq!(Input::file("bird.png", vec![1, 2]).to_string(), "bird.png");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// What somebody writes: a sentence, a text and a question with a tab between, a node's number,
    /// numbers with commas; where a task reads files or vectors, an example of its data, as `test:3`.
    Text(String),
    /// An example of the data.
    Example {
        /// Its part.
        part: Part,
        /// Its place in the part, from 0.
        index: usize,
        /// The moment that is looked at, in seconds, where moments have answers of their own.
        moment: Option<f64>,
    },
    /// The content of a file: a picture, a recording, features.
    File {
        /// What it is called; it is not looked for.
        name: String,
        /// What it holds.
        bytes: Arc<[u8]>,
        /// As for an example.
        moment: Option<f64>,
    },
}

/// What a model's inputs look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputForm {
    /// A sentence.
    Sentence,
    /// A text of any length.
    Text,
    /// A text and a question with a tab between.
    PassageQuestion,
    /// Vectors, numbers with commas, a space between vectors.
    Vectors,
    /// A node's number.
    Node,
    /// A graph's number.
    Graph,
    /// Numbers with commas.
    Point,
    /// A picture's file.
    Picture,
    /// A WAV, FLAC, MP3 or Ogg Vorbis file.
    Recording,
    /// A NumPy file.
    Features,
}

impl InputForm {
    /// Whether it is the content of a file.
    ///
    /// ```
    /// use regard_tasks::task::InputForm;
    /// assert!(InputForm::Picture.is_file() && !InputForm::Sentence.is_file());
    /// ```
    pub fn is_file(self) -> bool {
        matches!(self, Self::Picture | Self::Recording | Self::Features)
    }
}

/// What can be asked of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Asks {
    /// What its inputs look like.
    pub form: InputForm,
    /// The columns of a point, and the lowest and the highest that was seen of each.
    pub columns: Vec<(String, [f64; 2])>,
    /// How many nodes there are to choose from.
    pub nodes: Option<usize>,
    /// The labels it chooses among; none where it writes text or numbers.
    pub labels: Vec<String>,
    /// Whether a moment can be looked at.
    pub moments: bool,
    /// Whether it answers with a picture: [`Prediction::picture`](crate::task::Prediction::picture).
    pub draws: bool,
}

impl Asks {
    /// Inputs of a form, answered by one of these labels.
    pub(crate) fn new(form: InputForm, labels: &[String]) -> Self {
        Self {
            form,
            columns: Vec::new(),
            nodes: None,
            labels: labels.to_vec(),
            moments: false,
            draws: false,
        }
    }
}

impl Input {
    /// An example of the data.
    ///
    /// ```
    /// use regard_tasks::task::{Input, Part};
    /// assert_eq!(Input::example(Part::Validation, 0).to_string(), "validation:0");
    /// ```
    pub fn example(part: Part, index: usize) -> Self {
        Self::Example { part, index, moment: None }
    }

    /// The content of a file that is called so.
    ///
    /// ```
    /// use regard_tasks::task::Input;
    /// assert!(matches!(Input::file("a.wav", vec![]), Input::File { moment: None, .. }));
    /// ```
    pub fn file(name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::File { name: name.into(), bytes: bytes.into(), moment: None }
    }

    /// What somebody at this machine names: an example of the data (`test:17`), whatever a model
    /// reads; else the text itself or, where a model reads files, a path. A moment stands behind an
    /// `@` if one is asked for. Reads any file that is named: nothing for what strangers send.
    ///
    /// ```
    /// use regard_tasks::task::{Input, InputForm, Part};
    /// assert_eq!(Input::named(InputForm::Sentence, "a.png")?, Input::from("a.png"));
    /// for form in [InputForm::Sentence, InputForm::Picture] {
    ///     assert_eq!(Input::named(form, "test:17")?, Input::example(Part::Test, 17));
    /// }
    /// let error = Input::named(InputForm::Picture, "no/such.png").unwrap_err().to_string();
    /// assert!(error.starts_with("no/such.png: "));
    /// # Ok::<(), regard_tasks::Error>(())
    /// ```
    pub fn named(form: InputForm, text: &str) -> Result<Self> {
        if let Some((part, index)) = example_reference(text) {
            return Ok(Self::example(part, index));
        }
        if !form.is_file() || example_reference(split_moment(text).0).is_some() {
            return Ok(Self::from(text));
        }
        // A file may have an @ in its name.
        let (path, moment) = match split_moment(text) {
            (path, Some(moment)) if !Path::new(text.trim()).exists() => (path, Some(moment)),
            _ => (text, None),
        };
        let path = path.trim();
        let bytes = std::fs::read(path).map_err(|error| Error::file(path, error))?;
        Ok(Self::File { name: path.into(), bytes: bytes.into(), moment })
    }

    /// The part and the index of an example, also where they are written.
    pub(crate) fn as_example(&self) -> Option<(Part, usize)> {
        match self {
            Self::Example { part, index, .. } => Some((*part, *index)),
            Self::Text(text) => example_reference(split_moment(text).0),
            Self::File { .. } => None,
        }
    }

    /// The moment that is looked at.
    pub(crate) fn moment(&self) -> Option<f64> {
        match self {
            Self::Example { moment, .. } | Self::File { moment, .. } => *moment,
            Self::Text(text) => split_moment(text).1,
        }
    }

    /// What was written; refuses a file, and an example, which has been looked up before.
    pub(crate) fn text(&self) -> Result<&str> {
        match self {
            Self::Text(text) => Ok(text),
            other => Err(Error::invalid(format!("`{other}` is not what this model reads: text"))),
        }
    }

    /// The name and the content of a file; refuses a text, which names none.
    pub(crate) fn content(&self, kind: &str) -> Result<(&Path, &[u8])> {
        match self {
            Self::File { name, bytes, .. } => Ok((Path::new(name), bytes)),
            other => Err(Error::invalid(format!(
                "`{other}` is neither an example of the data, as `test:3`, nor the content of {kind}"
            ))),
        }
    }
}

/// A text and the moment behind its last `@`.
pub(crate) fn split_moment(text: &str) -> (&str, Option<f64>) {
    let found = text.rsplit_once('@').and_then(|(name, moment)| {
        let moment = moment.trim().parse::<f64>().ok().filter(|x| x.is_finite());
        Some((name, Some(moment?)))
    });
    found.unwrap_or((text, None))
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&String> for Input {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text)?,
            Self::Example { part, index, .. } => write!(f, "{}:{index}", part.name())?,
            Self::File { name, .. } => f.write_str(name)?,
        }
        match self {
            Self::Text(_) => Ok(()),
            other => other.moment().map_or(Ok(()), |moment| write!(f, "@{moment}")),
        }
    }
}

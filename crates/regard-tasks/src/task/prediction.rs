//! What a model predicts, and which words of the input it does not know.

use regard_data::text::UNKNOWN;
use regard_picture::scene::base64_decoded;
use serde::Serialize;
use serde_json::json;

/// What a model predicts for one input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The input.
    pub input: String,
    /// The output, as text.
    pub output: String,
    /// More about it: scores, probabilities, alternatives.
    pub details: serde_json::Value,
}

/// One of the best outputs for an input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// The output, as text.
    pub output: String,
    /// How good the model finds it: the probability of a label or an answer; of all labels of a
    /// sequence the logarithm of their probability; of a text the same, divided by the length penalty.
    pub score: f64,
}

/// The words whose number is that of no word, each once, in their order.
pub(crate) fn unknown_words<S: AsRef<str>>(
    words: impl IntoIterator<Item = S>,
    ids: &[usize],
) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (word, _) in words.into_iter().zip(ids).filter(|(_, id)| **id == UNKNOWN) {
        if !found.iter().any(|known| known == word.as_ref()) {
            found.push(word.as_ref().to_string());
        }
    }
    found
}

impl Prediction {
    /// What an output that is a picture begins with; the bytes of a PNG follow in base64.
    pub(crate) const PICTURE: &str = "data:image/png;base64,";

    /// The PNG that the output is, of a model that draws.
    ///
    /// ```
    /// use regard_tasks::task::Prediction;
    /// let [input, output] = ["a".to_string(), "data:image/png;base64,iVBORw==".into()];
    /// let one = Prediction { input, output, details: serde_json::Value::Null };
    /// assert_eq!(one.picture().unwrap(), b"\x89PNG");
    /// ```
    pub fn picture(&self) -> Option<Vec<u8>> {
        base64_decoded(self.output.strip_prefix(Self::PICTURE)?)
    }

    /// With `unknown` among the details, where there are such words.
    pub(crate) fn with_unknown(mut self, words: Vec<String>) -> Self {
        if !words.is_empty() {
            self.details["unknown"] = words.into();
        }
        self
    }

    /// With `read` among the details, where the model reads so many tokens, sentences or vectors of an
    /// input that has more.
    pub(crate) fn with_cut(mut self, read: usize, of: usize, unit: &str) -> Self {
        if read < of {
            self.details["read"] = json!({ "count": read, "of": of, "unit": unit });
        }
        self
    }

    /// The words of the input that the model does not know.
    ///
    /// ```
    /// use regard_tasks::task::Prediction;
    /// let details = serde_json::json!({ "unknown": ["zebra"] });
    /// let one = Prediction { input: "a zebra".into(), output: "".into(), details };
    /// assert_eq!(one.unknown_words(), ["zebra"]);
    /// ```
    pub fn unknown_words(&self) -> Vec<&str> {
        let words = self.details["unknown"].as_array().into_iter().flatten();
        words.filter_map(|word| word.as_str()).collect()
    }
}

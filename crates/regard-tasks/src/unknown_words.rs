//! Words of an input that a model does not know.

use crate::Prediction;
use crate::text::UNKNOWN;

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
    /// With `unknown` among the details, where there are such words.
    pub(crate) fn with_unknown(mut self, words: Vec<String>) -> Self {
        if !words.is_empty() {
            self.details["unknown"] = words.into();
        }
        self
    }

    /// The words of the input that the model does not know.
    ///
    /// ```
    /// use regard_tasks::Prediction;
    /// let details = serde_json::json!({ "unknown": ["zebra"] });
    /// let one = Prediction { input: "a zebra".into(), output: "".into(), details };
    /// assert_eq!(one.unknown_words(), ["zebra"]);
    /// ```
    pub fn unknown_words(&self) -> Vec<&str> {
        let words = self.details["unknown"].as_array().into_iter().flatten();
        words.filter_map(|word| word.as_str()).collect()
    }
}

//! Examples of a part, each with what was made of it.

use serde::Serialize;

/// An example of a part and what a model makes of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Judged {
    /// Its place in the part, from 0.
    pub index: usize,
    /// The input as text.
    pub input: String,
    /// What is true of it.
    pub truth: String,
    /// What the model makes of it.
    pub output: String,
    /// How far that is from the truth: −ln p of it, or the squared error. Not a number where the
    /// model cannot know the truth, such as a label that training has not seen.
    pub loss: f64,
    /// How long the input is, in tokens, vectors, words or pixels; 1 where it has no length.
    pub length: usize,
    /// What is true and what was predicted, label by label; none where text is written.
    pub labels: Vec<(String, String)>,
    /// What is true and what was predicted where that is a number, with all its digits.
    pub numbers: Option<(f64, f64)>,
}

impl Judged {
    /// Whether the output is what is true.
    ///
    /// ```
    /// use regard_tasks::metric::Judged;
    /// let labels = vec![("a".into(), "a".into()), ("b".into(), "a".into())];
    /// assert!(!Judged { labels, ..Judged::default() }.is_right());
    /// ```
    pub fn is_right(&self) -> bool {
        match self.labels.is_empty() {
            true => self.output == self.truth,
            false => self.labels.iter().all(|(truth, predicted)| truth == predicted),
        }
    }
}

//! Weights that belong to tokens or labels.

use regard_data::text::Tokenizer;

/// A weight that belongs to tokens or labels, and what they are called: whoever takes over the weights
/// of another model takes what belongs to the same names. Where it has a row for each name, a row
/// belongs to each; otherwise it belongs to all of them together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRows {
    /// The weight's name.
    pub parameter: String,
    /// The tokens or labels, in their order.
    pub names: Vec<String>,
}

impl NamedRows {
    /// Weights that belong to the same names.
    pub fn of(parameters: &[&str], names: &[String]) -> Vec<Self> {
        let one = |name: &&str| Self { parameter: name.to_string(), names: names.to_vec() };
        parameters.iter().map(one).collect()
    }
}

/// All tokens of a tokenizer, in their order.
pub(crate) fn all_tokens(tokenizer: &Tokenizer) -> Vec<String> {
    (0..tokenizer.len()).map(|id| tokenizer.token(id).to_string()).collect()
}

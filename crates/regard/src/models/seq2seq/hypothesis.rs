//! One output of a search.

use regard_tensor::Tensor;

/// One output for one source.
///
/// ```
/// # use regard::prelude::*;
/// # use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
/// # use regard::models::{ContextConfig, DecoderConfig, Sentences, Seq2Seq, Seq2SeqConfig};
/// # let gru = RecurrentConfig::new(Cell::Gru, 8);
/// # let config = Seq2SeqConfig::new(
/// #     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed);
/// # let model = Seq2Seq::new(&Parameters::new(DType::F32, 1), &config)?;
/// let source = Sentences::new(&[vec![3, 4, 5], vec![6]], 0)?;
/// let one = &model.greedy(&source, 4)?[0];
/// assert_eq!(one.token_scores.len(), one.tokens.len() + usize::from(one.ended));
/// assert!((one.token_scores.iter().sum::<f64>() - one.log_prob).abs() < 1e-9);
/// // nobody asked for the weights
/// assert!(one.alignment.is_none());
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Hypothesis {
    /// Its tokens, without start and end.
    pub tokens: Vec<usize>,
    /// What it is ranked by: its log-probability over the length penalty.
    pub score: f64,
    /// The sum of the token scores.
    pub log_prob: f64,
    /// The log-probability of each token, and of the end where it came.
    pub token_scores: Vec<f64>,
    /// Whether it came to its end; otherwise it was cut at the longest length.
    pub ended: bool,
    /// The weights over the source `[n, N]` with which each token, and the end, was written: the
    /// mean over the last layer's heads. None where the context is fixed, and where nobody asked
    /// for them ([`SearchConfig::weights`](crate::SearchConfig::weights),
    /// [`Seq2Seq::greedy_with`](crate::Seq2Seq::greedy_with)).
    pub alignment: Option<Tensor>,
    /// All weights over the source `[layers, heads, n, N]`, under the same conditions; a recurrent
    /// decoder has one of each.
    pub heads: Option<Tensor>,
    /// The probability 1 − g with which each token, and the end, was copied from the source rather than
    /// taken from the vocabulary, under the same conditions; none where the model does not copy.
    pub copied: Option<Vec<f64>>,
}

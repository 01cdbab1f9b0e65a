//! A batch of texts and a question to each.

use super::SpanReaderConfig;
use regard_tensor::{DType, Result, Tensor, ensure};

/// A batch of texts, padded to one length, and a question to each.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::Passages;
/// let text = Tensor::from_vec(vec![3i64, 4, 5, 4, 6, 0], &[2, 3])?;
/// let questions = Tensor::from_vec(vec![7i64, 3, 7, 0], &[2, 2])?;
/// let passages = Passages {
///     text: &text, lengths: &[3, 2], features: None,
///     questions: &questions, question_lengths: &[2, 1],
/// };
/// assert!(passages.features.is_none());
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Passages<'a> {
    /// Token ids `[B, N]`.
    pub text: &'a Tensor,
    /// How long each text is, `[B]`.
    pub lengths: &'a [usize],
    /// Numbers known of each word, such as whether the question has it: `[B, N, F]`.
    pub features: Option<&'a Tensor>,
    /// Token ids `[B, M]`.
    pub questions: &'a Tensor,
    /// How long each question is, `[B]`.
    pub question_lengths: &'a [usize],
}

impl Passages<'_> {
    /// Refuses shapes that do not fit, by name.
    pub(super) fn check(&self, config: &SpanReaderConfig) -> Result<()> {
        let ids = |name: &str, x: &Tensor, b: usize| {
            ensure!(
                x.rank() == 2 && x.shape()[0] == b && matches!(x.dtype(), DType::I64 | DType::U32),
                "{name} are token ids [{b}, N], were given {} {:?}",
                x.dtype(),
                x.shape()
            );
            Ok(x.shape()[1])
        };
        let b = self.lengths.len();
        let n = ids("texts", self.text, b)?;
        let m = ids("questions", self.questions, b)?;
        crate::length::check("texts", Some(self.lengths), b, n)?;
        crate::length::check("questions", Some(self.question_lengths), b, m)?;
        if let Some(at) = self.lengths.iter().position(|&length| length == 0) {
            ensure!(false, "text {at} has no word");
        }
        let wanted = [b, n, config.features];
        let fits = match self.features {
            Some(features) => features.shape() == wanted,
            None => config.features == 0,
        };
        let given = self.features.map(Tensor::shape);
        ensure!(fits, "features of shape {given:?}; the reader wants {wanted:?}");
        Ok(())
    }
}

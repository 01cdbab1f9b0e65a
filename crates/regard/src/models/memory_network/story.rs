//! A batch of stories and a question to each.

use regard_tensor::{DType, Result, Tensor, ensure};

/// A batch of stories, padded to one number of sentences and words, and a question to each.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::Stories;
/// // two sentences of two words, then one of one
/// let sentences = Tensor::from_vec(vec![3i64, 4, 5, 4, 6, 0, 0, 0], &[2, 2, 2])?;
/// let questions = Tensor::from_vec(vec![7i64, 3, 7, 6], &[2, 2])?;
/// let stories = Stories { sentences: &sentences, lengths: &[2, 1], questions: &questions };
/// assert_eq!(stories.lengths.len(), 2);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stories<'a> {
    /// Token ids of the sentences `[B, S, W]`, filled up with the padding token.
    pub sentences: &'a Tensor,
    /// How many sentences each story has, `[B]`.
    pub lengths: &'a [usize],
    /// Token ids of the questions `[B, Q]`, filled up with the padding token.
    pub questions: &'a Tensor,
}

impl Stories<'_> {
    /// Refuses shapes that do not fit, by name.
    pub(super) fn check(&self) -> Result<()> {
        let ids = |x: &Tensor| matches!(x.dtype(), DType::I64 | DType::U32);
        let (sentences, questions) = (self.sentences, self.questions);
        ensure!(
            sentences.rank() == 3 && ids(sentences),
            "sentences are token ids [B, S, W], were given {} {:?}",
            sentences.dtype(),
            sentences.shape()
        );
        let b = sentences.shape()[0];
        ensure!(
            questions.rank() == 2 && questions.shape()[0] == b && ids(questions),
            "questions are token ids [{b}, Q], were given {} {:?}",
            questions.dtype(),
            questions.shape()
        );
        crate::length::check("stories", Some(self.lengths), b, sentences.shape()[1])?;
        if let Some(at) = self.lengths.iter().position(|&length| length == 0) {
            ensure!(false, "story {at} has no sentence");
        }
        Ok(())
    }
}

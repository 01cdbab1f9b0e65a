//! A batch of sequences.

use regard_tensor::Tensor;

/// A batch of sequences, padded to one length.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::Sequences;
/// let ids = Tensor::from_vec(vec![3i64, 1, 4, 1, 5, 0], &[2, 3])?;
/// let sequences = Sequences { lengths: Some(&[3, 2]), ..Sequences::new(&ids) };
/// assert!(sequences.characters.is_none());
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sequences<'a> {
    /// Token ids `[B, N]`, or vectors `[B, N, D]`.
    pub x: &'a Tensor,
    /// How long each sequence is, `[B]`; all of them N where none are given.
    pub lengths: Option<&'a [usize]>,
    /// The characters of each word, `[B, N, C]`, for a model that reads them.
    pub characters: Option<&'a Tensor>,
}

impl<'a> Sequences<'a> {
    /// Sequences that are all of the same length, without characters.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::Sequences;
    /// let x = Tensor::zeros(&[2, 7, 8], DType::F32)?;
    /// let sequences = Sequences::new(&x);
    /// assert!(sequences.lengths.is_none() && sequences.characters.is_none());
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(x: &'a Tensor) -> Self {
        Self { x, lengths: None, characters: None }
    }
}

//! A batch of token sequences.

use regard_tensor::{Result, Tensor};

/// Sequences of tokens, filled up to the longest.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::Sentences;
/// let batch = Sentences::new(&[vec![5, 6, 7], vec![8]], 0)?;
/// assert_eq!(batch.ids.to_vec::<i64>()?, [5, 6, 7, 8, 0, 0]);
/// assert_eq!(batch.lengths, [3, 1]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sentences {
    /// `[B, N]`
    pub ids: Tensor,
    /// `[B]`
    pub lengths: Vec<usize>,
}

impl Sentences {
    /// From sequences and the token that fills up shorter ones.
    /// Refuses more tokens than a tensor has.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::Sentences;
    /// let batch = Sentences::new(&[vec![5], vec![6, 7]], 9)?;
    /// assert_eq!((batch.ids.to_vec::<i64>()?, batch.lengths), (vec![5, 9, 6, 7], vec![1, 2]));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new<S: AsRef<[usize]>>(sequences: &[S], padding: usize) -> Result<Self> {
        let lengths: Vec<usize> = sequences.iter().map(|s| s.as_ref().len()).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let mut ids = Vec::with_capacity(sequences.len() * longest);
        for sequence in sequences {
            let sequence = sequence.as_ref();
            ids.extend(sequence.iter().map(|&token| token as i64));
            ids.extend(std::iter::repeat_n(padding as i64, longest - sequence.len()));
        }
        Ok(Self { ids: Tensor::from_vec(ids, &[sequences.len(), longest])?, lengths })
    }

    /// The sequences without what fills them up.
    /// Refuses ids that are not `[B, N]` in i64.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::Sentences;
    /// assert_eq!(Sentences::new(&[vec![5, 6], vec![]], 0)?.sequences()?, [vec![5, 6], vec![]]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn sequences(&self) -> Result<Vec<Vec<usize>>> {
        let n = self.ids.size(1)?;
        let ids = self.ids.to_vec::<i64>()?;
        let one = |(b, &length): (usize, &usize)| {
            ids[b * n..][..length.min(n)].iter().map(|&id| id.max(0) as usize).collect()
        };
        Ok(self.lengths.iter().enumerate().map(one).collect())
    }
}

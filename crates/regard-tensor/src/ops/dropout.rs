//! Dropout: numbers left out at random, the others made larger.

use crate::ops::in_f32;
use crate::{Result, Tensor, ensure};

impl Tensor {
    /// Each number is 0 with probability `share`, and 1 / (1 − share) times itself otherwise.
    /// The same key drops the same numbers.
    /// Refuses a share that is not within 0 ≤ share < 1.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// let x = Tensor::full(&[1000], 1.0, DType::F32)?;
    /// let y = x.dropout(0.5, 7)?.to_vec::<f32>()?;
    /// assert!(y.iter().all(|&y| y == 0.0 || y == 2.0));
    /// assert!((400..600).contains(&y.iter().filter(|&&y| y == 0.0).count()));
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn dropout(&self, share: f64, key: u64) -> Result<Tensor> {
        ensure!((0.0..1.0).contains(&share), "dropout: a share of {share} is not within 0..1");
        if share == 0.0 {
            return Ok(self.clone());
        }
        if self.dtype().is_half() {
            return in_f32([self], |[x]| x.dropout(share, key));
        }
        let out = self.backend().dropout(&self.detach().contiguous()?, share, key)?;
        Ok(out.record("dropout", &[self], move |g, to| to.add(0, g.dropout(share, key)?)))
    }
}

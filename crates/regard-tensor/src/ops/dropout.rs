//! Dropout: numbers left out at random, the others made larger.

use crate::dtype::{Float, floats};
use crate::parallel;
use crate::{Result, Tensor, ensure};
use regard_kernels::philox;

/// Numbers at places from `start` on (a multiple of 4), kept and scaled or set to 0: whether one
/// is kept depends on its place and the key alone, so backward draws the same.
fn drop<T: Float>(from: &[T], start: usize, key: u64, below: u64, factor: T, to: &mut [T]) {
    let words = [key as u32, (key >> 32) as u32];
    for (quad, (from, to)) in from.chunks(4).zip(to.chunks_mut(4)).enumerate() {
        let at = (start / 4 + quad) as u64;
        let draws = philox([at as u32, (at >> 32) as u32, 0, 0x6472_6f70], words);
        for ((to, &x), word) in to.iter_mut().zip(from).zip(draws) {
            *to = if u64::from(word) < below { T::ZERO } else { x * factor };
        }
    }
}

impl Tensor {
    /// Each number is 0 with probability `share`, and 1 / (1 − share) times itself otherwise.
    /// The same key drops the same numbers.
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
        let below = (share * 4294967296.0) as u64;
        let x = self.detach().contiguous()?;
        let out = floats!(x.dtype(), "dropout", T => {
            let from = x.numbers::<T>("dropout")?;
            let factor = (1.0 / (1.0 - share)) as T;
            Tensor::build(x.shape(), |to: &mut [T]| {
                parallel::pieces(to, |at, to| drop(&from[at..][..to.len()], at, key, below, factor, to));
            })
        })?;
        Ok(out.record("dropout", &[self], move |g, to| to.add(0, g.dropout(share, key)?)))
    }
}

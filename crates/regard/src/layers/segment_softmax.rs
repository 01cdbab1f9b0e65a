//! Softmax among the rows that share an index.

use regard_tensor::{DType, Result, Tensor, ensure};

/// Softmax among the rows that share an index: scores `[E, H]` and an index `[E]` below n per row
/// give `[E, H]`; the rows of one index sum to 1 in each column. No `[n, E]` array exists.
/// Refuses scores that are not `[E, H]`, and indices that are not one for each row, or not below n.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::segment_softmax;
/// let scores = Tensor::from_vec(vec![0.0, 5.0, 0.0], &[3, 1])?;
/// let weights = segment_softmax(&scores, &Tensor::from_vec(vec![1i64, 0, 1], &[3])?, 2)?;
/// assert_eq!(weights.to_vec::<f64>()?, [0.5, 1.0, 0.5]);
/// # Ok::<(), regard::Error>(())
/// ```
pub fn segment_softmax(scores: &Tensor, index: &Tensor, n: usize) -> Result<Tensor> {
    ensure!(
        scores.rank() == 2 && index.rank() == 1 && index.shape()[0] == scores.shape()[0],
        "segment_softmax: scores of shape {:?} and an index of shape {:?}; [E, H] and [E] fit",
        scores.shape(),
        index.shape()
    );
    // The largest score of each index is subtracted, so that nothing overflows; a shift changes
    // no weight, so it needs no gradient.
    let columns = scores.shape()[1];
    let places = index.to_indices("segment_softmax")?;
    if let Some(at) = places.iter().position(|&i| i < 0 || i >= n as i64) {
        ensure!(false, "segment_softmax: index {} at place {at} is not within 0..{n}", places[at]);
    }
    let plain = scores.detach().to_dtype(DType::F64)?.to_vec::<f64>()?;
    let mut largest = vec![f64::NEG_INFINITY; n * columns];
    for (row, &place) in places.iter().enumerate() {
        let to = &mut largest[place as usize * columns..][..columns];
        for (to, &x) in to.iter_mut().zip(&plain[row * columns..]) {
            *to = to.max(x);
        }
    }
    let largest = Tensor::from_vec(largest, &[n, columns])?.to_dtype(scores.dtype())?;
    let largest = largest.to_device(scores.device())?;
    let powers = scores.sub(&largest.rows(index)?)?.exp()?;
    powers.div(&powers.segment_sum(index, n)?.rows(index)?)
}

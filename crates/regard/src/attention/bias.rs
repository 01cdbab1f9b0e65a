//! What is added to the scores.

use regard_tensor::Tensor;

/// What is added to the scores; the tensors may be learned.
///
/// ```
/// use regard::prelude::*;
/// let bias = Bias { key: Some(Tensor::zeros(&[2, 7], DType::F32)?), ..Bias::default() };
/// # let _ = bias;
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Bias {
    /// One number per key: `[B, Nk]`, `[Nk]`, or `[B, Hq, 1, Nk]` where heads differ.
    pub key: Option<Tensor>,
    /// Broadcasts to `[B, Hq, Nq, Nk]`.
    pub full: Option<Tensor>,
    /// ALiBi: minus slope times distance, one slope per query head.
    pub alibi: Option<Vec<f64>>,
    /// `[1 or Hq, 2R + 1]`: read at the distance, held within ±R.
    pub relative: Option<Tensor>,
}

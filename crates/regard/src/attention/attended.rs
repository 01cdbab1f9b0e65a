//! What attention gives.

use regard_tensor::{Result, Tensor};

/// What attention gives: the output, and what was asked for by [`Need`](super::Need). The shapes
/// are those of q `[B, Hq, Nq, D]`; axes that q lacks are missing here too.
///
/// ```
/// use regard::prelude::*;
/// let x = Tensor::from_vec(vec![1f32, 0.0, 0.0, 1.0], &[2, 2])?;
/// let hard = Attention { normalizer: Normalizer::Argmax, ..Attention::new(Score::dot()) };
/// let attended = hard.attend(&x, &x, &x, &Mask::none(), Need::OUTPUT)?;
/// assert_eq!(attended.index.unwrap().to_vec::<i64>()?, [0, 1]);
/// assert_eq!(attended.out.to_vec::<f32>()?, x.to_vec::<f32>()?);
/// assert!(attended.weights.is_none());
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attended {
    /// `[B, Hq, Nq, Dv]`
    pub out: Tensor,
    /// `[B, Hq, Nq, Nk]`, where they were asked for: what v was multiplied by, dropout included.
    /// Differentiable for the soft normalizers.
    pub weights: Option<Tensor>,
    /// `[B, Hq, E]`, where they were asked for: the weights along the edges of the mask, in the order
    /// of [`Edges`](super::Edges), dropout included. Differentiable for the soft normalizers.
    pub edge_weights: Option<Tensor>,
    /// `[B, Hq, Nq]`, where it was asked for: the log of the summed exponentials of the scores, −∞
    /// for a query that sees no key. Differentiable for softmax and for hard attention.
    pub lse: Option<Tensor>,
    /// `[B, Hq, Nq]`: the key that hard attention chose, −1 where there was none.
    pub index: Option<Tensor>,
    /// `[B, Hq, Nq]`: the log-probability of the chosen key; its gradient trains the scores. Argmax, which
    /// needs no exponential, leaves it out where nothing but the output is needed and nothing is learned.
    pub log_prob: Option<Tensor>,
}

impl From<Tensor> for Attended {
    /// An output and nothing else.
    fn from(out: Tensor) -> Self {
        Self { out, weights: None, edge_weights: None, lse: None, index: None, log_prob: None }
    }
}

impl Attended {
    /// Another output, and everything that has a row for each query changed by `f`.
    pub(crate) fn changed(
        self,
        out: Tensor,
        f: impl Fn(Tensor) -> Result<Tensor>,
    ) -> Result<Attended> {
        let each = |x: Option<Tensor>| x.map(&f).transpose();
        Ok(Attended {
            out,
            weights: each(self.weights)?,
            edge_weights: self.edge_weights,
            lse: each(self.lse)?,
            index: each(self.index)?,
            log_prob: each(self.log_prob)?,
        })
    }
}

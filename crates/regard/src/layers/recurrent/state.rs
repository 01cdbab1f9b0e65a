//! What a recurrent network remembers between steps.

use regard_tensor::{Result, Tensor, ensure};

/// The states of a recurrent network: for every layer, and within it every direction, `[B, H]`.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::RecurrentState;
/// // As PyTorch has them: [layers · directions, B, H].
/// let h = Tensor::zeros(&[2, 3, 8], DType::F32)?;
/// let state = RecurrentState::stacked(&h, None)?;
/// assert_eq!(state.h.len(), 2);
/// assert_eq!(state.reorder(&[2, 2])?.h[0].shape(), [2, 8]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RecurrentState {
    /// The hidden states.
    pub h: Vec<Tensor>,
    /// The LSTM's cells; empty for the other units.
    pub c: Vec<Tensor>,
}

impl RecurrentState {
    /// From tensors `[layers · directions, B, H]`.
    /// Refuses tensors that are not `[layers · directions, B, H]`.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::RecurrentState;
    /// let h = Tensor::zeros(&[2, 3, 8], DType::F32)?;
    /// let state = RecurrentState::stacked(&h, Some(&h))?;
    /// assert_eq!((state.h.len(), state.c.len(), state.h[0].shape()), (2, 2, &[3, 8][..]));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn stacked(h: &Tensor, c: Option<&Tensor>) -> Result<Self> {
        let apart = |x: &Tensor| -> Result<Vec<Tensor>> {
            ensure!(
                x.rank() == 3,
                "recurrent states of shape {:?}; they are [layers · directions, B, H]",
                x.shape()
            );
            (0..x.shape()[0]).map(|at| x.select(0, at)).collect()
        };
        Ok(Self { h: apart(h)?, c: c.map(apart).transpose()?.unwrap_or_default() })
    }

    /// Keeps and repeats batch items: what a beam does when its hypotheses change places.
    /// Refuses an item that is not there.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::RecurrentState;
    /// let h = Tensor::from_vec(vec![5f32, 6.0], &[1, 2, 1])?;
    /// let state = RecurrentState::stacked(&h, None)?.reorder(&[1, 1, 0])?;
    /// assert_eq!(state.h[0].to_vec::<f32>()?, [6.0, 6.0, 5.0]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn reorder(&self, items: &[usize]) -> Result<Self> {
        let pick = |all: &[Tensor]| all.iter().map(|x| x.pick(items)).collect::<Result<Vec<_>>>();
        Ok(Self { h: pick(&self.h)?, c: pick(&self.c)? })
    }
}

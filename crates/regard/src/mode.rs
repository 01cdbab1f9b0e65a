//! Whether a model learns or is used.

use regard_kernels::Dropout;
use regard_tensor::{Random, Result, Tensor, ensure};

/// Whether a model learns or is used: only while it learns is anything dropped or sampled, and
/// then by the given stream of random numbers.
///
/// ```
/// use regard::prelude::*;
/// let x = Tensor::full(&[8], 1.0, DType::F32)?;
/// assert_eq!(Mode::Infer.dropout(&x, 0.5)?.to_vec::<f32>()?, [1.0; 8]);
/// let random = Random::new(1);
/// assert!(Mode::Train(&random).dropout(&x, 0.5)?.to_vec::<f32>()?.contains(&0.0));
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Mode<'a> {
    /// Used: nothing is random. Gradients still flow, which saliency needs; where nobody asks for
    /// them, [`without_gradients`](crate::tensor::without_gradients) saves the memory of the tape. What
    /// decodes step by step (`extend`, `recall`) records none.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::FeedForward;
    /// let layer = Linear::new(&Parameters::new(DType::F32, 1), 4, 2, true)?;
    /// let block = FeedForward::new(&Parameters::new(DType::F32, 1), 4, 8, Activation::Relu, 0.1)?;
    /// let x = layer.weight.tensor();
    /// assert!(block.forward(&x, Mode::Infer)?.has_gradient());
    /// assert!(!without_gradients(|| block.forward(&x, Mode::Infer))?.has_gradient());
    /// # Ok::<(), regard::Error>(())
    /// ```
    Infer,
    /// Learning, with the random numbers of this stream.
    Train(&'a Random),
}

impl Mode<'_> {
    /// Whether it learns.
    ///
    /// ```
    /// use regard::prelude::*;
    /// assert!(Mode::Train(&Random::new(1)).is_training() && !Mode::Infer.is_training());
    /// ```
    pub fn is_training(&self) -> bool {
        matches!(self, Self::Train(_))
    }

    /// Dropout of attention's weights while it learns, none otherwise.
    ///
    /// ```
    /// use regard::prelude::*;
    /// assert!(Mode::Infer.weights_dropout(0.5).is_none());
    /// assert!(Mode::Train(&Random::new(1)).weights_dropout(0.5).is_some());
    /// ```
    pub fn weights_dropout(&self, share: f64) -> Option<Dropout> {
        match self {
            // What is no share at all is for the operator to refuse.
            Self::Train(random) if share != 0.0 => Some(Dropout { p: share, seed: random.key() }),
            _ => None,
        }
    }

    /// Dropout while it learns, the tensor itself otherwise.
    /// Refuses a share that is not within 0 ≤ share < 1.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let x = Tensor::full(&[100], 1.0, DType::F32)?;
    /// let half = Mode::Train(&Random::new(1)).dropout(&x, 0.5)?.to_vec::<f32>()?;
    /// // what is kept makes up for what is left out
    /// assert!(half.contains(&0.0) && half.iter().all(|&x| x == 0.0 || x == 2.0));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn dropout(&self, x: &Tensor, share: f64) -> Result<Tensor> {
        check_dropout(share)?;
        match self {
            Self::Train(random) if share > 0.0 => x.dropout(share, random.key()),
            _ => Ok(x.clone()),
        }
    }
}

/// Refuses what is no share of numbers to leave out.
pub(crate) fn check_dropout(share: f64) -> Result<()> {
    ensure!((0.0..1.0).contains(&share), "a dropout of {share} is not within 0..1");
    Ok(())
}

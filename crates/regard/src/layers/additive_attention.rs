//! Bahdanau's attention.

use crate::{Attended, Mask, Mechanism, MechanismConfig, Mode, Need, ScoreConfig};
use regard_tensor::{Parameters, Result, Tensor};

/// Attention by s(q, k) = w · tanh(W_q q + W_k k) and softmax (Bahdanau, Cho, Bengio 2015): queries
/// and keys of any widths. A [`Mechanism`] with [`ScoreConfig::Additive`]; other weightings and
/// dropout are set there.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::AdditiveAttention;
/// let parameters = Parameters::new(DType::F32, 1);
/// let attention = AdditiveAttention::new(&parameters, 6, 10, 16)?;
/// let random = Random::new(1);
/// let state = random.normal(&[6], 0.0, 1.0, DType::F32)?;
/// let memory = random.normal(&[7, 10], 0.0, 1.0, DType::F32)?;
/// let attended = attention.attend(&state, &memory, &memory, &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(attended.out.shape(), [10]);
/// assert_eq!(attended.weights.unwrap().shape(), [7]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AdditiveAttention {
    /// What attends.
    pub mechanism: Mechanism,
}

impl AdditiveAttention {
    /// For queries of width `dq` and keys of width `dk`, with `W_q` and `W_k` of `hidden` rows and
    /// `w_v`, all with Glorot's first values.
    /// Refuses sizes that no memory holds, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::AdditiveAttention;
    /// let parameters = Parameters::new(DType::F32, 1);
    /// AdditiveAttention::new(&parameters, 6, 10, 16)?;
    /// let names: Vec<_> = parameters.all().iter().map(|p| p.name().to_string()).collect();
    /// assert_eq!(names, ["W_k.weight", "W_q.weight", "w_v.weight"]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, dq: usize, dk: usize, hidden: usize) -> Result<Self> {
        let config = MechanismConfig::new(ScoreConfig::Additive { hidden });
        Ok(Self { mechanism: Mechanism::new(parameters, &config, dq, dk)? })
    }

    /// q `[B, Nq, Dq]`, k `[B, Nk, Dk]`, v `[B, Nk, Dv]` → `[B, Nq, Dv]`, and the other ranks of
    /// [`Mechanism::attend`].
    /// Refuses shapes that do not fit, two types, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::AdditiveAttention;
    /// # let attention = AdditiveAttention::new(&Parameters::new(DType::F32, 1), 6, 10, 16)?;
    /// let (q, k) = (Tensor::zeros(&[2, 3, 6], DType::F32)?, Tensor::zeros(&[2, 7, 10], DType::F32)?);
    /// let out = attention.forward(&q, &k, &k, &Mask::lengths(&[7, 2]), Mode::Infer)?;
    /// assert_eq!(out.shape(), [2, 3, 10]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        mask: &Mask,
        mode: Mode,
    ) -> Result<Tensor> {
        Ok(self.attend(q, k, v, mask, mode, Need::OUTPUT)?.out)
    }

    /// As [`AdditiveAttention::forward`], with the weights `[B, Nq, Nk]` where they are needed.
    /// Refuses shapes that do not fit, two types, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::AdditiveAttention;
    /// # let attention = AdditiveAttention::new(&Parameters::new(DType::F32, 1), 6, 10, 16)?;
    /// let (q, k) = (Tensor::zeros(&[2, 3, 6], DType::F32)?, Tensor::zeros(&[2, 7, 10], DType::F32)?);
    /// let attended = attention.attend(&q, &k, &k, &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
    /// assert_eq!(attended.weights.unwrap().shape(), [2, 3, 7]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn attend(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        mask: &Mask,
        mode: Mode,
        need: Need,
    ) -> Result<Attended> {
        self.mechanism.attend(q, k, v, mask, mode, need)
    }
}

//! Queries that are learned, or many over one memory.

use super::{Mechanism, MechanismConfig};
use crate::{Attended, Mask, Mode, Need};
use regard_tensor::{Init, Parameter, Parameters, Result, Tensor, ensure};

impl Mechanism {
    /// M queries over one memory, their outputs side by side: q `[B, M, Dq]`, k `[B, N, Dk]`, v
    /// `[B, N, Dv]` → `[B, M · Dv]`; the weights, where they are asked for, are `[B, M, N]`.
    /// Refuses shapes that do not fit, two types, and a mask of another shape.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let plain = Mechanism::new(&Parameters::new(DType::F32, 1), &MechanismConfig::default(), 4, 4)?;
    /// let random = Random::new(1);
    /// let q = random.normal(&[2, 3, 4], 0.0, 1.0, DType::F32)?;
    /// let (k, v) = (random.normal(&[2, 7, 4], 0.0, 1.0, DType::F32)?, random.normal(&[2, 7, 5], 0.0, 1.0, DType::F32)?);
    /// let attended = plain.concatenated(&q, &k, &v, &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
    /// assert_eq!(attended.out.shape(), [2, 15]);
    /// assert_eq!(attended.weights.unwrap().shape(), [2, 3, 7]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn concatenated(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        mask: &Mask,
        mode: Mode,
        need: Need,
    ) -> Result<Attended> {
        ensure!(q.rank() == 3, "queries of shape {:?}; they are [B, M, Dq]", q.shape());
        let mut attended = self.attend(q, k, v, mask, mode, need)?;
        let s = attended.out.shape().to_vec();
        attended.out = attended.out.reshape(&[s[0], s[1] * s[2]])?;
        Ok(attended)
    }
}

/// Learned queries that ask a set or a memory: with one, plain attention over X; with more, their
/// outputs side by side.
///
/// ```
/// use regard::prelude::*;
/// use regard::attention::LearnedQueries;
/// let parameters = Parameters::new(DType::F32, 1);
/// let two = LearnedQueries::new(&parameters, &MechanismConfig::default(), 2, 4, 4)?;
/// let x = Random::new(1).normal(&[3, 7, 4], 0.0, 1.0, DType::F32)?;
/// let attended = two.attend(&x, &x, &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(attended.out.shape(), [3, 8]);
/// assert_eq!(attended.weights.unwrap().shape(), [3, 2, 7]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LearnedQueries {
    /// `[M, Dq]`
    pub query: Parameter,
    /// How a query attends.
    pub mechanism: Mechanism,
}

impl LearnedQueries {
    /// `count` queries of width `dq` for keys of width `dk`, with Glorot's first values.
    /// Refuses a configuration that does not fit together, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::attention::LearnedQueries;
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let two = LearnedQueries::new(&parameters, &MechanismConfig::default(), 2, 4, 4)?;
    /// assert_eq!(two.query.tensor().shape(), [2, 4]);
    /// let error = LearnedQueries::new(&parameters, &MechanismConfig::default(), 0, 4, 4).unwrap_err();
    /// assert_eq!(error.to_string(), "attention with 0 learned queries");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(
        parameters: &Parameters,
        config: &MechanismConfig,
        count: usize,
        dq: usize,
        dk: usize,
    ) -> Result<Self> {
        ensure!(count > 0, "attention with 0 learned queries");
        Ok(Self {
            query: parameters.parameter("query", &[count, dq], Init::Glorot)?,
            mechanism: Mechanism::new(&parameters.at("mechanism"), config, dq, dk)?,
        })
    }

    /// The queries for a batch, `[B, M, Dq]`.
    fn queries(&self, batch: usize) -> Result<Tensor> {
        let query = self.query.tensor();
        query.broadcast_to(&[batch, query.shape()[0], query.shape()[1]])
    }

    /// k `[B, N, Dk]`, v `[B, N, Dv]` → `[B, M · Dv]`; the weights, where they are asked for, are
    /// `[B, M, N]`.
    /// Refuses shapes that do not fit, two types, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::attention::LearnedQueries;
    /// # let parameters = Parameters::new(DType::F64, 1);
    /// # let two = LearnedQueries::new(&parameters, &MechanismConfig::default(), 2, 4, 4)?;
    /// # let x = Random::new(1).normal(&[3, 7, 4], 0.0, 1.0, DType::F64)?;
    /// let attended = two.attend(&x, &x, &Mask::lengths(&[7, 7, 2]), Mode::Infer, Need::WEIGHTS)?;
    /// assert_eq!(attended.out.shape(), [3, 8]);
    /// // the padding of the last has no weight
    /// let last = attended.weights.unwrap().select(0, 2)?.select(0, 0)?.to_vec::<f64>()?;
    /// assert_eq!(last[2..], [0.0; 5]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn attend(
        &self,
        k: &Tensor,
        v: &Tensor,
        mask: &Mask,
        mode: Mode,
        need: Need,
    ) -> Result<Attended> {
        ensure!(k.rank() == 3, "keys of shape {:?}; they are [B, N, Dk]", k.shape());
        let q = self.queries(k.shape()[0])?;
        self.mechanism.concatenated(&q, k, v, mask, mode, need)
    }

    /// The softmax probabilities `[B, M, N]` of the keys, whatever the weighting.
    /// Refuses shapes that do not fit, two types, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::attention::LearnedQueries;
    /// # let parameters = Parameters::new(DType::F64, 1);
    /// # let two = LearnedQueries::new(&parameters, &MechanismConfig::default(), 2, 4, 4)?;
    /// # let x = Random::new(1).normal(&[3, 7, 4], 0.0, 1.0, DType::F64)?;
    /// let p = two.probabilities(&x, &Mask::none())?;
    /// assert_eq!(p.shape(), [3, 2, 7]);
    /// assert!(p.sum(2)?.to_vec::<f64>()?.iter().all(|sum| (sum - 1.0).abs() < 1e-9));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn probabilities(&self, k: &Tensor, mask: &Mask) -> Result<Tensor> {
        ensure!(k.rank() == 3, "keys of shape {:?}; they are [B, N, Dk]", k.shape());
        self.mechanism.probabilities(&self.queries(k.shape()[0])?, k, mask)
    }
}

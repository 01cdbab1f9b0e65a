//! What is attended to, made ready once for many queries.

use regard_tensor::{Result, Tensor};

/// Keys made ready to be scored, once for many queries.
///
/// ```
/// # use regard::prelude::*;
/// # let config = MechanismConfig::new(ScoreConfig::Additive { hidden: 16 });
/// # let additive = Mechanism::new(&Parameters::new(DType::F64, 1), &config, 6, 10)?;
/// # let random = Random::new(1);
/// let q = random.normal(&[2, 3, 6], 0.0, 1.0, DType::F64)?;
/// let memory = random.normal(&[2, 7, 10], 0.0, 1.0, DType::F64)?;
/// let keys = additive.keys(&memory)?;
/// for q in [&q, &q.scale(2.0)?] {
///     let ready = additive.attend_keys(q, &keys, &memory, &Mask::none(), Mode::Infer, Need::OUTPUT)?.out;
///     let anew = additive.attend(q, &memory, &memory, &Mask::none(), Mode::Infer, Need::OUTPUT)?.out;
///     assert!(ready.squared_error(&anew)?.item()? < 1e-20);
/// }
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Keys {
    /// `[B, Hk, Nk, D]`, as the operator scores them.
    pub(super) k: Tensor,
    /// `[B, Hk, 1, Nk]`: what a key adds to its scores.
    pub(super) bias: Option<Tensor>,
    /// `[B, Hk, 1, Dk]`: what queries are moved by before they are scored.
    pub(super) center: Option<Tensor>,
    /// Of the keys as they were given.
    pub(super) shape: Vec<usize>,
}

impl Keys {
    /// Keeps and repeats batch items: what a beam does when its hypotheses change places.
    /// Refuses an item that is not there.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let config = MechanismConfig::new(ScoreConfig::Additive { hidden: 16 });
    /// # let additive = Mechanism::new(&Parameters::new(DType::F64, 1), &config, 6, 10)?;
    /// # let random = Random::new(1);
    /// let q = random.normal(&[2, 3, 6], 0.0, 1.0, DType::F64)?;
    /// let memory = random.normal(&[2, 7, 10], 0.0, 1.0, DType::F64)?;
    /// let twice = additive.keys(&memory)?.reorder(&[1, 1])?;
    /// let (q, v) = (q.pick(&[0, 0])?, memory.pick(&[1, 1])?);
    /// let out = additive.attend_keys(&q, &twice, &v, &Mask::none(), Mode::Infer, Need::OUTPUT)?.out;
    /// assert_eq!(out.select(0, 0)?.to_vec::<f64>()?, out.select(0, 1)?.to_vec::<f64>()?);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn reorder(&self, items: &[usize]) -> Result<Self> {
        let pick = |x: &Option<Tensor>| x.as_ref().map(|x| x.pick(items)).transpose();
        let mut shape = self.shape.clone();
        if let [batch, _, _, ..] = &mut shape[..] {
            *batch = items.len();
        }
        let (bias, center) = (pick(&self.bias)?, pick(&self.center)?);
        Ok(Self { k: self.k.pick(items)?, bias, center, shape })
    }

    /// Of the keys as they were given.
    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }
}

/// Keys made ready, and their values: all that queries attend to.
///
/// ```
/// use regard::prelude::*;
/// let attention = MultiHeadAttention::new(&Parameters::new(DType::F64, 1), &MultiHeadConfig::new(8, 2))?;
/// let source = Random::new(1).normal(&[3, 5, 8], 0.0, 1.0, DType::F64)?;
/// let memory = attention.remember(&source)?;
/// // [B, heads, N, head width]
/// assert_eq!(memory.values.shape(), [3, 2, 5, 4]);
/// assert_eq!(memory.reorder(&[2, 2])?.values.shape(), [2, 2, 5, 4]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Memory {
    /// The keys.
    pub keys: Keys,
    /// `[B, H, N, Dv]` or, for one head, `[B, N, Dv]`.
    pub values: Tensor,
}

impl Memory {
    /// Keeps and repeats batch items: what a beam does when its hypotheses change places.
    /// Refuses an item that is not there.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::attention::Memory;
    /// # let plain = Mechanism::new(&Parameters::new(DType::F64, 1), &MechanismConfig::default(), 4, 4)?;
    /// let x = Random::new(1).normal(&[3, 5, 4], 0.0, 1.0, DType::F64)?;
    /// let memory = Memory { keys: plain.keys(&x)?, values: x };
    /// assert_eq!(memory.reorder(&[0])?.values.shape(), [1, 5, 4]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn reorder(&self, items: &[usize]) -> Result<Self> {
        Ok(Self { keys: self.keys.reorder(items)?, values: self.values.pick(items)? })
    }
}

//! What is asked of attention beside its output.

/// What is asked of attention beside its output.
///
/// ```
/// use regard::prelude::*;
/// let x = Random::new(1).normal(&[5, 8], 0.0, 1.0, DType::F32)?;
/// let attention = Attention::new(Score::ScaledDot);
/// let plain = attention.attend(&x, &x, &x, &Mask::none(), Need::OUTPUT)?;
/// assert!(plain.weights.is_none() && plain.lse.is_none());
/// let both = Need { weights: true, lse: true };
/// let both = attention.attend(&x, &x, &x, &Mask::none(), both)?;
/// assert_eq!((both.weights.unwrap().shape(), both.lse.unwrap().shape()), (&[5, 5][..], &[5][..]));
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// The weights.
    pub weights: bool,
    /// The log of the summed exponentials of each query's scores.
    pub lse: bool,
}

impl Need {
    /// The output and nothing else.
    pub const OUTPUT: Self = Self { weights: false, lse: false };
    /// The weights too.
    pub const WEIGHTS: Self = Self { weights: true, lse: false };
    /// The log-sum-exp too.
    pub const LSE: Self = Self { weights: false, lse: true };
}

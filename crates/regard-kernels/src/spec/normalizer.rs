//! Normalizers: how the scores of a row become its weights.

/// How the scores of a row become its weights.
///
/// ```
/// use regard_kernels::{Normalizer, Spec};
/// let spec = Spec { normalizer: Normalizer::Sparsemax, ..Spec::<f32>::scaled_dot(8) };
/// # let _ = spec;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Normalizer {
    /// exp(s), divided by its sum.
    Softmax,
    /// The nearest point of the simplex, with exact zeros (Martins and Astudillo 2016).
    Sparsemax,
    /// Between softmax and sparsemax (Peters, Niculae and Martins 2019).
    Entmax15,
    /// 1 / (1 + exp(−s)), each weight on its own.
    Sigmoid,
    /// The scores themselves.
    None,
    /// All on the largest score (the first of equals). No gradient to the scores but that of the
    /// chosen key's log-probability, where one arrives.
    Argmax,
    /// All on one key drawn from the softmax, by Gumbel-max. Gradients as for `Argmax`.
    Sample {
        /// The same seed draws the same keys.
        seed: u64,
    },
}

impl Normalizer {
    /// Whether one key is chosen and the others get nothing.
    ///
    /// ```
    /// use regard_kernels::Normalizer;
    /// assert!(Normalizer::Argmax.is_hard() && !Normalizer::Softmax.is_hard());
    /// ```
    pub fn is_hard(self) -> bool {
        matches!(self, Self::Argmax | Self::Sample { .. })
    }

    /// Whether a row is normalized by a threshold that must see the whole of it.
    pub(crate) fn has_threshold(self) -> bool {
        matches!(self, Self::Sparsemax | Self::Entmax15)
    }

    /// Whether backward needs each row's log-sum-exp.
    pub(crate) fn needs_lse(self) -> bool {
        self == Self::Softmax
    }
}

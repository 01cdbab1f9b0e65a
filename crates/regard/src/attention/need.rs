//! What is asked of attention beside its output.

/// What is asked of attention beside its output.
///
/// ```
/// use regard::prelude::*;
/// let x = Random::new(1).normal(&[5, 8], 0.0, 1.0, DType::F32)?;
/// let attention = Attention::new(Score::ScaledDot);
/// let plain = attention.attend(&x, &x, &x, &Mask::none(), Need::OUTPUT)?;
/// assert!(plain.weights.is_none() && plain.lse.is_none());
/// let both = Need { weights: true, lse: true, ..Need::OUTPUT };
/// let both = attention.attend(&x, &x, &x, &Mask::none(), both)?;
/// assert_eq!((both.weights.unwrap().shape(), both.lse.unwrap().shape()), (&[5, 5][..], &[5][..]));
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// The weights.
    pub weights: bool,
    /// The weights along the edges of the mask, in place of an array of all pairs.
    pub edge_weights: bool,
    /// The log of the summed exponentials of each query's scores.
    pub lse: bool,
}

impl Need {
    /// The output and nothing else.
    pub const OUTPUT: Self = Self { weights: false, edge_weights: false, lse: false };
    /// The weights too.
    pub const WEIGHTS: Self = Self { weights: true, ..Self::OUTPUT };
    /// The log-sum-exp too.
    pub const LSE: Self = Self { lse: true, ..Self::OUTPUT };
    /// The weights along the edges of the mask too.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::attention::Edges;
    /// let edges = Edges::new(2, 2, &[(0, 1), (1, 0), (1, 1)])?;
    /// let x = Tensor::zeros(&[2, 4], DType::F32)?;
    /// let attention = Attention::new(Score::dot());
    /// let seen = attention.attend(&x, &x, &x, &Mask::edges(edges.into()), Need::EDGE_WEIGHTS)?;
    /// assert_eq!(seen.edge_weights.unwrap().to_vec::<f32>()?, [1.0, 0.5, 0.5]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub const EDGE_WEIGHTS: Self = Self { edge_weights: true, ..Self::OUTPUT };
}

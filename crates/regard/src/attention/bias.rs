//! What is added to the scores.

use regard_tensor::Tensor;

/// What is added to the scores; the tensors may be learned.
///
/// ```
/// use regard::prelude::*;
/// let distances = Tensor::from([[0f32, -1.0], [-1.0, 0.0]]);
/// let attention = Attention { bias: distances.into(), ..Attention::new(Score::ScaledDot) };
/// let x = Tensor::zeros(&[1, 2, 4], DType::F32)?;
/// let seen = attention.attend(&x, &x, &x, &Mask::none(), Need::WEIGHTS)?.weights.unwrap();
/// assert!(seen.i((0, 0, 0))?.item()? > seen.i((0, 0, 1))?.item()?);
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

/// Added to the scores as it is: it broadcasts to `[B, Hq, Nq, Nk]`.
impl From<Tensor> for Bias {
    fn from(full: Tensor) -> Self {
        Self { full: Some(full), ..Self::default() }
    }
}

impl Bias {
    /// One number per key: `[B, Nk]`, `[Nk]`, or `[B, Hq, 1, Nk]` where heads differ.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let bias = Bias::key(Tensor::from([0f32, f32::NEG_INFINITY]));
    /// let attention = Attention { bias, ..Attention::new(Score::ScaledDot) };
    /// let x = Tensor::zeros(&[1, 2, 4], DType::F32)?;
    /// let seen = attention.attend(&x, &x, &x, &Mask::none(), Need::WEIGHTS)?.weights.unwrap();
    /// assert_eq!(seen.to_vec::<f32>()?, [1.0, 0.0, 1.0, 0.0]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn key(key: Tensor) -> Self {
        Self { key: Some(key), ..Self::default() }
    }

    /// ALiBi: minus slope times distance, one slope per query head; see
    /// [`alibi_slopes`](crate::layers::alibi_slopes).
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::alibi_slopes;
    /// assert_eq!(Bias::alibi(alibi_slopes(2)).alibi.unwrap().len(), 2);
    /// ```
    pub fn alibi(slopes: Vec<f64>) -> Self {
        Self { alibi: Some(slopes), ..Self::default() }
    }

    /// A learned number per distance, `[1 or Hq, 2R + 1]`: read at the distance, held within ±R.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let bias = Bias::relative(Tensor::from([[0f32, 1.0, 0.0]]));
    /// assert_eq!(bias.relative.unwrap().shape(), [1, 3]);
    /// ```
    pub fn relative(table: Tensor) -> Self {
        Self { relative: Some(table), ..Self::default() }
    }
}

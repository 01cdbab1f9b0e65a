//! A vector for each token.

use regard_tensor::{Init, Parameter, Parameters, Result, Tensor, ensure};

/// A learned vector for each token of a vocabulary: ids `[…]` → `[…, width]`.
///
/// ```
/// use regard::prelude::*;
/// let embedding = Embedding::new(&Parameters::new(DType::F32, 1), 100, 8, Some(0))?;
/// let ids = Tensor::from_vec(vec![5i64, 0, 5], &[1, 3])?;
/// let x = embedding.forward(&ids)?;
/// assert_eq!(x.shape(), [1, 3, 8]);
/// assert_eq!(x.select(1, 1)?.to_vec::<f32>()?, [0.0; 8]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Embedding {
    /// `[vocabulary, width]`
    pub weight: Parameter,
    /// The token whose vector is 0 and learns nothing.
    pub padding: Option<usize>,
}

impl Embedding {
    /// New, drawn with deviation width^−½; `padding` is 0 and stays so.
    /// Refuses a vocabulary or a width of 0, a padding beyond the vocabulary, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let parameters = Parameters::new(DType::F32, 1);
    /// assert_eq!(Embedding::new(&parameters, 100, 8, None)?.weight.tensor().shape(), [100, 8]);
    /// let error = Embedding::new(&parameters.at("other"), 100, 8, Some(100)).unwrap_err();
    /// assert_eq!(error.to_string(), "padding token 100 of 100");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(
        parameters: &Parameters,
        vocabulary: usize,
        width: usize,
        padding: Option<usize>,
    ) -> Result<Self> {
        ensure!(vocabulary > 0 && width > 0, "an embedding of {vocabulary} tokens, width {width}");
        let deviation = (width as f64).powf(-0.5);
        let weight =
            parameters.parameter("weight", &[vocabulary, width], Init::Normal(deviation))?;
        if let Some(padding) = padding {
            ensure!(padding < vocabulary, "padding token {padding} of {vocabulary}");
            let value = weight.tensor().detach();
            let keep = (0..vocabulary).map(|token| token != padding).collect::<Vec<_>>();
            let keep = Tensor::from_bools(&keep, &[vocabulary, 1])?;
            weight.set(&keep.where_(&value, &Tensor::zeros(&[], value.dtype())?)?)?;
        }
        Ok(Self { weight, padding })
    }

    /// The vectors of tokens.
    /// Refuses ids beyond the vocabulary.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let embedding = Embedding::new(&Parameters::new(DType::F32, 1), 100, 8, None)?;
    /// let x = embedding.forward(&Tensor::from_vec(vec![5i64, 7, 5], &[3])?)?;
    /// assert_eq!(x.select(0, 0)?.to_vec::<f32>()?, x.select(0, 2)?.to_vec::<f32>()?);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        super::probe::probed(ids, self.weight.tensor().embed(ids, self.padding)?)
    }
}

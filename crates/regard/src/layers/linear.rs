//! x · Wᵀ + b.

use super::Activation;
use crate::dtype;
use regard_tensor::{Init, Parameter, Parameters, Result, Tensor};

/// x · Wᵀ + b: `[…, in]` → `[…, out]`.
///
/// ```
/// use regard::prelude::*;
/// let parameters = Parameters::new(DType::F32, 1);
/// let linear = Linear::new(&parameters.at("first"), 3, 5, true)?;
/// let y = linear.forward(&Tensor::zeros(&[2, 7, 3], DType::F32)?)?;
/// assert_eq!(y.shape(), [2, 7, 5]);
/// assert_eq!(parameters.all()[1].name(), "first.weight");
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Linear {
    /// `[out, in]`
    pub weight: Parameter,
    /// `[out]`
    pub bias: Option<Parameter>,
}

impl Linear {
    /// New, with Glorot's weights and a bias of zeros.
    /// Refuses sizes that no memory holds, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let linear = Linear::new(&parameters, 3, 5, false)?;
    /// assert_eq!(linear.weight.tensor().shape(), [5, 3]);
    /// assert!(linear.bias.is_none());
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, input: usize, output: usize, bias: bool) -> Result<Self> {
        Ok(Self {
            weight: parameters.parameter("weight", &[output, input], Init::Glorot)?,
            bias: bias.then(|| parameters.parameter("bias", &[output], Init::Zeros)).transpose()?,
        })
    }

    /// x · Wᵀ + b
    /// Refuses an input of another width or type.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let linear = Linear::new(&Parameters::new(DType::F32, 1), 2, 1, true)?;
    /// linear.weight.set(&Tensor::from_vec(vec![1f32, 2.0], &[1, 2])?)?;
    /// linear.bias.as_ref().unwrap().set(&Tensor::from_vec(vec![100f32], &[1])?)?;
    /// let x = Tensor::from_vec(vec![3f32, 4.0], &[1, 2])?;
    /// assert_eq!(linear.forward(&x)?.item()?, 111.0);
    /// let error = linear.forward(&x.to_dtype(DType::F64)?).unwrap_err().to_string();
    /// assert!(error.starts_with("linear: x is f64, the weight is f32"), "{error}");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (weight, bias) = (self.weight.tensor(), self.bias.as_ref().map(Parameter::tensor));
        dtype::check("linear", "x", x, "the weight", &weight)?;
        x.linear(&weight, bias.as_ref())
    }

    /// f(x · Wᵀ + b), bias and f in one pass.
    /// Refuses an input of another width or type.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let linear = Linear::new(&Parameters::new(DType::F32, 1), 1, 2, true)?;
    /// linear.weight.set(&Tensor::from_vec(vec![1f32, -1.0], &[2, 1])?)?;
    /// let y = linear.activated(&Tensor::from_vec(vec![3f32], &[1, 1])?, Activation::Relu)?;
    /// assert_eq!(y.to_vec::<f32>()?, [3.0, 0.0]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn activated(&self, x: &Tensor, f: Activation) -> Result<Tensor> {
        let weight = self.weight.tensor();
        dtype::check("linear", "x", x, "the weight", &weight)?;
        let y = x.linear(&weight, None)?;
        match &self.bias {
            Some(bias) => y.activate_with(&bias.tensor(), f),
            None => y.activate(f),
        }
    }
}

//! x · Wᵀ + b.

use super::Nonlinearity;
use regard_tensor::{Init, Parameter, Parameters, Result, Tensor};

/// x · Wᵀ + b: `[…, in]` → `[…, out]`.
///
/// ```
/// use regard::{DType, Linear, Parameters, Tensor};
/// let parameters = Parameters::new(DType::F32, 1);
/// let linear = Linear::new(&parameters.at("first"), 3, 5, true)?;
/// let y = linear.forward(&Tensor::zeros(&[2, 7, 3], DType::F32)?)?;
/// assert_eq!(y.shape(), [2, 7, 5]);
/// assert_eq!(parameters.all()[1].name(), "first.weight");
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Linear {
    /// `[out, in]`
    pub weight: Parameter,
    /// `[out]`
    pub bias: Option<Parameter>,
}

impl Linear {
    /// New, with Glorot's weights and a bias of zeros.
    pub fn new(parameters: &Parameters, input: usize, output: usize, bias: bool) -> Result<Self> {
        Ok(Self {
            weight: parameters.parameter("weight", &[output, input], Init::Glorot)?,
            bias: bias.then(|| parameters.parameter("bias", &[output], Init::Zeros)).transpose()?,
        })
    }

    /// x · Wᵀ + b
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let bias = self.bias.as_ref().map(Parameter::tensor);
        x.linear(&self.weight.tensor(), bias.as_ref())
    }

    /// f(x · Wᵀ + b), bias and f in one pass.
    pub fn activated(&self, x: &Tensor, f: Nonlinearity) -> Result<Tensor> {
        let y = x.linear(&self.weight.tensor(), None)?;
        match &self.bias {
            Some(bias) => y.activate_with(&bias.tensor(), f.pointwise()),
            None => f.of(&y),
        }
    }
}

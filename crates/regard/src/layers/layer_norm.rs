//! Layer normalization.

use crate::dtype;
use regard_tensor::{Init, Parameter, Parameters, Result, Tensor, ensure};

/// Rows of mean 0 and variance 1, times a learned gain plus a learned shift.
///
/// ```
/// use regard::prelude::*;
/// let norm = LayerNorm::new(&Parameters::new(DType::F32, 1), 2)?;
/// let y = norm.forward(&Tensor::from_vec(vec![10f32, 30.0], &[1, 2])?)?.to_vec::<f32>()?;
/// assert!((y[0] + 1.0).abs() < 1e-3 && (y[1] - 1.0).abs() < 1e-3);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LayerNorm {
    /// The gain, `[width]`.
    pub weight: Parameter,
    /// The shift, `[width]`.
    pub bias: Parameter,
    /// Added to the variance.
    pub eps: f64,
}

impl LayerNorm {
    /// New, with a gain of 1 and no shift.
    /// Refuses sizes that no memory holds, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let norm = LayerNorm::new(&Parameters::new(DType::F32, 1), 2)?;
    /// assert_eq!(norm.weight.tensor().to_vec::<f32>()?, [1.0, 1.0]);
    /// assert_eq!(norm.bias.tensor().to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, width: usize) -> Result<Self> {
        ensure!(width > 0, "layer norm over a width of 0");
        Ok(Self {
            weight: parameters.parameter("weight", &[width], Init::Ones)?,
            bias: parameters.parameter("bias", &[width], Init::Zeros)?,
            eps: 1e-5,
        })
    }

    /// The same with another number that keeps it from dividing by 0.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let norm = LayerNorm::new(&Parameters::new(DType::F32, 1), 2)?.with_eps(1e-12);
    /// assert_eq!(norm.eps, 1e-12);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn with_eps(self, eps: f64) -> Self {
        Self { eps, ..self }
    }

    /// Over the last axis.
    /// Refuses an input of another width or type.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let norm = LayerNorm::new(&Parameters::new(DType::F64, 1), 2)?;
    /// norm.bias.set(&Tensor::from_vec(vec![5.0, 5.0], &[2])?)?;
    /// let y = norm.forward(&Tensor::from_vec(vec![10.0, 30.0], &[1, 2])?)?.to_vec::<f64>()?;
    /// assert!((y[0] - 4.0).abs() < 1e-3 && (y[1] - 6.0).abs() < 1e-3);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let weight = self.weight.tensor();
        dtype::check("layer norm", "x", x, "the gain", &weight)?;
        x.layer_norm(&weight, &self.bias.tensor(), self.eps)
    }
}

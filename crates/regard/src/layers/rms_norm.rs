//! RMS normalization.

use crate::dtype;
use regard_tensor::{Init, Parameter, Parameters, Result, Tensor, ensure};

/// Rows divided by the root of their mean square, times a learned gain: a layer norm without mean and
/// shift (Zhang and Sennrich 2019).
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::RmsNorm;
/// let norm = RmsNorm::new(&Parameters::new(DType::F64, 1), 2)?;
/// let y = norm.forward(&Tensor::from([[30f64, 40.0]]))?.to_vec::<f64>()?;
/// assert!((y[0] - 0.6 * 2f64.sqrt()).abs() < 1e-6 && (y[1] - 0.8 * 2f64.sqrt()).abs() < 1e-6);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RmsNorm {
    /// The gain, `[width]`.
    pub weight: Parameter,
    /// Added to the mean square.
    pub eps: f64,
}

impl RmsNorm {
    /// New, with a gain of 1.
    /// Refuses sizes that no memory holds, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::RmsNorm;
    /// let norm = RmsNorm::new(&Parameters::new(DType::F32, 1), 2)?;
    /// assert_eq!((norm.weight.tensor().to_vec::<f32>()?, norm.eps), (vec![1.0, 1.0], 1e-6));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, width: usize) -> Result<Self> {
        ensure!(width > 0, "RMS norm over a width of 0");
        Ok(Self { weight: parameters.parameter("weight", &[width], Init::Ones)?, eps: 1e-6 })
    }

    /// The same with another number that keeps it from dividing by 0.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::RmsNorm;
    /// let norm = RmsNorm::new(&Parameters::new(DType::F32, 1), 2)?.with_eps(1e-5);
    /// assert_eq!(norm.eps, 1e-5);
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
    /// use regard::layers::RmsNorm;
    /// let norm = RmsNorm::new(&Parameters::new(DType::F32, 1), 3)?;
    /// let zeros = Tensor::zeros(&[2, 5, 3], DType::F32)?;
    /// assert_eq!(norm.forward(&zeros)?.to_vec::<f32>()?, [0.0; 30]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let weight = self.weight.tensor();
        dtype::check("RMS norm", "x", x, "the gain", &weight)?;
        x.rms_norm(&weight, self.eps)
    }
}

//! The nonlinearities by the names that configurations use.

use regard_tensor::{Pointwise, Result, Tensor};
use serde::{Deserialize, Serialize};

/// A nonlinearity, by the name a configuration gives it.
///
/// ```
/// use regard::prelude::*;
/// let known: Nonlinearity = serde_json::from_str("\"leaky-relu\"").unwrap();
/// assert_eq!(known, Nonlinearity::LeakyRelu);
/// let error = serde_json::from_str::<Nonlinearity>("\"rely\"").unwrap_err().to_string();
/// assert!(error.contains("unknown variant `rely`"), "{error}");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nonlinearity {
    /// max(x, 0)
    #[default]
    Relu,
    /// x · Φ(x)
    Gelu,
    /// GELU's approximation by tanh.
    GeluTanh,
    /// x / (1 + e⁻ˣ)
    Silu,
    /// tanh x
    Tanh,
    /// 1 / (1 + e⁻ˣ)
    Sigmoid,
    /// x where positive, 0.2 · x elsewhere.
    LeakyRelu,
    /// x where positive, eˣ − 1 elsewhere.
    Elu,
    /// x
    Identity,
}

impl Nonlinearity {
    /// As the kernels know it.
    ///
    /// ```
    /// use regard::prelude::*;
    /// assert!(matches!(Nonlinearity::LeakyRelu.pointwise(), Pointwise::LeakyRelu(0.2)));
    /// ```
    pub fn pointwise(self) -> Pointwise {
        match self {
            Self::Relu => Pointwise::Relu,
            Self::Gelu => Pointwise::Gelu,
            Self::GeluTanh => Pointwise::GeluTanh,
            Self::Silu => Pointwise::Silu,
            Self::Tanh => Pointwise::Tanh,
            Self::Sigmoid => Pointwise::Sigmoid,
            Self::LeakyRelu => Pointwise::LeakyRelu(0.2),
            Self::Elu => Pointwise::Elu(1.0),
            Self::Identity => Pointwise::Identity,
        }
    }

    /// f(x)
    ///
    /// ```
    /// use regard::prelude::*;
    /// let x = Tensor::from_vec(vec![-1f32, 2.0], &[2])?;
    /// assert_eq!(Nonlinearity::Relu.of(&x)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn of(self, x: &Tensor) -> Result<Tensor> {
        if self == Self::Identity { Ok(x.clone()) } else { x.activate(self.pointwise()) }
    }
}

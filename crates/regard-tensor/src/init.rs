//! First values of parameters.

use crate::layout::Dims;
use crate::{DType, Random, Result, Tensor};

/// How a parameter's first value is drawn. For weights `[out, in, …]` the fans are
/// in · the rest and out · the rest.
///
/// ```
/// use regard_tensor::{DType, Init, Random};
/// let w = Init::Glorot.draw(&[4, 6], DType::F32, &Random::new(1))?;
/// let bound = (6f32 / 10.0).sqrt();
/// assert!(w.to_vec::<f32>()?.iter().all(|w| w.abs() <= bound));
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Init {
    /// All 0.
    Zeros,
    /// All 1.
    Ones,
    /// All the same.
    Constant(f64),
    /// Within ± the bound.
    Uniform(f64),
    /// Normal with this deviation, around 0.
    Normal(f64),
    /// Uniform within ±√(6 / (fan in + fan out)) (Glorot and Bengio 2010).
    Glorot,
    /// Uniform within ±1/√(fan in): what linear layers and recurrent cells usually start from.
    FanIn,
}

impl Init {
    /// Draws a value.
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Random};
    /// let random = Random::new(1);
    /// assert_eq!(Init::Constant(2.0).draw(&[2], DType::F32, &random)?.to_vec::<f32>()?, [2.0, 2.0]);
    /// // a fan in of 100 keeps the weights within 0.1
    /// let w = Init::FanIn.draw(&[4, 100], DType::F32, &random)?;
    /// assert!(w.to_vec::<f32>()?.iter().all(|w| w.abs() <= 0.1));
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn draw(self, shape: &[usize], dtype: DType, random: &Random) -> Result<Tensor> {
        let shape = Dims::new(shape)?;
        let rest: usize = shape.iter().skip(2).product();
        let fan_in = shape.get(1).or(shape.first()).copied().unwrap_or(1) * rest;
        let fan_out = shape.first().copied().unwrap_or(1) * rest;
        let uniform = |bound: f64| random.uniform(&shape, -bound, bound, dtype);
        match self {
            Self::Zeros => Tensor::zeros(&shape, dtype),
            Self::Ones => Tensor::full(&shape, 1.0, dtype),
            Self::Constant(x) => Tensor::full(&shape, x, dtype),
            Self::Uniform(bound) => uniform(bound),
            Self::Normal(deviation) => random.normal(&shape, 0.0, deviation, dtype),
            Self::Glorot => uniform((6.0 / (fan_in + fan_out).max(1) as f64).sqrt()),
            Self::FanIn => uniform(1.0 / (fan_in.max(1) as f64).sqrt()),
        }
    }
}

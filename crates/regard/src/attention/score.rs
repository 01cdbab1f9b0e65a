//! How a query and a key give a score.

use super::{AnyOwnScore, Expression, ExpressionError, OwnScore};
use regard_kernels::Activation;
use regard_tensor::{DType, Error, Result, Tensor, ensure};
use std::sync::Arc;

/// How a query and a key give a score. The mechanisms' modules (bilinear, cosine, …) bring theirs
/// to one of these.
///
/// ```
/// use regard::prelude::*;
/// let x = Tensor::from_vec(vec![1.0, 3.0], &[2, 1])?;
/// // where all scores are 0, attention is the mean
/// let mean = Attention::new(Score::Dot { scale: 0.0 }).forward(&x, &x, &x, &Mask::none())?;
/// assert!(mean.to_vec::<f64>()?.iter().all(|y| (y - 2.0).abs() < 1e-9));
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum Score {
    /// q·k / √D.
    ScaledDot,
    /// q·k · scale.
    Dot {
        /// The factor.
        scale: f64,
    },
    /// Σ_d w_d · act(q_d + k_d).
    Additive {
        /// Applied to each q_d + k_d.
        activation: Activation,
        /// `[D]` or `[Hq, D]`.
        w: Tensor,
    },
    /// Your own; see [`OwnScore`].
    Own {
        /// The score.
        score: Arc<dyn AnyOwnScore>,
        /// Its learned numbers, `[P]` or `[Hq, P]`.
        parameters: Tensor,
    },
    /// One written as text; see [`Score::expression`].
    Expression {
        /// What is computed.
        expression: Arc<Expression>,
        /// The numbers of all its parameters, one after another.
        parameters: Tensor,
        /// The shape of each, heads and width.
        shapes: Vec<[usize; 2]>,
    },
}

impl Score {
    /// The plain dot product.
    ///
    /// ```
    /// use regard::prelude::*;
    /// assert!(matches!(Score::dot(), Score::Dot { scale: 1.0 }));
    /// ```
    pub fn dot() -> Self {
        Self::Dot { scale: 1.0 }
    }

    /// A score of your own with its learned numbers: `[P]`, which may be none, or `[Hq, P]`.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::attention::{OwnGrads, OwnScore, Real};
    /// /// The same for every pair, with nothing learned.
    /// struct Even;
    /// impl<T: Real> OwnScore<T> for Even {
    ///     fn score(&self, _: &[T], _: &[T], _: &[T]) -> T {
    ///         T::ZERO
    ///     }
    ///     fn backward(&self, _: &[T], _: &[T], _: &[T], _: T, _: OwnGrads<T>) {}
    /// }
    /// let mean = Attention::new(Score::own(Even, Tensor::zeros(&[0], DType::F64)?));
    /// let x = Tensor::from_vec(vec![1.0, 3.0], &[2, 1])?;
    /// assert!(mean.forward(&x, &x, &x, &Mask::none())?.to_vec::<f64>()?.iter().all(|y| (y - 2.0).abs() < 1e-9));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn own(score: impl OwnScore<f32> + OwnScore<f64> + 'static, parameters: Tensor) -> Self {
        Self::Own { score: Arc::new(score), parameters }
    }

    /// A score written as text over q, k and named parameters, each of them one number (`[]` or
    /// `[1]`), a row as wide as a head `[D]`, or one of either for each head, `[Hq, 1]` or
    /// `[Hq, D]`. Numbers and rows are added, multiplied and so on feature by feature; `@` is the
    /// dot product, `d` the width; there are sum, mean, norm, square, sqrt, abs, exp, log, tanh,
    /// sigmoid, relu, leaky_relu, gelu, softplus, sin, cos, max and min. Refuses text that makes
    /// no score, naming the column, and a parameter that is missing or not asked for, by its name.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let x = Random::new(1).normal(&[5, 4], 0.0, 1.0, DType::F32)?;
    /// let w = Tensor::from([0.5f32, 1.0, 1.5, 2.0]).requires_grad()?;
    /// let score = Score::expression("-sum(square(w * (q - k)))", &[("w", &w)])?;
    /// let out = Attention::new(score).forward(&x, &x, &x, &Mask::none())?;
    /// assert!(out.sum_all()?.backward()?.get(&w).is_some());
    /// let error = Score::expression("sum(w * tahn(q + k))", &[("w", &w)]).unwrap_err().to_string();
    /// assert!(error.starts_with("column 9"), "{error}");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn expression(text: &str, parameters: &[(&str, &Tensor)]) -> Result<Self> {
        let expression: Expression =
            text.parse().map_err(|error: ExpressionError| Error::new(error.to_string()))?;
        if let Some((name, _)) =
            parameters.iter().find(|(name, _)| !expression.parameters().iter().any(|n| n == name))
        {
            return Err(Error::new(format!("`{text}` has no parameter `{name}`")));
        }
        let mut tensors = Vec::new();
        for name in expression.parameters() {
            let found = parameters.iter().find(|(given, _)| given == name);
            let Some((_, tensor)) = found else {
                return Err(Error::new(format!("`{text}` needs the parameter `{name}`")));
            };
            tensors.push((*tensor).clone());
        }
        Self::bound(Arc::new(expression), &tensors)
    }

    /// An expression with its parameters, in the order of their first appearance.
    pub(crate) fn bound(expression: Arc<Expression>, parameters: &[Tensor]) -> Result<Self> {
        let mut shapes = Vec::new();
        let mut flat = Vec::new();
        for (name, x) in expression.parameters().iter().zip(parameters) {
            let shape = match *x.shape() {
                [] => [1, 1],
                [width] => [1, width],
                [heads, width] => [heads, width],
                ref other => {
                    return Err(Error::new(format!(
                        "parameter `{name}` of shape {other:?}; [], [D], [Hq, 1] and [Hq, D] fit"
                    )));
                }
            };
            shapes.push(shape);
            flat.push(x.reshape(&[x.numel()])?);
        }
        let parameters = match flat.len() {
            0 => Tensor::zeros(&[0], DType::F32)?,
            1 => flat.remove(0),
            _ => {
                ensure!(
                    flat.iter().all(|x| x.dtype() == flat[0].dtype()),
                    "the parameters of `{expression}` are of several types"
                );
                Tensor::cat(&flat, 0)?
            }
        };
        Ok(Self::Expression { expression, parameters, shapes })
    }
}

impl std::fmt::Debug for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ScaledDot => f.write_str("ScaledDot"),
            Self::Dot { scale } => write!(f, "Dot({scale})"),
            Self::Additive { activation, w } => {
                write!(f, "Additive({activation:?}, {:?})", w.shape())
            }
            Self::Own { parameters, .. } => write!(f, "Own({:?})", parameters.shape()),
            Self::Expression { expression, .. } => write!(f, "Expression({expression})"),
        }
    }
}

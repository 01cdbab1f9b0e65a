//! What is computed, apart from the arrays: chosen by name in Python, prepared once.

use crate::array::refused;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use regard_kernels::{Activation, Expression, Normalizer, Window};

/// A score without its learned numbers.
pub(crate) enum Score {
    /// q·k times a number; 1/√D where there is none.
    Dot(Option<f64>),
    Additive(Activation),
    Expression(Expression),
}

/// Score, normalizer, and the masks that are no arrays.
#[pyclass(frozen, module = "regard._native")]
pub(crate) struct Mechanism {
    pub(crate) score: Score,
    normalizer: Normalizer,
    pub(crate) causal: bool,
    pub(crate) window: Option<Window>,
    pub(crate) offset: Option<isize>,
}

#[pymethods]
impl Mechanism {
    /// `score` is `("dot", scale or None)`, `("additive", activation)` or `("expression", text)`.
    #[new]
    fn new(
        score: (String, Option<Bound<'_, PyAny>>),
        normalizer: &str,
        causal: bool,
        window: Option<(usize, usize)>,
        offset: Option<isize>,
    ) -> PyResult<Self> {
        let (kind, of) = score;
        let score = match (kind.as_str(), of) {
            ("dot", None) => Score::Dot(None),
            ("dot", Some(scale)) => Score::Dot(Some(scale.extract()?)),
            ("additive", Some(name)) => {
                let name = name.extract::<String>()?.replace('_', "-");
                Score::Additive(name.parse().map_err(refused)?)
            }
            ("expression", Some(text)) => {
                let text: String = text.extract()?;
                let expression = Expression::parse(&text).map_err(|error| {
                    PyValueError::new_err(format!("the score {text:?}: {error}"))
                })?;
                Score::Expression(expression)
            }
            (kind, _) => return Err(PyValueError::new_err(format!("there is no score {kind:?}"))),
        };
        let window = window.map(|(left, right)| Window { left, right });
        Ok(Self { score, normalizer: normalizer_named(normalizer)?, causal, window, offset })
    }

    /// The names of an expression's parameters, in order of first appearance.
    #[getter]
    fn parameters(&self) -> Vec<String> {
        match &self.score {
            Score::Expression(expression) => expression.parameters().to_vec(),
            _ => Vec::new(),
        }
    }
}

impl Mechanism {
    /// With the seed of this call, where keys are drawn.
    pub(crate) fn normalizer(&self, seed: u64) -> Normalizer {
        match self.normalizer {
            Normalizer::Sample { .. } => Normalizer::Sample { seed },
            other => other,
        }
    }
}

fn normalizer_named(name: &str) -> PyResult<Normalizer> {
    Ok(match name {
        "softmax" => Normalizer::Softmax,
        "sparsemax" => Normalizer::Sparsemax,
        "entmax15" => Normalizer::Entmax15,
        "sigmoid" => Normalizer::Sigmoid,
        "none" => Normalizer::None,
        "argmax" => Normalizer::Argmax,
        "sample" => Normalizer::Sample { seed: 0 },
        other => {
            return Err(PyValueError::new_err(format!(
                "there is no normalizer {other:?}; there are softmax, sparsemax, entmax15, \
                 sigmoid, none, argmax and sample"
            )));
        }
    })
}

//! Gradients held against finite differences: for the tests here, and for operations and scores
//! of one's own.

use crate::{DType, Error, Parameter, Random, Result, Tensor, ensure};

/// The largest relative difference between the gradients of `f` at some f64 inputs and central
/// differences of a randomly weighted sum of its result. Around 1e-8 where the gradient is right.
/// Refuses no inputs, inputs that are not f64, one that gets no gradient, and what the function refuses.
///
/// ```
/// use regard_tensor::{DType, Random, finite_difference_error};
/// let x = Random::new(1).normal(&[2, 3], 0.0, 1.0, DType::F64)?;
/// assert!(finite_difference_error(&[x], |x| x[0].exp()?.sum(0))? < 1e-6);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub fn finite_difference_error(
    inputs: &[Tensor],
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
) -> Result<f64> {
    let parameters = inputs.iter().enumerate();
    let parameters = parameters.map(|(at, x)| Parameter::new(format!("input {at}"), x.clone()));
    let parameters = parameters.collect::<Result<Vec<_>>>()?;
    parameter_difference_error(&parameters, || {
        f(&parameters.iter().map(Parameter::tensor).collect::<Vec<_>>())
    })
}

/// As [`finite_difference_error`], for the f64 parameters of a model. Their values are as before
/// afterwards, also where `f` fails or panics.
/// Refuses no parameters, parameters that are not f64, one that gets no gradient, and what the function refuses.
///
/// ```
/// use regard_tensor::{DType, Init, Parameters, parameter_difference_error};
/// let parameters = Parameters::new(DType::F64, 1);
/// let w = parameters.parameter("w", &[3], Init::Normal(1.0))?;
/// assert!(parameter_difference_error(&parameters.all(), || w.tensor().square())? < 1e-6);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub fn parameter_difference_error(
    parameters: &[Parameter],
    f: impl Fn() -> Result<Tensor>,
) -> Result<f64> {
    ensure!(!parameters.is_empty(), "no parameters to hold against anything");
    for parameter in parameters {
        let dtype = parameter.tensor().dtype();
        ensure!(
            dtype == DType::F64,
            "{} is {dtype}; differences are taken in f64, where rounding does not hide them",
            parameter.name()
        );
    }
    let y = f()?;
    let weights = Random::new(99).normal(y.shape(), 0.0, 1.0, DType::F64)?;
    let gradients = y.mul(&weights)?.sum_all()?.backward()?;
    let value = || f()?.mul(&weights)?.sum_all()?.item();
    let step = 1e-5;
    let mut worst = 0f64;
    for parameter in parameters {
        let gradient = gradients.get(parameter);
        let missing = || Error::new(format!("{} got no gradient", parameter.name()));
        let gradient = gradient.ok_or_else(missing)?.to_vec::<f64>()?;
        let moving = Moving { parameter, before: parameter.tensor().detach() };
        let before = &moving.before;
        let numbers = before.to_vec::<f64>()?;
        for i in 0..numbers.len() {
            let moved = |by: f64| {
                let mut numbers = numbers.clone();
                numbers[i] += by;
                parameter.set(&Tensor::from_vec(numbers, before.shape())?)?;
                value()
            };
            let expected = (moved(step)? - moved(-step)?) / (2.0 * step);
            let error = (gradient[i] - expected).abs() / expected.abs().max(1.0);
            worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
        }
    }
    Ok(worst)
}

/// A parameter while it is moved: it has its value again when this goes.
struct Moving<'a> {
    parameter: &'a Parameter,
    before: Tensor,
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        // Its own value has its own shape and type, so this is not refused.
        let _ = self.parameter.set(&self.before);
    }
}

//! The gradients of a model's parameters held against finite differences.

use regard::{DType, Error, Parameter, Random, Result, Tensor};

/// The largest relative difference between the gradients of `f` with respect to parameters and
/// central differences of a randomly weighted sum of its result. A parameter without a gradient is
/// an error.
pub(crate) fn parameter_error(
    parameters: &[Parameter],
    f: impl Fn() -> Result<Tensor>,
) -> Result<f64> {
    if parameters.is_empty() {
        return Err(Error::new("no parameters to hold against anything"));
    }
    let y = f()?;
    let weights = Random::new(98).normal(y.shape(), 0.0, 1.0, DType::F64)?;
    let gradients = y.mul(&weights)?.sum_all()?.backward()?;
    let value = || f()?.mul(&weights)?.sum_all()?.item();
    let step = 1e-5;
    let mut worst = 0f64;
    for parameter in parameters {
        let gradient = gradients.get(parameter);
        let missing = || Error::new(format!("{} got no gradient", parameter.name()));
        let gradient = gradient.ok_or_else(missing)?.to_vec::<f64>()?;
        let before = parameter.tensor().detach();
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
        parameter.set(&before)?;
    }
    Ok(worst)
}

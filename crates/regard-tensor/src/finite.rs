//! Gradients held against finite differences: for the tests here, and for operations and scores
//! of one's own.

use crate::{DType, Parameter, Random, Result, Tensor, ensure};

/// The largest relative difference between the gradients of `f` at some f64 inputs and central
/// differences of a randomly weighted sum of its result. Around 1e-8 where the gradient is right.
/// An input without a gradient is an error.
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
    let on_tape: Vec<Tensor> = parameters.iter().map(Parameter::tensor).collect();
    let y = f(&on_tape)?;
    let weights = Random::new(99).normal(y.shape(), 0.0, 1.0, DType::F64)?;
    let gradients = y.mul(&weights)?.sum_all()?.backward()?;
    let value = |inputs: &[Tensor]| f(inputs)?.mul(&weights)?.sum_all()?.item();
    let step = 1e-5;
    let mut worst = 0f64;
    for (at, x) in inputs.iter().enumerate() {
        let gradient = gradients.get(&parameters[at]);
        ensure!(gradient.is_some(), "input {at} got no gradient");
        let gradient = gradient.map_or(Ok(Vec::new()), |g| g.to_vec::<f64>())?;
        let numbers = x.to_vec::<f64>()?;
        for i in 0..numbers.len() {
            let moved = |by: f64| {
                let mut numbers = numbers.clone();
                numbers[i] += by;
                let mut inputs = inputs.to_vec();
                inputs[at] = Tensor::from_vec(numbers, x.shape())?;
                value(&inputs)
            };
            let expected = (moved(step)? - moved(-step)?) / (2.0 * step);
            let error = (gradient[i] - expected).abs() / expected.abs().max(1.0);
            worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
        }
    }
    Ok(worst)
}

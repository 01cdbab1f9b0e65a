//! Gradients against finite differences, in f64.
#![allow(clippy::unwrap_used, dead_code)]

use regard_tensor::{DType, Parameter, Random, Result, Tensor};

/// Normally distributed numbers.
pub(crate) fn normal(seed: u64, shape: &[usize]) -> Tensor {
    Random::new(seed).normal(shape, 0.0, 1.0, DType::F64).unwrap()
}

/// Compares every gradient of `f` at `inputs` with central differences of a weighted sum of its
/// result.
#[track_caller]
pub(crate) fn check(inputs: &[Tensor], f: impl Fn(&[Tensor]) -> Result<Tensor>) {
    let parameters: Vec<Parameter> = inputs
        .iter()
        .enumerate()
        .map(|(at, x)| Parameter::new(format!("input {at}"), x.clone()).unwrap())
        .collect();
    let on_tape: Vec<Tensor> = parameters.iter().map(Parameter::tensor).collect();
    let y = f(&on_tape).unwrap();
    let weights = normal(99, y.shape());
    let gradients = y.mul(&weights).unwrap().sum_all().unwrap().backward().unwrap();
    let value = |inputs: &[Tensor]| {
        f(inputs).unwrap().mul(&weights).unwrap().sum_all().unwrap().item().unwrap()
    };
    let step = 1e-5;
    for (at, x) in inputs.iter().enumerate() {
        let Some(gradient) = gradients.get(&parameters[at]) else {
            panic!("input {at} got no gradient");
        };
        let gradient = gradient.to_vec::<f64>().unwrap();
        let numbers = x.to_vec::<f64>().unwrap();
        for i in 0..numbers.len() {
            let moved = |by: f64| {
                let mut numbers = numbers.clone();
                numbers[i] += by;
                let mut inputs = inputs.to_vec();
                inputs[at] = Tensor::from_vec(numbers, x.shape()).unwrap();
                value(&inputs)
            };
            let expected = (moved(step) - moved(-step)) / (2.0 * step);
            let error = (gradient[i] - expected).abs() / expected.abs().max(1.0);
            assert!(
                error < 1e-6,
                "input {at} number {i}: gradient {}, finite difference {expected}",
                gradient[i]
            );
        }
    }
}

//! Gradients of any tensor, not only of parameters.

use regard_tensor::{DType, Parameter, Random, Tensor, finite_difference_error, without_gradients};

fn numbers(x: &Tensor) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

#[test]
fn a_variable_has_the_gradient_that_a_parameter_would_have() {
    let value = Random::new(1).normal(&[3, 4], 0.0, 1.0, DType::F64).unwrap();
    let f = |x: &Tensor| x.square()?.exp()?.add(&x.transpose(0, 1)?.sum(0)?.unsqueeze(1)?);
    assert!(finite_difference_error(std::slice::from_ref(&value), |x| f(&x[0])).unwrap() < 1e-6);
    let w = Parameter::new("w", value.clone()).unwrap();
    let expected = f(&w.tensor()).unwrap().sum_all().unwrap().backward().unwrap();
    let x = value.requires_grad().unwrap();
    assert!(x.has_gradient() && !value.has_gradient());
    let mut gradients = f(&x).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(numbers(gradients.get(&x).unwrap()), numbers(expected.get(&w).unwrap()));
    // A clone is the same variable, a second one is another; and so is what came of it.
    assert!(gradients.get(&x.clone()).is_some() && gradients.get(&&x).is_some());
    assert!(gradients.get(&value.requires_grad().unwrap()).is_none());
    assert!(gradients.get(&value).is_none() && gradients.get(&w).is_none());
    assert!(gradients.take(&x).is_some() && gradients.get(&x).is_none());
}

#[test]
fn a_variable_begins_a_tape_of_its_own() {
    let w = Parameter::new("w", Tensor::from([2f64])).unwrap();
    let x = w.tensor().exp().unwrap().requires_grad().unwrap();
    let gradients = x.square().unwrap().sum_all().unwrap().backward().unwrap();
    assert!(gradients.get(&w).is_none());
    assert_eq!(numbers(gradients.get(&x).unwrap()), [2.0 * 2f64.exp()]);
}

#[test]
fn a_retained_tensor_keeps_the_whole_of_its_gradient() {
    let w = Parameter::new("w", Tensor::from([1f64, -2.0, 3.0])).unwrap();
    // y = (3w)² + 5 · 3w: the gradient of h = 3w is 2h + 5, that of w three times as much.
    let h = w.tensor().scale(3.0).unwrap().retain_grad();
    let unmarked = h.square().unwrap();
    let y = unmarked.add(&h.scale(5.0).unwrap()).unwrap();
    let gradients = y.sum_all().unwrap().backward().unwrap();
    let expected = [1.0, -2.0, 3.0].map(|w| 2.0 * 3.0 * w + 5.0);
    assert_eq!(numbers(gradients.get(&h).unwrap()), expected);
    assert_eq!(numbers(gradients.get(&w).unwrap()), expected.map(|g| 3.0 * g));
    assert!(gradients.get(&unmarked).is_none());
}

#[test]
fn two_passes_add_up_for_variables_too() {
    let x = Tensor::from([1f32, 2.0]).requires_grad().unwrap();
    let pass = |factor| x.scale(factor).unwrap().sum_all().unwrap().backward().unwrap();
    let mut sum = pass(2.0);
    sum.add(pass(5.0)).unwrap();
    assert_eq!(numbers(sum.get(&x).unwrap()), [7.0, 7.0]);
}

#[test]
fn what_carries_no_gradient_says_so() {
    let error = Tensor::from([1i64]).requires_grad().unwrap_err().to_string();
    assert_eq!(
        error,
        "requires_grad: i64 carries no gradient; convert the tensor of shape [1] with to_dtype"
    );
    let x = Tensor::from([1f32]);
    assert!(!x.retain_grad().has_gradient());
    let x = x.requires_grad().unwrap();
    assert!(!without_gradients(|| x.retain_grad()).has_gradient());
}

//! Tensors of two types: the refusal says which is which.

use regard_tensor::{
    Activation, Cell, DType, Gradients, Parameter, RecurrentStart, SlidingWindow, Tensor,
};

#[test]
fn two_types_that_meet_are_named_with_their_sides() {
    let f32s = |shape: &[usize]| Tensor::zeros(shape, DType::F32).unwrap();
    let f64s = |shape: &[usize]| Tensor::zeros(shape, DType::F64).unwrap();
    let (a, b) = (f32s(&[2, 3]), f64s(&[3]));
    let binary = [
        ("add", a.add(&b)),
        ("sub", a.sub(&b)),
        ("mul", a.mul(&b)),
        ("div", a.div(&b)),
        ("maximum", a.maximum(&b)),
    ];
    for (name, result) in binary {
        let sentence = format!(
            "{name}: the left tensor is f32 [2, 3], the right f64 [3]; convert one with to_dtype"
        );
        assert_eq!(result.unwrap_err().to_string(), sentence);
    }
    let mask = Tensor::from([true, false, true]);
    let (image, window) = (f32s(&[1, 1, 2, 2]), SlidingWindow::new([1, 1]));
    let said = [
        (b.add(&a), "add: the left tensor is f64 [3], the right f32 [2, 3]"),
        (a.matmul(&f64s(&[3, 2])), "matmul: the left tensor is f32 [2, 3], the right f64 [3, 2]"),
        (a.linear(&f64s(&[4, 3]), None), "linear: the input is f32 [2, 3], the weights f64 [4, 3]"),
        (
            a.linear(&f32s(&[4, 3]), Some(&f64s(&[4]))),
            "linear: the input is f32 [2, 3], the bias f64 [4]",
        ),
        (
            mask.where_(&a, &b),
            "where: the tensor for true is f32 [2, 3], the one for false f64 [3]",
        ),
        (
            a.activate_with(&b, Activation::Relu),
            "activate_with: the tensor is f32 [2, 3], the bias f64 [3]",
        ),
        (a.layer_norm(&f32s(&[3]), &b, 1e-5), "layer_norm: the input is f32 [2, 3], beta f64 [3]"),
        (
            a.squared_error(&f64s(&[2, 3])),
            "squared_error: the tensor is f32 [2, 3], the target f64 [2, 3]",
        ),
        (
            image.conv2d(&f64s(&[1, 1, 1, 1]), None, &window),
            "conv2d: the input is f32 [1, 1, 2, 2], the weights f64 [1, 1, 1, 1]",
        ),
    ];
    for (result, sentence) in said {
        let sentence = format!("{sentence}; convert one with to_dtype");
        assert_eq!(result.unwrap_err().to_string(), sentence);
    }
    let w_hh = f64s(&[1, 1]);
    let start = RecurrentStart { w_hh: &w_hh, b_hh: None, h0: None, c0: None };
    let error = f32s(&[1, 1, 1]).recurrent(Cell::Rnn, start, None, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "recurrent: the gates are f32 [1, 1, 1], w_hh f64 [1, 1]; convert one with to_dtype"
    );
}

#[test]
fn a_parameter_and_a_value_of_two_types_are_both_named() {
    let w = Parameter::new("w", Tensor::from([1f32, 2.0])).unwrap();
    let error = w.set(&Tensor::from([1f64, 2.0])).unwrap_err().to_string();
    assert_eq!(error, "parameter \"w\" is f32 [2], the new value f64 [2]");
    let error = Gradients::default().set(&w, Tensor::from([1f64, 2.0])).unwrap_err().to_string();
    assert_eq!(error, "the gradient of \"w\" is f64 [2], the parameter f32 [2]");
}

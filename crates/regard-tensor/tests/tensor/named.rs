//! What an operation refuses is said under its own name, not under that of another it is made of.

use regard_tensor::{DType, Result, SlidingWindow, Tensor, parameter_difference_error};
use regard_tensor::{Init, Parameters};

type Call = fn() -> Result<Tensor>;

fn zeros(shape: &[usize]) -> Result<Tensor> {
    Tensor::zeros(shape, DType::F32)
}

fn whole(shape: &[usize]) -> Result<Tensor> {
    Tensor::zeros(shape, DType::I64)
}

/// Every way in which each of these refuses.
const REFUSED: [(&str, Call); 53] = [
    ("conv1d", || zeros(&[1, 2, 5])?.conv1d(&zeros(&[3, 4, 2])?, None, 1, 0, 1)),
    ("conv1d", || zeros(&[1, 2, 5])?.conv1d(&zeros(&[3, 2, 9])?, None, 1, 0, 1)),
    ("conv1d", || zeros(&[1, 2, 5])?.conv1d(&zeros(&[3, 2, 2])?, None, 0, 0, 1)),
    ("conv1d", || zeros(&[1, 2, 5])?.conv1d(&zeros(&[3, 2, 2])?, Some(&zeros(&[2])?), 1, 0, 1)),
    ("conv1d", || zeros(&[1, 2, 5])?.conv1d(&whole(&[3, 2, 2])?, None, 1, 0, 1)),
    ("conv1d", || whole(&[1, 2, 5])?.conv1d(&whole(&[3, 2, 2])?, None, 1, 0, 1)),
    ("conv1d", || zeros(&[1, 2, 5])?.conv1d(&zeros(&[3, 2, 2])?, Some(&whole(&[3])?), 1, 0, 1)),
    ("conv2d", || whole(&[1, 1, 2, 2])?.conv2d(&whole(&[1, 1, 1, 1])?, None, &window(1))),
    ("conv2d", || zeros(&[1, 1, 2, 2])?.conv2d(&zeros(&[1, 1, 3, 3])?, None, &window(3))),
    ("unfold", || zeros(&[1, 1, 2, 2])?.unfold(&window(3))),
    ("max_pool2d", || whole(&[1, 1, 2, 2])?.max_pool2d(&window(1))),
    ("max_pool2d", || zeros(&[1, 1, 2, 2])?.max_pool2d(&window(3))),
    ("mean_pool2d", || whole(&[1, 1, 2, 2])?.mean_pool2d(&window(1))),
    ("mean_pool2d", || zeros(&[1, 1, 2, 2])?.mean_pool2d(&window(3))),
    ("stack", || Tensor::stack(&[], 0)),
    ("stack", || Tensor::stack(&[zeros(&[2])?], 2)),
    ("stack", || Tensor::stack(&[zeros(&[2])?, zeros(&[3])?], 0)),
    ("stack", || Tensor::stack(&[zeros(&[2])?, whole(&[2])?], 0)),
    ("stack", || Tensor::stack(&[zeros(&[1, 1, 1, 1, 1, 1])?], 0)),
    ("sum", || whole(&[2])?.sum(0)),
    ("sum_all", || whole(&[2])?.sum_all()),
    ("sum_keepdim", || zeros(&[2])?.sum_keepdim(1)),
    ("sum_keepdim", || whole(&[2])?.sum_keepdim(0)),
    ("mean", || whole(&[2])?.mean(0)),
    ("mean_all", || whole(&[2])?.mean_all()),
    ("mean_all", || zeros(&[0])?.mean_all()),
    ("mean_keepdim", || zeros(&[2])?.mean_keepdim(1)),
    ("mean_keepdim", || zeros(&[0])?.mean_keepdim(0)),
    ("mean_keepdim", || whole(&[2])?.mean_keepdim(0)),
    ("max_keepdim", || Ok(zeros(&[2])?.max_keepdim(1)?.0)),
    ("min_keepdim", || Ok(whole(&[2])?.min_keepdim(0)?.0)),
    ("relu", || whole(&[2])?.relu()),
    ("gelu", || whole(&[2])?.gelu()),
    ("silu", || whole(&[2])?.silu()),
    ("tanh", || whole(&[2])?.tanh()),
    ("sigmoid", || whole(&[2])?.sigmoid()),
    ("elu", || whole(&[2])?.elu(1.0)),
    ("activate", || whole(&[2])?.activate(regard_tensor::Activation::Relu)),
    ("activate_with", || {
        whole(&[2])?.activate_with(&whole(&[2])?, regard_tensor::Activation::Relu)
    }),
    ("rows", || zeros(&[2, 2])?.rows(&Tensor::from([2i64]))),
    ("rows", || Tensor::scalar(1f32)?.rows(&Tensor::from([0i64]))),
    ("embed", || zeros(&[2, 2])?.embed(&Tensor::from([2i64]), None)),
    ("embed", || zeros(&[2, 2])?.embed(&Tensor::from([0.5f32]), None)),
    ("embed", || zeros(&[2, 2])?.embed(&Tensor::from([0i64]), Some(2))),
    ("pick", || zeros(&[2, 2])?.pick(&[2])),
    ("squared_error", || whole(&[2])?.squared_error(&whole(&[2])?)),
    ("squared_error", || zeros(&[0])?.squared_error(&zeros(&[0])?)),
    ("rms_norm", || whole(&[2, 2])?.rms_norm(&whole(&[2])?, 1e-5)),
    ("layer_norm", || whole(&[2, 2])?.layer_norm(&whole(&[2])?, &whole(&[2])?, 1e-5)),
    ("binary_cross_entropy", || whole(&[2])?.binary_cross_entropy(&whole(&[2])?)),
    ("cross_entropy", || {
        whole(&[2, 2])?.cross_entropy(&whole(&[2])?, regard_tensor::CrossEntropy::default())
    }),
    ("masked_fill", || zeros(&[2])?.masked_fill(&zeros(&[2])?, 0.0)),
    ("linear", || whole(&[2, 2])?.linear(&whole(&[2, 2])?, None)),
];

fn window(size: usize) -> SlidingWindow {
    SlidingWindow::new([size, size])
}

#[test]
fn what_is_refused_is_said_under_the_name_that_was_called() {
    for (at, (name, call)) in REFUSED.into_iter().enumerate() {
        let error = call().unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name}: ")), "{at}, {name}: {error}");
        let inner = error[name.len() + 2..].split(' ').next().unwrap();
        assert!(!inner.ends_with(':'), "{at}: two names in {error}");
    }
}

#[test]
fn differences_are_refused_by_name_where_the_parameter_is_not_f64() {
    let parameters = Parameters::new(DType::F32, 1);
    let w = parameters.parameter("w", &[2], Init::Ones).unwrap();
    let error = parameter_difference_error(&parameters.all(), || w.tensor().square()).unwrap_err();
    assert!(error.to_string().starts_with("w is f32; "), "{error}");
}

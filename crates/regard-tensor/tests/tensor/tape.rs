//! What the tape promises.

use regard_tensor::{DType, Parameter, Tensor, without_gradients};

fn parameter(x: &[f64]) -> Parameter {
    Parameter::new("w", Tensor::from_slice(x, &[x.len()]).unwrap()).unwrap()
}

#[test]
fn a_chain_of_a_million_operations_fits_a_stack_of_2_megabytes() {
    let work = || {
        let w = parameter(&[1.0]);
        let mut x = w.tensor();
        for _ in 0..1_000_000 {
            x = x.shift(1e-6).unwrap();
        }
        let kept = x.clone();
        let gradients = x.backward().unwrap();
        assert_eq!(gradients.get(&w).unwrap().to_vec::<f64>().unwrap(), [1.0]);
        drop(kept);
        // And one that is dropped without ever being differentiated.
        let mut x = w.tensor();
        for _ in 0..1_000_000 {
            x = x.mul(&x).unwrap();
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn a_tensor_used_twice_gets_the_sum() {
    let w = parameter(&[3.0, -2.0]);
    let x = w.tensor();
    let y = x.mul(&x).unwrap().add(&x).unwrap().add(&x.scale(4.0).unwrap()).unwrap();
    let gradients = y.sum_all().unwrap().backward().unwrap();
    assert_eq!(gradients.get(&w).unwrap().to_vec::<f64>().unwrap(), [11.0, 1.0]);
}

#[test]
fn only_gradients_that_reach_a_parameter_are_computed() {
    let (w, constant) = (parameter(&[2.0]), Tensor::from_vec(vec![5.0f64], &[1]).unwrap());
    let y = constant.exp().unwrap();
    assert!(!y.has_gradient());
    let gradients = w.tensor().mul(&y).unwrap().sum_all().unwrap().backward().unwrap();
    assert!(gradients.get(&w).is_some());
    assert!(y.sum_all().unwrap().backward().is_err());
    assert!(gradients.get(&parameter(&[1.0])).is_none());
}

#[test]
fn the_same_computation_gives_the_same_bits() {
    let run = || {
        let w = Parameter::new(
            "w",
            regard_tensor::Random::new(1).normal(&[300, 200], 0.0, 1.0, DType::F32).unwrap(),
        )
        .unwrap();
        let x = w.tensor();
        let y = x.matmul(&x.transpose(0, 1).unwrap()).unwrap().exp().unwrap();
        let loss = y.add(&y).unwrap().mean_all().unwrap();
        loss.backward().unwrap().get(&w).unwrap().to_vec::<f32>().unwrap()
    };
    assert_eq!(run(), run());
}

#[test]
fn a_scope_without_gradients_leaves_no_tape_and_ends() {
    let w = parameter(&[1.0]);
    assert!(!without_gradients(|| w.tensor().exp().unwrap()).has_gradient());
    assert!(w.tensor().exp().unwrap().has_gradient());
}

#[test]
fn backward_twice_is_refused() {
    let w = parameter(&[1.0]);
    let x = w.tensor().exp().unwrap().sum_all().unwrap();
    x.backward().unwrap();
    let error = x.backward().unwrap_err().to_string();
    assert!(error.contains("used up"), "{error}");
}

#[test]
fn shapes_that_do_not_fit_are_refused_by_name() {
    let a = Tensor::zeros(&[2, 3], DType::F32).unwrap();
    let b = Tensor::zeros(&[4], DType::F32).unwrap();
    let said = [
        (
            a.add(&b).unwrap_err(),
            "add: shapes [2, 3] and [4] do not broadcast; sizes 3 and 4 differ",
        ),
        (a.reshape(&[5]).unwrap_err(), "reshape: [2, 3] has 6 numbers, [5] has 5"),
        (a.narrow(1, 2, 2).unwrap_err(), "narrow: 2 from 2 on leave axis 1 of [2, 3]"),
        (a.sum(2).unwrap_err(), "sum: axis 2 of a tensor of shape [2, 3], which has 2 axes"),
    ];
    for (error, sentence) in said {
        assert_eq!(error.to_string(), sentence);
    }
    let index = Tensor::from_vec(vec![7i64], &[1]).unwrap();
    let error = a.rows(&index).unwrap_err().to_string();
    assert_eq!(error, "rows: index 7 at place 0 is not within 0..2");
}

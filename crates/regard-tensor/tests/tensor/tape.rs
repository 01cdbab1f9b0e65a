//! What the tape promises.

use regard_tensor::{DType, Parameter, Tensor, is_recording, with_gradients, without_gradients};

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

/// Three results of one operation: x, 2x and 3x.
fn three(x: &Tensor) -> Vec<Tensor> {
    let plain = x.detach();
    let results = [1.0, 2.0, 3.0].map(|factor| plain.scale(factor).unwrap()).to_vec();
    Tensor::record_all("three", results, &[x], |gradients, to| {
        assert_eq!(gradients.len(), 3);
        for (gradient, factor) in gradients.into_iter().zip([1.0, 2.0, 3.0]) {
            gradient.map_or(Ok(()), |gradient| to.add(0, gradient.scale(factor)?))?;
        }
        Ok(())
    })
}

#[test]
fn any_of_several_results_carry_their_gradients_back_at_once() {
    let mut count = 0;
    for used in 1..8usize {
        let w = parameter(&[5.0]);
        let results = three(&w.tensor());
        let used_ones = (0..3).filter(|at| used & (1 << at) != 0);
        // Each used twice, one of them through another operation of several results.
        let parts = used_ones.clone().map(|at| {
            let twice = three(&results[at]);
            results[at].add(&twice[1]).unwrap()
        });
        let sum = parts.reduce(|a, b| a.add(&b).unwrap()).unwrap();
        let gradient = sum.sum_all().unwrap().backward().unwrap().get(&w).unwrap().item().unwrap();
        let wanted: usize = used_ones.map(|at| (at + 1) * 3).sum();
        assert_eq!(gradient, wanted as f64);
        count += 1;
    }
    assert_eq!(count, 7);
}

#[test]
fn a_second_pass_through_another_result_is_refused_and_none_panics() {
    let w = parameter(&[1.0, 2.0, 3.0]);
    let x = w.tensor();
    let of_split = x.split(0, &[1, 2]).unwrap();
    let chunks = x.chunk(0, 3).unwrap();
    for (op, results) in [("three", three(&x)), ("split", of_split), ("split", chunks)] {
        results[0].sum_all().unwrap().backward().unwrap();
        for other in &results[1..] {
            let said = other.sum_all().unwrap().backward().unwrap_err().to_string();
            let wanted = format!(
                "backward: a gradient has gone through this {op} before; the tape is used up"
            );
            assert_eq!(said, wanted);
        }
    }
    // What fails in one is named, and the rest of the tape stays in order.
    let broken = Tensor::record_all("broken", vec![x.detach(), x.detach()], &[&x], |_, to| {
        to.add(0, Tensor::scalar(1f64)?)
    });
    let said = broken[1].sum_all().unwrap().backward().unwrap_err().to_string();
    assert!(said.starts_with("backward of broken: the gradient of parameter \"w\""), "{said}");
    assert!(x.square().unwrap().sum_all().unwrap().backward().unwrap().get(&w).is_some());
}

#[test]
fn whole_numbers_and_bools_never_come_onto_the_tape() {
    let x = parameter(&[1.0, 2.0]).tensor();
    for plain in [Tensor::from([1i64, 2]), Tensor::from([1u32, 2]), Tensor::from([true, false])] {
        let one = plain.clone().record("one", &[&x], |g, to| to.add(0, g));
        let all = Tensor::record_all("all", vec![x.detach(), plain], &[&x], |mut g, to| {
            to.add_all([g.swap_remove(0)])
        });
        assert!(!one.has_gradient() && all[0].has_gradient() && !all[1].has_gradient());
        assert!(!one.to_dtype(DType::F64).unwrap().has_gradient());
        all[0].sum_all().unwrap().backward().unwrap();
    }
}

#[test]
fn a_tensor_on_the_tape_is_not_written_over() {
    let mut x = parameter(&[1.0, 2.0]).tensor().scale(2.0).unwrap();
    let said = x.as_mut_slice::<f64>().unwrap_err().to_string();
    assert_eq!(said, "as_mut_slice: a tensor on the tape cannot be overwritten; detach() it first");
    let mut own = x.detach().scale(1.0).unwrap();
    own.as_mut_slice::<f64>().unwrap()[0] = 7.0;
    assert_eq!(own.to_vec::<f64>().unwrap(), [7.0, 4.0]);
}

#[test]
fn one_can_ask_whether_the_tape_runs() {
    let inner = || (is_recording(), with_gradients(is_recording), without_gradients(is_recording));
    assert_eq!(inner(), (true, true, false));
    assert_eq!(without_gradients(inner), (false, true, false));
    let w = parameter(&[1.0]);
    let seen = w.tensor().record("seen", &[&w.tensor()], |g, to| {
        assert!(!is_recording());
        to.add(0, g)
    });
    seen.sum_all().unwrap().backward().unwrap();
    assert!(without_gradients(|| std::thread::scope(|s| s.spawn(is_recording).join().unwrap())));
}

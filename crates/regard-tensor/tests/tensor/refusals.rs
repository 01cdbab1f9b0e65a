//! What was taken without a word is refused: an input that an operation does not have, gradients and
//! states that an optimizer does not hold. What failed leaves everything as it was.

use regard_tensor::{
    DType, Error, Gradients, Init, Optimizer, Parameter, Parameters, Tensor, UpdateRule,
    parameter_difference_error,
};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn a_gradient_of_an_input_that_there_is_not_is_refused_with_the_operation() {
    let w = Parameter::new("w", Tensor::scalar(2f64).unwrap()).unwrap();
    let said = "backward of odd: input 1 was named, of an operation recorded with 1";
    let odd = |back: fn(Tensor, &mut regard_tensor::Parents) -> regard_tensor::Result<()>| {
        let odd = Tensor::scalar(2f64).unwrap().record("odd", &[&w.tensor()], back);
        odd.backward().unwrap_err().to_string()
    };
    assert_eq!(odd(|g, to| to.add(1, g)), said);
    assert_eq!(odd(|g, to| to.add_all([Some(g.clone()), Some(g)])), said);
    assert_eq!(odd(|_, to| to.uninit(1).map(drop)), said);
    let fine = Tensor::scalar(2f64).unwrap().record("fine", &[&w.tensor()], |g, to| {
        assert!(to.want(0) && !to.want(1) && !to.want(usize::MAX));
        to.add(0, g)
    });
    fine.backward().unwrap();
}

#[test]
fn a_failed_backward_names_the_operation_that_was_recorded() {
    let w = Parameter::new("w", Tensor::scalar(2f64).unwrap()).unwrap();
    let outer = Tensor::scalar(2f64).unwrap().record("outer", &[&w.tensor()], |g, to| {
        // An operation within the backward fails: its sentence stands behind the outer one's name.
        to.add(0, g.matmul(&g)?)
    });
    let error = outer.backward().unwrap_err().to_string();
    assert!(error.starts_with("backward of outer: matmul: "), "{error}");
}

/// Two parameters of one number each.
fn two() -> (Parameters, [Parameter; 2]) {
    let parameters = Parameters::new(DType::F64, 1);
    let all = ["a", "b"].map(|name| parameters.at(name).parameter("w", &[], Init::Zeros).unwrap());
    (parameters, all)
}

fn gradients([a, b]: &[Parameter; 2]) -> Gradients {
    a.tensor().add(&b.tensor()).unwrap().backward().unwrap()
}

fn values(all: &[Parameter]) -> Vec<f64> {
    all.iter().map(|p| p.tensor().item().unwrap()).collect()
}

#[test]
fn gradients_of_parameters_that_an_optimizer_does_not_hold_are_refused_and_nothing_moves() {
    let (parameters, all) = two();
    for rule in
        [UpdateRule::sgd(0.0), UpdateRule::sgd(0.9), UpdateRule::adam(), UpdateRule::adam_w()]
    {
        let mut part = Optimizer::new(&parameters.at("a"), rule).unwrap();
        let error = part.step(&gradients(&all), 1.0).unwrap_err().to_string();
        assert!(error.contains("\"b.w\"") && error.contains("partial()"), "{error}");
        assert_eq!((values(&all), part.steps()), (vec![0.0, 0.0], 0));
        // Put in by hand, and added up, they are the same.
        let mut by_hand = Gradients::default();
        by_hand.set(&all[1], Tensor::scalar(1f64).unwrap()).unwrap();
        assert!(part.step(&by_hand, 1.0).is_err());
        let mut sum = all[0].tensor().scale(1.0).unwrap().backward().unwrap();
        sum.add(gradients(&all)).unwrap();
        assert!(part.step(&sum, 1.0).is_err());
        // Taken out, it is nobody's any more.
        sum.take(&all[1]).unwrap();
        part.step(&sum, 0.0).unwrap();
    }
    let mut partial = Optimizer::new(&parameters.at("a"), UpdateRule::sgd(0.0)).unwrap().partial();
    partial.step(&gradients(&all), 1.0).unwrap();
    assert_eq!(values(&all), [-1.0, 0.0]);
    let mut left =
        Optimizer::new(&parameters, UpdateRule::sgd(0.0)).unwrap().without(&|n| n == "b.w");
    left.step(&gradients(&all), 1.0).unwrap();
    assert_eq!(values(&all), [-2.0, 0.0]);
}

#[test]
fn a_parameter_made_after_the_optimizer_is_refused_once_it_has_a_gradient() {
    let (parameters, all) = two();
    let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam()).unwrap();
    let late = parameters.parameter("late", &[], Init::Ones).unwrap();
    optimizer.step(&gradients(&all), 0.1).unwrap();
    let loss = late.tensor().mul(&all[0].tensor()).unwrap();
    let error = optimizer.step(&loss.backward().unwrap(), 0.1).unwrap_err().to_string();
    assert!(error.contains("\"late\"") && error.contains("after all parameters"), "{error}");
}

#[test]
fn gradients_of_variables_are_no_business_of_an_optimizer() {
    let (parameters, [a, _]) = two();
    let x = Tensor::scalar(3f64).unwrap().requires_grad().unwrap();
    let product = a.tensor().mul(&x).unwrap().retain_grad();
    let gradients = product.square().unwrap().backward().unwrap();
    assert!(gradients.get(&x).is_some() && gradients.get(&product).is_some());
    Optimizer::new(&parameters, UpdateRule::adam()).unwrap().step(&gradients, 0.1).unwrap();
}

#[test]
fn a_state_with_more_than_an_optimizer_keeps_is_refused_and_changes_nothing() {
    let (parameters, all) = two();
    let mut adam = Optimizer::new(&parameters, UpdateRule::adam()).unwrap();
    adam.step(&gradients(&all), 0.1).unwrap();
    let state = adam.state().unwrap();
    let mut plain = Optimizer::new(&parameters, UpdateRule::sgd(0.0)).unwrap();
    let error = plain.set_state(&state).unwrap_err().to_string();
    assert_eq!(error, "the state has \"m/a.w\", which this optimizer does not keep");
    assert_eq!(plain.steps(), 0);
    let mut part = Optimizer::new(&parameters.at("a"), UpdateRule::adam()).unwrap();
    let error = part.set_state(&state).unwrap_err().to_string();
    assert!(error.contains("\"m/b.w\""), "{error}");
    let mut before = state;
    before.insert("steps".into(), Tensor::scalar(-1i64).unwrap());
    let error = adam.set_state(&before).unwrap_err().to_string();
    assert_eq!((error.as_str(), adam.steps()), ("the optimizer's steps are -1", 1));
}

#[test]
fn a_parameter_has_its_value_again_where_the_function_fails_while_it_is_moved() {
    let w = Parameter::new("w", Tensor::from_vec(vec![1.0, 2.0], &[2]).unwrap()).unwrap();
    for panics in [false, true] {
        for fails_at in 1..5 {
            let calls = Cell::new(0);
            let checked = catch_unwind(AssertUnwindSafe(|| {
                parameter_difference_error(std::slice::from_ref(&w), || {
                    calls.set(calls.get() + 1);
                    if calls.get() > fails_at {
                        assert!(!panics, "on purpose");
                        return Err(Error::new("on purpose"));
                    }
                    w.tensor().square()
                })
            }));
            assert_eq!(checked.is_err(), panics);
            assert!(panics || checked.unwrap().is_err());
            assert_eq!(w.tensor().to_vec::<f64>().unwrap(), [1.0, 2.0], "call {fails_at}");
        }
    }
}

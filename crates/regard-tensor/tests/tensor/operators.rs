//! Operators, indices and text.

use regard_tensor::{DType, Random, Result, Tensor, finite_difference_error};

fn normal(seed: u64, shape: &[usize]) -> Tensor {
    Random::new(seed).normal(shape, 0.0, 1.0, DType::F64).unwrap()
}

fn positive(seed: u64, shape: &[usize]) -> Tensor {
    Random::new(seed).uniform(shape, 0.5, 2.0, DType::F64).unwrap()
}

#[track_caller]
fn check(inputs: &[Tensor], f: impl Fn(&[Tensor]) -> Result<Tensor>) {
    let error = finite_difference_error(inputs, f).unwrap();
    assert!(error < 1e-6, "gradients and finite differences differ by {error}");
}

#[track_caller]
fn is(x: Tensor, numbers: &[f32]) {
    assert_eq!(x.to_vec::<f32>().unwrap(), numbers);
}

#[test]
fn operators_compute_by_value_by_reference_and_with_numbers() {
    let (x, y) = (Tensor::from([6f32, -8.0]), Tensor::from([2f32, 4.0]));
    for sum in [&x + &y, x.clone() + &y, &x + y.clone(), x.clone() + y.clone()] {
        is(sum, &[8.0, -4.0]);
    }
    for difference in [&x - &y, x.clone() - &y, &x - y.clone(), x.clone() - y.clone()] {
        is(difference, &[4.0, -12.0]);
    }
    for product in [&x * &y, x.clone() * &y, &x * y.clone(), x.clone() * y.clone()] {
        is(product, &[12.0, -32.0]);
    }
    for quotient in [&x / &y, x.clone() / &y, &x / y.clone(), x.clone() / y.clone()] {
        is(quotient, &[3.0, -2.0]);
    }
    is(&x + 1.0, &[7.0, -7.0]);
    is(1.0 + x.clone(), &[7.0, -7.0]);
    is(&x - 1.0, &[5.0, -9.0]);
    is(1.0 - &x, &[-5.0, 9.0]);
    is(x.clone() * 0.5, &[3.0, -4.0]);
    is(0.5 * &x, &[3.0, -4.0]);
    is(&x / 3.0, &[2.0, -8.0 / 3.0]);
    is(24.0 / &x, &[4.0, -3.0]);
    is(-&x, &[-6.0, 8.0]);
    is(-x, &[-6.0, 8.0]);
}

#[test]
fn operators_are_differentiable_and_broadcast() {
    let inputs = [normal(1, &[2, 3]), positive(2, &[3])];
    check(&inputs, |x| Ok(&x[0] + &x[1]));
    check(&inputs, |x| Ok(&x[0] - &x[1]));
    check(&inputs, |x| Ok(&x[0] * &x[1]));
    check(&inputs, |x| Ok(&x[0] / &x[1]));
    check(&inputs[1..], |x| Ok(2.0 / &x[0] - (1.5 - &x[0]) * 3.0 + -&x[0] / 4.0));
}

#[test]
fn an_operator_panics_with_the_sentence_of_its_method() {
    let (a, b) = (Tensor::from([1f32, 2.0]), Tensor::from([1f32, 2.0, 3.0]));
    let sentence = a.add(&b).unwrap_err().to_string();
    let panicked = std::panic::catch_unwind(|| &a + &b).unwrap_err();
    assert_eq!(panicked.downcast_ref::<String>(), Some(&sentence));
}

#[test]
fn an_index_gives_what_select_and_narrow_give() {
    let x = normal(1, &[3, 4, 5, 2]);
    let same = |a: Tensor, b: Tensor| {
        assert_eq!(a.shape(), b.shape());
        assert_eq!(a.to_vec::<f64>().unwrap(), b.to_vec::<f64>().unwrap());
    };
    let narrow = |axis, start, length| x.narrow(axis, start, length).unwrap();
    same(x.i(2).unwrap(), x.select(0, 2).unwrap());
    same(x.i(1..3).unwrap(), narrow(0, 1, 2));
    same(x.i(1..=1).unwrap(), narrow(0, 1, 1));
    same(x.i(..2).unwrap(), narrow(0, 0, 2));
    same(x.i(..=1).unwrap(), narrow(0, 0, 2));
    same(x.i((.., 2..)).unwrap(), narrow(1, 2, 2));
    same(x.i(..).unwrap(), x.clone());
    same(x.i(3..).unwrap(), narrow(0, 3, 0));
    same(
        x.i((1, .., 1..4, 0)).unwrap(),
        x.select(0, 1).unwrap().narrow(1, 1, 3).unwrap().select(2, 0).unwrap(),
    );
    assert_eq!(x.i((2, 3, 4, 1)).unwrap().item().unwrap(), x.to_vec::<f64>().unwrap()[119]);
    for (error, sentence) in [
        (x.i(3), "i: index 3 of axis 0 of [3, 4, 5, 2]"),
        (x.i((0, 1..6)), "i: the range 1..6 of axis 1 of [3, 4, 5, 2]"),
        (x.i((.., 5..)), "i: the range 5..4 of axis 1 of [3, 4, 5, 2]"),
        (x.i((0, 0, 0, 0, 0)), "i: 5 indices of a tensor of shape [3, 4, 5, 2], which has 4 axes"),
    ] {
        assert_eq!(error.unwrap_err().to_string(), sentence);
    }
}

#[test]
fn an_index_is_a_view_through_which_gradients_flow() {
    let x = Tensor::from([[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let part = x.i((1, 1..)).unwrap();
    let start = |x: &Tensor| x.strided::<f32>().unwrap().0.as_ptr();
    assert_eq!(start(&part), start(&x).wrapping_add(4));
    let x = [normal(1, &[3, 4, 2])];
    check(&x, |x| x[0].i((1, 1..3))?.square());
    check(&x, |x| x[0].i((.., 2, 0))?.add(&x[0].i((0, 1, 1))?)?.square());
}

#[test]
fn text_is_aligned_and_in_one_notation() {
    let text = |x: Tensor| x.to_string();
    assert_eq!(text(Tensor::from(2.5f32)), "2.5000");
    assert_eq!(text(Tensor::from([1f32, -20.0])), "[  1., -20.]");
    assert_eq!(text(Tensor::from([[1i64, 100], [-5, 0]])), "[[  1, 100],\n [ -5,   0]]");
    assert_eq!(text(Tensor::from([true, false])), "[ true, false]");
    assert_eq!(text(Tensor::from([i64::MAX])), "[9223372036854775807]");
    assert_eq!(
        text(Tensor::from([0.5f64, f64::NAN, f64::NEG_INFINITY])),
        "[0.5000,    NaN,   -inf]"
    );
    assert_eq!(text(Tensor::from([1e9f64, 0.0])), "[1.0000e9, 0.0000e0]");
    assert_eq!(text(Tensor::from([1.5e-6f64])), "[1.5000e-6]");
    assert_eq!(
        text(Tensor::from([[[1f32], [2.0]], [[3.0], [4.0]]])),
        "[[[1.],\n  [2.]],\n\n [[3.],\n  [4.]]]"
    );
    let half = Tensor::from([0.1f64, 1.0]).to_dtype(DType::BF16).unwrap();
    assert_eq!(text(half), "[0.1001, 1.0000]");
    assert_eq!(text(Tensor::zeros(&[2, 0], DType::F32).unwrap()), "[] f32 [2, 0]");
    // A view shows the numbers it shows.
    let x = Tensor::from([[1i64, 2], [3, 4]]).transpose(0, 1).unwrap();
    assert_eq!(text(x), "[[1, 3],\n [2, 4]]");
}

#[test]
fn a_long_row_goes_on_below_and_a_large_tensor_is_cut() {
    let row = Tensor::from_vec((0..40i64).collect(), &[40]).unwrap().to_string();
    let lines: Vec<&str> = row.lines().collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.len() <= 80), "{row}");
    let back: Vec<i64> = row
        .trim_matches(['[', ']'])
        .split(',')
        .map(|number| number.trim().parse().unwrap())
        .collect();
    assert_eq!(back, (0..40).collect::<Vec<_>>());

    let x = Tensor::from_vec((0..10_000i64).collect(), &[100, 100]).unwrap().to_string();
    let expected = "\
[[   0,    1,    2, ...,   97,   98,   99],
 [ 100,  101,  102, ...,  197,  198,  199],
 [ 200,  201,  202, ...,  297,  298,  299],
 ...,
 [9700, 9701, 9702, ..., 9797, 9798, 9799],
 [9800, 9801, 9802, ..., 9897, 9898, 9899],
 [9900, 9901, 9902, ..., 9997, 9998, 9999]]
i64 [100, 100]";
    assert_eq!(x, expected);
}

//! Comparisons against Rust's own operators: NaN, ties, signed zeros, infinities, broadcasting, every type.

use half::bf16;
use regard_tensor::{DType, Result, Tensor};

type Compare = fn(&Tensor, &Tensor) -> Result<Tensor>;
type Known = fn(&f64, &f64) -> bool;

const ALL: [(&str, Compare, Known); 6] = [
    ("eq", |a, b| a.eq(b), |a, b| a == b),
    ("ne", |a, b| a.ne(b), |a, b| a != b),
    ("lt", |a, b| a.lt(b), |a, b| a < b),
    ("le", |a, b| a.le(b), |a, b| a <= b),
    ("gt", |a, b| a.gt(b), |a, b| a > b),
    ("ge", |a, b| a.ge(b), |a, b| a >= b),
];

/// Every pair of these, as a column against a row: two are equal, one is none of the three.
fn against_each_other(numbers: &[f64], dtype: DType) {
    let n = numbers.len();
    let x = Tensor::from_slice(numbers, &[n]).unwrap().to_dtype(dtype).unwrap();
    let (column, row) = (x.reshape(&[n, 1]).unwrap(), x.reshape(&[1, n]).unwrap());
    // What the type holds of them.
    let held = x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    for (name, compare, known) in ALL {
        let found = compare(&column, &row).unwrap();
        assert_eq!((found.dtype(), found.shape()), (DType::Bool, &[n, n][..]), "{name} of {dtype}");
        assert!(!found.has_gradient());
        let wanted: Vec<u8> =
            held.iter().flat_map(|a| held.iter().map(|b| u8::from(known(a, b)))).collect();
        assert_eq!(found.to_vec::<u8>().unwrap(), wanted, "{name} of {dtype}");
        // Without broadcasting, and of a view that is not contiguous.
        let wide = column.broadcast_to(&[n, n]).unwrap();
        let other = compare(&wide, &wide.transpose(0, 1).unwrap()).unwrap();
        assert_eq!(other.to_vec::<u8>().unwrap(), wanted, "{name} of {dtype}, as views");
    }
}

#[test]
fn fractions_compare_as_rusts_do_with_nan_infinities_ties_and_signed_zeros() {
    let numbers = [0.0, -0.0, 1.0, 1.0, -1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-30];
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        against_each_other(&numbers, dtype);
    }
    // f16 holds no 1e-30: it is 0 there, and equal to it.
    against_each_other(&numbers, DType::F16);
    let tiny = Tensor::from_vec(vec![bf16::from_f32(1e-30)], &[1]).unwrap();
    assert_eq!(tiny.gt(&tiny.zeros_like().unwrap()).unwrap().to_vec::<u8>().unwrap(), [1]);
}

#[test]
fn whole_numbers_and_bools_compare_as_rusts_do() {
    against_each_other(&[3.0, -2.0, 0.0, 3.0, 7.0], DType::I64);
    against_each_other(&[3.0, 2.0, 0.0, 3.0, 4294967295.0], DType::U32);
    against_each_other(&[0.0, 1.0, 1.0], DType::Bool);
}

#[test]
fn large_whole_numbers_are_not_rounded_before_they_are_compared() {
    // The next whole number has the same f64.
    let a = Tensor::from([1i64 << 53, i64::MAX, i64::MIN]);
    let b = Tensor::from([(1i64 << 53) + 1, i64::MAX - 1, i64::MIN + 1]);
    assert_eq!(a.eq(&b).unwrap().to_vec::<u8>().unwrap(), [0, 0, 0]);
    assert_eq!(a.lt(&b).unwrap().to_vec::<u8>().unwrap(), [1, 0, 1]);
    assert_eq!(a.gt(&b).unwrap().to_vec::<u8>().unwrap(), [0, 1, 0]);
}

#[test]
fn comparisons_of_nothing_are_nothing_and_of_two_types_or_shapes_are_refused_by_name() {
    let none = Tensor::zeros(&[0, 3], DType::F32).unwrap();
    let (two, three) = (Tensor::from([1f32, 2.0]), Tensor::from([1f32, 2.0, 3.0]));
    for (name, compare, _) in ALL {
        assert_eq!(compare(&none, &three).unwrap().shape(), [0, 3], "{name}");
        for other in [&three, &Tensor::from([1i64, 2])] {
            let error = compare(&two, other).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name}: ")), "{error}");
        }
    }
}

#[test]
fn the_larger_of_two_is_nan_where_one_is() {
    let numbers = [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 2.0, f64::INFINITY, f64::NAN];
    let mut count = 0;
    for dtype in [DType::F64, DType::F32, DType::BF16, DType::F16] {
        for a in numbers {
            for b in numbers {
                let of =
                    |x: f64| Tensor::from([x]).to_dtype(dtype).unwrap().requires_grad().unwrap();
                let (x, y) = (of(a), of(b));
                let larger = x.maximum(&y).unwrap();
                let wanted = if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) };
                let found = larger.item().unwrap();
                assert!(found == wanted || found.is_nan() && wanted.is_nan(), "{a} {b}: {found}");
                // The gradient goes to one of them, whole.
                let gradients = larger.sum_all().unwrap().backward().unwrap();
                let [to_x, to_y] = [&x, &y].map(|of| gradients.get(of).unwrap().item().unwrap());
                let to_first = b.partial_cmp(&a) != Some(std::cmp::Ordering::Greater);
                assert_eq!((to_x, to_y), if to_first { (1.0, 0.0) } else { (0.0, 1.0) }, "{a} {b}");
                count += 1;
            }
        }
    }
    assert_eq!(count, 4 * 49);
}

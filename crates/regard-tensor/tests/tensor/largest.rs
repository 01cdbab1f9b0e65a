//! The largest numbers, running sums and filled masks against plain loops.

use regard_tensor::{DType, Random, Tensor};

/// The numbers along an axis, row by row, and where each lies.
fn lanes(shape: &[usize], axis: usize) -> Vec<Vec<usize>> {
    let inner: usize = shape[axis + 1..].iter().product();
    let outer: usize = shape[..axis].iter().product();
    let n = shape[axis];
    let lane = |lane: usize| {
        (0..n).map(|j| (lane / inner * n + j) * inner + lane % inner).collect::<Vec<_>>()
    };
    (0..outer * inner).map(lane).collect()
}

#[test]
fn topk_gives_what_a_sort_gives_ties_and_nan_included() {
    let odd = [f64::NAN, 1.0, f64::INFINITY, 1.0, -0.0, 0.0, f64::NEG_INFINITY, 2.0, f64::NAN, 1.0];
    let mut count = 0;
    for shape in [&[60][..], &[5, 12], &[3, 4, 5], &[1, 60, 1], &[0, 3], &[4, 0]] {
        let numel: usize = shape.iter().product();
        let numbers: Vec<f64> = (0..numel).map(|i| odd[(i * 7 + i / 10) % 10]).collect();
        let x = Tensor::from_vec(numbers.clone(), shape).unwrap();
        for axis in 0..shape.len() {
            for k in [0, 1, 2, shape[axis] / 2, shape[axis]] {
                if k > shape[axis] {
                    assert!(x.topk(k, axis as isize).is_err());
                    continue;
                }
                let (largest, index) = x.topk(k, axis as isize).unwrap();
                let mut wanted = shape.to_vec();
                wanted[axis] = k;
                assert_eq!((largest.shape(), index.shape()), (&wanted[..], &wanted[..]));
                let (largest, index) =
                    (largest.to_vec::<f64>().unwrap(), index.to_vec::<i64>().unwrap());
                for (from, to) in lanes(shape, axis).iter().zip(lanes(&wanted, axis)) {
                    // A stable sort by the larger, NaN first.
                    let mut order: Vec<usize> = (0..from.len()).collect();
                    order.sort_by(|&a, &b| {
                        let (a, b) = (numbers[from[a]], numbers[from[b]]);
                        match (a.is_nan(), b.is_nan()) {
                            (false, false) => b.partial_cmp(&a).unwrap(),
                            (a, b) => b.cmp(&a),
                        }
                    });
                    for (rank, &at) in to.iter().enumerate() {
                        assert_eq!(index[at], order[rank] as i64, "{shape:?} {axis} {k}");
                        assert_eq!(largest[at].to_bits(), numbers[from[order[rank]]].to_bits());
                    }
                }
                count += 1;
            }
        }
    }
    assert!(count >= 50, "{count}");
    // The first is what `max` says.
    let x = Random::new(1).normal(&[7, 300], 0.0, 1.0, DType::F32).unwrap();
    let first = x.topk(1, 1).unwrap().1.to_vec::<i64>().unwrap();
    assert_eq!(first, x.argmax(1).unwrap().to_vec::<i64>().unwrap());
}

#[test]
fn running_sums_are_the_sums_of_what_comes_first() {
    let mut count = 0;
    for shape in
        [&[7][..], &[5, 6], &[3, 4, 5], &[2, 1, 3], &[0, 3], &[3, 0], &[20_000], &[40_000, 2]]
    {
        let x = Random::new(3).uniform(shape, -1.0, 1.0, DType::F64).unwrap();
        let numbers = x.to_vec::<f64>().unwrap();
        for axis in 0..shape.len() {
            let sums = x.cumsum(axis as isize).unwrap();
            assert_eq!(sums.shape(), shape);
            let sums = sums.to_vec::<f64>().unwrap();
            for lane in lanes(shape, axis) {
                let mut sum = 0.0;
                for at in lane {
                    sum += numbers[at];
                    assert!((sums[at] - sum).abs() < 1e-9, "{shape:?} {axis}");
                }
            }
            count += 1;
        }
    }
    assert_eq!(count, 1 + 2 + 3 + 3 + 2 + 2 + 1 + 2);
    let said = Tensor::scalar(1f32).unwrap().cumsum(0).unwrap_err().to_string();
    assert!(said.starts_with("cumsum: "), "{said}");
    let said = Tensor::from([1i64]).cumsum(0).unwrap_err().to_string();
    assert!(said.starts_with("cumsum: computes in f32 and f64"), "{said}");
}

#[test]
fn a_mask_is_filled_in_every_type_and_never_makes_a_tensor_larger() {
    let mask = Tensor::from_bools(&[true, false, true], &[3]).unwrap();
    let all =
        [DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64, DType::U32, DType::Bool];
    for dtype in all {
        let x = Tensor::zeros(&[2, 3], dtype).unwrap().masked_fill(&mask, 1.0).unwrap();
        assert_eq!(x.dtype(), dtype);
        let wide = x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(wide, [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
    }
    let said = |x: &Tensor, number: f64| x.masked_fill(&mask, number).unwrap_err().to_string();
    let zeros = |shape: &[usize], dtype| Tensor::zeros(shape, dtype).unwrap();
    assert_eq!(said(&zeros(&[3], DType::U32), -1.0), "masked_fill: u32 does not hold -1");
    assert_eq!(said(&zeros(&[3], DType::I64), f64::NAN), "masked_fill: i64 does not hold NaN");
    assert_eq!(
        said(&zeros(&[1], DType::F32), 0.0),
        "masked_fill: a mask of shape [3] does not broadcast to [1]"
    );
    assert!(said(&zeros(&[2], DType::F32), 0.0).starts_with("masked_fill: "));
    let float = zeros(&[3], DType::F32);
    let said = float.masked_fill(&float, 0.0).unwrap_err().to_string();
    assert!(said.starts_with("masked_fill: the mask is f32"), "{said}");
}

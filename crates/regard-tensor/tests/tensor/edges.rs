//! Nothing, infinity and no number at all: operations take them without a crash.

use regard_tensor::{
    Activation, Cell, CrossEntropy, DType, Parameter, Random, RecurrentStart, Result,
    SlidingWindow, Tensor,
};

type Operation = fn(&Tensor) -> Result<Tensor>;

/// Operations on `[B, N, D]`.
const OPERATIONS: [(&str, Operation); 26] = [
    ("add", |x| x.add(x)),
    ("add row", |x| x.add(&Tensor::full(&[x.shape()[2]], 1.0, x.dtype())?)),
    ("sub", |x| x.sub(x)),
    ("mul", |x| x.mul(x)),
    ("div", |x| x.div(x)),
    ("maximum", |x| x.maximum(&Tensor::zeros(&[], x.dtype())?)),
    ("scale", |x| x.scale(2.0)),
    ("shift", |x| x.shift(2.0)),
    ("exp", Tensor::exp),
    ("ln", Tensor::ln),
    ("sqrt", Tensor::sqrt),
    ("square", Tensor::square),
    ("sum 0", |x| x.sum(0)),
    ("sum 1", |x| x.sum(1)),
    ("sum 2", |x| x.sum(2)),
    ("sum all", Tensor::sum_all),
    ("transpose", |x| x.transpose(0, 2)?.contiguous()),
    ("reshape", |x| x.reshape(&[x.numel()])),
    ("cat", |x| Tensor::cat(&[x.clone(), x.clone()], 1)),
    ("stack", |x| Tensor::stack(&[x.clone(), x.clone()], 1)),
    ("where", |x| Tensor::from_bools(&[true], &[1])?.where_(x, &Tensor::zeros(&[], x.dtype())?)),
    ("dropout", |x| x.dropout(0.5, 1)),
    ("softmax", |x| x.softmax(2)),
    ("log_softmax", |x| x.log_softmax(1)),
    ("gelu", |x| x.activate(Activation::Gelu)),
    ("matmul", |x| x.matmul(&x.transpose(1, 2)?)),
];

fn run(name: &str, x: Tensor, f: Operation) -> Tensor {
    let shape = x.shape().to_vec();
    let w = Parameter::new("x", x).unwrap();
    let y = f(&w.tensor()).unwrap_or_else(|error| panic!("{name} of {shape:?}: {error}"));
    let grad = Tensor::full(y.shape(), 1.0, y.dtype()).unwrap();
    let gradients = y.backward_with(&grad);
    let gradients = gradients.unwrap_or_else(|error| panic!("{name} of {shape:?}: {error}"));
    let gradient = gradients.get(&w).unwrap_or_else(|| panic!("{name} of {shape:?}: no gradient"));
    assert_eq!(gradient.shape(), shape, "{name}");
    y
}

#[test]
fn empty_tensors_go_through_every_operation_and_back() {
    for (name, f) in OPERATIONS {
        for shape in [[0, 3, 4], [2, 0, 4], [2, 3, 0], [0, 0, 0]] {
            for dtype in [DType::F32, DType::F64] {
                run(name, Tensor::zeros(&shape, dtype).unwrap(), f);
            }
        }
    }
}

#[test]
fn a_sum_over_nothing_is_zero() {
    let x = Tensor::zeros(&[2, 0, 4], DType::F32).unwrap();
    assert_eq!(x.sum(1).unwrap().to_vec::<f32>().unwrap(), [0.0; 8]);
    assert_eq!(x.sum_all().unwrap().item().unwrap(), 0.0);
}

#[test]
fn a_product_over_an_inner_size_of_0_is_zero() {
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32).unwrap();
    let pairs: [(&[usize], &[usize], &[usize]); 4] = [
        (&[2, 0], &[0, 3], &[2, 3]),
        (&[4, 2, 0], &[0, 3], &[4, 2, 3]),
        (&[4, 2, 0], &[4, 0, 3], &[4, 2, 3]),
        (&[4, 0, 2], &[2, 3], &[4, 0, 3]),
    ];
    for (a, b, shape) in pairs {
        let y = zeros(a).matmul(&zeros(b)).unwrap();
        assert_eq!(y.shape(), shape);
        assert!(y.to_vec::<f32>().unwrap().iter().all(|&x| x == 0.0));
    }
    let y = zeros(&[4, 2, 0])
        .linear(&zeros(&[3, 0]), Some(&Tensor::full(&[3], 1.0, DType::F32).unwrap()));
    assert_eq!(y.unwrap().to_vec::<f32>().unwrap(), [1.0; 24]);
}

#[test]
fn layers_of_empty_batches_give_empty_batches() {
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32).unwrap();
    let row = |n: usize| zeros(&[n]);
    let w = Parameter::new("w", zeros(&[3, 4])).unwrap();
    let y = zeros(&[0, 5, 4]).linear(&w.tensor(), Some(&row(3))).unwrap();
    assert_eq!(y.shape(), [0, 5, 3]);
    let gradients = y.sum_all().unwrap().backward().unwrap();
    assert_eq!(gradients.get(&w).unwrap().to_vec::<f32>().unwrap(), [0.0; 12]);
    assert_eq!(zeros(&[0, 4]).layer_norm(&row(4), &row(4), 1e-5).unwrap().shape(), [0, 4]);
    let images = zeros(&[0, 2, 5, 5]);
    let slide = SlidingWindow::new([2, 2]);
    assert_eq!(
        images.conv2d(&zeros(&[3, 2, 2, 2]), Some(&row(3)), &slide).unwrap().shape(),
        [0, 3, 4, 4]
    );
    assert_eq!(images.max_pool2d(&slide).unwrap().shape(), [0, 2, 4, 4]);
    assert_eq!(images.mean_pool2d(&slide).unwrap().shape(), [0, 2, 4, 4]);
    let none = Tensor::from_vec(Vec::<i64>::new(), &[0]).unwrap();
    assert_eq!(w.tensor().rows(&none).unwrap().shape(), [0, 4]);
    assert_eq!(zeros(&[0, 4]).segment_sum(&none, 3).unwrap().to_vec::<f32>().unwrap(), [0.0; 12]);
    let loss = zeros(&[0, 4]).cross_entropy(&none, CrossEntropy::default()).unwrap();
    assert_eq!(loss.item().unwrap(), 0.0);
    for (b, t) in [(0, 5), (2, 0)] {
        let w_hh = zeros(&[12, 3]);
        let start = RecurrentStart { w_hh: &w_hh, b_hh: None, h0: None, c0: None };
        let out = zeros(&[b, t, 12]).recurrent(Cell::Lstm, start, None, false).unwrap();
        assert_eq!((out.out.shape(), out.h.shape()), (&[b, t, 3][..], &[b, 3][..]));
    }
}

#[test]
fn what_has_no_answer_for_an_empty_axis_says_so() {
    let x = Tensor::zeros(&[2, 0], DType::F32).unwrap();
    for error in [x.max(1).unwrap_err(), x.mean(1).unwrap_err()] {
        assert!(error.to_string().contains("[2, 0] is empty"), "{error}");
    }
}

#[test]
fn a_product_of_no_rows_leaves_a_gradient_of_zeros() {
    let w =
        Parameter::new("w", Random::new(1).normal(&[4, 3], 0.0, 1.0, DType::F64).unwrap()).unwrap();
    let x = Tensor::zeros(&[2, 0, 4], DType::F64).unwrap();
    let gradients = x.matmul(&w.tensor()).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(gradients.get(&w).unwrap().to_vec::<f64>().unwrap(), [0.0; 12]);
}

#[test]
fn infinities_and_nans_go_through_every_operation_without_a_crash() {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e300, -1e-300, 1.0];
    for dtype in [DType::F32, DType::F64] {
        let numbers: Vec<f64> = (0..2 * 9 * 33).map(|i| odd[(i * i + i / 7) % 8]).collect();
        let x = Tensor::from_vec(numbers, &[2, 9, 33]).unwrap().to_dtype(dtype).unwrap();
        for (name, f) in OPERATIONS {
            run(name, x.clone(), f);
        }
        run("max", x.clone(), |x| Ok(x.max(1)?.0));
        run("layer_norm", x.clone(), |x| {
            let one = Tensor::full(&[33], 1.0, x.dtype())?;
            x.layer_norm(&one, &one, 1e-5)
        });
        run("cross_entropy", x.clone(), |x| {
            let targets = Tensor::from_vec((0..18i64).collect(), &[18])?;
            x.reshape(&[18, 33])?.cross_entropy_rows(&targets, CrossEntropy::default())
        });
        run("max_pool2d", x, |x| x.unsqueeze(0)?.max_pool2d(&SlidingWindow::new([2, 2])));
    }
}

#[test]
fn a_nan_is_not_lost_in_a_sum_or_a_maximum() {
    let mut numbers = vec![1f32; 1000];
    numbers[777] = f32::NAN;
    let x = Tensor::from_vec(numbers, &[1000]).unwrap();
    assert!(x.sum_all().unwrap().item().unwrap().is_nan());
    let (largest, index) = x.max(0).unwrap();
    assert!(largest.item().unwrap().is_nan() && index.item().unwrap() == 777.0);
    assert!(x.softmax(0).unwrap().to_vec::<f32>().unwrap().iter().all(|x| x.is_nan()));
}

#[test]
fn a_row_of_minus_infinity_but_one_number_is_that_number() {
    let x = Tensor::from_vec(vec![f32::NEG_INFINITY, 3.0, f32::NEG_INFINITY], &[3]).unwrap();
    assert_eq!(x.softmax(0).unwrap().to_vec::<f32>().unwrap(), [0.0, 1.0, 0.0]);
}

#[test]
fn a_large_broadcast_reads_its_numbers_where_they_lie() {
    let column = Tensor::from_vec((0..2000).map(|x| x as f32).collect(), &[2000, 1]).unwrap();
    let row = Tensor::from_vec((0..1500).map(|x| 0.25 * x as f32).collect(), &[1500]).unwrap();
    let wide = column.broadcast_to(&[50_000, 2000, 1500]).unwrap();
    assert_eq!((wide.numel(), wide.strides()), (150_000_000_000, &[0, 1, 0][..]));
    let (a, b) = (Parameter::new("a", column).unwrap(), Parameter::new("b", row).unwrap());
    let sum = a.tensor().add(&b.tensor()).unwrap();
    assert_eq!(sum.shape(), [2000, 1500]);
    let numbers = sum.to_vec::<f32>().unwrap();
    assert!((0..numbers.len()).all(|i| numbers[i] == (i / 1500) as f32 + 0.25 * (i % 1500) as f32));
    let gradients = sum.sum_all().unwrap().backward().unwrap();
    assert_eq!(gradients.get(&a).unwrap().to_vec::<f32>().unwrap(), vec![1500.0; 2000]);
    assert_eq!(gradients.get(&b).unwrap().to_vec::<f32>().unwrap(), vec![2000.0; 1500]);
}

#[test]
fn more_numbers_than_there_is_memory_for_are_refused() {
    let error = Tensor::zeros(&[1 << 57], DType::F32).unwrap_err();
    assert_eq!(error.to_string(), "there is no memory for 144115188075855872 numbers");
}

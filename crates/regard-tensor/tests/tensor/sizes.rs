//! Sizes near the end of what can be counted: every entrance refuses them by a sentence, in any
//! build, whether or not their product wraps to something small.

use regard_tensor::{
    Activation, Cell, CrossEntropy, DType, Init, Memory, Parameters, Random, RecurrentStart,
    Result, SlidingWindow, Tensor, load,
};

const MAX: usize = usize::MAX;

/// Shapes of more numbers than there are addresses. The products of most wrap, some to 0 or 4.
const SHAPES: [&[usize]; 7] = [
    &[MAX],
    &[MAX, 2],
    &[(1 << 62) + 1, 4],
    &[1 << 32, 1 << 32],
    &[1 << 16, 1 << 16, 1 << 16, 1 << 16],
    &[0, MAX, MAX],
    &[MAX / 8 + 2],
];

const ADDRESS: &str = "more numbers than memory can address";
const MEMORY: &str = "there is no memory for";

#[track_caller]
fn refused<T>(result: Result<T>, sentence: &str) {
    let Err(error) = result else { panic!("was taken, not refused with {sentence:?}") };
    let error = error.to_string();
    assert!(error.contains(sentence), "{error:?} does not say {sentence:?}");
}

/// A view of one number in a shape that no memory holds.
fn wide(shape: &[usize]) -> Tensor {
    Tensor::new(1f32).unwrap().broadcast_to(shape).unwrap()
}

fn zeros(shape: &[usize]) -> Tensor {
    Tensor::zeros(shape, DType::F32).unwrap()
}

#[test]
fn constructors_refuse_them() {
    for shape in SHAPES {
        for dtype in [DType::F32, DType::F64, DType::BF16, DType::I64, DType::Bool] {
            refused(Tensor::zeros(shape, dtype), ADDRESS);
            refused(Tensor::full(shape, 1.0, dtype), ADDRESS);
            refused(Tensor::uninit(shape, dtype), ADDRESS);
        }
        refused(Tensor::build(shape, |_: &mut [f32]| {}), ADDRESS);
        refused(Tensor::try_build(shape, |_: &mut [f32]| Ok(())), ADDRESS);
        refused(Tensor::from_vec(vec![1f32; 4], shape), ADDRESS);
        refused(Tensor::from_slice(&[1f32; 4], shape), ADDRESS);
        refused(Tensor::from_bools(&[true; 4], shape), ADDRESS);
    }
    refused(Tensor::zeros(&[1 << 59], DType::F64), MEMORY);
    refused(Tensor::new([[[[[[[1f32]]]]]]]), "at most 6 axes");
}

#[test]
fn reshape_refuses_them_and_names_itself() {
    for count in [0, 1, 4] {
        for shape in SHAPES {
            let error = zeros(&[count]).reshape(shape).unwrap_err().to_string();
            assert_eq!(error, format!("reshape: shape {shape:?} has {ADDRESS}"));
        }
    }
    // Not contiguous, so that a copy would be the next thing to try.
    refused(zeros(&[2, 2]).transpose(0, 1).unwrap().reshape(&[(1 << 62) + 1, 4]), ADDRESS);
}

#[test]
fn broadcasts_refuse_them() {
    for shape in SHAPES {
        refused(Tensor::new(1f32).unwrap().broadcast_to(shape), ADDRESS);
    }
    let (column, row) = (wide(&[1 << 32, 1]), wide(&[1 << 32]));
    for result in [column.add(&row), column.sub(&row), column.mul(&row), column.div(&row)] {
        refused(result, ADDRESS);
    }
    refused(column.maximum(&row), ADDRESS);
    let mask = Tensor::new(true).unwrap();
    refused(mask.where_(&column, &row), ADDRESS);
    refused(mask.broadcast_to(&[1 << 32, 1]).unwrap().where_(&row, &row), ADDRESS);
}

#[test]
fn views_refuse_places_beyond_their_axes() {
    let x = zeros(&[4, 3]);
    refused(x.narrow(0, MAX, 2), "narrow: 2 from");
    refused(x.narrow(0, 2, MAX), "from 2 on");
    refused(x.select(1, MAX), "select: index");
    refused(x.i(MAX), "i: index");
    refused(x.i(..=MAX), "i: the range");
    refused(x.i((.., MAX..)), "i: the range");
    refused(x.i(MAX..=MAX), "i: the range");
    refused(x.split(0, &[MAX, 5]), "more numbers than memory");
    refused(x.unsqueeze(isize::MAX), "unsqueeze: a new axis");
    refused(x.squeeze(isize::MIN), "squeeze");
    refused(x.transpose(isize::MAX, 0), "transpose");
    refused(x.permute(&[MAX, 0]), "permute");
    refused(x.size(isize::MIN), "size");
    refused(zeros(&[4, 3]).write(0, MAX, &x), "write: 4 from");
}

#[test]
fn a_view_larger_than_memory_is_seen_and_cut_but_not_copied() {
    let x = wide(&[1 << 57, 1, 4]);
    assert_eq!(x.numel(), 1 << 59);
    assert_eq!(x.transpose(0, 2).unwrap().unsqueeze(1).unwrap().i((3, 0, 0, 7)).unwrap().rank(), 0);
    let part = x.narrow(0, (1 << 57) - 2, 2).unwrap().narrow(2, 1, 2).unwrap();
    assert_eq!(part.to_vec::<f32>().unwrap(), [1.0; 4]);
    assert!(x.to_string().ends_with("f32 [144115188075855872, 1, 4]"));
    refused(x.to_vec::<f32>(), MEMORY);
    refused(x.contiguous(), MEMORY);
    refused(x.transpose(0, 2).unwrap().reshape(&[1 << 59]).and_then(|x| x.contiguous()), MEMORY);
    refused(x.to_dtype(DType::F64), MEMORY);
    for result in [x.exp(), x.scale(2.0), x.sum(0), x.sum_all(), x.mean_all(), x.softmax(0)] {
        refused(result, MEMORY);
    }
    refused(x.max(0), MEMORY);
    refused(x.dropout(0.5, 1), MEMORY);
    refused(x.activate(Activation::Relu), MEMORY);
    refused(x.add(&x), MEMORY);
    let row = wide(&[4]);
    refused(x.layer_norm(&row, &row, 1e-5), MEMORY);
    let targets = Tensor::new(0i64).unwrap().broadcast_to(&[1 << 57]).unwrap();
    refused(x.squeeze(1).unwrap().cross_entropy(&targets, CrossEntropy::default()), MEMORY);
    assert!(Memory::now().live < 1 << 30);
}

#[test]
fn a_window_refuses_them() {
    let base = SlidingWindow::new([2, 2]);
    let odd = [
        SlidingWindow { padding: [MAX / 2 + 1, 0], ..base },
        SlidingWindow { padding: [0, MAX], ..base },
        SlidingWindow { dilation: [MAX, 1], ..base },
        SlidingWindow { kernel: [3, 2], dilation: [MAX / 2 + 1, 1], ..base },
        SlidingWindow { kernel: [MAX, MAX], dilation: [2, 1], ..base },
        SlidingWindow { kernel: [MAX, 2], dilation: [MAX, 1], ..base },
    ];
    let x = zeros(&[1, 1, 4, 4]);
    for window in odd {
        refused(window.output_size([4, 4]), "larger than memory can address");
        refused(x.unfold(&window), "unfold: a window");
        refused(x.max_pool2d(&window), "max_pool2d: a window");
        refused(x.mean_pool2d(&window), "mean_pool2d: a window");
    }
    refused(SlidingWindow { kernel: [MAX, 1], ..base }.output_size([4, 4]), "does not fit");
    refused(
        base.output_size([MAX, MAX]).and(SlidingWindow::new([MAX, 1]).output_size([MAX - 1, 1])),
        "does not fit",
    );
    // Each side fits, their product does not.
    let many = SlidingWindow { padding: [1 << 40, 1 << 40], ..base };
    refused(x.unfold(&many), ADDRESS);
    refused(x.mean_pool2d(&many), ADDRESS);
    let large = SlidingWindow { kernel: [1 << 33, 1 << 33], padding: [1 << 32, 1 << 32], ..base };
    refused(x.unfold(&large), ADDRESS);
    refused(x.max_pool2d(&large), ADDRESS);
    refused(x.mean_pool2d(&large), ADDRESS);
    // A stride that leaves one place is fine.
    let far = SlidingWindow { stride: [MAX, MAX], ..base };
    assert_eq!(x.max_pool2d(&far).unwrap().shape(), [1, 1, 1, 1]);
}

#[test]
fn convolutions_refuse_them() {
    let (x, w) = (zeros(&[1, 1, 4, 4]), zeros(&[1, 1, 2, 2]));
    let window = SlidingWindow { padding: [MAX, 0], ..SlidingWindow::new([2, 2]) };
    refused(x.conv2d(&w, None, &window), "conv2d: a window");
    let many = SlidingWindow { padding: [1 << 40, 1 << 40], ..SlidingWindow::new([2, 2]) };
    refused(x.conv2d(&w, None, &many), ADDRESS);
    let (x, w) = (zeros(&[1, 1, 4]), zeros(&[1, 1, 2]));
    for (stride, padding, dilation) in [(1, MAX, 1), (1, MAX / 2 + 1, 1), (MAX, 1 << 62, MAX)] {
        refused(x.conv1d(&w, None, stride, padding, dilation), "conv1d: a window");
    }
    refused(x.conv1d(&w, None, 1, 1 << 61, 1), ADDRESS);
}

#[test]
fn rows_by_index_refuse_them() {
    let (table, index) = (zeros(&[3, 2]), Tensor::new([0i64, 1]).unwrap());
    refused(table.pick(&[0, MAX]), "pick: index 18446744073709551615 at place 1");
    refused(table.embed(&index, Some(MAX)), "embed: the padding 18446744073709551615");
    for n in [MAX, 1 << 63, 1 << 60] {
        refused(table.segment_sum(&Tensor::new([0i64, 1, 0]).unwrap(), n), ADDRESS);
    }
    let many = index.unsqueeze(0).unwrap().broadcast_to(&[1 << 58, 2]).unwrap();
    refused(table.rows(&many), ADDRESS);
    refused(wide(&[3, 1 << 58]).rows(&index), MEMORY);
    let many = Tensor::new(0i64).unwrap().broadcast_to(&[1 << 50, 2]).unwrap();
    refused(table.gather(0, &many), MEMORY);
}

#[test]
fn joins_refuse_them() {
    let x = wide(&[1 << 59]);
    refused(Tensor::cat(&vec![x.clone(); 2], 0), ADDRESS);
    refused(Tensor::cat(&vec![x.clone(); 32], 0), "add up to more numbers than memory can address");
    refused(Tensor::stack(&vec![x.clone(); 4], 0), ADDRESS);
    refused(Tensor::stack(&[x], isize::MIN), "stack: a new axis");
}

#[test]
fn products_refuse_them() {
    let (tall, long) = (wide(&[1 << 32, 1]), wide(&[1, 1 << 32]));
    refused(tall.matmul(&long), ADDRESS);
    refused(tall.linear(&tall, None), ADDRESS);
    refused(tall.linear(&tall, Some(&wide(&[1 << 32]))), ADDRESS);
    // The result is small, the work is not.
    let (left, right) = (wide(&[128, 1 << 52]), wide(&[1 << 52, 128]));
    refused(left.matmul(&right), "more multiplications than can be counted");
    let w = right.transpose(0, 1).unwrap();
    refused(left.linear(&w, None), "more multiplications than can be counted");
    refused(left.linear(&w, Some(&zeros(&[128]))), "more multiplications than can be counted");
    refused(wide(&[1 << 32, 2, 2]).matmul(&wide(&[1 << 32, 1, 2, 2])), ADDRESS);
    // Nothing in a great many matrices is nothing.
    let none = zeros(&[1, 0, 3]).broadcast_to(&[1 << 50, 0, 3]).unwrap();
    let product = none.matmul(&wide(&[1 << 50, 3, 2])).unwrap();
    assert_eq!(product.shape(), [1 << 50, 0, 2]);
}

#[test]
fn recurrent_layers_refuse_them() {
    let w_hh = zeros(&[4, 1]);
    let start = RecurrentStart { w_hh: &w_hh, b_hh: None, h0: None, c0: None };
    let run = |gates: &Tensor, start, lengths| gates.recurrent(Cell::Lstm, start, lengths, false);
    refused(run(&wide(&[1 << 28, 1 << 28, 4]), start, None), MEMORY);
    refused(run(&zeros(&[1, 2, 4]), start, Some(&[MAX])), "length 18446744073709551615");
    let w_hh = wide(&[1 << 29, 1 << 30]);
    refused(run(&zeros(&[1, 2, 4]), RecurrentStart { w_hh: &w_hh, ..start }, None), "do not fit");
}

#[test]
fn random_numbers_and_parameters_refuse_them() {
    let random = Random::new(1);
    let parameters = Parameters::new(DType::F32, 1);
    let draws = [
        Init::Zeros,
        Init::Ones,
        Init::Constant(1.0),
        Init::Uniform(1.0),
        Init::Normal(1.0),
        Init::Glorot,
        Init::FanIn,
    ];
    for shape in SHAPES {
        refused(random.uniform(shape, 0.0, 1.0, DType::F32), ADDRESS);
        refused(random.normal(shape, 0.0, 1.0, DType::F64), ADDRESS);
        for init in draws {
            refused(init.draw(shape, DType::F32, &random), ADDRESS);
            refused(parameters.parameter("w", shape, init), ADDRESS);
        }
    }
    assert!(parameters.all().is_empty());
    assert!(random.below(MAX) < MAX);
}

#[test]
fn a_file_of_them_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (at, shape) in SHAPES.iter().enumerate() {
        let header = format!(r#"{{"x":{{"dtype":"F32","shape":{shape:?},"data_offsets":[0,0]}}}}"#);
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
        let path = folder.path().join(format!("{at}.safetensors"));
        std::fs::write(&path, bytes).unwrap();
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("{at}.safetensors: ")), "{error}");
    }
}

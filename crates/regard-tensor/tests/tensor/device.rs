//! The same tensors on another device: `REGARD_TEST_DEVICE` names it. Without a GPU an emulated one stands in, for
//! which a C++ compiler is needed.

use regard_tensor::{
    Activation, Cell, CrossEntropy, DType, Device, Init, Optimizer, Parameters, Precision, Random,
    RecurrentStart, Result, SlidingWindow, Tensor, UpdateRule, fallbacks, lerp_all, with_precision,
};

#[path = "../../../regard-kernels/tests/emulator/gpu.rs"]
mod gpu;
use gpu::emulated;

/// Where the tests compute.
pub(crate) fn device() -> Device {
    std::env::var("REGARD_TEST_DEVICE").map_or(Device::Cpu, |name| name.parse().unwrap())
}

/// A tensor where the tests compute.
pub(crate) fn here(x: Tensor) -> Tensor {
    x.to_device(device()).unwrap()
}

#[test]
#[ignore = "needs a C++ compiler"]
fn gradients_agree_with_finite_differences_on_an_emulated_gpu() {
    let said = emulated("gradients::", false);
    assert!(!said.contains("running 0 tests"), "{said}");
}

#[test]
#[ignore = "needs a C++ compiler"]
fn operations_on_an_emulated_gpu_give_what_the_cpu_gives() {
    let said = emulated("device::on_the_gpu", true);
    assert!(said.contains("8 passed"), "{said}");
}

fn normal(seed: u64, shape: &[usize], dtype: DType) -> Tensor {
    Random::new(seed).normal(shape, 0.0, 1.0, dtype).unwrap()
}

/// How far results on the device are from those in main memory, relative to the largest.
#[track_caller]
fn close(name: &str, there: &[Tensor], cpu: &[Tensor], most: f64) {
    // Otherwise the CPU is compared with itself.
    assert_ne!(device(), Device::Cpu, "REGARD_TEST_DEVICE names the GPU");
    assert_eq!(there.len(), cpu.len(), "{name}");
    for (a, b) in there.iter().zip(cpu) {
        assert_eq!(a.device(), device(), "{name}");
        assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()), "{name}");
        let wide = |x: &Tensor| x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        let (a, b) = (wide(a), wide(b));
        let scale = b.iter().filter(|x| x.is_finite()).fold(1.0, |m: f64, x| m.max(x.abs()));
        for (at, (a, b)) in a.iter().zip(&b).enumerate() {
            let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= most * scale;
            assert!(same, "{name}: number {at} is {a} there and {b} here");
        }
    }
}

/// Results and gradients of an operation, by its inputs, wherever they lie.
fn all_of(inputs: &[Tensor], f: &dyn Fn(&[Tensor]) -> Result<Tensor>) -> Result<Vec<Tensor>> {
    let leaves: Vec<Tensor> = inputs
        .iter()
        .map(|x| if x.dtype().is_float() { x.requires_grad() } else { Ok(x.clone()) })
        .collect::<Result<_>>()?;
    let y = f(&leaves)?;
    let mut all = vec![y.detach()];
    if y.has_gradient() {
        let seed = normal(99, y.shape(), y.dtype()).to_device(y.device())?;
        let gradients = y.backward_with(&seed)?;
        all.extend(leaves.iter().filter_map(|x| gradients.get(x)).cloned());
    }
    Ok(all)
}

#[track_caller]
fn compare(name: &str, inputs: &[Tensor], f: impl Fn(&[Tensor]) -> Result<Tensor>) {
    let cpu = all_of(inputs, &f).unwrap_or_else(|error| panic!("{name}: {error}"));
    let moved: Vec<Tensor> = inputs.iter().cloned().map(here).collect();
    let there = all_of(&moved, &f).unwrap_or_else(|error| panic!("{name}: {error}"));
    let most = if inputs[0].dtype() == DType::F64 { 1e-12 } else { 2e-5 };
    close(name, &there, &cpu, most);
}

/// The operations that the CPU computed.
fn fallen_back() -> Vec<(&'static str, u64)> {
    fallbacks().into_iter().collect()
}

/// A number and a matrix that no shape of a tile divides, in both types.
fn each_type(f: impl FnMut(DType)) {
    [DType::F32, DType::F64].into_iter().for_each(f);
}

#[test]
#[ignore = "needs a GPU, or an emulated one"]
fn on_the_gpu_elementwise_operations_give_what_the_cpu_gives() {
    each_type(|dtype| {
        let x = normal(1, &[3, 5, 33], dtype);
        let y = normal(2, &[5, 1], dtype).abs().unwrap().shift(0.1).unwrap();
        let inputs = [x.clone(), y.clone()];
        compare("add", &inputs, |x| x[0].add(&x[1]));
        compare("sub", &inputs, |x| x[0].transpose(0, 2)?.sub(&x[1]));
        compare("mul", &inputs, |x| x[0].mul(&x[1]));
        compare("div", &inputs, |x| x[0].div(&x[1]));
        compare("maximum", &inputs, |x| x[0].maximum(&x[1]));
        for (name, f) in [
            ("exp", Tensor::exp as fn(&Tensor) -> Result<Tensor>),
            ("square", Tensor::square),
            ("abs", Tensor::abs),
            ("relu", Tensor::relu),
        ] {
            compare(name, std::slice::from_ref(&x), |x| f(&x[0].narrow(2, 3, 20)?));
        }
        for (name, f) in
            [("ln", Tensor::ln as fn(&Tensor) -> Result<Tensor>), ("sqrt", Tensor::sqrt)]
        {
            compare(name, std::slice::from_ref(&y), |x| f(&x[0]));
        }
        compare("powf", std::slice::from_ref(&y), |x| x[0].powf(-1.5));
        compare("clamp", std::slice::from_ref(&x), |x| x[0].clamp(-0.5, 0.7));
        compare("scale", std::slice::from_ref(&x), |x| x[0].scale(-2.5)?.shift(3.0));
        for activation in [
            Activation::Relu,
            Activation::LeakyRelu { slope: 0.1 },
            Activation::Gelu,
            Activation::GeluTanh,
            Activation::Silu,
            Activation::Tanh,
            Activation::Sigmoid,
            Activation::Elu { alpha: 0.7 },
            Activation::Exp,
        ] {
            let bias = normal(3, &[33], dtype);
            compare(&format!("{activation}"), &[x.clone(), bias], |x| {
                x[0].activate_with(&x[1], activation)
            });
        }
        let drawn = |x: &Tensor| x.dropout(0.3, 0x1234_5678_9abc).unwrap();
        close("dropout", &[drawn(&here(x.clone()))], &[drawn(&x)], 0.0);
    });
    // NaN, infinities, ties: comparisons, extremes, choices.
    let odd = [f64::NAN, 1.0, f64::INFINITY, 1.0, -0.0, 0.0, f64::NEG_INFINITY, 2.0, f64::NAN];
    let x = Tensor::from_vec(odd.to_vec(), &[3, 3]).unwrap();
    for (name, f) in [
        ("eq", Tensor::eq as fn(&Tensor, &Tensor) -> Result<Tensor>),
        ("ne", Tensor::ne),
        ("lt", Tensor::lt),
        ("le", Tensor::le),
        ("gt", Tensor::gt),
        ("ge", Tensor::ge),
    ] {
        compare(name, &[x.clone(), x.transpose(0, 1).unwrap()], |x| f(&x[0], &x[1]));
    }
    let mask = Tensor::from_bools(&[true, false, true], &[3]).unwrap();
    compare("masked_fill", &[x.clone(), mask], |x| x[0].masked_fill(&x[1], -1.5));
    for axis in [0, 1] {
        for k in 0..4 {
            compare("topk", std::slice::from_ref(&x), |x| Ok(x[0].topk(k, axis)?.0));
            compare("topk", std::slice::from_ref(&x), |x| Ok(x[0].topk(k, axis)?.1));
        }
        compare("argmax", std::slice::from_ref(&x), |x| x[0].argmax(axis));
        compare("argmin", std::slice::from_ref(&x), |x| x[0].argmin(axis));
    }
    assert_eq!(fallen_back(), []);
}

/// Whether types hold a number, one after the other.
fn is_held(x: f64, types: &[DType]) -> bool {
    let one = Tensor::from_vec(vec![x], &[1]).unwrap();
    types.iter().try_fold(one, |x, &to| x.to_dtype(to)).is_ok()
}

#[test]
#[ignore = "needs a GPU, or an emulated one"]
fn on_the_gpu_every_type_becomes_every_other_as_on_the_cpu() {
    let all =
        [DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64, DType::U32, DType::Bool];
    let numbers = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        2.5,
        65504.0,
        65519.9,
        65520.0,
        70000.0,
        1e-8,
        5.96e-8,
        2.98e-8,
        2.99e-8,
        6.1e-5,
        3e9,
        -3e9,
        1e30,
        1e300,
        1.003_906_25,
        1.003_906_26,
        1.000_488_281_25,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        4_294_967_295.0,
        9.3e18,
        -9.3e18,
        255.0,
        0.1,
        1.0 / 3.0,
    ];
    let mut count = 0;
    for from in all {
        for to in all {
            // What a type does not hold is refused.
            let held: Vec<f64> = numbers.into_iter().filter(|&x| is_held(x, &[from, to])).collect();
            let pairs = held.len() / 2;
            let x = Tensor::from_vec(held[..2 * pairs].to_vec(), &[pairs, 2]).unwrap();
            let x = x.to_dtype(from).unwrap();
            let f = |x: &Tensor| x.transpose(0, 1).unwrap().to_dtype(to).unwrap();
            close(&format!("{from} to {to}"), &[f(&here(x.clone()))], &[f(&x)], 0.0);
            let mask = Tensor::from_bools(&[true, false], &[2]).unwrap();
            let other = x.zeros_like().unwrap();
            let chosen = mask.where_(&x, &other).unwrap();
            let there = here(mask.clone()).where_(&here(x.clone()), &here(other)).unwrap();
            close("where", &[there], &[chosen], 0.0);
            count += 1;
        }
    }
    assert_eq!(count, 49);
}

/// A view of `[3, 4, width]`, by what it is.
type View = (&'static str, fn(&Tensor) -> Result<Tensor>);

/// Numbers that lie in a row are read several at a time where they begin evenly; all others one by one.
#[test]
#[ignore = "needs a GPU, or an emulated one"]
fn on_the_gpu_parts_of_tensors_are_copied_and_converted_as_on_the_cpu() {
    let views: [View; 10] = [
        ("all", |x| Ok(x.clone())),
        ("rows", |x| x.transpose(0, 1)),
        ("columns", |x| x.transpose(1, 2)),
        ("all turned", |x| x.permute(&[2, 1, 0])),
        ("middle", |x| x.narrow(1, 1, 2)),
        ("one", |x| x.select(1, 2)),
        ("far columns", |x| x.narrow(2, x.shape()[2] / 2, x.shape()[2] / 2)),
        ("from the second", |x| x.narrow(2, 1, x.shape()[2] - 1)),
        ("many of one", |x| x.select(1, 1)?.unsqueeze(1)?.broadcast_to(&[3, 5, x.shape()[2]])),
        ("rows of far columns", |x| x.transpose(0, 1)?.narrow(2, x.shape()[2] / 2, 4)),
    ];
    let all = [DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64, DType::Bool];
    let mut count = 0;
    for width in [8, 11, 16, 40] {
        let mut numbers = normal(1, &[3, 4, width], DType::F64).to_vec::<f64>().unwrap();
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 3.4e38, 1e-39, -1e-45, -0.0];
        numbers[..7].copy_from_slice(&odd);
        for from in all {
            let held =
                |&x: &f64| if is_held(x, &[from, DType::F32, DType::BF16]) { x } else { 1.0 };
            let numbers: Vec<f64> = numbers.iter().map(held).collect();
            let x = Tensor::from_vec(numbers, &[3, 4, width]).unwrap().to_dtype(from).unwrap();
            let there = here(x.clone());
            for (name, view) in views {
                let (part, part_there) = (view(&x).unwrap(), view(&there).unwrap());
                let name = format!("{name} of {width}, {from}");
                let copied = |x: &Tensor| x.contiguous().unwrap();
                close(&name, &[copied(&part_there)], &[copied(&part)], 0.0);
                for to in [DType::F32, DType::BF16] {
                    let cast = |x: &Tensor| x.to_dtype(to).unwrap();
                    close(&format!("{name} to {to}"), &[cast(&part_there)], &[cast(&part)], 0.0);
                }
                count += 1;
            }
            for start in 0..width - 4 {
                let written = |x: &Tensor| -> Result<Tensor> {
                    let mut whole = x.clone();
                    whole.write(2, start, &x.narrow(2, 4, 4)?)?;
                    Ok(whole)
                };
                let [there, cpu] = [&there, &x].map(|x| written(x).unwrap());
                close(&format!("{from} from {start} on"), &[there], &[cpu], 0.0);
            }
        }
    }
    assert_eq!(count, 240);
    assert_eq!(fallen_back(), []);
}

#[test]
#[ignore = "needs a GPU, or an emulated one"]
fn on_the_gpu_sums_rows_and_products_give_what_the_cpu_gives() {
    each_type(|dtype| {
        for shape in [&[3, 40, 5][..], &[1, 700, 1], &[2, 5000, 1], &[1, 300, 70], &[2, 0, 3]] {
            for axis in 0..3 {
                let x = [normal(1, shape, dtype)];
                compare(&format!("sum {shape:?} {axis}"), &x, |x| x[0].sum(axis));
            }
        }
        for shape in [&[3, 40, 5][..], &[2, 1, 3], &[1, 129, 2], &[2, 0, 3], &[64]] {
            for axis in 0..shape.len() as isize {
                let x = [normal(1, shape, dtype)];
                compare(&format!("cumsum {shape:?} {axis}"), &x, |x| x[0].cumsum(axis));
            }
        }
        let x = [normal(1, &[7, 45], dtype)];
        for axis in [0, 1] {
            compare("sum_keepdim", &x, |x| x[0].sum_keepdim(axis));
            compare("mean_keepdim", &x, |x| x[0].mean_keepdim(axis));
            compare("max_keepdim", &x, |x| Ok(x[0].max_keepdim(axis)?.0));
            compare("min_keepdim", &x, |x| Ok(x[0].min_keepdim(axis)?.0));
            compare("topk", &x, |x| Ok(x[0].topk(5, axis)?.0));
            compare("softmax", &x, |x| x[0].softmax(axis));
            compare("log_softmax", &x, |x| x[0].log_softmax(axis));
            compare("max", &x, |x| Ok(x[0].max(axis)?.0));
        }
        let norm = [normal(1, &[300, 45], dtype), normal(2, &[45], dtype), normal(3, &[45], dtype)];
        compare("layer_norm", &norm, |x| x[0].layer_norm(&x[1], &x[2], 1e-5));
        compare("rms_norm", &norm[..2], |x| x[0].rms_norm(&x[1], 1e-5));
        let odds = x[0].sigmoid().unwrap();
        let logits = x[0].scale(20.0).unwrap();
        compare("binary_cross_entropy", &[logits, odds], |x| {
            x[0].binary_cross_entropy_elements(&x[1])
        });
        for (smoothing, ignored) in [(0.0, None), (0.1, Some(-1)), (0.3, Some(2))] {
            let ids = (0..7).map(|i| if i == 3 { ignored.unwrap_or(2) } else { i * 6 });
            let targets = Tensor::from_vec(ids.collect::<Vec<i64>>(), &[7]).unwrap();
            let rule = CrossEntropy { ignore_index: ignored, label_smoothing: smoothing };
            compare("cross_entropy", &[x[0].clone(), targets], |x| {
                x[0].cross_entropy_rows(&x[1], rule)
            });
        }
        let ids =
            Tensor::from_vec((0..50).map(|i| i * i % 9).collect::<Vec<i64>>(), &[10, 5]).unwrap();
        let table = [normal(4, &[9, 300], dtype), ids];
        compare("rows", &table, |x| x[0].rows(&x[1]));
        compare("embed", &table, |x| x[0].embed(&x[1], Some(4)));
        let flat = [normal(5, &[50, 3], dtype), table[1].reshape(&[50]).unwrap()];
        compare("segment_sum", &flat, |x| x[0].segment_sum(&x[1], 9));
        let pick = Tensor::from_vec((0..24).map(|i| i % 5).collect::<Vec<i64>>(), &[4, 6]).unwrap();
        compare("gather", &[normal(6, &[4, 5], dtype), pick.clone()], |x| x[0].gather(1, &x[1]));
        compare("gather", &[normal(6, &[5, 6], dtype), pick], |x| x[0].gather(0, &x[1]));
        compare("cat", &[normal(7, &[2, 3, 4], dtype), normal(8, &[2, 5, 4], dtype)], |x| {
            Tensor::cat(&[x[0].clone(), x[1].clone(), x[0].clone()], 1)
        });
        compare("write", &x, |x| {
            let mut to = x[0].detach().zeros_like()?;
            to.write(1, 3, &x[0].detach().narrow(1, 10, 20)?)?;
            Ok(to)
        });
        for (m, k, n) in [(1, 1, 1), (70, 33, 65), (5, 100, 3), (0, 4, 5), (4, 0, 5), (128, 16, 64)]
        {
            let (a, b) = (normal(9, &[2, m, k], dtype), normal(10, &[1, n, k], dtype));
            let name = format!("matmul {m} {k} {n}");
            compare(&name, &[a, b], |x| x[0].matmul(&x[1].transpose(1, 2)?));
        }
        let linear =
            [normal(1, &[3, 7, 20], dtype), normal(2, &[66, 20], dtype), normal(3, &[66], dtype)];
        compare("linear", &linear, |x| x[0].linear(&x[1], Some(&x[2])));
        let images = [normal(1, &[2, 3, 9, 8], dtype)];
        for window in [
            SlidingWindow {
                stride: [2, 1],
                padding: [1, 2],
                dilation: [1, 2],
                ..SlidingWindow::new([3, 2])
            },
            SlidingWindow::new([2, 3]),
            SlidingWindow { stride: [2, 1], padding: [1, 1], ..SlidingWindow::new([2, 2]) },
            SlidingWindow { dilation: [2, 1], padding: [0, 1], ..SlidingWindow::new([2, 3]) },
        ] {
            let [h, w] = window.kernel;
            let inputs =
                [images[0].clone(), normal(2, &[4, 3, h, w], dtype), normal(3, &[4], dtype)];
            compare(&format!("{window:?}"), &inputs, |x| x[0].conv2d(&x[1], Some(&x[2]), &window));
        }
        let pool = SlidingWindow { stride: [2, 2], padding: [1, 0], ..SlidingWindow::new([2, 2]) };
        compare("max_pool2d", &images, |x| x[0].max_pool2d(&pool));
        compare("mean_pool2d", &images, |x| x[0].mean_pool2d(&pool));
    });
    assert_eq!(fallen_back(), []);
}

#[test]
#[ignore = "needs a GPU, or an emulated one"]
fn on_the_gpu_the_largest_numbers_are_those_of_the_cpu() {
    let mut cases = 0;
    each_type(|dtype| {
        for shape in [&[1, 1][..], &[3, 70], &[2, 1000], &[2, 40, 3], &[5, 33, 2], &[0, 4]] {
            // Many are equal, and some are no numbers.
            let x = normal(1, shape, dtype).scale(3.0).unwrap();
            let x = x.to_dtype(DType::I64).unwrap().to_dtype(dtype).unwrap();
            let x = [x.sub(&x.abs().unwrap().sqrt().unwrap()).unwrap(), x.ln().unwrap()];
            for x in x {
                let n = shape[1];
                for k in [0, 1, 2, 8, 33, n].into_iter().filter(|k| *k <= n.min(64)) {
                    compare(&format!("topk {k} of {shape:?}"), &[x.detach()], |x| {
                        Ok(x[0].topk(k, 1)?.1)
                    });
                    cases += 1;
                }
            }
        }
    });
    assert!(cases >= 96, "{cases}");
    assert_eq!(fallen_back(), []);
    // More are sorted by the CPU.
    compare("topk", &[normal(1, &[3, 100], DType::F32)], |x| Ok(x[0].topk(65, 1)?.1));
    assert_eq!(fallen_back(), [("top_k", 1)]);
}

#[test]
#[ignore = "needs a GPU, or an emulated one"]
fn on_the_gpu_rounded_products_and_moving_means_give_what_the_cpu_gives() {
    let rounded = |f: &dyn Fn() -> Result<Tensor>| with_precision(Precision::Bf16, f);
    for (m, k, n) in [(1, 1, 1), (70, 33, 65), (5, 100, 3), (0, 4, 5), (4, 0, 5), (128, 16, 64)] {
        let (a, b) = (normal(9, &[2, m, k], DType::F32), normal(10, &[1, n, k], DType::F32));
        compare(&format!("matmul {m} {k} {n}"), &[a.clone(), b], |x| {
            rounded(&|| x[0].matmul(&x[1].transpose(1, 2)?))
        });
        let (w, bias) = (normal(11, &[n, k], DType::F32), normal(12, &[n], DType::F32));
        compare(&format!("linear {m} {k} {n}"), &[a, w, bias], |x| {
            rounded(&|| x[0].linear(&x[1], Some(&x[2])))
        });
    }
    for weight in [0.0, 0.1, 1.0] {
        each_type(|dtype| {
            let moved = |device: Device| {
                let all = [&[3][..], &[70, 90], &[0], &[]];
                let all = all.map(|shape| normal(1, shape, dtype).to_device(device).unwrap());
                let to = all.each_ref().map(|x| x.scale(-2.0).unwrap());
                let mut all = all.to_vec();
                lerp_all(&mut all, &to, weight).unwrap();
                all
            };
            close("lerp_all", &moved(device()), &moved(Device::Cpu), 1e-6);
        });
    }
    assert_eq!(fallen_back(), []);
}

#[test]
#[ignore = "needs a GPU, or an emulated one"]
fn on_the_gpu_recurrent_layers_give_what_the_cpu_gives() {
    let mut count = 0;
    let mut layer = |cell: Cell,
                     sizes: [usize; 3],
                     dtype,
                     lengths: Option<&Vec<usize>>,
                     reverse| {
        let ([batch, steps, hidden], lengths) = (sizes, lengths.map(Vec::as_slice));
        let wide = cell.gates() * hidden;
        let smaller = |x: Tensor| x.scale((6.0 / hidden as f64).sqrt()).unwrap();
        let mut inputs = vec![
            normal(1, &[batch, steps, wide], dtype),
            smaller(normal(2, &[wide, hidden], dtype)),
            normal(3, &[wide], dtype),
            normal(4, &[batch, hidden], dtype),
        ];
        inputs.extend((cell == Cell::Lstm).then(|| normal(5, &[batch, hidden], dtype)));
        compare(&format!("{cell} {batch} {steps} {hidden} {reverse}"), &inputs, |x| {
            let start =
                RecurrentStart { w_hh: &x[1], b_hh: Some(&x[2]), h0: Some(&x[3]), c0: x.get(4) };
            let done = x[0].recurrent(cell, start, lengths, reverse)?;
            let last = done.h.unsqueeze(1)?;
            let last = match done.c {
                Some(c) => last.add(&c.unsqueeze(1)?)?,
                None => last,
            };
            Tensor::cat(&[done.out, last], 1)
        });
        count += 1;
    };
    let cells = [Cell::Rnn, Cell::RnnRelu, Cell::Gru, Cell::Lstm];
    // States that are one part of what a block has at a time, and several, even and not; more sequences than a block has.
    for sizes @ [batch, steps, hidden] in [[5, 7, 6], [33, 3, 131], [9, 3, 136]] {
        let lengths: Vec<usize> = (0..batch).map(|n| [4, 0, 7, 1, 6][n % 5].min(steps)).collect();
        for dtype in [DType::F32, DType::F64] {
            // The emulator takes its time.
            if hidden > 6 && dtype == DType::F64 {
                continue;
            }
            for cell in cells {
                layer(cell, sizes, dtype, None, false);
                layer(cell, sizes, dtype, Some(&lengths), false);
                layer(cell, sizes, dtype, Some(&lengths), true);
            }
        }
    }
    // A product that is not in the step's kernel.
    layer(Cell::Lstm, [64, 2, 368], DType::F32, None, false);
    layer(Cell::Gru, [64, 2, 424], DType::F32, Some(&vec![2; 64]), true);
    // Gradients over more than one part of the gates, in both types.
    layer(Cell::Lstm, [9, 2, 200], DType::F32, None, false);
    layer(Cell::Lstm, [3, 2, 100], DType::F64, None, true);
    assert_eq!(count, 52);
    assert_eq!(fallen_back(), []);
}

/// What the CPU's kernels refuse is refused in the same words, before anything is read or written.
fn refusals_are_those_of_the_cpu() {
    /// Puts a tensor on a device.
    type Put<'a> = &'a dyn Fn(Tensor) -> Tensor;
    let said = |f: &dyn Fn(Put) -> Result<()>| {
        let there = f(&here).unwrap_err().to_string();
        assert_eq!(there, f(&|x| x).unwrap_err().to_string());
    };
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32).unwrap();
    type Wrong<'a> = (Cell, &'a [usize], Option<&'a [usize]>, Option<&'a [usize]>, usize);
    let wrong: [Wrong; 6] = [
        (Cell::Gru, &[8, 1], None, None, 18),
        (Cell::Gru, &[1, 2, 3], None, None, 18),
        (Cell::Gru, &[1, 1], Some(&[3, 6]), None, 18),
        (Cell::Gru, &[1, 1], None, Some(&[2, 6]), 18),
        (Cell::Lstm, &[1, 1], None, Some(&[2, 5]), 24),
        (Cell::Rnn, &[1, 1], None, None, 7),
    ];
    for (cell, lengths, h0, c0, bias) in wrong {
        for reverse in [false, true] {
            said(&|at| {
                let wide = cell.gates() * 6;
                let (w_hh, b_hh) = (at(zeros(&[wide, 6])), at(zeros(&[bias])));
                let [h0, c0] = [h0, c0].map(|shape| shape.map(|shape| at(zeros(shape))));
                let (h0, c0) = (h0.as_ref(), c0.as_ref());
                let start = RecurrentStart { w_hh: &w_hh, b_hh: Some(&b_hh), h0, c0 };
                at(zeros(&[2, 7, wide])).recurrent(cell, start, Some(lengths), reverse).map(drop)
            });
        }
    }
    said(&|at| at(zeros(&[2, 3])).layer_norm(&at(zeros(&[3])), &at(zeros(&[3])), -1.0).map(drop));
    let ids = |target: i64| Tensor::from([target, target]);
    let rule = |eps| CrossEntropy { label_smoothing: eps, ignore_index: Some(-1) };
    said(&|at| at(zeros(&[2, 3])).cross_entropy_rows(&at(ids(0)), rule(1.5)).map(drop));
    let none = here(zeros(&[2, 0])).cross_entropy_rows(&here(ids(-1)), rule(0.0)).unwrap();
    assert_eq!(none.to_vec::<f32>().unwrap(), [0.0, 0.0]);
}

#[test]
#[ignore = "needs a GPU, or an emulated one"]
fn on_the_gpu_a_model_learns_as_on_the_cpu_and_a_wrong_index_is_found() {
    let rules = [
        UpdateRule::adam(),
        UpdateRule::AdamW { betas: (0.8, 0.9), eps: 1e-6, weight_decay: 0.1 },
        UpdateRule::Adam { betas: (0.8, 0.9), eps: 1e-6, weight_decay: 0.1 },
        UpdateRule::sgd(0.0),
        UpdateRule::Sgd { momentum: 0.9, nesterov: true, weight_decay: 0.01 },
    ];
    for rule in rules {
        let train = |device: Device| -> Result<Vec<Tensor>> {
            let parameters = Parameters::new(DType::F32, 1);
            let w = parameters.parameter("w", &[4, 3], Init::Glorot)?;
            let b = parameters.parameter("b", &[4], Init::Zeros)?;
            parameters.to_device(device)?;
            let mut optimizer = Optimizer::new(&parameters, rule)?.clipped(0.5)?;
            let x = normal(1, &[9, 3], DType::F32).to_device(device)?;
            let mut norms = Vec::new();
            for _ in 0..5 {
                let loss = x.linear(&w.tensor(), Some(&b.tensor()))?.square()?.mean_all()?;
                norms.push(optimizer.step(&loss.backward()?, 0.1)?.item()? as f32);
            }
            let count = norms.len();
            let norms = Tensor::from_vec(norms, &[count])?.to_device(device)?;
            Ok(vec![w.tensor().detach(), b.tensor().detach(), norms])
        };
        close(&format!("{rule:?}"), &train(device()).unwrap(), &train(Device::Cpu).unwrap(), 1e-5);
    }
    let table = here(normal(1, &[4, 3], DType::F32));
    let wrong = here(Tensor::from([1i64, 7]));
    let error = table.rows(&wrong).and_then(|x| x.to_vec::<f32>()).unwrap_err().to_string();
    assert!(error.contains("index 7 is not within 0..4"), "{error}");
    // Once said, it is over.
    assert!(table.to_vec::<f32>().is_ok());
    // What is written is what it says, wherever it lies.
    let x = normal(1, &[3, 4], DType::F32);
    let turned = |x: &Tensor| x.transpose(0, 1).unwrap().to_string();
    assert_eq!(turned(&here(x.clone())), turned(&x));
    refusals_are_those_of_the_cpu();
    // A constant follows what it meets; what is learned does not.
    let other = Tensor::from([1f32]);
    let there = here(other.clone());
    assert_eq!(there.add(&other).unwrap().to_vec::<f32>().unwrap(), [2.0]);
    let own = Parameters::new(DType::F32, 1).parameter("w", &[1], Init::Ones).unwrap();
    let error = there.add(&own.tensor()).unwrap_err().to_string();
    assert!(error.starts_with("add: one tensor lies on cuda:0, another on cpu"), "{error}");
}

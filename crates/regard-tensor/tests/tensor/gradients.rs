//! Every operation's gradient agrees with finite differences.

use crate::device::{device, here};
use regard_tensor::{
    Activation, Cell, CrossEntropy, DType, Device, Random, RecurrentStart, Result, SlidingWindow,
    Tensor, finite_difference_error,
};

fn normal(seed: u64, shape: &[usize]) -> Tensor {
    Random::new(seed).normal(shape, 0.0, 1.0, DType::F64).unwrap()
}

#[track_caller]
fn check(inputs: &[Tensor], f: impl Fn(&[Tensor]) -> Result<Tensor>) {
    let error = finite_difference_error(inputs, |x| {
        let x: Vec<Tensor> = x.iter().map(|x| x.to_device(device())).collect::<Result<_>>()?;
        f(&x)?.to_device(Device::Cpu)
    })
    .unwrap();
    assert!(error < 1e-6, "gradients and finite differences differ by {error}");
}

fn positive(seed: u64, shape: &[usize]) -> Tensor {
    Random::new(seed).uniform(shape, 0.5, 2.0, DType::F64).unwrap()
}

#[test]
fn elementwise_pairs_with_broadcasting() {
    let pairs: [(&[usize], &[usize]); 6] = [
        (&[2, 3], &[2, 3]),
        (&[2, 3], &[3]),
        (&[2, 1], &[1, 3]),
        (&[], &[2, 2]),
        (&[2, 1, 3], &[4, 1]),
        (&[1], &[1, 1]),
    ];
    for (a, b) in pairs {
        let inputs = [normal(1, a), positive(2, b)];
        check(&inputs, |x| x[0].add(&x[1]));
        check(&inputs, |x| x[0].sub(&x[1]));
        check(&inputs, |x| x[0].mul(&x[1]));
        check(&inputs, |x| x[0].div(&x[1]));
        check(&inputs, |x| x[0].maximum(&x[1]));
    }
}

#[test]
fn elementwise_singles() {
    let (x, p) = ([normal(1, &[3, 4])], [positive(2, &[3, 4])]);
    check(&x, |x| x[0].scale(-2.5));
    check(&x, |x| x[0].shift(3.0));
    check(&x, |x| x[0].exp());
    check(&p, |x| x[0].ln());
    check(&p, |x| x[0].sqrt());
    check(&x, |x| x[0].square());
    check(&x, |x| x[0].transpose(0, 1)?.exp());
    check(&x, |x| x[0].abs());
    check(&p, |x| x[0].powf(-1.5));
    for power in [0.0, 1.0, 2.0, 3.0] {
        check(&x, |x| x[0].powf(power));
    }
    check(&x, |x| x[0].clamp(-0.7, 0.4)?.add(&x[0].scale(0.1)?));
    check(&x, |x| x[0].relu());
    check(&x, |x| x[0].gelu());
    check(&x, |x| x[0].silu());
    check(&x, |x| x[0].tanh());
    check(&x, |x| x[0].sigmoid());
    check(&x, |x| x[0].elu(1.5));
}

#[test]
fn gradients_at_the_corners_are_as_documented() {
    let at = |numbers: [f64; 3], f: fn(&Tensor) -> Result<Tensor>| {
        let x = Tensor::from(numbers).requires_grad().unwrap();
        let gradients = f(&x).unwrap().sum_all().unwrap().backward().unwrap();
        gradients.get(&x).unwrap().to_vec::<f64>().unwrap()
    };
    assert_eq!(at([-2.0, 0.0, 3.0], Tensor::abs), [-1.0, 0.0, 1.0]);
    assert_eq!(at([-2.0, 0.0, 3.0], |x| x.powf(0.0)), [0.0, 0.0, 0.0]);
    assert_eq!(at([0.0, 1.0, 2.0], |x| x.powf(1.0)), [1.0, 1.0, 1.0]);
    assert_eq!(at([-2.0, 1.0, 3.0], |x| x.clamp(-1.0, 1.0)), [0.0, 1.0, 0.0]);
    assert!(at([f64::NAN, 0.0, 0.0], |x| x.clamp(-1.0, 1.0))[0].is_nan());
    assert_eq!(at([2.0, 1.0, 1.0], |x| Ok(x.min(0)?.0)), [0.0, 1.0, 0.0]);
}

#[test]
fn smallest_numbers_parts_and_flat_views() {
    let x = [normal(1, &[2, 5, 3])];
    for axis in -3..3 {
        check(&x, |x| Ok(x[0].min(axis)?.0));
        let (most, least) = (x[0].max(axis).unwrap(), x[0].min(axis).unwrap());
        let same = |a: &Tensor, b: &Tensor| {
            assert_eq!(a.to_vec::<i64>().unwrap(), b.to_vec::<i64>().unwrap());
        };
        same(&x[0].argmax(axis).unwrap(), &most.1);
        same(&x[0].argmin(axis).unwrap(), &least.1);
        same(&x[0].argmin(axis).unwrap(), &x[0].scale(-1.0).unwrap().argmax(axis).unwrap());
        check(&x, |x| x[0].chunk(axis, 2)?[0].square());
        for count in 1..8 {
            let parts = x[0].chunk(axis, count).unwrap();
            assert_eq!(Tensor::cat(&parts, axis).unwrap().shape(), x[0].shape());
        }
    }
    check(&x, |x| x[0].flatten(0, 1)?.square());
    check(&x, |x| x[0].transpose(0, 2)?.flatten(1, -1)?.square());
    for (name, refused) in [
        ("min", x[0].min(3).err()),
        ("argmax", x[0].argmax(-4).err()),
        ("argmin", x[0].argmin(3).err()),
        ("chunk", x[0].chunk(3, 2).err()),
        ("flatten", x[0].flatten(0, 3).err()),
        ("abs", Tensor::from([1i64]).abs().err()),
        ("powf", Tensor::from([1i64]).powf(2.0).err()),
        ("clamp", Tensor::from([1i64]).clamp(0.0, 1.0).err()),
        ("arange", Tensor::arange(-1, 3, DType::U32).err()),
        ("arange", Tensor::arange(0, i64::MAX, DType::I64).err()),
    ] {
        let said = refused.unwrap().to_string();
        assert!(said.starts_with(&format!("{name}: ")), "{said}");
    }
    assert_eq!(Tensor::arange(5, 2, DType::F32).unwrap().shape(), [0]);
    assert_eq!(
        Tensor::arange(-2, 1, DType::F32).unwrap().to_vec::<f32>().unwrap(),
        [-2.0, -1.0, 0.0]
    );
}

#[test]
fn views() {
    let x = [normal(1, &[2, 3, 4])];
    check(&x, |x| x[0].reshape(&[4, 6]));
    check(&x, |x| x[0].transpose(0, 2)?.reshape(&[12, 2]));
    check(&x, |x| x[0].permute(&[2, 0, 1])?.square());
    check(&x, |x| x[0].narrow(1, 1, 2)?.square());
    check(&x, |x| x[0].narrow(-1, 0, 0));
    check(&x, |x| x[0].select(2, 3)?.square());
    check(&x, |x| x[0].unsqueeze(1)?.square()?.squeeze(1));
    check(&x, |x| x[0].narrow(0, 0, 1)?.broadcast_to(&[5, 3, 4])?.square());
    check(&x, |x| x[0].transpose(1, 2)?.contiguous());
    check(&x, |x| {
        let parts = [x[0].narrow(1, 0, 2)?, x[0].narrow(1, 1, 2)?, x[0].narrow(1, 0, 3)?];
        Tensor::cat(&parts, 1)
    });
}

#[test]
fn reductions() {
    let x = [normal(1, &[3, 4, 2])];
    for axis in -3..3 {
        check(&x, |x| x[0].square()?.sum(axis));
        check(&x, |x| x[0].mean(axis));
        check(&x, |x| Ok(x[0].max(axis)?.0));
    }
    check(&x, |x| x[0].square()?.sum_all());
    check(&x, |x| x[0].mean_all());
    check(&x, |x| x[0].transpose(0, 2)?.sum(1));
}

#[test]
fn reductions_that_keep_their_axis_running_sums_and_the_largest() {
    let x = [normal(1, &[3, 4, 2])];
    let mut count = 0;
    for axis in -3..3 {
        check(&x, |x| x[0].mul(&x[0].sum_keepdim(axis)?));
        check(&x, |x| x[0].sub(&x[0].mean_keepdim(axis)?)?.square());
        check(&x, |x| x[0].mul(&x[0].max_keepdim(axis)?.0));
        check(&x, |x| x[0].mul(&x[0].min_keepdim(axis)?.0));
        check(&x, |x| x[0].cumsum(axis)?.square());
        check(&x, |x| x[0].transpose(0, 2)?.cumsum(axis)?.square());
        for k in 0..=x[0].size(axis).unwrap() {
            check(&x, |x| x[0].topk(k, axis)?.0.square());
            count += 1;
        }
    }
    assert_eq!(count, 2 * (4 + 5 + 3));
}

#[test]
fn masked_numbers_have_no_gradient() {
    let x = [normal(1, &[2, 3])];
    for shape in [&[2, 3][..], &[3], &[2, 1], &[1, 3]] {
        let truths: Vec<bool> = (0..shape.iter().product()).map(|i| i % 2 == 0).collect();
        let mask = here(Tensor::from_bools(&truths, shape).unwrap());
        check(&x, |x| x[0].masked_fill(&mask, -2.0)?.square());
    }
}

#[test]
fn matrix_products() {
    let shapes: [(&[usize], &[usize]); 6] = [
        (&[3, 4], &[4, 2]),
        (&[2, 3, 4], &[4, 2]),
        (&[2, 3, 4], &[2, 4, 2]),
        (&[3, 4], &[2, 4, 2]),
        (&[2, 1, 3, 4], &[3, 4, 2]),
        (&[1, 1], &[1, 1]),
    ];
    for (a, b) in shapes {
        check(&[normal(1, a), normal(2, b)], |x| x[0].matmul(&x[1]));
    }
    check(&[normal(1, &[4, 3]), normal(2, &[2, 4])], |x| {
        x[0].transpose(0, 1)?.matmul(&x[1].transpose(0, 1)?)
    });
    for shape in [&[4][..], &[3, 4], &[2, 3, 4]] {
        let inputs = [normal(1, shape), normal(2, &[5, 4]), normal(3, &[5])];
        check(&inputs, |x| x[0].linear(&x[1], Some(&x[2])));
        check(&inputs[..2], |x| x[0].linear(&x[1], None));
    }
}

#[test]
fn gathering() {
    let table = [normal(1, &[4, 3])];
    let index = here(Tensor::from_vec(vec![1i64, 3, 1, 0, 1, 1], &[2, 3]).unwrap());
    check(&table, |x| x[0].rows(&index)?.square());
    let x = [normal(2, &[6, 2])];
    let ids = here(Tensor::from_vec(vec![2i64, 0, 2, 2, 4, 0], &[6]).unwrap());
    check(&x, |x| x[0].segment_sum(&ids, 5)?.square());
    let pick = here(Tensor::from_vec(vec![0i64, 2, 2, 1, 0, 0, 1, 1], &[4, 2]).unwrap());
    check(&table, |x| x[0].gather(1, &pick)?.square());
    let pick = here(Tensor::from_vec(vec![0i64, 3, 3], &[1, 3]).unwrap());
    check(&table, |x| x[0].gather(0, &pick)?.square());
}

#[test]
fn joining_and_choosing() {
    let x = [normal(1, &[2, 3]), normal(2, &[2, 3])];
    check(&x, |x| Tensor::cat(&[x[0].clone(), x[1].clone(), x[0].clone()], 0)?.square());
    check(&x, |x| Tensor::cat(&[x[0].clone(), x[1].narrow(1, 0, 1)?], 1)?.square());
    check(&x, |x| Tensor::stack(&[x[0].clone(), x[1].clone()], 1)?.square());
    let mask = here(Tensor::from_bools(&[true, false, true], &[3]).unwrap());
    check(&x, |x| mask.where_(&x[0].square()?, &x[1]));
    check(&x, |x| mask.where_(&x[0], &x[1].select(0, 0)?));
}

#[test]
fn convolution_and_pooling() {
    let windows = [
        SlidingWindow::new([2, 3]),
        SlidingWindow { stride: [2, 1], padding: [1, 1], ..SlidingWindow::new([2, 2]) },
        SlidingWindow { dilation: [2, 1], padding: [0, 1], ..SlidingWindow::new([2, 3]) },
    ];
    for window in windows {
        let [h, w] = window.kernel;
        let inputs = [normal(1, &[2, 2, 4, 5]), normal(2, &[3, 2, h, w]), normal(3, &[3])];
        check(&inputs, |x| x[0].conv2d(&x[1], Some(&x[2]), &window));
        check(&inputs[..1], |x| x[0].max_pool2d(&window));
        check(&inputs[..1], |x| x[0].mean_pool2d(&window));
    }
    let inputs = [normal(1, &[2, 2, 7]), normal(2, &[3, 2, 3]), normal(3, &[3])];
    check(&inputs, |x| x[0].conv1d(&x[1], Some(&x[2]), 2, 1, 2));
}

#[test]
fn dropout_and_casting() {
    let x = [normal(1, &[5, 7])];
    check(&x, |x| x[0].dropout(0.4, 5)?.square());
    check(&x, |x| x[0].dropout(0.0, 5));
    let parameter = regard_tensor::Parameter::new("x", x[0].clone()).unwrap();
    let y = parameter.tensor().to_dtype(DType::F32).unwrap().square().unwrap();
    let gradient = y.sum_all().unwrap().backward().unwrap();
    let gradient = gradient.get(&parameter).unwrap().to_vec::<f64>().unwrap();
    for (g, x) in gradient.iter().zip(x[0].to_vec::<f64>().unwrap()) {
        assert!((g - 2.0 * x).abs() < 1e-6);
    }
    assert!(parameter.tensor().to_dtype(DType::I64).is_err());
}

#[test]
fn activations_with_and_without_a_bias() {
    let all = [
        Activation::Identity,
        Activation::Relu,
        Activation::LeakyRelu { slope: 0.2 },
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::Silu,
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::Elu { alpha: 1.5 },
        Activation::Exp,
    ];
    let x = [normal(1, &[3, 4, 5]), normal(2, &[5])];
    for f in all {
        check(&x[..1], |x| x[0].activate(f));
        check(&x[..1], |x| x[0].transpose(0, 1)?.activate(f));
        check(&x, |x| x[0].activate_with(&x[1], f));
    }
}

#[test]
fn normalization_and_softmax() {
    let x = [normal(1, &[3, 4, 5]), normal(2, &[5]), normal(3, &[5])];
    check(&x, |x| x[0].layer_norm(&x[1], &x[2], 1e-5));
    for eps in [0.0, 1e-5, 0.5] {
        check(&x[..2], |x| x[0].rms_norm(&x[1], eps));
        check(&x[..2], |x| x[0].transpose(0, 1)?.rms_norm(&x[1], eps));
    }
    for axis in 0..3 {
        check(&x[..1], |x| x[0].softmax(axis));
        check(&x[..1], |x| x[0].log_softmax(axis));
    }
}

#[test]
fn losses() {
    let logits = [normal(1, &[6, 5])];
    let targets = here(Tensor::from_vec(vec![0i64, 4, 2, -7, 2, 1], &[6]).unwrap());
    for label_smoothing in [0.0, 0.1] {
        let rule = CrossEntropy { label_smoothing, ignore_index: Some(-7) };
        check(&logits, |x| x[0].cross_entropy_rows(&targets, rule));
        check(&logits, |x| x[0].cross_entropy(&targets, rule));
    }
    check(&[normal(1, &[6]), normal(2, &[6])], |x| x[0].squared_error(&x[1]));
    // Targets well within 0..=1, where finite differences may step to both sides.
    for shape in [&[6][..], &[2, 3], &[]] {
        let target = Random::new(2).uniform(shape, 0.1, 0.9, DType::F64).unwrap();
        let x = [normal(1, shape).scale(3.0).unwrap(), target];
        check(&x, |x| x[0].binary_cross_entropy_elements(&x[1]));
        check(&x, |x| x[0].binary_cross_entropy(&x[1]));
    }
}

#[test]
fn splitting_with_and_without_every_part_used() {
    let x = [normal(1, &[2, 6])];
    check(&x, |x| {
        let parts = x[0].split(1, &[1, 2, 3])?;
        Tensor::cat(&[parts[2].square()?, parts[0].clone(), parts[2].clone()], 1)
    });
    check(&x, |x| x[0].split(0, &[1, 1])?[1].square());
}

#[test]
fn recurrent_layers_with_lengths_and_in_reverse() {
    for cell in [Cell::Rnn, Cell::RnnRelu, Cell::Gru, Cell::Lstm] {
        let (g, h) = (cell.gates(), 3);
        let mut inputs = vec![
            normal(1, &[2, 4, g * h]),
            normal(2, &[g * h, h]),
            normal(3, &[g * h]),
            normal(4, &[2, h]),
        ];
        if cell == Cell::Lstm {
            inputs.push(normal(5, &[2, h]));
        }
        for (lengths, reverse) in
            [(None, false), (Some(&[4, 2][..]), false), (Some(&[1, 4][..]), true)]
        {
            check(&inputs, |x| {
                let start = RecurrentStart {
                    w_hh: &x[1],
                    b_hh: Some(&x[2]),
                    h0: Some(&x[3]),
                    c0: x.get(4),
                };
                let all = x[0].recurrent(cell, start, lengths, reverse)?;
                let mut parts = vec![all.out, all.h.scale(2.0)?.unsqueeze(1)?];
                parts.extend(all.c.map(|c| c.unsqueeze(1)).transpose()?);
                Tensor::cat(&parts, 1)
            });
        }
    }
}

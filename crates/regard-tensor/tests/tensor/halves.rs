//! bf16 and f16: stored, viewed, converted; gradients come back in the type they left.

use half::{bf16, f16};
use regard_tensor::{
    Activation, CrossEntropy, DType, Parameter, Random, Result, Scalar, SlidingWindow, Tensor,
};

const HALVES: [DType; 2] = [DType::BF16, DType::F16];

fn numbers(x: &Tensor) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

/// Of all finite numbers of a half type the nearest, the one with an even last bit among two:
/// found by looking at each.
fn nearest(x: f64, all: &[(u16, f64)]) -> f64 {
    let distance = |&&(bits, y): &&(u16, f64)| ((y - x).abs(), bits & 1);
    let best = all.iter().min_by(|a, b| distance(a).partial_cmp(&distance(b)).unwrap());
    best.unwrap().1
}

#[test]
fn numbers_are_rounded_to_the_nearest_half_once() {
    let all = |widen: fn(u16) -> f64| -> Vec<(u16, f64)> {
        (0..=u16::MAX).map(|bits| (bits, widen(bits))).filter(|(_, x)| x.is_finite()).collect()
    };
    let bf16s = all(|bits| f64::from(bf16::from_bits(bits).to_f32()));
    let f16s = all(|bits| f64::from(f16::from_bits(bits).to_f32()));
    let mut samples = vec![0.0, 1.0, 65504.0, 1e-7, -3e-8, 1e-40];
    // Halfway between two halves, and next to halfway by a bit that f32 has and by one it has not.
    for middle in
        [1.0 + 2f64.powi(-8), 1.0 + 3.0 * 2f64.powi(-8), 1.0 + 2f64.powi(-11), 3.0 * 2f64.powi(-25)]
    {
        for by in [0.0, 2f64.powi(-23), -(2f64.powi(-23)), 2f64.powi(-40), -(2f64.powi(-40))] {
            samples.extend([middle * (1.0 + by), -middle * (1.0 + by)]);
        }
    }
    samples.extend(
        Random::new(1).normal(&[60], 0.0, 100.0, DType::F64).unwrap().to_vec::<f64>().unwrap(),
    );
    let x = Tensor::from_vec(samples.clone(), &[samples.len()]).unwrap();
    for (dtype, all) in [(DType::BF16, bf16s), (DType::F16, f16s)] {
        let expected: Vec<f64> = samples.iter().map(|&x| nearest(x, &all)).collect();
        assert_eq!(numbers(&x.to_dtype(dtype).unwrap()), expected, "{dtype} from f64");
        let single = x.to_dtype(DType::F32).unwrap();
        let expected: Vec<f64> = numbers(&single).iter().map(|&x| nearest(x, &all)).collect();
        assert_eq!(numbers(&single.to_dtype(dtype).unwrap()), expected, "{dtype} from f32");
    }
    assert!(<bf16 as Scalar>::from_f64(1e300).to_f64() == f64::INFINITY);
    assert!(<f16 as Scalar>::from_f64(f64::NAN).to_f64().is_nan());
}

#[test]
fn a_gradient_comes_back_in_the_type_it_left() {
    for dtype in HALVES {
        let x = Tensor::from([1f32, -2.0, 3.0]).to_dtype(dtype).unwrap().requires_grad().unwrap();
        let loss = x.to_dtype(DType::F32).unwrap().square().unwrap().sum_all().unwrap();
        let gradients = loss.backward().unwrap();
        let gradient = gradients.get(&x).unwrap();
        assert_eq!((gradient.dtype(), numbers(gradient)), (dtype, vec![2.0, -4.0, 6.0]));
        // Through a half on the way: a parameter in f32 has its gradient in f32.
        let w = Parameter::new("w", Tensor::from([1f32, -2.0])).unwrap();
        let half = w.tensor().to_dtype(dtype).unwrap();
        assert!(half.has_gradient());
        let loss = half.to_dtype(DType::F64).unwrap().square().unwrap().sum_all().unwrap();
        let gradients = loss.backward().unwrap();
        let gradient = gradients.get(&w).unwrap();
        assert_eq!((gradient.dtype(), numbers(gradient)), (DType::F32, vec![2.0, -4.0]));
    }
}

#[test]
fn gradients_go_through_every_view_of_a_half_and_add_up() {
    type View = fn(&Tensor) -> Result<Tensor>;
    let views: [(&str, View); 12] = [
        ("reshape", |x| x.reshape(&[3, 2])),
        ("transpose", |x| x.transpose(0, 1)),
        ("transpose, packed", |x| x.transpose(0, 1)?.contiguous()),
        ("permute", |x| x.permute(&[1, 0])),
        ("narrow", |x| x.narrow(1, 1, 2)),
        ("select", |x| x.select(0, 1)),
        ("index", |x| x.i((.., 1..))),
        ("unsqueeze", |x| x.unsqueeze(1)?.squeeze(1)),
        ("broadcast_to", |x| x.broadcast_to(&[4, 2, 3])),
        ("cat", |x| Tensor::cat(&[x.clone(), x.i(..1)?], 0)),
        ("stack", |x| Tensor::stack(&[x.clone(), x.clone()], 1)),
        ("split", |x| Ok(x.split(1, &[1, 2])?.swap_remove(1))),
    ];
    // Small whole numbers, so that halves hold every gradient exactly.
    let value = Tensor::from([[1f32, 2.0, 3.0], [-1.0, -2.0, -4.0]]);
    for (name, view) in views {
        let gradient = |dtype: DType| {
            let x = value.to_dtype(dtype).unwrap().requires_grad().unwrap();
            let whole = x.to_dtype(DType::F64).unwrap().sum_all().unwrap();
            let part = view(&x).unwrap().to_dtype(DType::F64).unwrap();
            let weights =
                Tensor::from_vec((0..part.numel()).map(|i| (i % 5) as f64).collect(), part.shape());
            let loss = part.mul(&weights.unwrap()).unwrap().sum_all().unwrap().add(&whole).unwrap();
            let gradients = loss.backward().unwrap();
            let gradient = gradients.get(&x).unwrap();
            assert_eq!(gradient.dtype(), dtype);
            numbers(gradient)
        };
        let expected = gradient(DType::F64);
        for dtype in HALVES {
            assert_eq!(gradient(dtype), expected, "{name} of {dtype}");
        }
    }
}

#[test]
fn every_constructor_makes_halves() {
    for dtype in HALVES {
        assert_eq!(numbers(&Tensor::zeros(&[2], dtype).unwrap()), [0.0, 0.0]);
        assert_eq!(numbers(&Tensor::full(&[2], -1.5, dtype).unwrap()), [-1.5, -1.5]);
        let x = Random::new(1).normal(&[1000], 0.0, 1.0, DType::F64).unwrap();
        let half = Random::new(1).normal(&[1000], 0.0, 1.0, dtype).unwrap();
        assert_eq!(half.dtype(), dtype);
        assert_eq!(numbers(&half), numbers(&x.to_dtype(dtype).unwrap()));
        let mut half = half;
        half.write(0, 1, &Tensor::full(&[2], 2.0, dtype).unwrap()).unwrap();
        assert_eq!(numbers(&half)[1..3], [2.0, 2.0]);
    }
    let x = Tensor::from_vec(vec![bf16::ONE, bf16::NEG_ONE], &[2]).unwrap();
    assert_eq!(x.to_vec::<bf16>().unwrap(), [bf16::ONE, bf16::NEG_ONE]);
}

#[test]
fn operations_that_compute_refuse_halves_by_one_sentence() {
    type Operation = fn(&Tensor) -> Result<Tensor>;
    let operations: [(&str, Operation); 14] = [
        ("add", |x| x.add(x)),
        ("mul", |x| x.mul(x)),
        ("scale", |x| x.scale(2.0)),
        ("exp", |x| x.exp()),
        ("sum", |x| x.sum(0)),
        ("max", |x| Ok(x.max(0)?.0)),
        ("matmul", |x| x.matmul(x)),
        ("linear", |x| x.linear(x, Some(&x.i(0)?))),
        ("softmax", |x| x.softmax(0)),
        ("activation", |x| x.activate(Activation::Relu)),
        ("layer_norm", |x| x.layer_norm(&x.i(0)?, &x.i(0)?, 1e-5)),
        ("cross_entropy", |x| x.cross_entropy(&Tensor::from([0i64, 1]), CrossEntropy::default())),
        ("unfold", |x| x.reshape(&[1, 1, 2, 2])?.unfold(&SlidingWindow::new([1, 1]))),
        ("rows", |x| x.rows(&Tensor::from([0i64]))),
    ];
    for dtype in HALVES {
        let x = Tensor::full(&[2, 2], 1.0, dtype).unwrap();
        for (name, f) in operations {
            let error = f(&x).unwrap_err().to_string();
            let sentence = format!(
                "{name}: computes in f32 and f64, was given {dtype}; convert with to_dtype"
            );
            assert_eq!(error, sentence);
        }
        let error = Parameter::new("w", x).unwrap_err().to_string();
        assert_eq!(error, format!("parameter \"w\" is {dtype}; a parameter is f32 or f64"));
    }
}

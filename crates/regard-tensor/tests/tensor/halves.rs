//! bf16 and f16: stored, viewed, converted, computed in f32; gradients come back in the type they left.

use half::{bf16, f16};
use regard_tensor::{
    Activation, CrossEntropy, DType, Init, Optimizer, Parameter, Parameters, Random, Result,
    Scalar, SlidingWindow, Tensor, UpdateRule,
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

type Operation = fn(&[Tensor]) -> Result<Tensor>;

/// Name, the inputs' shapes, whether they are above 0, the operation, and how many numbers are added up for
/// one of its results or gradients.
type Case = (&'static str, &'static [&'static [usize]], bool, Operation, usize);

/// Three columns of six.
fn mask() -> Tensor {
    Tensor::from_bools(&[true, false, false, true, true, false], &[6]).unwrap()
}

/// Targets within 0..=1 that every type holds.
fn probabilities(dtype: DType) -> Tensor {
    let numbers = (0..18).map(|i| (i % 5) as f64 / 4.0).collect();
    Tensor::from_vec(numbers, &[3, 6]).unwrap().to_dtype(dtype).unwrap()
}

fn targets() -> Tensor {
    Tensor::from([0i64, 3, 1])
}

/// Every operation that takes halves.
const CASES: [Case; 54] = [
    ("matmul", &[&[3, 5], &[5, 4]], false, |x| x[0].matmul(&x[1]), 5),
    ("matmul, stacked", &[&[2, 3, 5], &[2, 5, 4]], false, |x| x[0].matmul(&x[1]), 5),
    ("matmul, one matrix", &[&[2, 3, 5], &[5, 4]], false, |x| x[0].matmul(&x[1]), 6),
    ("linear", &[&[3, 5], &[4, 5], &[4]], false, |x| x[0].linear(&x[1], Some(&x[2])), 6),
    ("linear, no bias", &[&[2, 3, 5], &[4, 5]], false, |x| x[0].linear(&x[1], None), 6),
    ("linear, one row", &[&[5], &[4, 5]], false, |x| x[0].linear(&x[1], None), 5),
    ("layer_norm", &[&[3, 6], &[6], &[6]], false, |x| x[0].layer_norm(&x[1], &x[2], 1e-5), 6),
    ("rms_norm", &[&[3, 6], &[6]], false, |x| x[0].rms_norm(&x[1], 1e-5), 6),
    ("softmax", &[&[3, 6]], false, |x| x[0].softmax(1), 6),
    ("softmax, first axis", &[&[3, 6]], false, |x| x[0].softmax(0), 3),
    ("log_softmax", &[&[3, 6]], false, |x| x[0].log_softmax(1), 6),
    ("relu", &[&[3, 6]], false, |x| x[0].relu(), 1),
    ("gelu", &[&[3, 6]], false, |x| x[0].gelu(), 1),
    ("gelu by tanh", &[&[3, 6]], false, |x| x[0].activate(Activation::GeluTanh), 1),
    ("silu", &[&[3, 6]], false, |x| x[0].silu(), 1),
    ("tanh", &[&[3, 6]], false, |x| x[0].tanh(), 1),
    ("sigmoid", &[&[3, 6]], false, |x| x[0].sigmoid(), 1),
    ("elu", &[&[3, 6]], false, |x| x[0].elu(1.0), 1),
    ("identity", &[&[3, 6]], false, |x| x[0].activate(Activation::Identity), 1),
    ("activate_with", &[&[3, 6], &[6]], false, |x| x[0].activate_with(&x[1], Activation::Tanh), 3),
    ("add", &[&[3, 6], &[6]], false, |x| x[0].add(&x[1]), 3),
    ("sub", &[&[3, 6], &[6]], false, |x| x[0].sub(&x[1]), 3),
    ("mul", &[&[3, 6], &[3, 1]], false, |x| x[0].mul(&x[1]), 6),
    ("div", &[&[3, 6], &[6]], true, |x| x[0].div(&x[1]), 3),
    ("maximum", &[&[3, 6], &[6]], false, |x| x[0].maximum(&x[1]), 3),
    ("scale", &[&[3, 6]], false, |x| x[0].scale(0.3), 1),
    ("shift", &[&[3, 6]], false, |x| x[0].shift(0.3), 1),
    ("exp", &[&[3, 6]], false, |x| x[0].exp(), 1),
    ("ln", &[&[3, 6]], true, |x| x[0].ln(), 1),
    ("sqrt", &[&[3, 6]], true, |x| x[0].sqrt(), 1),
    ("square", &[&[3, 6]], false, |x| x[0].square(), 1),
    ("powf", &[&[3, 6]], true, |x| x[0].powf(1.5), 1),
    ("clamp", &[&[3, 6]], false, |x| x[0].clamp(-0.5, 0.5), 1),
    ("sum", &[&[3, 6]], false, |x| x[0].sum(1), 6),
    ("mean", &[&[3, 6]], false, |x| x[0].mean(0), 3),
    ("max", &[&[3, 6]], false, |x| Ok(x[0].max(1)?.0), 1),
    ("rows", &[&[4, 6]], false, |x| x[0].rows(&targets()), 3),
    ("gather", &[&[3, 6]], false, |x| x[0].gather(1, &targets().unsqueeze(1)?), 1),
    ("dropout", &[&[3, 6]], false, |x| x[0].dropout(0.25, 7), 1),
    (
        "cross_entropy",
        &[&[3, 6]],
        false,
        |x| x[0].cross_entropy(&targets(), CrossEntropy::default()),
        18,
    ),
    ("squared_error", &[&[3, 6], &[3, 6]], false, |x| x[0].squared_error(&x[1]), 18),
    ("abs", &[&[3, 6]], false, |x| x[0].abs(), 1),
    ("min", &[&[3, 6]], false, |x| Ok(x[0].min(1)?.0), 1),
    ("where", &[&[3, 6], &[6]], false, |x| mask().where_(&x[0], &x[1]), 3),
    ("masked_fill", &[&[3, 6]], false, |x| x[0].masked_fill(&mask(), 0.5), 1),
    ("segment_sum", &[&[3, 6]], false, |x| x[0].segment_sum(&Tensor::from([1i64, 0, 1]), 2), 2),
    ("sum_keepdim", &[&[3, 6]], false, |x| x[0].sum_keepdim(1), 6),
    ("mean_keepdim", &[&[3, 6]], false, |x| x[0].mean_keepdim(0), 3),
    ("max_keepdim", &[&[3, 6]], false, |x| Ok(x[0].max_keepdim(1)?.0), 1),
    ("min_keepdim", &[&[3, 6]], false, |x| Ok(x[0].min_keepdim(0)?.0), 1),
    ("topk", &[&[3, 6]], false, |x| Ok(x[0].topk(2, 1)?.0), 1),
    ("cumsum", &[&[3, 6]], false, |x| x[0].cumsum(1), 6),
    (
        "binary_cross_entropy_elements",
        &[&[3, 6]],
        false,
        |x| x[0].binary_cross_entropy_elements(&probabilities(x[0].dtype())),
        2,
    ),
    (
        "binary_cross_entropy",
        &[&[3, 6]],
        false,
        |x| x[0].binary_cross_entropy(&probabilities(x[0].dtype())),
        18,
    ),
];

/// What an operation gives for inputs, and the gradient of each input where a weighted sum is the loss.
fn values_and_gradients(f: Operation, inputs: &[Tensor]) -> (DType, Vec<Vec<f64>>) {
    let inputs: Vec<Tensor> = inputs.iter().map(|x| x.requires_grad().unwrap()).collect();
    let out = f(&inputs).unwrap();
    // Weights that both halves hold.
    let weights = (0..out.numel()).map(|i| 0.5 + (i % 5) as f64 / 4.0).collect();
    let weights = Tensor::from_vec(weights, out.shape()).unwrap();
    let loss = out.to_dtype(DType::F64).unwrap().mul(&weights).unwrap().sum_all().unwrap();
    let gradients = loss.backward().unwrap();
    let mut all = vec![numbers(&out)];
    for x in &inputs {
        let gradient = gradients.get(x).unwrap();
        assert_eq!((gradient.dtype(), gradient.shape()), (x.dtype(), x.shape()));
        all.push(numbers(gradient));
    }
    (out.dtype(), all)
}

#[test]
fn every_operation_on_halves_is_the_one_in_f64_rounded() {
    let mut count = 0;
    for (dtype, last) in [(DType::BF16, 2f64.powi(-8)), (DType::F16, 2f64.powi(-11))] {
        for (at, (name, shapes, positive, f, terms)) in CASES.into_iter().enumerate() {
            let random = Random::new(at as u64);
            let halves: Vec<Tensor> = shapes
                .iter()
                .map(|shape| {
                    let x = random.normal(shape, 0.0, 1.0, DType::F64).unwrap();
                    let x = if positive { x.abs().unwrap().shift(0.5).unwrap() } else { x };
                    x.to_dtype(dtype).unwrap()
                })
                .collect();
            // The same numbers, which f64 holds.
            let wide: Vec<Tensor> =
                halves.iter().map(|x| x.to_dtype(DType::F64).unwrap()).collect();
            let (kind, ours) = values_and_gradients(f, &halves);
            assert_eq!(kind, dtype, "{name}");
            let (_, known) = values_and_gradients(f, &wide);
            for (part, (ours, known)) in ours.iter().zip(&known).enumerate() {
                // One rounding to the half of at most `last` of the number, and those of f32 on the way: at
                // most two dozen operations for each term, on numbers up to the largest of the case.
                let largest = known.iter().fold(1f64, |most, x| most.max(x.abs()));
                let on_the_way = 24.0 * terms as f64 * 2f64.powi(-24) * largest * 4.0;
                for (ours, known) in ours.iter().zip(known) {
                    let bound = last * known.abs() + on_the_way;
                    assert!(
                        (ours - known).abs() <= bound,
                        "{name} in {dtype}, part {part}: {ours}, not {known}"
                    );
                }
            }
            count += 1;
        }
    }
    assert_eq!(count, 2 * CASES.len());
}

#[test]
fn a_mean_of_f16_is_right_where_the_sum_is_too_large_for_one() {
    let x = Tensor::full(&[100], 60000.0, DType::F16).unwrap();
    assert_eq!(x.mean(0).unwrap().item().unwrap(), 60000.0);
    assert_eq!(x.mean_all().unwrap().item().unwrap(), 60000.0);
    assert_eq!(x.sum(0).unwrap().item().unwrap(), f64::INFINITY);
}

#[test]
fn two_types_of_16_bits_are_refused_together_and_so_is_what_has_no_kernel() {
    let [a, b] = HALVES.map(|dtype| Tensor::full(&[2, 2], 1.0, dtype).unwrap());
    type Pair = fn(&Tensor, &Tensor) -> Result<Tensor>;
    let pairs: [Pair; 5] = [
        |a, b| a.add(b),
        |a, b| a.matmul(b),
        |a, b| a.linear(b, None),
        |a, b| a.rms_norm(&b.i(0)?, 1e-5),
        |a, b| a.squared_error(b),
    ];
    for pair in pairs {
        for other in [&b, &b.to_dtype(DType::F32).unwrap()] {
            let error = pair(&a, other).unwrap_err().to_string();
            assert!(error.ends_with("convert one with to_dtype"), "{error}");
        }
    }
    type Alone = fn(&Tensor) -> Result<Tensor>;
    let refused: [(&str, Alone); 2] = [
        ("conv2d", |x| {
            let x = x.reshape(&[1, 1, 2, 2])?;
            x.conv2d(&x, None, &SlidingWindow::new([2, 2]))
        }),
        ("unfold", |x| x.reshape(&[1, 1, 2, 2])?.unfold(&SlidingWindow::new([1, 1]))),
    ];
    for dtype in HALVES {
        let x = Tensor::full(&[2, 2], 1.0, dtype).unwrap();
        for (name, f) in refused {
            let sentence = format!(
                "{name}: computes in f32 and f64, was given {dtype}; convert with to_dtype"
            );
            assert_eq!(f(&x).unwrap_err().to_string(), sentence);
        }
    }
}

#[test]
fn gradients_of_parameters_of_16_bits_are_of_their_type() {
    for dtype in HALVES {
        let parameters = Parameters::new(dtype, 1);
        let w = parameters.parameter("w", &[2, 3], Init::Glorot).unwrap();
        let x = Tensor::full(&[4, 3], 0.5, dtype).unwrap();
        let gradients = x.linear(&w.tensor(), None).unwrap().sum_all().unwrap().backward().unwrap();
        let gradient = gradients.get(&w).unwrap();
        assert_eq!((gradient.dtype(), numbers(gradient)), (dtype, vec![2.0; 6]));
    }
}

/// A parameter of some type that begins at 1, 0.5 and -2, and an optimizer of it.
fn moved(dtype: DType, rule: UpdateRule) -> Result<(Parameters, Parameter, Optimizer)> {
    let parameters = Parameters::new(dtype, 1);
    let w = parameters.parameter("w", &[3], Init::Zeros)?;
    w.set(&Tensor::from([1.0, 0.5, -2.0]).to_dtype(dtype)?)?;
    let optimizer = Optimizer::new(&parameters, rule)?;
    Ok((parameters, w, optimizer))
}

/// The gradient is 1 and 1/4 and -1 in each step, whatever the parameter is.
fn slope(w: &Parameter) -> Result<regard_tensor::Gradients> {
    let factors = Tensor::from([1.0, 0.25, -1.0]).to_dtype(w.tensor().dtype())?;
    w.tensor().mul(&factors)?.to_dtype(DType::F32)?.sum_all()?.backward()
}

/// What the same steps make of numbers that nothing rounds.
fn plainly(rule: UpdateRule, rate: f64, steps: i32) -> [f64; 3] {
    let mut all = [(1.0f64, 1.0), (0.5, 0.25), (-2.0, -1.0)].map(|(x, g)| (x, g, 0.0, 0.0));
    for step in 1..=steps {
        for (x, g, m, v) in &mut all {
            match rule {
                UpdateRule::Sgd { momentum, .. } => {
                    *m = momentum * *m + *g;
                    *x -= rate * *m;
                }
                UpdateRule::AdamW { betas: (b1, b2), eps, weight_decay } => {
                    *x -= rate * weight_decay * *x;
                    (*m, *v) = (b1 * *m + (1.0 - b1) * *g, b2 * *v + (1.0 - b2) * *g * *g);
                    let (m, v) = (*m / (1.0 - b1.powi(step)), *v / (1.0 - b2.powi(step)));
                    *x -= rate * m / (v.sqrt() + eps);
                }
                other => panic!("{other:?}"),
            }
        }
    }
    all.map(|(x, ..)| x)
}

#[test]
fn steps_smaller_than_the_last_bit_of_16_add_up() {
    let mut count = 0;
    for dtype in HALVES {
        for rule in [UpdateRule::sgd(0.0), UpdateRule::sgd(0.9), UpdateRule::adam_w()] {
            // A step of a bf16 near 1 is 1/256 at least, of an f16 1/2048.
            let (_, w, mut optimizer) = moved(dtype, rule).unwrap();
            for _ in 0..300 {
                let norm = optimizer.step(&slope(&w).unwrap(), 1e-4).unwrap();
                assert!((norm.item().unwrap() - 2.0625f64.sqrt()).abs() < 1e-6);
            }
            let wanted = plainly(rule, 1e-4, 300);
            let ours = w.tensor().to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
            let last_bit = if dtype == DType::BF16 { 1.0 / 256.0 } else { 1.0 / 2048.0 };
            for (ours, wanted) in ours.iter().zip(wanted) {
                let error = (ours - wanted).abs();
                assert!(
                    error <= 0.51 * last_bit * wanted.abs() * 2.0,
                    "{dtype} {rule:?} {ours} {wanted}"
                );
                count += 1;
            }
            assert_eq!(w.tensor().dtype(), dtype);
        }
    }
    assert_eq!(count, 18);
}

#[test]
fn an_optimizer_of_16_bits_goes_on_from_a_checkpoint_bit_by_bit() {
    for dtype in HALVES {
        let (parameters, w, mut straight) = moved(dtype, UpdateRule::adam_w()).unwrap();
        let steps = |optimizer: &mut Optimizer, w: &Parameter, count| {
            (0..count).for_each(|_| drop(optimizer.step(&slope(w).unwrap(), 1e-3).unwrap()));
        };
        steps(&mut straight, &w, 7);
        let (kept, state) = (parameters.tensors(), straight.state().unwrap());
        steps(&mut straight, &w, 9);
        let (other, again, mut resumed) = moved(dtype, UpdateRule::adam_w()).unwrap();
        // The parameters come first: what they were rounded from is held against them.
        let said = resumed.set_state(&state).unwrap_err().to_string();
        assert!(said.contains("\"master/w\"") && said.contains("is not rounded from"), "{said}");
        other.set(&kept).unwrap();
        resumed.set_state(&state).unwrap();
        steps(&mut resumed, &again, 9);
        let (a, b) = (straight.state().unwrap(), resumed.state().unwrap());
        assert_eq!(a.keys().collect::<Vec<_>>(), ["m/w", "master/w", "steps", "v/w"]);
        for (name, x) in &a {
            assert_eq!(bits(x), bits(&b[name]), "{name}");
        }
        assert_eq!(bits(&w.tensor()), bits(&again.tensor()));
        // A value that is set is where the next step begins.
        again.set(&Tensor::from([8.0, 8.0, 8.0]).to_dtype(dtype).unwrap()).unwrap();
        steps(&mut resumed, &again, 1);
        let now = resumed.state().unwrap()["master/w"].to_vec::<f32>().unwrap();
        assert!(now.iter().all(|x| (x - 8.0).abs() < 0.01 && *x != 8.0), "{now:?}");
    }
}

/// The numbers as they are stored.
fn bits(x: &Tensor) -> Vec<u64> {
    let x = x.detach().to_dtype(DType::F64).unwrap();
    x.to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
}

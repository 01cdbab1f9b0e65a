//! Layers whose parameters are stored in 16 bits, forward and backward, beside the same in f64.

use regard::Result;
use regard::layers::{FeedForward, RmsNorm, SwiGlu};
use regard::prelude::*;
use std::collections::BTreeMap;

type Forward = Box<dyn Fn(&Tensor) -> Result<Tensor>>;

/// Its name, how it is made, and how many numbers that were rounded to the half before are added up for one of its
/// results or gradients; 0 where all but the last rounding are f32's.
type Layer = (&'static str, fn(&Parameters) -> Result<Forward>, usize);

const WIDTH: usize = 6;

const LAYERS: [Layer; 9] = [
    ("linear", |p| of(Linear::new(p, WIDTH, 4, true)?, Linear::forward), 0),
    ("linear without a bias", |p| of(Linear::new(p, WIDTH, 4, false)?, Linear::forward), 0),
    (
        "linear and tanh",
        |p| of(Linear::new(p, WIDTH, 4, true)?, |l, x| l.activated(x, Activation::Tanh)),
        6,
    ),
    ("layer norm", |p| of(LayerNorm::new(p, WIDTH)?, LayerNorm::forward), 0),
    ("RMS norm", |p| of(RmsNorm::new(p, WIDTH)?, RmsNorm::forward), 0),
    (
        "feed-forward",
        |p| {
            of(FeedForward::new(p, WIDTH, 8, Activation::Gelu, 0.0)?, |l, x| {
                l.forward(x, Mode::Infer)
            })
        },
        3 * 8,
    ),
    ("SwiGLU", |p| of(SwiGlu::new(p, WIDTH, 8, 0.0)?, |l, x| l.forward(x, Mode::Infer)), 4 * 8),
    (
        "embedding",
        |p| {
            of(Embedding::new(p, 5, WIDTH, None)?, |l, x| {
                l.forward(&Tensor::from([0i64, 4, 4, 2]))?.mul(x)
            })
        },
        2,
    ),
    (
        "multi-head attention",
        |p| {
            of(MultiHeadAttention::new(p, &MultiHeadConfig::new(WIDTH, 2))?, |l, x| {
                let x = x.unsqueeze(0)?;
                l.forward(&x, &x, &x, &Mask::causal(), Mode::Infer)?.squeeze(0)
            })
        },
        // The projections, the weights, the heads' outputs and the last projection, with four rows for each.
        4 * (3 * WIDTH + 4 + WIDTH),
    ),
];

fn of<L: 'static>(layer: L, forward: fn(&L, &Tensor) -> Result<Tensor>) -> Result<Forward> {
    Ok(Box::new(move |x| forward(&layer, x)))
}

fn numbers(x: &Tensor) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

/// The output, the gradient of x and those of the parameters by name, and the parameters' values.
fn run(
    layer: &Layer,
    x: &Tensor,
    values: Option<&BTreeMap<String, Tensor>>,
) -> (Vec<Vec<f64>>, BTreeMap<String, Tensor>) {
    let parameters = Parameters::new(x.dtype(), 3);
    let forward = layer.1(&parameters).unwrap();
    if let Some(values) = values {
        parameters.set(values).unwrap();
    }
    let x = x.requires_grad().unwrap();
    let out = forward(&x).unwrap();
    assert_eq!(out.dtype(), x.dtype());
    // Weights that both halves hold.
    let weights = (0..out.numel()).map(|i| 0.5 + (i % 5) as f64 / 4.0).collect();
    let weights = Tensor::from_vec(weights, out.shape()).unwrap();
    let loss = out.to_dtype(DType::F64).unwrap().mul(&weights).unwrap().sum_all().unwrap();
    let gradients = loss.backward().unwrap();
    let mut all = vec![numbers(&out), numbers(gradients.get(&x).unwrap())];
    for parameter in parameters.all() {
        let gradient = gradients.get(&parameter).unwrap();
        assert_eq!(gradient.dtype(), x.dtype());
        all.push(numbers(gradient));
    }
    (all, parameters.tensors())
}

#[test]
fn layers_in_16_bits_are_those_in_f64_rounded() {
    let mut count = 0;
    for (dtype, last) in [(DType::BF16, 2f64.powi(-8)), (DType::F16, 2f64.powi(-11))] {
        let x = Random::new(5).normal(&[4, WIDTH], 0.0, 1.0, dtype).unwrap();
        for layer in &LAYERS {
            let (ours, values) = run(layer, &x, None);
            let (known, _) = run(layer, &x.to_dtype(DType::F64).unwrap(), Some(&values));
            assert_eq!(ours.len(), known.len());
            for (part, (ours, known)) in ours.iter().zip(&known).enumerate() {
                // The last rounding, those of f32 before it, and the half's before it, each of a number that is
                // no larger than the largest of the part.
                let largest = known.iter().fold(1f64, |most, x| most.max(x.abs()));
                let before = (1000.0 * 2f64.powi(-24) + layer.2 as f64 * last) * largest;
                for (ours, known) in ours.iter().zip(known) {
                    assert!(
                        (ours - known).abs() <= last * known.abs() + before,
                        "{} in {dtype}, part {part}: {ours}, not {known}",
                        layer.0
                    );
                    count += 1;
                }
            }
        }
    }
    assert!(count > 2 * 9 * 24, "{count} numbers were compared");
}

//! Every score against its formula written out, every weighting against its definition, and their
//! gradients against finite differences.

use crate::squash;

use regard::attention::{Attended, BilinearScale, LearnedQueries};
use regard::prelude::*;
use regard::tensor::{finite_difference_error, parameter_difference_error};
use squash::Squash;
use std::collections::BTreeMap;

const SOFT: [Weighting; 5] = [
    Weighting::Softmax,
    Weighting::Sparsemax,
    Weighting::Entmax15,
    Weighting::Sigmoid,
    Weighting::None,
];

/// A score written as text.
fn expression() -> ScoreConfig {
    ScoreConfig::Expression {
        score: "tau * sum(w * sigmoid(q - k)) - norm(q * k)".into(),
        numbers: vec!["tau".into()],
    }
}

/// Every score, with the widths of queries and keys it is tried at.
fn scores() -> Vec<(ScoreConfig, usize, usize)> {
    let gaussian =
        |learned, per_feature| ScoreConfig::Gaussian { inverse_width: 0.8, learned, per_feature };
    vec![
        (ScoreConfig::Dot, 4, 4),
        (ScoreConfig::ScaledDot, 4, 4),
        (ScoreConfig::Additive { hidden: 5 }, 3, 4),
        (ScoreConfig::Concat { hidden: None }, 3, 4),
        (ScoreConfig::Concat { hidden: Some(5) }, 3, 4),
        (ScoreConfig::Bilinear { scale: BilinearScale::None }, 3, 4),
        (ScoreConfig::Bilinear { scale: BilinearScale::Root }, 4, 4),
        (ScoreConfig::Bilinear { scale: BilinearScale::FourthRoot }, 3, 4),
        (ScoreConfig::LowRank { rank: 2 }, 3, 4),
        (gaussian(false, false), 4, 4),
        (gaussian(true, false), 4, 4),
        (gaussian(true, true), 4, 4),
        (ScoreConfig::Cosine { temperature: 3.0, learned: false }, 4, 4),
        (ScoreConfig::Cosine { temperature: 3.0, learned: true }, 4, 4),
        (ScoreConfig::own(Squash, &[0.5, -0.2]), 4, 4),
        (expression(), 4, 4),
    ]
}

fn normal(seed: u64, shape: &[usize]) -> Tensor {
    Random::new(seed).normal(shape, 0.0, 1.0, DType::F64).unwrap()
}

fn numbers(x: &Tensor) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

/// Parameters drawn anew, so that none has a special value.
fn drawn(parameters: &Parameters) {
    for (at, parameter) in parameters.all().iter().enumerate() {
        let value = normal(50 + at as u64, parameter.tensor().shape());
        parameter.set(&value.shift(0.2).unwrap().to_dtype(parameters.dtype()).unwrap()).unwrap();
    }
}

fn config(score: ScoreConfig, weighting: Weighting) -> MechanismConfig {
    MechanismConfig { score, weighting, ..MechanismConfig::default() }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// W x, W row by row.
fn times(w: &[f64], x: &[f64]) -> Vec<f64> {
    w.chunks(x.len()).map(|row| dot(row, x)).collect()
}

/// s(k, q) as the table of mechanisms writes it.
fn formula(score: &ScoreConfig, weights: &BTreeMap<String, Tensor>, q: &[f64], k: &[f64]) -> f64 {
    let w = |name: &str| numbers(&weights[name]);
    let (dq, dk) = (q.len() as f64, k.len() as f64);
    let both = [q, k].concat();
    match *score {
        ScoreConfig::Dot => dot(k, q),
        ScoreConfig::ScaledDot => dot(k, q) / dk.sqrt(),
        ScoreConfig::Additive { .. } => {
            let (a, b) = (times(&w("W_k.weight"), k), times(&w("W_q.weight"), q));
            let bent: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a + b).tanh()).collect();
            dot(&w("w_v.weight"), &bent)
        }
        ScoreConfig::Concat { hidden: None } => dot(&w("w"), &both),
        ScoreConfig::Concat { hidden: Some(_) } => {
            let bent: Vec<f64> = times(&w("W"), &both).iter().map(|x| x.tanh()).collect();
            dot(&w("w"), &bent)
        }
        ScoreConfig::Bilinear { scale } => {
            let scale = match scale {
                BilinearScale::None => 1.0,
                BilinearScale::Root => dk.sqrt(),
                BilinearScale::FourthRoot => (dq * dk).sqrt().sqrt(),
                other => unreachable!("{other:?} is not in the table"),
            };
            dot(k, &times(&w("W"), q)) / scale
        }
        ScoreConfig::LowRank { .. } => dot(&times(&w("U.weight"), k), &times(&w("V.weight"), q)),
        ScoreConfig::Gaussian { inverse_width, learned, .. } => {
            let w = if learned { w("w") } else { vec![inverse_width] };
            let square = |d: usize| (w[d % w.len()] * (q[d] - k[d])).powi(2);
            -0.5 * (0..q.len()).map(square).sum::<f64>()
        }
        ScoreConfig::Cosine { temperature, learned } => {
            let temperature = if learned { w("temperature")[0] } else { temperature };
            let lengths = dot(k, k).sqrt() * dot(q, q).sqrt();
            if lengths == 0.0 { 0.0 } else { temperature * dot(k, q) / lengths }
        }
        ScoreConfig::Expression { .. } => {
            let (rows, sigmoid) = (w("w"), |x: f64| 1.0 / (1.0 + (-x).exp()));
            let sum: f64 = (0..q.len()).map(|d| rows[d] * sigmoid(q[d] - k[d])).sum();
            let squares: f64 = (0..q.len()).map(|d| (q[d] * k[d]).powi(2)).sum();
            w("tau")[0] * sum - squares.sqrt()
        }
        ScoreConfig::Own(_) => {
            let numbers = w("own");
            let squash = |x: f64| x / (1.0 + x.abs());
            let pairs = || q.iter().zip(k);
            numbers[0] * pairs().map(|(q, k)| squash(q * k)).sum::<f64>()
                + numbers[1] * pairs().map(|(q, k)| q - k).sum::<f64>()
        }
        ref other => unreachable!("{other:?} is not in the table"),
    }
}

/// The weights of one row of scores, by definition.
fn weigh(weighting: Weighting, s: &[f64]) -> Vec<f64> {
    // max(x − τ, 0)^power sums to 1 at the right τ, found by halving.
    let projected = |scale: f64, power: i32| {
        let x: Vec<f64> = s.iter().map(|s| s * scale).collect();
        let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (mut low, mut high) = (top - 1.0, top);
        let weights = |t: f64| x.iter().map(|x| (x - t).max(0.0).powi(power)).collect::<Vec<_>>();
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            let sum: f64 = weights(middle).iter().sum();
            if sum > 1.0 { low = middle } else { high = middle }
        }
        weights(0.5 * (low + high))
    };
    match weighting {
        Weighting::Softmax => {
            let top = s.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = s.iter().map(|s| (s - top).exp()).collect();
            let sum: f64 = powers.iter().sum();
            powers.iter().map(|p| p / sum).collect()
        }
        Weighting::Sparsemax => projected(1.0, 1),
        Weighting::Entmax15 => projected(0.5, 2),
        Weighting::Sigmoid => s.iter().map(|s| 1.0 / (1.0 + (-s).exp())).collect(),
        Weighting::None => s.to_vec(),
        _ => {
            let best = (0..s.len()).max_by(|&a, &b| s[a].total_cmp(&s[b])).unwrap();
            (0..s.len()).map(|i| f64::from(u8::from(i == best))).collect()
        }
    }
}

#[track_caller]
fn near(a: &[f64], b: &[f64], most: f64, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= most * b.abs().max(1.0), "{what}: {a}, by the formula {b}");
    }
}

#[test]
fn every_score_under_every_weighting_is_its_formula() {
    let (b, nq, nk, dv) = (2, 3, 5, 2);
    for (score, dq, dk) in scores() {
        for weighting in SOFT.into_iter().chain([Weighting::Argmax]) {
            let parameters = Parameters::new(DType::F64, 1);
            let mechanism =
                Mechanism::new(&parameters, &config(score.clone(), weighting), dq, dk).unwrap();
            drawn(&parameters);
            let weights = parameters.tensors();
            let (q, k) = (normal(1, &[b, nq, dq]), normal(2, &[b, nk, dk]));
            let v = normal(3, &[b, nk, dv]);
            let mask = Mask::lengths(&[5, 3]);
            let seen = mechanism.attend(&q, &k, &v, &mask, Mode::Infer, Need::WEIGHTS).unwrap();
            let (q, k, v) = (numbers(&q), numbers(&k), numbers(&v));
            let (mut expected, mut out) = (Vec::new(), Vec::new());
            for row in 0..b * nq {
                let item = row / nq;
                let length = [5, 3][item];
                let key = |j: usize| &k[(item * nk + j) * dk..][..dk];
                let scores: Vec<f64> = (0..length)
                    .map(|j| formula(&score, &weights, &q[row * dq..][..dq], key(j)))
                    .collect();
                let mut row = weigh(weighting, &scores);
                row.resize(nk, 0.0);
                for d in 0..dv {
                    out.push((0..nk).map(|j| row[j] * v[(item * nk + j) * dv + d]).sum::<f64>());
                }
                expected.extend(row);
            }
            let what = format!("{score:?} under {weighting:?}");
            near(&numbers(&seen.weights.unwrap()), &expected, 1e-10, &what);
            near(&numbers(&seen.out), &out, 1e-10, &what);
        }
    }
}

#[test]
fn queries_keys_values_and_parameters_get_their_gradients() {
    for (score, dq, dk) in scores() {
        for weighting in SOFT {
            let parameters = Parameters::new(DType::F64, 1);
            let mechanism =
                Mechanism::new(&parameters, &config(score.clone(), weighting), dq, dk).unwrap();
            drawn(&parameters);
            let inputs = [normal(1, &[2, 3, dq]), normal(2, &[2, 5, dk]), normal(3, &[2, 5, 2])];
            let mask = Mask::lengths(&[5, 3]);
            let run = |x: &[Tensor]| {
                let seen =
                    mechanism.attend(&x[0], &x[1], &x[2], &mask, Mode::Infer, Need::WEIGHTS)?;
                let weights = seen.weights.unwrap().square()?.sum(2)?.unsqueeze(2)?;
                seen.out.add(&weights)
            };
            let what = format!("{score:?} under {weighting:?}");
            let error = finite_difference_error(&inputs, run).unwrap();
            assert!(error < 1e-6, "{what}: inputs differ by {error}");
            if !parameters.all().is_empty() {
                let error = parameter_difference_error(&parameters.all(), || run(&inputs)).unwrap();
                assert!(error < 1e-6, "{what}: parameters differ by {error}");
            }
        }
    }
}

#[test]
fn a_score_has_as_many_parameters_as_its_formula() {
    let (dq, dk) = (3, 4);
    for (score, dq, dk, count) in [
        (ScoreConfig::Dot, dk, dk, 0),
        (ScoreConfig::ScaledDot, dk, dk, 0),
        (ScoreConfig::Additive { hidden: 5 }, dq, dk, 5 * (1 + dk + dq)),
        (ScoreConfig::Concat { hidden: None }, dq, dk, dq + dk),
        (ScoreConfig::Concat { hidden: Some(5) }, dq, dk, 5 * (dq + dk) + 5),
        (ScoreConfig::Bilinear { scale: BilinearScale::None }, dq, dk, dq * dk),
        (ScoreConfig::LowRank { rank: 2 }, dq, dk, 2 * (dq + dk)),
        (ScoreConfig::Cosine { temperature: 1.0, learned: true }, dk, dk, 1),
        (ScoreConfig::Cosine { temperature: 1.0, learned: false }, dk, dk, 0),
        (ScoreConfig::own(Squash, &[0.0, 0.0]), dk, dk, 2),
        (expression(), dk, dk, 1 + dk),
    ] {
        let parameters = Parameters::new(DType::F64, 1);
        Mechanism::new(&parameters, &MechanismConfig::new(score.clone()), dq, dk).unwrap();
        assert_eq!(parameters.numel(), count, "{score:?}");
    }
    for (learned, per_feature, count) in [(false, false, 0), (true, false, 1), (true, true, 4)] {
        let parameters = Parameters::new(DType::F64, 1);
        let score = ScoreConfig::Gaussian { inverse_width: 1.0, learned, per_feature };
        Mechanism::new(&parameters, &MechanismConfig::new(score.clone()), 4, 4).unwrap();
        assert_eq!(parameters.numel(), count, "{score:?}");
    }
}

#[test]
fn a_zero_vector_has_a_cosine_of_zero_and_finite_gradients() {
    let score = ScoreConfig::Cosine { temperature: 2.0, learned: false };
    let parameters = Parameters::new(DType::F32, 1);
    let mechanism = Mechanism::new(&parameters, &config(score, Weighting::None), 3, 3).unwrap();
    let q = Parameter::new("q", Tensor::zeros(&[1, 1, 3], DType::F32).unwrap()).unwrap();
    let k = Tensor::from_vec(vec![0f32, 0.0, 0.0, 1.0, 2.0, 3.0], &[1, 2, 3]).unwrap();
    let k = Parameter::new("k", k).unwrap();
    let (mask, v) = (Mask::none(), k.tensor().detach());
    let seen =
        mechanism.attend(&q.tensor(), &k.tensor(), &v, &mask, Mode::Infer, Need::WEIGHTS).unwrap();
    assert_eq!(numbers(seen.weights.as_ref().unwrap()), [0.0, 0.0]);
    let gradients = seen.weights.unwrap().sum_all().unwrap().backward().unwrap();
    for parameter in [&q, &k] {
        let gradient = numbers(gradients.get(parameter).unwrap());
        assert!(gradient.iter().all(|g| g.is_finite()), "{gradient:?}");
    }
}

#[test]
fn the_gaussian_kernel_is_as_exact_far_from_the_origin_as_near_it() {
    // Numbers that f32 holds exactly at both places, so that only the kernel can err.
    let grid = |seed, shape: &[usize]| {
        let x = numbers(&normal(seed, shape));
        x.iter().map(|x| (x * 256.0).round() / 256.0).collect::<Vec<f64>>()
    };
    let (q, k) = (grid(1, &[4, 3]), grid(2, &[6, 3]));
    let at = |x: &[f64], by: f64, rows: usize| {
        let x = x.iter().map(|x| (x + by) as f32).collect();
        Tensor::from_vec::<f32>(x, &[1, rows, 3]).unwrap()
    };
    let score = ScoreConfig::Gaussian { inverse_width: 0.9, learned: false, per_feature: false };
    for weighting in SOFT {
        let parameters = Parameters::new(DType::F32, 1);
        let mechanism =
            Mechanism::new(&parameters, &config(score.clone(), weighting), 3, 3).unwrap();
        let run = |by: f64| {
            let (q, k) = (at(&q, by, 4), at(&k, by, 6));
            let q = Parameter::new("q", q).unwrap();
            let values = Tensor::zeros(&[1, 6, 1], DType::F32).unwrap();
            let mask = Mask::none();
            let seen = mechanism
                .attend(&q.tensor(), &k, &values, &mask, Mode::Infer, Need::WEIGHTS)
                .unwrap();
            let weights = seen.weights.unwrap();
            let gradients = weights.square().unwrap().sum_all().unwrap().backward().unwrap();
            (numbers(&weights), numbers(gradients.get(&q).unwrap()))
        };
        let (near_weights, near_gradients) = run(0.0);
        let (far_weights, far_gradients) = run(1e4);
        let expected: Vec<f64> = (0..4)
            .flat_map(|i| {
                let row = |j: usize| {
                    formula(&score, &BTreeMap::new(), &q[i * 3..][..3], &k[j * 3..][..3])
                };
                weigh(weighting, &(0..6).map(row).collect::<Vec<_>>())
            })
            .collect();
        let what = format!("{weighting:?}");
        near(&near_weights, &expected, 3e-6, &what);
        near(&far_weights, &expected, 3e-6, &what);
        near(&far_gradients, &near_gradients, 3e-5, &what);
    }
}

#[test]
fn straight_through_chooses_forward_and_is_soft_backward() {
    let score = ScoreConfig::Bilinear { scale: BilinearScale::Root };
    let parameters = Parameters::new(DType::F64, 1);
    let mechanism =
        Mechanism::new(&parameters, &config(score, Weighting::StraightThrough), 4, 4).unwrap();
    drawn(&parameters);
    let random = Random::new(1);
    let named = |name: &str, x: Tensor| Parameter::new(name, x).unwrap();
    let q = named("q", normal(1, &[2, 3, 4]));
    let k = named("k", normal(2, &[2, 5, 4]));
    let v = named("v", normal(3, &[2, 5, 2]));
    let sent = (normal(4, &[2, 3, 2]), normal(5, &[2, 3, 5]));
    let mask = Mask::lengths(&[5, 3]);
    let seen = mechanism
        .attend(&q.tensor(), &k.tensor(), &v.tensor(), &mask, Mode::Train(&random), Need::WEIGHTS)
        .unwrap();
    let hard = mechanism
        .attend(&q.tensor(), &k.tensor(), &v.tensor(), &mask, Mode::Infer, Need::WEIGHTS)
        .unwrap();
    let weights = seen.weights.unwrap();
    near(&numbers(&weights), &numbers(&hard.weights.clone().unwrap()), 1e-12, "weights");
    near(&numbers(&seen.out), &numbers(&hard.out), 1e-12, "out");
    assert!(numbers(&hard.weights.unwrap()).iter().all(|&w| w == 0.0 || w == 1.0));

    // Both ways back, through the output and through the weights.
    let loss = |out: &Tensor, weights: &Tensor| {
        let both = out.mul(&sent.0).unwrap().sum_all().unwrap();
        both.add(&weights.mul(&sent.1).unwrap().sum_all().unwrap()).unwrap()
    };
    let gradients = loss(&seen.out, &weights).backward().unwrap();
    let p = mechanism.probabilities(&q.tensor(), &k.tensor(), &mask).unwrap();
    let soft = loss(&p.matmul(&v.tensor().detach()).unwrap(), &p).backward().unwrap();
    for parameter in [&q, &k, &parameters.all()[0]] {
        let (a, b) = (gradients.get(parameter).unwrap(), soft.get(parameter).unwrap());
        near(&numbers(a), &numbers(b), 1e-10, parameter.name());
    }
    let chosen = weights.detach().transpose(1, 2).unwrap().matmul(&sent.0).unwrap();
    near(&numbers(gradients.get(&v).unwrap()), &numbers(&chosen), 1e-10, "v");
}

/// How often each of a few keys is chosen by many equal queries, and how often it should be.
fn frequencies(weighting: Weighting) -> (Vec<f64>, Vec<f64>, usize) {
    let parameters = Parameters::new(DType::F64, 1);
    let many = 20_000;
    let mechanism =
        Mechanism::new(&parameters, &config(ScoreConfig::Dot, weighting), 2, 2).unwrap();
    let q = Tensor::from_vec(vec![1.0, -0.5], &[1, 1, 2]).unwrap();
    let k = normal(2, &[1, 4, 2]);
    let p = numbers(&mechanism.probabilities(&q, &k, &Mask::none()).unwrap());
    let q = q.broadcast_to(&[1, many, 2]).unwrap();
    let random = Random::new(7);
    let seen =
        mechanism.attend(&q, &k, &k, &Mask::none(), Mode::Train(&random), Need::WEIGHTS).unwrap();
    let shares = seen.weights.unwrap().mean(1).unwrap();
    (numbers(&shares), p, many)
}

#[test]
fn sampling_and_hard_gumbel_choose_keys_as_often_as_they_are_likely() {
    for weighting in [Weighting::Sample, Weighting::GumbelHard] {
        let (shares, p, many) = frequencies(weighting);
        for (share, p) in shares.iter().zip(&p) {
            let error = (p * (1.0 - p) / many as f64).sqrt();
            assert!((share - p).abs() < 4.0 * error, "{weighting:?}: {share}, likely {p}");
        }
    }
}

#[test]
fn gumbel_softmax_has_gradients_sums_to_one_and_hardens_as_it_cools() {
    let largest = |temperature: f64| {
        let parameters = Parameters::new(DType::F64, 1);
        let config = MechanismConfig {
            temperature,
            ..config(
                ScoreConfig::Gaussian { inverse_width: 0.7, learned: true, per_feature: true },
                Weighting::Gumbel,
            )
        };
        let mechanism = Mechanism::new(&parameters, &config, 3, 3).unwrap();
        let inputs = [normal(1, &[2, 3, 3]), normal(2, &[2, 5, 3]), normal(3, &[2, 5, 2])];
        let attend = |x: &[Tensor]| {
            // The same stream each time, so that the noise is the same.
            let random = Random::new(3);
            mechanism.attend(
                &x[0],
                &x[1],
                &x[2],
                &Mask::none(),
                Mode::Train(&random),
                Need::WEIGHTS,
            )
        };
        let run = |x: &[Tensor]| Ok(attend(x)?.out);
        if temperature >= 0.5 {
            assert!(finite_difference_error(&inputs, run).unwrap() < 1e-6);
            assert!(parameter_difference_error(&parameters.all(), || run(&inputs)).unwrap() < 1e-6);
        }
        let weights = attend(&inputs).unwrap().weights.unwrap();
        near(&numbers(&weights.sum(2).unwrap()), &[1.0; 6], 1e-12, "sums");
        let largest = numbers(&weights.max(2).unwrap().0);
        largest.iter().copied().fold(1.0, f64::min)
    };
    assert!(largest(1.0) < 0.9);
    assert!(largest(0.01) > 0.99);
    let parameters = Parameters::new(DType::F64, 1);
    let mechanism =
        Mechanism::new(&parameters, &config(ScoreConfig::Dot, Weighting::Gumbel), 3, 3).unwrap();
    let (q, k) = (normal(1, &[2, 3, 3]), normal(2, &[2, 5, 3]));
    let used = mechanism.attend(&q, &k, &k, &Mask::none(), Mode::Infer, Need::WEIGHTS).unwrap();
    let p = mechanism.probabilities(&q, &k, &Mask::none()).unwrap();
    near(&numbers(&used.weights.unwrap()), &numbers(&p), 1e-12, "in use it is softmax");
}

#[test]
fn many_queries_over_one_memory_are_each_alone_side_by_side() {
    let parameters = Parameters::new(DType::F64, 1);
    let score = ScoreConfig::Additive { hidden: 6 };
    let learned = LearnedQueries::new(&parameters, &MechanismConfig::new(score), 3, 2, 4).unwrap();
    let (k, v) = (normal(1, &[2, 5, 4]), normal(2, &[2, 5, 3]));
    let mask = Mask::lengths(&[5, 2]);
    let seen = learned.attend(&k, &v, &mask, Mode::Infer, Need::WEIGHTS).unwrap();
    assert_eq!(seen.out.shape(), [2, 9]);
    for m in 0..3 {
        let one = learned.query.tensor().narrow(0, m, 1).unwrap();
        let one = one.broadcast_to(&[2, 1, 2]).unwrap();
        let alone =
            learned.mechanism.attend(&one, &k, &v, &mask, Mode::Infer, Need::OUTPUT).unwrap();
        let part = seen.out.narrow(1, m * 3, 3).unwrap();
        near(&numbers(&part), &numbers(&alone.out), 1e-14, "one query");
    }
    let error = parameter_difference_error(&parameters.all(), || {
        Ok(learned.attend(&k, &v, &mask, Mode::Infer, Need::OUTPUT)?.out)
    });
    assert!(error.unwrap() < 1e-6);
}

#[test]
fn what_cannot_be_built_is_refused_by_name() {
    let refused = |config: MechanismConfig, dq, dk| {
        let parameters = Parameters::new(DType::F64, 1);
        Mechanism::new(&parameters, &config, dq, dk).unwrap_err().to_string()
    };
    let new = MechanismConfig::new;
    assert_eq!(
        refused(new(ScoreConfig::ScaledDot), 3, 4),
        "the scaled dot score needs equal widths; queries have 3, keys 4"
    );
    assert_eq!(
        refused(new(ScoreConfig::Additive { hidden: 0 }), 3, 4),
        "an additive score of hidden size 0"
    );
    assert_eq!(refused(new(ScoreConfig::LowRank { rank: 0 }), 3, 4), "a low-rank score of rank 0");
    let cold = MechanismConfig { temperature: 0.0, ..MechanismConfig::default() };
    assert_eq!(refused(cold, 3, 3), "a temperature of 0");
    let dropped = MechanismConfig { dropout: 1.0, ..MechanismConfig::default() };
    assert_eq!(refused(dropped, 3, 3), "a dropout of 1 is not within 0..1");
    let error = serde_json::from_str::<MechanismConfig>(r#"{"score": "dott"}"#).unwrap_err();
    assert!(error.to_string().contains("unknown variant `dott`"), "{error}");
    let error = serde_json::from_str::<MechanismConfig>(r#"{"scores": "dot"}"#).unwrap_err();
    assert!(error.to_string().contains("unknown field `scores`"), "{error}");
}

#[test]
fn a_configuration_survives_json() {
    for (score, _, _) in scores() {
        let own = matches!(score, ScoreConfig::Own(_));
        let config = config(score, Weighting::Entmax15);
        if own {
            let error = serde_json::to_string(&config).unwrap_err().to_string();
            assert_eq!(error, "a custom score is code and has no text form");
            continue;
        }
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<MechanismConfig>(&text).unwrap(), config, "{text}");
    }
}

#[test]
fn every_rank_gives_the_numbers_of_the_one_with_heads() {
    for (score, dq, dk) in scores() {
        let parameters = Parameters::new(DType::F64, 1);
        let config = config(score, Weighting::Softmax);
        let mechanism = Mechanism::new(&parameters, &config, dq, dk).unwrap();
        drawn(&parameters);
        // Two query heads to each key head.
        let (q, k) = (normal(1, &[2, 4, 3, dq]), normal(2, &[2, 2, 5, dk]));
        let v = normal(3, &[2, 2, 5, 2]);
        let need = Need { weights: true, lse: true, ..Need::OUTPUT };
        let attend = |q: &Tensor, k: &Tensor, v: &Tensor, mask: &Mask| {
            mechanism.attend(q, k, v, mask, Mode::Infer, need).unwrap()
        };
        let whole = attend(&q, &k, &v, &Mask::lengths(&[5, 3]));
        assert_eq!(whole.out.shape(), [2, 4, 3, 2]);
        let same = |a: &Attended, pick: &dyn Fn(&Tensor) -> Tensor, what: &str| {
            let parts = |x: &Attended| [Some(x.out.clone()), x.weights.clone(), x.lse.clone()];
            for (a, b) in parts(a).iter().zip(parts(&whole)) {
                let (a, b) = (a.as_ref().unwrap(), pick(&b.unwrap()));
                assert_eq!(a.shape(), b.shape(), "{what}");
                near(&numbers(a), &numbers(&b), 1e-12, what);
            }
        };
        for head in 0..4 {
            let of = |x: &Tensor, h: usize| x.select(1, h).unwrap();
            let (q, k, v) = (of(&q, head), of(&k, head / 2), of(&v, head / 2));
            let batch = attend(&q, &k, &v, &Mask::lengths(&[5, 3]));
            same(&batch, &|x| of(x, head), "[B, N, D]");
            let one = |x: &Tensor| x.select(0, 1).unwrap();
            let (q, k, v) = (one(&q), one(&k), one(&v));
            let sequence = attend(&q, &k, &v, &Mask::lengths(&[3]));
            same(&sequence, &|x| one(&of(x, head)), "[N, D]");
            let query = attend(&q.select(0, 2).unwrap(), &k, &v, &Mask::lengths(&[3]));
            let last = |x: &Tensor| one(&of(x, head)).select(0, 2).unwrap();
            same(&query, &last, "[D]");
        }
    }
}

#[test]
fn a_query_of_its_own_has_gradients_too() {
    for (score, dq, dk) in scores() {
        let parameters = Parameters::new(DType::F64, 1);
        let config = config(score, Weighting::Softmax);
        let mechanism = Mechanism::new(&parameters, &config, dq, dk).unwrap();
        drawn(&parameters);
        let inputs = [normal(1, &[dq]), normal(2, &[5, dk]), normal(3, &[5, 2])];
        let mask = Mask::none();
        let run = |x: &[Tensor]| {
            Ok(mechanism.attend(&x[0], &x[1], &x[2], &mask, Mode::Infer, Need::OUTPUT)?.out)
        };
        assert!(finite_difference_error(&inputs, run).unwrap() < 1e-6, "{config:?}");
    }
}

#[test]
fn shapes_and_types_that_do_not_fit_are_refused_by_name() {
    let parameters = Parameters::new(DType::F32, 1);
    let score = ScoreConfig::Additive { hidden: 5 };
    let mechanism = Mechanism::new(&parameters, &MechanismConfig::new(score), 3, 4).unwrap();
    let x = |shape: &[usize], dtype| Tensor::zeros(shape, dtype).unwrap();
    let refused = |q: &Tensor, k: &Tensor, v: &Tensor| {
        let attended = mechanism.attend(q, k, v, &Mask::none(), Mode::Infer, Need::OUTPUT);
        attended.unwrap_err().to_string()
    };
    let f32 = DType::F32;
    assert_eq!(
        refused(&x(&[2, 3], f32), &x(&[2, 5, 4], f32), &x(&[2, 5, 4], f32)),
        "q, k and v have shapes [2, 3], [2, 5, 4] and [2, 5, 4]; attention wants [B, H, N, D], \
         [B, N, D] or [N, D] for all three, or a query [D] with [N, D]"
    );
    let (q, k) = (x(&[4], f32), x(&[5, 4], f32));
    assert_eq!(
        refused(&q, &k, &k),
        "mechanism: q has shape [4]; it was made for queries of width 3 and keys of width 4"
    );
    let (q, k) = (x(&[3], DType::F64), x(&[5, 4], f32));
    let error = refused(&q, &k, &k);
    assert_eq!(error, "mechanism: q is f64, the parameters are f32; they want one type");
    let own = ScoreConfig::own(Squash, &[1.0]);
    let error = Mechanism::new(&parameters, &MechanismConfig::new(own), 4, 4).unwrap_err();
    assert_eq!(error.to_string(), "an own score of 2 numbers was given 1 to start from");
}

#[test]
fn half_the_temperature_squares_the_weights_under_every_score() {
    for (score, dq, dk) in scores() {
        let (q, k) = (normal(1, &[2, 3, dq]), normal(2, &[2, 5, dk]));
        let weights = |temperature: f64| {
            let parameters = Parameters::new(DType::F64, 1);
            let config =
                MechanismConfig { temperature, ..config(score.clone(), Weighting::Gumbel) };
            let mechanism = Mechanism::new(&parameters, &config, dq, dk).unwrap();
            drawn(&parameters);
            // The same stream each time, so that the noise is the same.
            let random = Random::new(3);
            let mode = Mode::Train(&random);
            let seen = mechanism.attend(&q, &k, &k, &Mask::none(), mode, Need::WEIGHTS).unwrap();
            numbers(&seen.weights.unwrap())
        };
        let squares: Vec<f64> = weights(1.0).iter().map(|w| w * w).collect();
        let expected: Vec<f64> = squares
            .chunks(5)
            .flat_map(|row| row.iter().map(|w| w / row.iter().sum::<f64>()))
            .collect();
        near(&weights(0.5), &expected, 1e-12, &format!("{score:?}"));
    }
}

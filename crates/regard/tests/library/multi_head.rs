//! Multi-head attention with any score and any weighting: against a plain loop over the heads, and
//! against finite differences.

use crate::squash;

use regard::attention::{Attended, BilinearScale};
use regard::layers::{BlockConfig, EncoderBlock, KeyValueCache, TransformerDecoder};
use regard::prelude::*;
use regard::tensor::{finite_difference_error, parameter_difference_error};
use squash::Squash;
use std::collections::BTreeMap;

/// Width of a head.
const D: usize = 4;

fn scores() -> Vec<ScoreConfig> {
    let gaussian =
        |learned, per_feature| ScoreConfig::Gaussian { inverse_width: 0.8, learned, per_feature };
    vec![
        ScoreConfig::Dot,
        ScoreConfig::ScaledDot,
        ScoreConfig::Additive { hidden: 5 },
        ScoreConfig::Concat { hidden: None },
        ScoreConfig::Concat { hidden: Some(5) },
        ScoreConfig::Bilinear { scale: BilinearScale::Root },
        ScoreConfig::LowRank { rank: 2 },
        gaussian(false, false),
        gaussian(true, false),
        gaussian(true, true),
        ScoreConfig::Cosine { temperature: 3.0, learned: false },
        ScoreConfig::Cosine { temperature: 3.0, learned: true },
        ScoreConfig::own(Squash, &[0.5, -0.2]),
        ScoreConfig::Expression {
            score: "tau * sum(w * tanh(q - k))".into(),
            numbers: vec!["tau".into()],
        },
    ]
}

fn normal(seed: u64, shape: &[usize]) -> Tensor {
    Random::new(seed).normal(shape, 0.0, 1.0, DType::F64).unwrap()
}

fn numbers(x: &Tensor) -> Vec<f64> {
    x.to_vec().unwrap()
}

#[track_caller]
fn near(a: &Tensor, b: &Tensor, what: &str) {
    assert_eq!(a.shape(), b.shape(), "{what}");
    for (a, b) in numbers(a).iter().zip(numbers(b)) {
        assert!((a - b).abs() <= 1e-10 * b.abs().max(1.0), "{what}: {a}, head by head {b}");
    }
}

/// Parameters drawn anew, so that no two heads are alike.
fn drawn(parameters: &Parameters) {
    for (at, parameter) in parameters.all().iter().enumerate() {
        let value = normal(50 + at as u64, parameter.tensor().shape()).scale(0.7).unwrap();
        parameter.set(&value.shift(0.1).unwrap()).unwrap();
    }
}

fn config(score: ScoreConfig, heads: usize, key_heads: usize) -> MultiHeadConfig {
    MultiHeadConfig { score, key_heads: Some(key_heads), ..MultiHeadConfig::new(heads * D, heads) }
}

/// The parameters of one query head's score, by the names and shapes that a mechanism gives them:
/// what lies `[H, …]` by query heads, `[Hk, …]` by key heads.
fn of_head(
    all: &BTreeMap<String, Tensor>,
    head: usize,
    heads: usize,
    alone: &Parameters,
) -> BTreeMap<String, Tensor> {
    alone
        .tensors()
        .into_iter()
        .map(|(name, own)| {
            let whole = &all[&format!("score.{name}")];
            let row = head * whole.shape()[0] / heads;
            (name, whole.select(0, row).unwrap().reshape(own.shape()).unwrap())
        })
        .collect()
}

/// Every head by a mechanism of its own, on its rows of the projections.
fn head_by_head(
    config: &MultiHeadConfig,
    all: &BTreeMap<String, Tensor>,
    x: [&Tensor; 3],
    mask: &Mask,
) -> Attended {
    let (heads, key_heads) = (config.heads, config.key_heads.unwrap());
    let mechanism = MechanismConfig {
        weighting: config.weighting,
        ..MechanismConfig::new(config.score.clone())
    };
    let dk = config.head_key_width.unwrap_or(config.width / heads);
    let dv = config.head_value_width.unwrap_or(config.width / heads);
    let rows = |x: &Tensor, from: usize, count: usize| {
        let part = |name: &str| all.get(name).map(|all| all.narrow(0, from, count).unwrap());
        x.linear(&part("in_proj_weight").unwrap(), part("in_proj_bias").as_ref()).unwrap()
    };
    let (mut outs, mut weights) = (Vec::new(), Vec::new());
    for head in 0..heads {
        let key_head = head * key_heads / heads;
        let q = rows(x[0], head * dk, dk);
        let k = rows(x[1], (heads + key_head) * dk, dk);
        let v = rows(x[2], (heads + key_heads) * dk + key_head * dv, dv);
        let parameters = Parameters::new(DType::F64, 1);
        let alone = Mechanism::new(&parameters, &mechanism, dk, dk).unwrap();
        parameters.set(&of_head(all, head, heads, &parameters)).unwrap();
        let seen = alone.attend(&q, &k, &v, mask, Mode::Infer, Need::WEIGHTS).unwrap();
        outs.push(seen.out);
        weights.push(seen.weights.unwrap());
    }
    let joined = Tensor::cat(&outs, 2).unwrap();
    let out = joined.linear(&all["out_proj.weight"], all.get("out_proj.bias")).unwrap();
    let mut attended = Attended::from(out);
    attended.weights = Some(Tensor::stack(&weights, 1).unwrap());
    attended
}

#[test]
fn every_score_under_every_weighting_is_a_loop_over_the_heads() {
    let weightings = [
        Weighting::Softmax,
        Weighting::Sparsemax,
        Weighting::Entmax15,
        Weighting::Sigmoid,
        Weighting::None,
        Weighting::Argmax,
    ];
    for score in scores() {
        for weighting in weightings {
            for (heads, key_heads) in [(3, 3), (4, 2), (2, 1)] {
                let config =
                    MultiHeadConfig { weighting, ..config(score.clone(), heads, key_heads) };
                let parameters = Parameters::new(DType::F64, 1);
                let attention = MultiHeadAttention::new(&parameters, &config).unwrap();
                drawn(&parameters);
                let (x, memory) = (normal(1, &[2, 3, heads * D]), normal(2, &[2, 5, heads * D]));
                let mask = Mask::lengths(&[5, 3]);
                let seen = attention
                    .attend(&x, &memory, &memory, &mask, Mode::Infer, Need::WEIGHTS)
                    .unwrap();
                let inputs = [&x, &memory, &memory];
                let known = head_by_head(&config, &parameters.tensors(), inputs, &mask);
                let what = format!("{score:?} under {weighting:?}, {heads} heads, {key_heads}");
                near(&seen.weights.unwrap(), &known.weights.unwrap(), &what);
                near(&seen.out, &known.out, &what);
            }
        }
    }
}

#[test]
fn heads_of_any_width_with_biases_or_without_are_a_loop_over_the_heads() {
    let mut tried = 0;
    for score in scores() {
        for (head_key_width, head_value_width) in
            [(None, Some(5)), (Some(3), None), (Some(6), Some(1)), (Some(2), Some(7))]
        {
            for (bias, heads, key_heads) in [(true, 3, 3), (false, 4, 2)] {
                let config = MultiHeadConfig {
                    head_key_width,
                    head_value_width,
                    bias,
                    ..config(score.clone(), heads, key_heads)
                };
                let parameters = Parameters::new(DType::F64, 1);
                let attention = MultiHeadAttention::new(&parameters, &config).unwrap();
                assert_eq!(parameters.tensors().contains_key("in_proj_bias"), bias);
                drawn(&parameters);
                let (x, memory) = (normal(1, &[2, 3, heads * D]), normal(2, &[2, 5, heads * D]));
                let mask = Mask::lengths(&[5, 3]);
                let seen = attention
                    .attend(&x, &memory, &memory, &mask, Mode::Infer, Need::WEIGHTS)
                    .unwrap();
                let inputs = [&x, &memory, &memory];
                let known = head_by_head(&config, &parameters.tensors(), inputs, &mask);
                let what = format!("{config:?}");
                near(&seen.weights.unwrap(), &known.weights.unwrap(), &what);
                near(&seen.out, &known.out, &what);
                // Decoding goes the same way.
                let remembered = attention.remember(&memory).unwrap();
                let recalled = attention.recall(&x, &remembered, &mask, Need::OUTPUT).unwrap();
                near(&recalled.out, &known.out, &what);
                let whole = attention.forward(&x, &x, &x, &Mask::causal(), Mode::Infer).unwrap();
                let mut cache = KeyValueCache::default();
                for place in 0..3 {
                    let next = x.narrow(1, place, 1).unwrap();
                    let step = attention.extend(&next, &mut cache, &Mask::causal(), Need::OUTPUT);
                    near(&step.unwrap().out, &whole.narrow(1, place, 1).unwrap(), &what);
                }
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 14 * 4 * 2);
}

#[test]
fn head_widths_that_cannot_be_are_refused_by_name() {
    let refused = |config: MultiHeadConfig| config.check().unwrap_err().to_string();
    let base = || MultiHeadConfig::new(10, 4);
    assert_eq!(refused(base()), "4 heads do not divide a width of 10");
    let one = MultiHeadConfig { head_key_width: Some(3), ..base() };
    assert_eq!(refused(one.clone()), "4 heads do not divide a width of 10");
    let both = MultiHeadConfig { head_value_width: Some(2), ..one };
    both.check().unwrap();
    let none = MultiHeadConfig { head_key_width: Some(0), ..both.clone() };
    assert_eq!(refused(none), "heads with a key width of 0 and a value width of 2");
    let odd = MultiHeadConfig { position: Position::Rotary, ..both };
    assert_eq!(refused(odd), "rotary positions turn pairs; a head width of 3 is odd");
}

#[test]
fn inputs_and_every_parameter_get_their_gradients_under_every_score() {
    for score in scores() {
        for (heads, key_heads) in [(2, 2), (2, 1)] {
            let config = config(score.clone(), heads, key_heads);
            let parameters = Parameters::new(DType::F64, 1);
            let attention = MultiHeadAttention::new(&parameters, &config).unwrap();
            drawn(&parameters);
            let inputs = [normal(1, &[2, 3, heads * D]), normal(2, &[2, 4, heads * D])];
            let mask = Mask::lengths(&[4, 2]);
            let run = |x: &[Tensor]| {
                let need = Need::WEIGHTS;
                let seen = attention.attend(&x[0], &x[1], &x[1], &mask, Mode::Infer, need)?;
                let weights = seen.weights.unwrap().square()?.sum(3)?.sum(1)?.unsqueeze(2)?;
                seen.out.add(&weights)
            };
            let error = finite_difference_error(&inputs, run).unwrap();
            assert!(error < 1e-6, "{score:?}: inputs differ by {error}");
            let error = parameter_difference_error(&parameters.all(), || run(&inputs)).unwrap();
            assert!(error < 1e-6, "{score:?}: parameters differ by {error}");
        }
    }
}

#[test]
fn choices_while_learning_are_chosen_in_each_head_and_reach_the_score() {
    for weighting in [Weighting::StraightThrough, Weighting::Gumbel, Weighting::GumbelHard] {
        let score = ScoreConfig::Additive { hidden: 5 };
        let config = MultiHeadConfig { weighting, ..config(score, 4, 2) };
        let parameters = Parameters::new(DType::F64, 1);
        let attention = MultiHeadAttention::new(&parameters, &config).unwrap();
        let (x, random) = (normal(1, &[2, 3, 4 * D]), Random::new(5));
        let mode = Mode::Train(&random);
        let seen = attention.attend(&x, &x, &x, &Mask::none(), mode, Need::WEIGHTS).unwrap();
        let weights = seen.weights.unwrap();
        assert_eq!(weights.shape(), [2, 4, 3, 3]);
        for sum in numbers(&weights.sum(3).unwrap()) {
            assert!((sum - 1.0).abs() < 1e-12, "{weighting:?}: {sum}");
        }
        let gradients = seen.out.square().unwrap().sum_all().unwrap().backward().unwrap();
        for parameter in parameters.all() {
            assert!(gradients.get(&parameter).is_some(), "{weighting:?}: {}", parameter.name());
        }
    }
}

#[test]
fn decoding_step_by_step_gives_the_whole_under_every_score_and_position() {
    for score in scores() {
        for position in [Position::None, Position::Rotary, Position::Alibi, Position::Relative] {
            let config = MultiHeadConfig { position, ..config(score.clone(), 4, 2) };
            let parameters = Parameters::new(DType::F64, 1);
            let attention = MultiHeadAttention::new(&parameters, &config).unwrap();
            drawn(&parameters);
            let x = normal(1, &[2, 4, 4 * D]);
            let whole = attention.forward(&x, &x, &x, &Mask::causal(), Mode::Infer).unwrap();
            let mut cache = KeyValueCache::default();
            let steps: Vec<Tensor> = (0..4)
                .map(|at| {
                    let new = x.narrow(1, at, 1).unwrap();
                    attention.extend(&new, &mut cache, &Mask::causal(), Need::OUTPUT).unwrap().out
                })
                .collect();
            near(&Tensor::cat(&steps, 1).unwrap(), &whole, &format!("{score:?}, {position:?}"));
        }
        let parameters = Parameters::new(DType::F64, 1);
        let attention = MultiHeadAttention::new(&parameters, &config(score, 4, 2)).unwrap();
        let (x, source) = (normal(1, &[2, 3, 4 * D]), normal(2, &[2, 5, 4 * D]));
        let mask = Mask::lengths(&[5, 2]);
        let memory = attention.remember(&source).unwrap();
        let recalled = attention.recall(&x, &memory, &mask, Need::OUTPUT).unwrap().out;
        let attended = attention.forward(&x, &source, &source, &mask, Mode::Infer).unwrap();
        near(&recalled, &attended, "a memory made ready once");
    }
}

#[test]
fn blocks_and_transformers_take_the_score_and_learn_it() {
    let x = normal(1, &[2, 5, 8]);
    for score in scores() {
        let config = TransformerConfig { score, ..TransformerConfig::new(8, 2, 2) };
        let parameters = Parameters::new(DType::F64, 1);
        let encoder = TransformerEncoder::new(&parameters.at("encoder"), &config, 8).unwrap();
        let decoder = TransformerDecoder::new(&parameters.at("decoder"), &config, None, 8, 8);
        let memory = encoder.forward(&x, Some(&[5, 3]), Mode::Infer).unwrap();
        let mask = Mask::lengths(&[5, 3]);
        let out = decoder.unwrap().forward(&x, &memory, &mask, Mode::Infer).unwrap();
        let gradients = out.square().unwrap().sum_all().unwrap().backward().unwrap();
        for parameter in parameters.all() {
            assert!(gradients.get(&parameter).is_some(), "{config:?}: {}", parameter.name());
        }
    }
    let names = |score| {
        let config = BlockConfig { score, width: 8, heads: 2, ..BlockConfig::default() };
        let parameters = Parameters::new(DType::F64, 1);
        EncoderBlock::new(&parameters, &config).unwrap();
        parameters.all().iter().map(|p| p.name().to_string()).collect::<Vec<_>>()
    };
    let own = |name: &String| name.starts_with("self_attn.score.");
    assert!(!names(ScoreConfig::ScaledDot).iter().any(own), "the dot keeps PyTorch's names alone");
    assert_eq!(names(ScoreConfig::LowRank { rank: 2 }).iter().filter(|n| own(n)).count(), 2);
}

#[test]
fn a_score_in_a_configuration_is_read_and_checked() {
    let text = r#"{ "width": 8, "heads": 2, "score": { "additive": { "hidden": 3 } }, "weighting": "sparsemax" }"#;
    let config: TransformerConfig = serde_json::from_str(text).unwrap();
    assert_eq!(config.score, ScoreConfig::Additive { hidden: 3 });
    let written = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<TransformerConfig>(&written).unwrap(), config);
    let none = MultiHeadConfig { score: ScoreConfig::LowRank { rank: 0 }, ..Default::default() };
    let error = MultiHeadAttention::new(&Parameters::new(DType::F32, 1), &none).unwrap_err();
    assert_eq!(error.to_string(), "a low-rank score of rank 0");
    let sample = TransformerConfig { weighting: Weighting::Sample, ..config };
    let error = sample.check().unwrap_err().to_string();
    assert!(error.starts_with("sampling within a block"), "{error}");
}

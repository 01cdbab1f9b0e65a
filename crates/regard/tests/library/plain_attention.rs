//! Self-attention, cross attention and additive attention against their formulas, written out with
//! operations on tensors.

use crate::squash;

use regard::Result;
use regard::layers::{
    AdditiveAttention, CrossAttention, CrossAttentionConfig, SelfAttention, SelfAttentionConfig,
};
use regard::prelude::*;
use regard::tensor::{finite_difference_error, parameter_difference_error};
use squash::Squash;

fn normal(seed: u64, shape: &[usize]) -> Tensor {
    Random::new(seed).normal(shape, 0.0, 1.0, DType::F64).unwrap()
}

#[track_caller]
fn near(a: &Tensor, b: &Tensor) {
    assert_eq!(a.shape(), b.shape());
    let (a, b) = (a.to_vec::<f64>().unwrap(), b.to_vec::<f64>().unwrap());
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() < 1e-12 * b.abs().max(1.0), "{a}, by the formula {b}");
    }
}

/// `[1, 1, N, M]`, or as many leading axes: −∞ above the diagonal.
fn causal(n: usize) -> Tensor {
    let all = (0..n * n).map(|at| if at % n > at / n { f64::NEG_INFINITY } else { 0.0 });
    Tensor::from_vec(all.collect::<Vec<_>>(), &[n, n]).unwrap()
}

#[test]
fn self_attention_is_softmax_of_scaled_products_of_three_projections() {
    for heads in [1, 2] {
        let config = SelfAttentionConfig {
            width: 6,
            heads,
            key_width: 4,
            value_width: 3,
            bias: true,
            ..Default::default()
        };
        let parameters = Parameters::new(DType::F64, 1);
        let attention = SelfAttention::new(&parameters, &config).unwrap();
        for parameter in parameters.all() {
            parameter.set(&normal(9, parameter.tensor().shape())).unwrap();
        }
        let x = normal(1, &[2, 5, 6]);
        let formula = |mask: &Tensor| -> Result<(Tensor, Tensor)> {
            let all = parameters.tensors();
            let of = |name: &str, head: usize, d: usize| {
                let part = |kind: &str| all[&format!("{name}.{kind}")].narrow(0, head * d, d);
                x.linear(&part("weight")?, Some(&part("bias")?))
            };
            let (mut outs, mut weights) = (Vec::new(), Vec::new());
            for head in 0..heads {
                let (q, k) = (of("W_q", head, 4)?, of("W_k", head, 4)?);
                let scores = q.matmul(&k.transpose(1, 2)?)?.scale(0.5)?;
                let p = scores.add(mask)?.softmax(-1)?;
                outs.push(p.matmul(&of("W_v", head, 3)?)?);
                weights.push(p);
            }
            Ok((Tensor::cat(&outs, 2)?, Tensor::stack(&weights, 1)?))
        };
        let zeros = Tensor::zeros(&[5, 5], DType::F64).unwrap();
        for (mask, added) in [(Mask::none(), zeros), (Mask::causal(), causal(5))] {
            let (out, weights) = formula(&added).unwrap();
            let seen = attention.attend(&x, &mask, Mode::Infer, Need::WEIGHTS).unwrap();
            near(&seen.out, &out);
            near(&seen.weights.unwrap(), &weights);
            // Without a batch.
            let one = x.select(0, 1).unwrap();
            let seen = attention.attend(&one, &mask, Mode::Infer, Need::WEIGHTS).unwrap();
            near(&seen.out, &out.select(0, 1).unwrap());
            near(&seen.weights.unwrap(), &weights.select(0, 1).unwrap());
        }
    }
}

#[test]
fn cross_attention_asks_one_sequence_and_reads_another() {
    let config = CrossAttentionConfig {
        width: 6,
        memory_width: 7,
        heads: 2,
        key_width: 4,
        value_width: 3,
        ..Default::default()
    };
    let parameters = Parameters::new(DType::F64, 1);
    let attention = CrossAttention::new(&parameters, &config).unwrap();
    let (x, memory) = (normal(1, &[2, 3, 6]), normal(2, &[2, 5, 7]));
    let seen =
        attention.attend(&x, &memory, &Mask::lengths(&[5, 4]), Mode::Infer, Need::WEIGHTS).unwrap();
    let all = parameters.tensors();
    let padding = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, f64::NEG_INFINITY];
    let padding = Tensor::from_vec(padding.to_vec(), &[2, 1, 5]).unwrap();
    let mut outs = Vec::new();
    for head in 0..2 {
        let of = |x: &Tensor, name: &str, d: usize| {
            x.linear(&all[name].narrow(0, head * d, d).unwrap(), None).unwrap()
        };
        let (q, k) = (of(&x, "W_q.weight", 4), of(&memory, "W_k.weight", 4));
        let scores = q.matmul(&k.transpose(1, 2).unwrap()).unwrap().scale(0.5).unwrap();
        let p = scores.add(&padding).unwrap().softmax(-1).unwrap();
        outs.push(p.matmul(&of(&memory, "W_v.weight", 3)).unwrap());
        near(&seen.weights.as_ref().unwrap().select(1, head).unwrap(), &p);
    }
    near(&seen.out, &Tensor::cat(&outs, 2).unwrap());
}

#[test]
fn additive_attention_is_bahdanaus_formula() {
    let parameters = Parameters::new(DType::F64, 1);
    let attention = AdditiveAttention::new(&parameters, 3, 4, 5).unwrap();
    let (q, k, v) = (normal(1, &[2, 3, 3]), normal(2, &[2, 6, 4]), normal(3, &[2, 6, 2]));
    let all = parameters.tensors();
    // w · tanh(W_q q + W_k k), for all pairs [B, Nq, Nk, hidden].
    let a = q.linear(&all["W_q.weight"], None).unwrap().unsqueeze(2).unwrap();
    let b = k.linear(&all["W_k.weight"], None).unwrap().unsqueeze(1).unwrap();
    let bent = a.add(&b).unwrap().activate(Activation::Tanh).unwrap();
    let scores = bent.linear(&all["w_v.weight"], None).unwrap().squeeze(3).unwrap();
    let p = scores.softmax(-1).unwrap();
    let seen = attention.attend(&q, &k, &v, &Mask::none(), Mode::Infer, Need::WEIGHTS).unwrap();
    near(&seen.weights.unwrap(), &p);
    near(&seen.out, &p.matmul(&v).unwrap());
}

#[test]
fn they_learn_under_any_score() {
    for score in [
        ScoreConfig::ScaledDot,
        ScoreConfig::Additive { hidden: 3 },
        ScoreConfig::Gaussian { inverse_width: 0.7, learned: true, per_feature: true },
        ScoreConfig::own(Squash, &[0.5, -0.2]),
    ] {
        let parameters = Parameters::new(DType::F64, 1);
        let config = SelfAttentionConfig {
            width: 3,
            heads: 2,
            key_width: 2,
            value_width: 3,
            score,
            ..Default::default()
        };
        let attention = SelfAttention::new(&parameters, &config).unwrap();
        let x = [normal(1, &[2, 4, 3])];
        let run = |x: &[Tensor]| attention.forward(&x[0], &Mask::causal(), Mode::Infer);
        assert!(finite_difference_error(&x, run).unwrap() < 1e-6, "{config:?}");
        let error = parameter_difference_error(&parameters.all(), || run(&x)).unwrap();
        assert!(error < 1e-6, "{config:?}: {error}");
    }
}

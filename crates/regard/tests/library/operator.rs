//! The operator on the tape: its gradients, and what it returns.

use crate::squash;

use regard::Result;
use regard::attention::{Attended, Dropout, Edges};
use regard::prelude::*;
use regard::tensor::finite_difference_error;
use squash::Squash;
use std::sync::Arc;

fn normal(seed: u64, shape: &[usize]) -> Tensor {
    Random::new(seed).normal(shape, 0.0, 1.0, DType::F64).unwrap()
}

#[track_caller]
fn check(inputs: &[Tensor], f: impl Fn(&[Tensor]) -> Result<Tensor>) {
    let error = finite_difference_error(inputs, f).unwrap();
    assert!(error < 1e-6, "gradients and finite differences differ by {error}");
}

fn qkv() -> Vec<Tensor> {
    vec![normal(1, &[2, 4, 3, 5]), normal(2, &[2, 2, 6, 5]), normal(3, &[2, 2, 6, 4])]
}

#[test]
fn every_input_gets_its_gradient_under_every_soft_normalizer() {
    let normalizers = [
        Normalizer::Softmax,
        Normalizer::Sparsemax,
        Normalizer::Entmax15,
        Normalizer::Sigmoid,
        Normalizer::None,
    ];
    for normalizer in normalizers {
        let dropout = Some(Dropout { p: 0.3, seed: 4 });
        let dot = Attention { normalizer, dropout, ..Attention::new(Score::ScaledDot) };
        check(&qkv(), |x| dot.forward(&x[0], &x[1], &x[2], &Mask::none()));
        check(&qkv(), |x| {
            Ok(dot.attend(&x[0], &x[1], &x[2], &Mask::none(), Need::WEIGHTS)?.weights.unwrap())
        });
        check(&qkv(), |x| {
            let attended = dot.attend(&x[0], &x[1], &x[2], &Mask::none(), Need::WEIGHTS)?;
            let both = attended.out.sum(-1)?.mul(&attended.weights.unwrap().square()?.sum(-1)?)?;
            Ok(both)
        });
    }
}

#[test]
fn the_additive_vector_and_every_bias_get_theirs() {
    let mut inputs = qkv();
    inputs.extend([
        normal(4, &[4, 5]),
        normal(5, &[2, 6]),
        normal(6, &[4, 3, 1]),
        normal(7, &[4, 5]),
    ]);
    check(&inputs, |x| {
        let attention = Attention {
            bias: Bias {
                key: Some(x[4].clone()),
                full: Some(x[5].clone()),
                relative: Some(x[6].clone()),
                alibi: Some(vec![0.1, 0.2, 0.3, 0.4]),
            },
            normalizer: Normalizer::Sigmoid,
            ..Attention::new(Score::Additive { activation: Activation::Tanh, w: x[3].clone() })
        };
        let mask = Mask { causal: true, ..Mask::lengths(&[6, 4]) };
        attention.forward(&x[0], &x[1], &x[2], &mask)
    });
}

#[test]
fn heads_split_off_a_projection_are_read_and_written_where_they_lie() {
    let inputs = [normal(1, &[2, 3, 20]), normal(2, &[2, 6, 20]), normal(3, &[2, 6, 20])];
    let attention = Attention::new(Score::ScaledDot);
    let heads = |x: &Tensor| x.reshape(&[2, x.shape()[1], 4, 5])?.transpose(1, 2);
    check(&inputs, |x| {
        attention.forward(&heads(&x[0])?, &heads(&x[1])?, &heads(&x[2])?, &Mask::none())
    });
    let [q, k, v] = inputs.each_ref().map(|x| heads(x).unwrap());
    let out = attention.forward(&q, &k, &v, &Mask::none()).unwrap();
    assert!(out.as_slice::<f64>("out").is_err(), "the output lies as the queries do");
    let plain = |x: &Tensor| x.contiguous().unwrap();
    let same = attention.forward(&plain(&q), &plain(&k), &plain(&v), &Mask::none()).unwrap();
    assert_eq!(out.to_vec::<f64>().unwrap(), same.to_vec::<f64>().unwrap());
}

#[test]
fn hard_attention_returns_its_choice_and_trains_through_its_log_probability() {
    for normalizer in [Normalizer::Argmax, Normalizer::Sample { seed: 3 }] {
        let hard = Attention { normalizer, ..Attention::new(Score::ScaledDot) };
        check(&qkv()[..2], |x| {
            let attended =
                hard.attend(&x[0], &x[1], &normal(3, &[2, 2, 6, 4]), &Mask::none(), Need::OUTPUT)?;
            Ok(attended.log_prob.unwrap())
        });
        check(&qkv()[2..], |x| {
            hard.forward(&normal(1, &[2, 4, 3, 5]), &normal(2, &[2, 2, 6, 5]), &x[0], &Mask::none())
        });
        let attended =
            hard.attend(&qkv()[0], &qkv()[1], &qkv()[2], &Mask::none(), Need::WEIGHTS).unwrap();
        let index = attended.index.unwrap().to_vec::<i64>().unwrap();
        let weights = attended.weights.unwrap().to_vec::<f64>().unwrap();
        for (row, &chosen) in index.iter().enumerate() {
            assert_eq!(weights[row * 6 + chosen as usize], 1.0);
        }
    }
}

#[test]
fn masks_by_lengths_windows_segments_and_edges_reach_the_kernels() {
    let x = normal(1, &[1, 4, 3]);
    let weights = |mask: Mask| {
        let attention = Attention::new(Score::ScaledDot);
        let weights = attention.attend(&x, &x, &x, &mask, Need::WEIGHTS).unwrap().weights.unwrap();
        let weights = weights.to_vec::<f64>().unwrap();
        weights.iter().map(|&w| u8::from(w > 0.0)).collect::<Vec<_>>()
    };
    let edges = Arc::new(Edges::new(4, 4, &[(0, 1), (1, 1), (3, 0), (3, 2)]).unwrap());
    let dense = Tensor::from_bools(&[true, false, true, true], &[4]).unwrap();
    let segments = regard::attention::Segments { q: vec![0, 0, 1, 1], k: vec![0, 0, 1, 1] };
    assert_eq!(weights(Mask::causal()), [1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1]);
    assert_eq!(weights(Mask::within(1)), [1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1]);
    assert_eq!(weights(Mask::lengths(&[1])), [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(weights(Mask::edges(edges)), [0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0]);
    assert_eq!(
        weights(Mask { dense: Some(dense), ..Mask::default() }),
        [1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1]
    );
    assert_eq!(
        weights(Mask { segments: Some(segments), ..Mask::default() }),
        [1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1]
    );
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let x = |shape: &[usize]| Tensor::zeros(shape, DType::F32).unwrap();
    let attention = Attention::new(Score::ScaledDot);
    let error = attention
        .forward(&x(&[2, 3, 4]), &x(&[2, 5, 6]), &x(&[2, 5, 4]), &Mask::none())
        .unwrap_err();
    assert_eq!(error.to_string(), "k has head width 6, q has 4; the dot score needs them equal");
    let (q, k) = (x(&[1, 3, 4]), x(&[1, 5, 4]));
    let error = attention.forward(&q, &k, &k, &Mask::lengths(&[9])).unwrap_err();
    assert_eq!(error.to_string(), "key_lengths[0] is 9, k has only 5 rows");
}

#[test]
fn the_log_sum_exp_is_given_where_it_is_needed_whatever_the_normalizer() {
    let x = qkv();
    let scores = x[0].detach().to_vec::<f64>().unwrap();
    let keys = x[1].to_vec::<f64>().unwrap();
    let mut expected = Vec::new();
    for row in 0..2 * 4 * 3 {
        let (b, h) = (row / 12, row / 3 % 4);
        let score = |j: usize| {
            let key = &keys[((b * 2 + h / 2) * 6 + j) * 5..][..5];
            let dot: f64 = scores[row * 5..][..5].iter().zip(key).map(|(q, k)| q * k).sum();
            dot / 5f64.sqrt()
        };
        expected.push((0..6).map(|j| score(j).exp()).sum::<f64>().ln());
    }
    for normalizer in [
        Normalizer::Softmax,
        Normalizer::Sparsemax,
        Normalizer::Entmax15,
        Normalizer::Sigmoid,
        Normalizer::None,
        Normalizer::Argmax,
    ] {
        let attention = Attention { normalizer, ..Attention::new(Score::ScaledDot) };
        let attended = attention.attend(&x[0], &x[1], &x[2], &Mask::none(), Need::LSE).unwrap();
        let lse = attended.lse.unwrap();
        assert_eq!(lse.shape(), [2, 4, 3]);
        for (a, b) in lse.to_vec::<f64>().unwrap().iter().zip(&expected) {
            assert!((a - b).abs() < 1e-12, "{normalizer:?}: {a}, by the formula {b}");
        }
        let plain = attention.attend(&x[0], &x[1], &x[2], &Mask::none(), Need::WEIGHTS).unwrap();
        assert!(plain.lse.is_none() && plain.weights.is_some());
    }
}

#[test]
fn the_numbers_of_ones_own_score_get_their_gradient_for_all_heads_and_for_each() {
    for shape in [&[2][..], &[4, 2]] {
        let mut inputs = qkv();
        inputs.push(normal(4, shape));
        for mask in [Mask::none(), Mask::edges(Arc::new(edges()))] {
            check(&inputs, |x| {
                let attention = Attention::new(Score::own(Squash, x[3].clone()));
                attention.forward(&x[0], &x[1], &x[2], &mask)
            });
        }
    }
    let three = Attention::new(Score::own(Squash, normal(4, &[3])));
    let x = qkv();
    let error = three.forward(&x[0], &x[1], &x[2], &Mask::none()).unwrap_err().to_string();
    assert_eq!(error, "the parameters of the own score are 3; it needs [2] or [4, 2]");
}

fn edges() -> Edges {
    Edges::new(3, 6, &[(0, 1), (0, 4), (1, 1), (2, 0), (2, 2), (2, 5)]).unwrap()
}

#[test]
fn types_that_differ_are_refused_saying_which_is_which() {
    let attention = Attention::new(Score::ScaledDot);
    let x = Tensor::zeros(&[3, 4], DType::F32).unwrap();
    let q = x.to_dtype(DType::F64).unwrap();
    let error = attention.forward(&q, &x, &x, &Mask::none()).unwrap_err().to_string();
    assert_eq!(error, "attention: q is f64, k f32 and v f32; they want one type");
    let w = Tensor::zeros(&[4], DType::F64).unwrap();
    let additive = Attention::new(Score::Additive { activation: Activation::Tanh, w });
    let error = additive.forward(&x, &x, &x, &Mask::none()).unwrap_err().to_string();
    assert_eq!(error, "attention: w is f64, q is f32; they want one type");
    let parameters = Parameters::new(DType::F32, 1);
    let heads = MultiHeadAttention::new(&parameters, &MultiHeadConfig::new(4, 2)).unwrap();
    let q = q.unsqueeze(0).unwrap();
    let error = heads.forward(&q, &q, &q, &Mask::none(), Mode::Infer).unwrap_err().to_string();
    assert_eq!(
        error,
        "multi-head attention: q is f64, the weight is f32; they want one type, and to_dtype converts"
    );
    let linear = Linear::new(&parameters.at("linear"), 4, 2, true).unwrap();
    assert_eq!(
        linear.forward(&q).unwrap_err().to_string(),
        "linear: x is f64, the weight is f32; they want one type, and to_dtype converts"
    );
}

/// Argmax without its log-probability: the same keys and values, however they are masked and scored.
#[test]
fn a_choice_is_the_same_with_its_probability_and_without() {
    let random = Random::new(11);
    let mut tried = 0;
    for (nq, nk) in [(1, 1), (1, 300), (5, 97), (70, 200), (3, 0)] {
        let [q, k, v] = [(nq, 6), (nk, 6), (nk, 5)]
            .map(|(n, d)| random.normal(&[2, 3, n, d], 0.0, 1.0, DType::F32).unwrap());
        // Every third key is the first again: of equal scores the first is chosen.
        let k = match nk {
            0 => k,
            _ => {
                let rows: Vec<i64> =
                    (0..nk).map(|j| if j % 3 == 2 { 0 } else { j as i64 }).collect();
                let rows = Tensor::from_vec(rows, &[nk]).unwrap();
                let all: Vec<Tensor> = (0..6)
                    .map(|at| k.reshape(&[6, nk, 6]).unwrap().select(0, at).unwrap())
                    .map(|head| head.contiguous().unwrap().rows(&rows).unwrap())
                    .collect();
                Tensor::stack(&all, 0).unwrap().reshape(&[2, 3, nk, 6]).unwrap()
            }
        };
        for mask in [Mask::none(), Mask::causal(), Mask::within(3), Mask::lengths(&[nk, nk / 2])] {
            for score in [Score::ScaledDot, Score::dot()] {
                let hard =
                    Attention { normalizer: Normalizer::Argmax, ..Attention::new(score.clone()) };
                let plain = hard.attend(&q, &k, &v, &mask, Need::OUTPUT).unwrap();
                let likely = hard.attend(&q, &k, &v, &mask, Need::WEIGHTS).unwrap();
                assert!(plain.log_prob.is_none() && likely.log_prob.is_some());
                let index = |x: &Attended| x.index.as_ref().unwrap().to_vec::<i64>().unwrap();
                assert_eq!(index(&plain), index(&likely));
                let out = |x: &Attended| x.out.to_vec::<f32>().unwrap();
                assert_eq!(out(&plain), out(&likely));
                // The weights are those of the one key, the first of the largest scores.
                let weights = likely.weights.unwrap().to_vec::<f32>().unwrap();
                let soft = Attention::new(score);
                let soft = soft.attend(&q, &k, &v, &mask, Need::WEIGHTS).unwrap();
                let soft = soft.weights.unwrap().to_vec::<f32>().unwrap();
                for (row, &at) in index(&plain).iter().enumerate() {
                    let (hard, soft) = (&weights[row * nk..][..nk], &soft[row * nk..][..nk]);
                    let largest = soft.iter().copied().fold(0.0, f32::max);
                    let first = soft.iter().position(|&w| w == largest && w > 0.0);
                    assert_eq!(at, first.map_or(-1, |at| at as i64));
                    assert!(hard.iter().enumerate().all(|(j, &w)| (w == 1.0) == (j as i64 == at)));
                }
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 5 * 4 * 2);
}

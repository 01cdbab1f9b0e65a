//! The operator on the tape: its gradients, and what it returns.
#![allow(clippy::unwrap_used)]

use regard::Result;
use regard::prelude::*;
use regard::tensor::finite_difference_error;
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
        check(&qkv(), |x| dot.forward(&x[0], &x[1], &x[2]));
        check(&qkv(), |x| Ok(dot.attend(&x[0], &x[1], &x[2], true)?.weights.unwrap()));
        check(&qkv(), |x| {
            let attended = dot.attend(&x[0], &x[1], &x[2], true)?;
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
            mask: Mask { causal: true, ..Mask::lengths(&[6, 4]) },
            ..Attention::new(Score::Additive { activation: Activation::Tanh, w: x[3].clone() })
        };
        attention.forward(&x[0], &x[1], &x[2])
    });
}

#[test]
fn heads_split_off_a_projection_are_read_and_written_where_they_lie() {
    let inputs = [normal(1, &[2, 3, 20]), normal(2, &[2, 6, 20]), normal(3, &[2, 6, 20])];
    let attention = Attention::new(Score::ScaledDot);
    let heads = |x: &Tensor| x.reshape(&[2, x.shape()[1], 4, 5])?.transpose(1, 2);
    check(&inputs, |x| attention.forward(&heads(&x[0])?, &heads(&x[1])?, &heads(&x[2])?));
    let [q, k, v] = inputs.each_ref().map(|x| heads(x).unwrap());
    let out = attention.forward(&q, &k, &v).unwrap();
    assert!(out.as_slice::<f64>("out").is_err(), "the output lies as the queries do");
    let plain = |x: &Tensor| x.contiguous().unwrap();
    let same = attention.forward(&plain(&q), &plain(&k), &plain(&v)).unwrap();
    assert_eq!(out.to_vec::<f64>().unwrap(), same.to_vec::<f64>().unwrap());
}

#[test]
fn hard_attention_returns_its_choice_and_trains_through_its_log_probability() {
    for normalizer in [Normalizer::Argmax, Normalizer::Sample { seed: 3 }] {
        let hard = Attention { normalizer, ..Attention::new(Score::ScaledDot) };
        check(&qkv()[..2], |x| {
            let attended = hard.attend(&x[0], &x[1], &normal(3, &[2, 2, 6, 4]), false)?;
            Ok(attended.log_prob.unwrap())
        });
        check(&qkv()[2..], |x| {
            hard.forward(&normal(1, &[2, 4, 3, 5]), &normal(2, &[2, 2, 6, 5]), &x[0])
        });
        let attended = hard.attend(&qkv()[0], &qkv()[1], &qkv()[2], true).unwrap();
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
        let attention = Attention { mask, ..Attention::new(Score::ScaledDot) };
        let weights = attention.attend(&x, &x, &x, true).unwrap().weights.unwrap();
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
    let error = attention.forward(&x(&[2, 3, 4]), &x(&[2, 5, 6]), &x(&[2, 5, 4])).unwrap_err();
    assert_eq!(error.to_string(), "k has head width 6, q has 4; the dot score needs them equal");
    let masked = Attention { mask: Mask::lengths(&[9]), ..attention };
    let error = masked.forward(&x(&[1, 3, 4]), &x(&[1, 5, 4]), &x(&[1, 5, 4])).unwrap_err();
    assert_eq!(error.to_string(), "key_lengths[0] is 9, k has only 5 rows");
}

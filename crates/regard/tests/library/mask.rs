//! Masks joined, and the constructors that one guesses.

use regard::attention::{Edges, Segments, Window};
use regard::layers::{RmsNorm, SwiGlu};
use regard::prelude::*;
use std::sync::Arc;

/// Which pairs a mask allows: weights above 0 of scores that are all alike, `[B, N, N]`.
fn allowed(mask: &Mask) -> Vec<bool> {
    let x = Tensor::zeros(&[2, 4, 1], DType::F64).unwrap();
    let attention = Attention::new(Score::dot());
    let weights = attention.attend(&x, &x, &x, mask, Need::WEIGHTS).unwrap().weights.unwrap();
    weights.to_vec::<f64>().unwrap().iter().map(|&w| w > 0.0).collect()
}

fn edges(pairs: &[(usize, usize)]) -> Mask {
    Mask::edges(Edges::new(4, 4, pairs).unwrap().into())
}

fn segments(of: [i64; 8]) -> Mask {
    Mask { segments: Some(Segments { q: of.to_vec(), k: of.to_vec() }), ..Mask::default() }
}

#[test]
fn two_masks_together_allow_what_both_allow() {
    let bools = |f: &dyn Fn(usize) -> bool, shape: &[usize]| {
        let truths: Vec<bool> = (0..shape.iter().product()).map(f).collect();
        Mask::dense(Tensor::from_bools(&truths, shape).unwrap())
    };
    let all = [
        Mask::none(),
        Mask::causal(),
        Mask::within(1),
        Mask { window: Some(Window { left: 0, right: 2 }), ..Mask::default() },
        Mask::lengths(&[4, 2]),
        Mask::lengths(&[3, 3]),
        segments([0, 0, 1, 1, 0, 1, 1, 1]),
        segments([5, 6, 6, 5, 7, 7, 8, 8]),
        bools(&|i| i % 3 != 0, &[4, 4]),
        bools(&|i| i % 5 != 1, &[2, 1, 4, 4]),
        bools(&|i| i != 2, &[4]),
        edges(&[(0, 0), (0, 2), (1, 1), (2, 0), (2, 3), (3, 3)]),
        edges(&[(0, 0), (1, 0), (1, 1), (2, 3), (3, 1), (3, 2), (3, 3)]),
    ];
    let mut count = 0;
    for a in &all {
        for b in &all {
            let together = allowed(&a.and(b).unwrap());
            let each = allowed(a).into_iter().zip(allowed(b)).map(|(a, b)| a && b);
            assert_eq!(together, each.collect::<Vec<_>>(), "{a:?} and {b:?}");
            count += 1;
        }
    }
    assert_eq!(count, 13 * 13);
    // Three at once, in either order.
    let (a, b, c) = (&all[1], &all[4], &all[9]);
    let one = a.and(b).unwrap().and(c).unwrap();
    let other = a.and(&b.and(c).unwrap()).unwrap();
    assert_eq!(allowed(&one), allowed(&other));
}

#[test]
fn masks_of_different_sizes_are_not_joined() {
    let said = |a: &Mask, b: &Mask| a.and(b).unwrap_err().to_string();
    assert_eq!(
        said(&Mask::lengths(&[1]), &Mask::lengths(&[1, 2])),
        "one mask has 1 lengths, the other 2"
    );
    let short = Mask { segments: Some(Segments { q: vec![0], k: vec![0] }), ..Mask::default() };
    assert_eq!(said(&short, &segments([0; 8])), "one mask has 1 queries in segments, the other 8");
    let small = Mask::edges(Edges::new(2, 4, &[(0, 1)]).unwrap().into());
    assert_eq!(said(&small, &edges(&[(0, 1)])), "one mask has 2 queries in edges, the other 4");
    let twice = Mask::edges(Arc::new(Edges::repeated(4, 4, &[(0, 1), (0, 1)]).unwrap()));
    assert!(said(&twice, &edges(&[(0, 1)])).starts_with("edges that are there several times"));
    let bools = |shape: &[usize]| {
        Mask::dense(Tensor::from_bools(&vec![true; shape.iter().product()], shape).unwrap())
    };
    assert!(said(&bools(&[3]), &bools(&[4])).contains("[3]"));
    let numbers = Mask::dense(Tensor::zeros(&[4], DType::F32).unwrap());
    assert!(said(&numbers, &bools(&[4])).starts_with("the mask is f32; it wants truths"));
}

#[test]
fn an_encoder_sees_what_its_mask_its_lengths_and_its_configuration_allow() {
    let x = Random::new(2).normal(&[2, 4, 8], 0.0, 1.0, DType::F64).unwrap();
    let mut count = 0;
    for (window, causal) in [(None, false), (Some(1), false), (None, true), (Some(2), true)] {
        for lengths in [None, Some(&[4, 2][..])] {
            for mask in [Mask::none(), Mask::within(1), segments([0, 0, 1, 1, 0, 1, 1, 1])] {
                let config =
                    TransformerConfig { window, causal, ..TransformerConfig::new(8, 2, 1) };
                let parameters = Parameters::new(DType::F64, 1);
                let encoder = TransformerEncoder::new(&parameters, &config, 8).unwrap();
                let encoded =
                    encoder.encode_masked(&x, lengths, &mask, Mode::Infer, Need::WEIGHTS).unwrap();
                let own = window.map_or_else(Mask::none, Mask::within);
                let own = Mask { causal, ..own };
                let padding = lengths.map_or_else(Mask::none, Mask::lengths);
                let wanted = allowed(&own.and(&padding).unwrap().and(&mask).unwrap());
                for head in 0..2 {
                    let weights = encoded.weights[0].select(1, head).unwrap();
                    let seen: Vec<bool> =
                        weights.to_vec::<f64>().unwrap().iter().map(|&w| w > 0.0).collect();
                    assert_eq!(seen, wanted);
                }
                count += 1;
            }
        }
    }
    assert_eq!(count, 24);
}

#[test]
fn gradients_of_a_gated_layer_and_its_norm_agree_with_finite_differences() {
    let parameters = Parameters::new(DType::F64, 1);
    let norm = RmsNorm::new(&parameters.at("norm"), 6).unwrap().with_eps(1e-3);
    let feed = SwiGlu::new(&parameters.at("mlp"), 6, 10, 0.0).unwrap();
    let x = Random::new(1).normal(&[2, 3, 6], 0.0, 1.0, DType::F64).unwrap();
    let f = |x: &Tensor| feed.forward(&norm.forward(x)?, Mode::Infer)?.square()?.sum_all();
    let error = regard::tensor::finite_difference_error(std::slice::from_ref(&x), |x| f(&x[0]));
    assert!(error.unwrap() < 1e-6);
    let error = regard::tensor::parameter_difference_error(&parameters.all(), || f(&x));
    assert!(error.unwrap() < 1e-6);
    assert_eq!(parameters.numel(), 6 + 3 * 6 * 10);
}

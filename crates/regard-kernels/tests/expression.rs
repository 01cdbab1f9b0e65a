//! Scores written as text: what is refused and where, what they compute, forward and backward.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

mod case;

use case::*;
use regard_kernels::Normalizer;

/// Every mask, bias and normalizer with one expression; the sizes go round while the choices do.
fn every_combination_with(score: ScoreKind) {
    let mut turn = 0;
    for mask in masks() {
        for bias in biases() {
            for normalizer in NORMALIZERS {
                turn += 1;
                let lengths = [1, 2, 3, 17, 63, 64, 65];
                let widths = [1, 3, 8, 31, 17];
                let (hq, hk) = [(1, 1), (2, 2), (4, 2), (3, 1)][turn % 4];
                keeps_the_rule(Case {
                    b: 1 + turn % 2,
                    hq,
                    hk,
                    nq: lengths[turn % 7],
                    nk: lengths[turn * 3 % 5 + 2],
                    d: widths[turn % 5],
                    dv: widths[turn * 2 % 5],
                    score,
                    mask,
                    bias,
                    normalizer,
                    dropout: (turn % 3 == 0).then_some(0.25),
                    arriving: turn % 11 < 5,
                    offset: (turn % 5 == 0).then_some(2),
                    w_per_head: turn % 2 == 0,
                    strided: turn % 2 == 1,
                    seed: turn as u64,
                    ..Case::default()
                });
            }
        }
    }
}

#[test]
fn a_weighted_distance_keeps_the_rule_in_every_combination() {
    every_combination_with(ScoreKind::Expression(0));
}

#[test]
fn a_cosine_with_a_temperature_keeps_the_rule_in_every_combination() {
    every_combination_with(ScoreKind::Expression(1));
}

#[test]
fn softplus_and_magnitudes_keep_the_rule_in_every_combination() {
    every_combination_with(ScoreKind::Expression(2));
}

#[test]
fn an_additive_expression_keeps_the_rule_in_every_combination() {
    every_combination_with(ScoreKind::Expression(3));
}

#[test]
fn expressions_with_kernels_of_their_own_keep_the_rule_in_every_combination() {
    for n in 4..EXPRESSIONS.len() {
        every_combination_with(ScoreKind::Expression(n));
    }
}

#[test]
fn double_precision_agrees_with_the_reference_to_a_few_roundings() {
    let mut turn = 0;
    for n in 0..EXPRESSIONS.len() {
        for mask in masks() {
            for normalizer in NORMALIZERS {
                turn += 1;
                agrees_in_double(Case {
                    b: 2,
                    hq: 2,
                    nq: [3, 33, 70][turn % 3],
                    nk: [5, 66][turn % 2],
                    d: [3, 9, 17][turn % 3],
                    dv: [8, 5][turn % 2],
                    score: ScoreKind::Expression(n),
                    mask,
                    bias: biases()[turn % 8],
                    normalizer,
                    dropout: (turn % 3 == 0).then_some(0.25),
                    arriving: turn % 11 < 5,
                    w_per_head: turn % 4 < 2,
                    strided: turn % 2 == 0,
                    seed: turn as u64,
                    ..Case::default()
                });
            }
        }
    }
}

#[test]
fn long_keys_and_long_queries_are_cut_and_added_up_within_the_rule() {
    for n in 0..4 {
        for (nq, nk) in [(700, 600), (3, 1500)] {
            for normalizer in [Normalizer::Softmax, Normalizer::Sparsemax] {
                keeps_the_rule(Case {
                    hq: 2,
                    nq,
                    nk,
                    d: 8,
                    dv: 5,
                    score: ScoreKind::Expression(n),
                    normalizer,
                    dropout: Some(0.5),
                    w_per_head: n % 2 == 0,
                    ..Case::default()
                });
            }
        }
    }
}

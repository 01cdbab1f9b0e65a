//! The fused kernels against the reference, by the twofold rule, on every instruction set.

mod case;

use case::*;
use regard_kernels::{Activation, Normalizer};

const LENGTHS: [usize; 9] = [1, 2, 3, 17, 63, 64, 65, 129, 257];
const WIDTHS: [usize; 9] = [1, 3, 8, 31, 59, 64, 111, 128, 256];

/// Every mask, bias and normalizer with one score; the sizes go round while the choices do.
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
fn dot_scores_keep_the_rule_in_every_combination() {
    every_combination_with(ScoreKind::Dot);
}

#[test]
fn additive_tanh_scores_keep_the_rule_in_every_combination() {
    every_combination_with(ScoreKind::Additive(Activation::Tanh));
}

#[test]
fn additive_leaky_relu_scores_keep_the_rule_in_every_combination() {
    every_combination_with(ScoreKind::Additive(Activation::LeakyRelu { slope: 0.2 }));
}

#[test]
fn additive_relu_scores_keep_the_rule_in_every_combination() {
    every_combination_with(ScoreKind::Additive(Activation::Relu));
}

#[test]
fn additive_gelu_scores_keep_the_rule_in_every_combination() {
    every_combination_with(ScoreKind::Additive(Activation::Gelu));
}

#[test]
fn additive_identity_scores_keep_the_rule_in_every_combination() {
    every_combination_with(ScoreKind::Additive(Activation::Identity));
}

#[test]
fn own_scores_keep_the_rule_in_every_combination() {
    every_combination_with(ScoreKind::Own);
}

#[test]
fn dot_softmax_keeps_the_rule_at_every_length_and_width() {
    for (n, nq) in LENGTHS.into_iter().enumerate() {
        for (m, d) in WIDTHS.into_iter().enumerate() {
            let nk = LENGTHS[(n * 4 + m) % 9];
            let dv = WIDTHS[(m * 2 + n) % 9];
            for causal in [false, true] {
                let mask = MaskKind { causal, ..MaskKind::default() };
                let case =
                    Case { nq, nk, d, dv, mask, seed: (n * 9 + m) as u64, ..Case::default() };
                keeps_the_rule(Case { strided: m % 2 == 0, ..case });
            }
        }
    }
}

#[test]
fn additive_tanh_keeps_the_rule_at_every_length_and_width() {
    for (n, nq) in LENGTHS.into_iter().enumerate() {
        for (m, d) in WIDTHS.into_iter().enumerate() {
            let nk = LENGTHS[(n + m) % 7];
            let dv = WIDTHS[(m * 2 + n) % 9];
            keeps_the_rule(Case {
                nq: nq.min(129),
                nk,
                d,
                dv,
                score: ScoreKind::Additive(Activation::Tanh),
                strided: m % 2 == 1,
                seed: (n * 9 + m) as u64,
                ..Case::default()
            });
        }
    }
}

#[test]
fn additive_tanh_keeps_the_rule_for_small_and_for_large_inputs() {
    // Each magnitude takes another way of computing tanh.
    for (seed, spread) in [1e-3, 0.05, 0.3, 3.0, 8.0, 30.0, 200.0].into_iter().enumerate() {
        for normalizer in [Normalizer::Softmax, Normalizer::None] {
            for d in [1, 16, 31] {
                keeps_the_rule(Case {
                    nq: 33,
                    nk: 65,
                    d,
                    dv: 8,
                    score: ScoreKind::Additive(Activation::Tanh),
                    normalizer,
                    spread,
                    seed: seed as u64,
                    ..Case::default()
                });
            }
        }
    }
}

#[test]
fn logits_of_ten_thousand_keep_the_rule() {
    for normalizer in NORMALIZERS {
        for nq in [2, 33] {
            // Standard deviation 100 each, so scores of ±10⁴ and more.
            let case = Case { nq, nk: 65, d: 8, dv: 8, spread: 100.0, ..Case::default() };
            keeps_the_rule(Case { normalizer, ..case });
            keeps_the_rule(Case { normalizer, arriving: true, ..case });
        }
    }
}

#[test]
fn few_queries_against_a_long_cache_keep_the_rule() {
    for (turn, normalizer) in NORMALIZERS.into_iter().enumerate() {
        for nq in [1, 3, 40] {
            for mask in [
                MaskKind::default(),
                MaskKind { causal: true, ..MaskKind::default() },
                MaskKind { lengths: true, window: Some((900, 0)), ..MaskKind::default() },
            ] {
                keeps_the_rule(Case {
                    b: 1 + turn % 2,
                    hq: 4,
                    hk: 2,
                    nq,
                    nk: 1500 + turn,
                    d: 31,
                    dv: 17,
                    mask,
                    normalizer,
                    dropout: (turn % 2 == 0).then_some(0.1),
                    arriving: nq > 1,
                    seed: turn as u64,
                    ..Case::default()
                });
            }
        }
    }
}

#[test]
fn narrow_heads_on_a_graph_keep_the_rule() {
    // Rows of one register have kernels of their own; the last sizes give a key hundreds of queries.
    let mut turn = 0;
    for score in SCORES {
        for (d, dv) in [(1, 4), (3, 3), (4, 2), (8, 8), (16, 16), (16, 5), (5, 16)] {
            for (nq, nk) in [(40, 50), (7, 200), (300, 3)] {
                turn += 1;
                let case = Case {
                    b: 1 + turn % 2,
                    hq: 1 + turn % 3,
                    hk: 1 + turn % 3,
                    nq,
                    nk,
                    d,
                    dv,
                    score,
                    mask: MaskKind { edges: true, ..MaskKind::default() },
                    w_per_head: turn % 2 == 0,
                    strided: turn % 4 < 2,
                    seed: turn as u64,
                    ..Case::default()
                };
                keeps_the_rule(case);
                agrees_in_double(case);
                keeps_the_rule(Case { dropout: Some(0.3), ..case });
            }
        }
    }
}

#[test]
fn long_keys_and_long_queries_are_cut_and_added_up_within_the_rule() {
    let score = ScoreKind::Additive(Activation::LeakyRelu { slope: 0.2 });
    for (nq, nk, score) in
        [(700, 600, ScoreKind::Dot), (1100, 30, ScoreKind::Dot), (300, 700, score)]
    {
        for normalizer in [Normalizer::Softmax, Normalizer::Sparsemax, Normalizer::Argmax] {
            keeps_the_rule(Case {
                nq,
                nk,
                d: 8,
                dv: 5,
                score,
                normalizer,
                bias: BiasKind {
                    key: Some([true, true]),
                    relative: Some((3, false)),
                    ..BiasKind::default()
                },
                dropout: Some(0.5),
                arriving: nk > 30,
                ..Case::default()
            });
        }
    }
}

#[test]
fn double_precision_agrees_with_the_reference_to_a_few_roundings() {
    let mut turn = 0;
    for score in SCORES {
        for mask in masks() {
            for normalizer in NORMALIZERS {
                turn += 1;
                let bias = biases()[turn % 8];
                agrees_in_double(Case {
                    b: 2,
                    hq: 2,
                    nq: [3, 33, 70][turn % 3],
                    nk: [5, 66][turn % 2],
                    d: [3, 9, 17][turn % 3],
                    dv: [8, 5][turn % 2],
                    score,
                    mask,
                    bias,
                    normalizer,
                    dropout: (turn % 3 == 0).then_some(0.25),
                    arriving: turn % 11 < 5,
                    strided: turn % 2 == 0,
                    seed: turn as u64,
                    ..Case::default()
                });
            }
        }
    }
}

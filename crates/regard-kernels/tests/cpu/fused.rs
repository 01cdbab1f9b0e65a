//! The fused kernels against the reference, by the twofold rule, on every instruction set.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use crate::case::*;
use regard_kernels::cpu::Path;
use regard_kernels::{Activation, Normalizer};

const LENGTHS: [usize; 9] = [1, 2, 3, 17, 63, 64, 65, 129, 257];
const WIDTHS: [usize; 9] = [1, 3, 8, 31, 59, 64, 111, 128, 256];

/// Queries so few that they go by lists on every instruction set, and so many that they go by tiles.
const FEW: [usize; 2] = [1, 2];
const MANY: [usize; 6] = [9, 12, 16, 17, 33, 65];

/// A case with the given choices; sizes and all else are drawn, whatever the choices are.
fn drawn(choices: Case, queries: &[usize], seed: u64) -> Case {
    let mut draws = Draws::new(seed);
    let lengths = [1, 2, 3, 9, 17, 33, 64, 65, 97];
    let widths = [1, 3, 8, 17, 31];
    let (hq, hk) = draws.of(&[(1, 1), (2, 2), (4, 2), (3, 1)]);
    Case {
        b: 1 + draws.below(2),
        hq,
        hk,
        nq: draws.of(queries),
        nk: draws.of(&lengths),
        d: draws.of(&widths),
        dv: draws.of(&widths),
        dropout: draws.happens(0.3).then_some(0.25),
        // Without a gradient of its log-probability a hard choice has no backward to walk.
        arriving: draws.happens(0.5) || choices.normalizer.is_hard(),
        offset: draws.happens(0.2).then_some(2),
        w_per_head: draws.happens(0.5),
        strided: draws.happens(0.5),
        seed,
        ..choices
    }
}

/// Every mask, bias and normalizer with one score, by tiles and by lists: drawn, compared, and
/// counted on every instruction set.
fn every_combination_with(score: ScoreKind) {
    let number = SCORES.iter().position(|&x| x == score).unwrap() as u64;
    let mut seed = number << 32;
    let mut missed = Vec::new();
    for mask in masks() {
        for bias in biases() {
            for normalizer in NORMALIZERS {
                let choices = Case { score, mask, bias, normalizer, ..Case::default() };
                let mut met = Vec::new();
                for queries in [&FEW[..], &MANY[..]] {
                    seed += 1;
                    let case = drawn(choices, queries, seed);
                    let compared = keeps_the_rule(case);
                    let data = case.data::<f32>();
                    met.extend(compared.into_iter().map(|isa| (isa, data.path(isa))));
                }
                for isa in isas() {
                    for path in [Path::Tiles, Path::Lists] {
                        // A graph goes by lists, however many its queries.
                        let reachable = !(mask.edges && path == Path::Tiles);
                        if met.contains(&(isa, path)) != reachable {
                            missed.push((isa, path, mask, bias, normalizer));
                        }
                    }
                }
            }
        }
    }
    assert!(
        missed.is_empty(),
        "{} combinations are not as they should be: {missed:#?}",
        missed.len()
    );
}

/// A test for each score, and one that no score is without.
macro_rules! every_combination {
    ($($name:ident: $at:literal,)*) => {
        $(#[test]
        fn $name() {
            every_combination_with(SCORES[$at]);
        })*

        #[test]
        fn every_score_has_its_combinations_tested() {
            assert_eq!([$($at),*], *(0..SCORES.len()).collect::<Vec<usize>>());
        }
    };
}
every_combination! {
    dot_scores_keep_the_rule_in_every_combination: 0,
    additive_tanh_scores_keep_the_rule_in_every_combination: 1,
    additive_leaky_relu_scores_keep_the_rule_in_every_combination: 2,
    additive_relu_scores_keep_the_rule_in_every_combination: 3,
    additive_gelu_scores_keep_the_rule_in_every_combination: 4,
    additive_identity_scores_keep_the_rule_in_every_combination: 5,
    own_scores_keep_the_rule_in_every_combination: 6,
    expressions_keep_the_rule_in_every_combination: 7,
    expressions_of_norms_keep_the_rule_in_every_combination: 8,
    expressions_of_softplus_keep_the_rule_in_every_combination: 9,
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
    let mut seed = 0;
    let mut met = Vec::new();
    for score in SCORES {
        for mask in masks() {
            for normalizer in NORMALIZERS {
                for queries in [&[1][..], &[5, 33, 70]] {
                    seed += 1;
                    let bias = Draws::new(!seed).of(&biases());
                    let choices = Case { score, mask, bias, normalizer, ..Case::default() };
                    let case = drawn(choices, queries, seed);
                    agrees_in_double(case);
                    let data = case.data::<f64>();
                    met.extend(isas().map(|isa| (data.path(isa), score, mask.edges, normalizer)));
                }
            }
        }
    }
    for (score, normalizer) in SCORES.iter().flat_map(|x| NORMALIZERS.map(|y| (*x, y))) {
        assert!(met.contains(&(Path::Tiles, score, false, normalizer)));
        assert!(met.contains(&(Path::Lists, score, false, normalizer)));
        assert!(met.contains(&(Path::Lists, score, true, normalizer)));
        assert!(!met.contains(&(Path::Tiles, score, true, normalizer)));
    }
}

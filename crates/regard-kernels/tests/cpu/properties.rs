//! Whole specifications drawn at random keep the rule.

use crate::case::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use regard_kernels::Normalizer;

fn axes() -> impl Strategy<Value = [bool; 4]> {
    any::<[bool; 4]>()
}

fn mask() -> impl Strategy<Value = MaskKind> {
    (
        any::<bool>(),
        proptest::option::of((0usize..40, 0usize..40)),
        any::<bool>(),
        any::<bool>(),
        proptest::option::of(axes()),
        proptest::bool::weighted(0.3),
    )
        .prop_map(|(causal, window, lengths, segments, dense, edges)| MaskKind {
            causal,
            window,
            lengths,
            segments,
            dense,
            edges,
        })
}

fn bias() -> impl Strategy<Value = BiasKind> {
    (
        proptest::option::of(any::<[bool; 2]>()),
        proptest::option::of(axes()),
        any::<bool>(),
        proptest::option::of((0usize..6, any::<bool>())),
    )
        .prop_map(|(key, full, alibi, relative)| BiasKind { key, full, alibi, relative })
}

prop_compose! {
    fn case()(
        b in 1usize..3,
        hk in 1usize..4,
        group in 1usize..4,
        nq in 1usize..90,
        nk in 1usize..140,
        d in 1usize..40,
        dv in 1usize..40,
        score in 0..SCORES.len(),
        mask in mask(),
        bias in bias(),
        normalizer in 0..NORMALIZERS.len(),
        dropout in proptest::option::of(0.0f64..0.9),
        offset in proptest::option::of(-20isize..160),
        flags in any::<[bool; 3]>(),
        seed in any::<u64>(),
    ) -> Case {
        let normalizer = match NORMALIZERS[normalizer] {
            Normalizer::Sample { .. } => Normalizer::Sample { seed },
            other => other,
        };
        Case {
            b, hq: hk * group, hk, nq, nk, d, dv, score: SCORES[score], mask, bias, normalizer,
            dropout, offset, arriving: flags[2], w_per_head: flags[0], spread: 1.0,
            strided: flags[1], lean: false, seed,
            arriving_edges: seed % 2 == 0 && mask.edges,
            arriving_lse: seed % 3 == 0 && (normalizer.is_hard() || normalizer == Normalizer::Softmax),
        }
    }
}

/// The same cases every time, so that what was green stays green; `PROPTEST_RNG_SEED` draws others.
fn config() -> ProptestConfig {
    let drawn = ProptestConfig::default();
    let rng_seed = match drawn.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        given => given,
    };
    ProptestConfig { cases: 200, failure_persistence: None, rng_seed, ..drawn }
}

/// A case that was drawn once and broke the rule: a long sum of the parameters' gradients.
#[test]
fn the_parameters_of_ones_own_score_keep_the_rule_over_many_pairs() {
    keeps_the_rule(Case {
        b: 2,
        hq: 6,
        hk: 3,
        nq: 60,
        nk: 130,
        d: 35,
        dv: 10,
        score: ScoreKind::Own,
        mask: MaskKind::default(),
        bias: BiasKind {
            key: Some([false, true]),
            full: Some([false, false, true, false]),
            alibi: true,
            relative: Some((4, false)),
        },
        normalizer: Normalizer::None,
        dropout: Some(0.01656992858182132),
        offset: None,
        arriving: false,
        w_per_head: true,
        spread: 1.0,
        strided: false,
        seed: 13073422567199680982,
        ..Case::default()
    });
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_specification_keeps_the_rule(case in case()) {
        keeps_the_rule(case);
    }
}

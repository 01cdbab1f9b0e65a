//! Whole specifications drawn at random keep the rule.

mod case;

use case::*;
use proptest::prelude::*;
use regard_kernels::Normaliser;

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
        score in 0usize..7,
        mask in mask(),
        bias in bias(),
        normaliser in 0usize..7,
        dropout in proptest::option::of(0.0f64..0.9),
        offset in proptest::option::of(-20isize..160),
        flags in any::<[bool; 3]>(),
        seed in any::<u64>(),
    ) -> Case {
        let normaliser = match NORMALISERS[normaliser] {
            Normaliser::Sample { .. } => Normaliser::Sample { seed },
            other => other,
        };
        Case {
            b, hq: hk * group, hk, nq, nk, d, dv, score: SCORES[score], mask, bias, normaliser,
            dropout, offset, arriving: flags[2], w_per_head: flags[0], spread: 1.0,
            strided: flags[1], seed,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_specification_keeps_the_rule(case in case()) {
        keeps_the_rule(case);
    }
}

//! Lists of a graph whose rows fit one register, and whose weights nobody asks for: softmax is then made of
//! exponentials relative to one score for many rows, and the walk along the keys computes weights again.

use crate::case::*;
use regard_kernels::Activation;

const NARROW: [ScoreKind; 4] = [
    ScoreKind::Dot,
    ScoreKind::Additive(Activation::LeakyRelu { slope: 0.2 }),
    ScoreKind::Additive(Activation::Relu),
    ScoreKind::Additive(Activation::Identity),
];

/// Queries whose scores have one base.
const TOGETHER: usize = 32;

fn graph() -> MaskKind {
    MaskKind { edges: true, ..MaskKind::default() }
}

/// Every narrow score by every size, scores near each other and far apart. Long lists too, of queries and of
/// keys: both are walked in pieces.
fn each_case(mut f: impl FnMut(Case)) {
    let mut turn = 0;
    for score in NARROW {
        for (nq, nk) in [(700, 3), (5, 400), (90, 90), (33, 7)] {
            for spread in [0.3, 4.0, 40.0] {
                turn += 1;
                f(Case {
                    b: 1 + turn % 2,
                    hq: 1 + turn % 3,
                    hk: 1 + turn % 3,
                    nq,
                    nk,
                    d: [16, 3, 8, 1, 13][turn % 5],
                    dv: [4, 16, 8][turn % 3],
                    score,
                    mask: graph(),
                    w_per_head: turn % 2 == 0,
                    spread,
                    strided: turn % 4 == 1,
                    lean: true,
                    seed: turn as u64,
                    ..Case::default()
                });
            }
        }
    }
}

#[test]
fn narrow_lists_keep_the_rule_however_far_apart_their_scores_lie() {
    // Rows far below the largest score of their task, which are done one by one, and rows near it.
    let (mut far, mut near) = (0, 0);
    each_case(|case| {
        keeps_the_rule(case);
        agrees_in_double(case);
        let lse = case.data::<f64>().reference().lse;
        for head in lse.chunks(case.nq) {
            for task in head.chunks(TOGETHER) {
                let top = task.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                far += task.iter().filter(|x| x.is_finite() && **x < top - 25.0).count();
                near += task.iter().filter(|x| **x > top - 10.0).count();
            }
        }
    });
    assert!(
        far > 1000 && near > 1000,
        "{far} rows far below the largest of their task, {near} near"
    );
}

/// One head of a graph.
fn case() -> Case {
    let score = NARROW[1];
    Case { nq: 100, nk: 40, d: 16, dv: 16, score, mask: graph(), lean: true, ..Case::default() }
}

#[test]
fn what_is_no_number_stays_in_the_rows_it_belongs_to() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for isa in isas() {
            let mut data = case().data::<f32>();
            let whole = data.fused(isa);
            data.q[37 * 16 + 2] = bad;
            let (spoiled, plain) = (data.fused(isa), data.reference());
            for i in 0..100 {
                let of = |x: &[f32]| x[i * 16..][..16].to_vec();
                if i == 37 {
                    let [found, plain] = [&spoiled.out, &plain.out].map(|x| of(x));
                    assert!(plain.iter().zip(&found).all(|(x, y)| x.is_nan() == y.is_nan()));
                    continue;
                }
                for (x, y) in of(&spoiled.out).iter().zip(of(&whole.out)) {
                    assert!((x - y).abs() <= 1e-5, "{isa}: row {i} is {x} beside {bad}, else {y}");
                }
                assert!(
                    (spoiled.lse[i] - whole.lse[i]).abs() <= 1e-5 || whole.lse[i].is_infinite()
                );
            }
        }
    }
}

#[test]
fn values_as_large_as_they_can_be_are_averaged_without_an_overflow() {
    for isa in isas() {
        let mut data = case().data::<f32>();
        data.v.fill(3e38);
        let (found, plain) = (data.fused(isa), data.reference());
        for (x, y) in found.out.iter().zip(&plain.out) {
            assert!((x - y).abs() <= 1e33, "{isa}: {x} instead of {y}");
        }
    }
}

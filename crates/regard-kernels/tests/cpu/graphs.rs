//! Lists of a graph whose rows fit one register, and whose weights nobody asks for: softmax is then made of
//! exponentials relative to one score for many rows, and the walk along the keys computes weights again.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use crate::case::*;
use regard_kernels::{
    Activation, Backward, Cpu, Dropout, Edges, Forward, Gradients, Normalizer, Saved, Score, Spec,
    View, ViewMut,
};

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

/// What a pass over a graph gives: output, log-sum-exps, weights along the edges, gradients of q, k and v.
fn passed(spec: &Spec<f64>, [q, k, v]: [&[f64]; 3], [nq, nk]: [usize; 2]) -> [Vec<f64>; 6] {
    let (of_queries, of_keys) = ([1, HEADS, nq, WIDE], [1, HEADS, nk, WIDE]);
    let views = [
        View::new(q, of_queries).unwrap(),
        View::new(k, of_keys).unwrap(),
        View::new(v, of_keys).unwrap(),
    ];
    let [mut out, mut grad_q] = [vec![0.0; q.len()], vec![0.0; q.len()]];
    let [mut grad_k, mut grad_v] = [vec![0.0; k.len()], vec![0.0; v.len()]];
    let [mut lse, mut threshold] = [vec![0.0; HEADS * nq], vec![0.0; HEADS * nq]];
    let mut along = vec![0.0; HEADS * spec.mask.edges.unwrap().len()];
    let soft = spec.normalizer == Normalizer::Softmax;
    let has_threshold = matches!(spec.normalizer, Normalizer::Sparsemax | Normalizer::Entmax15);
    let mut pass = Forward::new(ViewMut::new(&mut out, of_queries).unwrap());
    pass.lse = Some(&mut lse);
    pass.edge_weights = Some(&mut along);
    pass.threshold = has_threshold.then_some(&mut threshold);
    let [x, y, z] = views;
    Cpu::best().forward(spec, x, y, z, pass).unwrap();
    let saved = Saved {
        out: Some(View::new(&out, of_queries).unwrap()),
        lse: Some(&lse),
        threshold: has_threshold.then_some(&threshold),
        index: None,
    };
    let gradients = Gradients {
        q: Some(ViewMut::new(&mut grad_q, of_queries).unwrap()),
        k: Some(ViewMut::new(&mut grad_k, of_keys).unwrap()),
        v: Some(ViewMut::new(&mut grad_v, of_keys).unwrap()),
        ..Gradients::default()
    };
    let arriving: Vec<f64> = (0..q.len()).map(|n| (n as f64 * 0.7).sin()).collect();
    let arriving = View::new(&arriving, of_queries).unwrap();
    Cpu::best().backward(spec, x, y, z, Backward::new(arriving, saved, gradients)).unwrap();
    [out, if soft { lse } else { Vec::new() }, along, grad_q, grad_k, grad_v]
}

const HEADS: usize = 2;
const WIDE: usize = 8;

#[test]
fn an_edge_that_is_there_twice_counts_as_one_to_each_of_two_equal_keys() {
    let (nq, nk, copies) = (9, 6, 3);
    let number = |n: usize, by: f64| (n as f64 * by).sin() * 1.5;
    let numbers = |n: usize, by: f64| (0..n).map(|n| number(n, by)).collect::<Vec<f64>>();
    let [q, k, v] = [(nq, 0.9), (nk, 1.7), (nk, 2.3)].map(|(n, by)| numbers(HEADS * n * WIDE, by));
    let w = numbers(WIDE, 0.4);
    let tiled =
        |x: &[f64]| x.chunks(nk * WIDE).flat_map(|head| head.repeat(copies)).collect::<Vec<f64>>();
    let [all_k, all_v] = [tiled(&k), tiled(&v)];
    // Query i has an edge to key j up to three times, in an order of their own.
    let times = |i: usize, j: usize| (i * 5 + j * 3) % 4;
    let mut twice: Vec<(usize, usize)> = Vec::new();
    for n in (0..copies).rev() {
        let pairs = (0..nq * nk).map(|x| (x / nk, x % nk));
        twice.extend(pairs.filter(|&(i, j)| times(i, j) > n));
    }
    let once: Vec<(usize, usize)> = (0..nq * nk)
        .flat_map(|x| (0..times(x / nk, x % nk)).map(move |n| (x / nk, x % nk + n * nk)))
        .collect();
    let repeated = Edges::repeated(nq, nk, &twice).unwrap();
    let distinct = Edges::new(nq, nk * copies, &once).unwrap();
    let leaky = Activation::LeakyRelu { slope: 0.2 };
    let mut compared = 0;
    for score in [Score::Dot { scale: 0.4 }, Score::Additive { activation: leaky, w: &w }] {
        for normalizer in
            [Normalizer::Softmax, Normalizer::Sparsemax, Normalizer::Sigmoid, Normalizer::None]
        {
            for dropout in [None, Some(Dropout { p: 0.4, seed: 11 })] {
                let spec = |edges| {
                    let mut spec = Spec::new(score);
                    (spec.normalizer, spec.dropout) = (normalizer, dropout);
                    spec.mask.edges = Some(edges);
                    spec
                };
                let found = passed(&spec(&repeated), [&q, &k, &v], [nq, nk]);
                let mut exact = passed(&spec(&distinct), [&q, &all_k, &all_v], [nq, nk * copies]);
                // Copies of a key learn together; a query's weights are sorted by key, not by copy.
                for x in &mut exact[4..] {
                    let heads = x.chunks(copies * nk * WIDE);
                    *x = heads
                        .flat_map(|head| {
                            let tiles = head.chunks(nk * WIDE);
                            tiles.fold(vec![0.0; nk * WIDE], |sum, tile| {
                                sum.iter().zip(tile).map(|(a, b)| a + b).collect()
                            })
                        })
                        .collect();
                }
                let sums = |edges: &Edges, x: &[f64]| {
                    let rows = (0..HEADS * nq).map(|row| {
                        let at = row / nq * edges.len();
                        let own = edges.starts()[row % nq]..edges.starts()[row % nq + 1];
                        x[at + own.start..at + own.end].iter().sum::<f64>()
                    });
                    rows.collect::<Vec<f64>>()
                };
                let weights = [sums(&repeated, &found[2]), sums(&distinct, &exact[2])];
                for (which, (a, b)) in found.iter().zip(&exact).enumerate() {
                    let (a, b) = if which == 2 { (&weights[0], &weights[1]) } else { (a, b) };
                    let far = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    assert!(a.len() == b.len() && far < 1e-12, "{which} of {normalizer:?}: {far}");
                    compared += a.len();
                }
            }
        }
    }
    assert!(compared > 5000, "{compared}");
}

#[test]
fn edges_that_are_there_twice_are_refused_beside_what_is_one_number_a_pair() {
    let edges = Edges::repeated(2, 2, &[(0, 1), (0, 1), (1, 0)]).unwrap();
    let x = [0.5f32; 2 * 4];
    let view = || View::new(&x, [1, 1, 2, 4]).unwrap();
    let run = |spec: &Spec<f32>, dense: bool| {
        let (mut out, mut weights) = ([0.0; 8], [0.0; 4]);
        let mut pass = Forward::new(ViewMut::new(&mut out, [1, 1, 2, 4]).unwrap());
        pass.weights = dense.then_some(&mut weights);
        Cpu::best().forward(spec, view(), view(), view(), pass)
    };
    let mut spec = Spec::scaled_dot(4);
    spec.mask.edges = Some(&edges);
    run(&spec, false).unwrap();
    assert!(run(&spec, true).unwrap_err().to_string().contains("ask for edge_weights"));
    let formula = regard_kernels::reference::forward(&spec, view(), view(), view());
    assert!(formula.unwrap_err().to_string().contains("more than once"));
    let slopes = [0.5];
    let mut others = [spec; 3];
    others[0].mask.causal = true;
    others[1].bias.alibi = Some(&slopes);
    others[2].normalizer = Normalizer::Argmax;
    for other in &others {
        let said = run(other, false).unwrap_err().to_string();
        assert!(said.contains("more than once"), "{said}");
    }
}

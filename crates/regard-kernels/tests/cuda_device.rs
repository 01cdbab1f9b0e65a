//! The operator on a GPU, by the cases and the rule of the CPU's tests. One command runs all of it:
//! `cargo test --workspace --test cuda_device -- --ignored`.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

mod case;

use case::*;
use regard_kernels::{
    Activation, Backward, Cuda, Edges, Forward, Gradients, Normalizer, Saved, Score, Spec, View,
    ViewMut, cuda,
};
use std::sync::OnceLock;

fn gpu() -> &'static Cuda {
    static CUDA: OnceLock<Cuda> = OnceLock::new();
    CUDA.get_or_init(|| Cuda::new(0).unwrap())
}

fn keeps(case: Case) -> bool {
    Oracle::of(case).is_kept_by("cuda", gpu())
}

/// The scores a GPU has: all but those that are a caller's own code.
fn scores() -> impl Iterator<Item = ScoreKind> {
    SCORES.into_iter().filter(|score| *score != ScoreKind::Own)
}

/// A case with the given choices; sizes and all else are drawn, whatever the choices are.
fn drawn(choices: Case, seed: u64) -> Case {
    let mut draws = Draws::new(seed);
    let lengths = [1, 2, 3, 17, 40, 63, 64, 65, 97];
    let widths = [1, 3, 8, 17, 31];
    let (hq, hk) = draws.of(&[(1, 1), (2, 2), (4, 2), (3, 1)]);
    Case {
        b: 1 + draws.below(2),
        hq,
        hk,
        nq: draws.of(&lengths),
        nk: draws.of(&lengths),
        d: draws.of(&widths),
        dv: draws.of(&widths),
        dropout: draws.happens(0.3).then_some(0.25),
        arriving: draws.happens(0.5) || choices.normalizer.is_hard(),
        arriving_edges: choices.mask.edges && draws.happens(0.5),
        arriving_lse: choices.normalizer == Normalizer::Softmax && draws.happens(0.3),
        offset: draws.happens(0.2).then_some(2),
        w_per_head: draws.happens(0.5),
        strided: draws.happens(0.5),
        seed,
        ..choices
    }
}

fn every_combination_with(score: ScoreKind) {
    let number = SCORES.iter().position(|&x| x == score).unwrap() as u64;
    let mut seed = number << 32;
    let (mut compared, mut torn) = (0, 0);
    for mask in masks() {
        for bias in biases() {
            for normalizer in NORMALIZERS {
                seed += 1;
                let choices = Case { score, mask, bias, normalizer, ..Case::default() };
                match keeps(drawn(choices, seed)) {
                    true => compared += 1,
                    false => torn += 1,
                }
            }
        }
    }
    println!("{score:?}: {compared} combinations compared, {torn} torn between equals");
    assert!(torn <= 8, "{torn} choices were torn between equals");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn every_combination_keeps_the_rule() {
    // Scores beside each other: the reference takes the time.
    std::thread::scope(|scope| {
        for score in scores() {
            scope.spawn(move || every_combination_with(score));
        }
    });
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn every_length_and_width_keeps_the_rule() {
    let lengths = [1, 2, 3, 17, 63, 64, 65, 129, 257];
    let widths = [1, 3, 8, 31, 59, 64, 111, 128, 256];
    let mut cases = Vec::new();
    for (n, nq) in lengths.into_iter().enumerate() {
        for (m, d) in widths.into_iter().enumerate() {
            for score in [ScoreKind::Dot, ScoreKind::Additive(Activation::Tanh)] {
                let mask = MaskKind { causal: (n + m) % 2 == 0, ..MaskKind::default() };
                let nk = lengths[(n * 4 + m) % 9];
                let dv = widths[(m * 2 + n) % 9];
                let seed = (n * 9 + m) as u64;
                let strided = m % 2 == 0;
                cases.push(Case { nq, nk, d, dv, score, mask, strided, seed, ..Case::default() });
            }
        }
    }
    each_beside_others(&cases, |case| {
        keeps(case);
    });
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn large_and_small_inputs_keep_the_rule() {
    for (seed, spread) in [1e-3, 0.3, 8.0, 100.0].into_iter().enumerate() {
        for normalizer in NORMALIZERS {
            for score in [ScoreKind::Dot, ScoreKind::Additive(Activation::Tanh)] {
                let seed = seed as u64;
                let case = Case { nq: 33, nk: 65, d: 8, dv: 8, score, ..Case::default() };
                keeps(Case { normalizer, spread, seed, arriving: true, ..case });
            }
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn double_precision_agrees_with_the_reference() {
    let (mut seed, mut cases) = (0, Vec::new());
    for score in scores() {
        for normalizer in NORMALIZERS {
            for mask in [MaskKind::default(), masks()[7], masks()[9]] {
                seed += 1;
                let choices = Case { score, mask, normalizer, ..Case::default() };
                cases.push(drawn(choices, seed));
            }
        }
    }
    each_beside_others(&cases, |case| agrees_in_double_on(case, "cuda", gpu()));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn the_same_problem_gives_the_same_bits() {
    for (seed, normalizer) in NORMALIZERS.into_iter().enumerate() {
        let score = ScoreKind::Additive(Activation::Tanh);
        let bias = biases()[7];
        let choices = Case { score, normalizer, bias, ..Case::default() };
        let case = Case { nq: 97, nk: 130, b: 2, ..drawn(choices, seed as u64) };
        let data = case.data::<f32>();
        let first = data.on(gpu()).bits();
        for _ in 0..20 {
            assert!(data.on(gpu()).bits() == first, "other bits\n{case:?}");
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn nothing_to_attend_to_gives_zeros() {
    for (nq, nk) in [(0, 5), (5, 0), (0, 0)] {
        let data = Case { nq, nk, ..Case::default() }.data::<f32>();
        let results = data.on(gpu());
        assert!(results.out.iter().all(|&x| x == 0.0));
        assert!(results.gradients.iter().flatten().all(|&x| x == 0.0));
    }
    let mask = MaskKind { lengths: true, ..MaskKind::default() };
    keeps(Case { b: 7, nk: 2, mask, ..Case::default() });
}

/// The forms of a case's forward and backward.
fn forms(case: Case) -> [String; 2] {
    let data = case.data::<f32>();
    let [q, k, v, _] = data.views();
    cuda::form(&data.spec(), q, k, v).unwrap()
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn graphs_keep_the_rule_in_their_own_form() {
    let edges = MaskKind { edges: true, ..MaskKind::default() };
    let activations =
        [Activation::LeakyRelu { slope: 0.2 }, Activation::Relu, Activation::Identity];
    let (mut seed, mut cases) = (0, Vec::new());
    let sizes = [(8, 16), (8, 8), (4, 8), (2, 8), (1, 16), (16, 8), (1, 128), (4, 4)];
    let others = [(8, 64), (4, 32), (3, 40), (1, 7), (2, 200), (5, 1), (1, 256), (12, 24)];
    for (heads, width) in sizes.into_iter().chain(others) {
        for d in [width, 1] {
            for activation in activations {
                for (nq, nk) in [(1, 1), (2, 70), (97, 40), (300, 300)] {
                    seed += 1;
                    let case = Case {
                        b: 1 + (seed % 2) as usize,
                        hq: heads,
                        hk: heads,
                        nq,
                        nk,
                        d,
                        dv: width,
                        score: ScoreKind::Additive(activation),
                        mask: edges,
                        w_per_head: seed % 3 > 0,
                        dropout: (seed % 5 == 0).then_some(0.3),
                        arriving_lse: seed % 4 == 0,
                        spread: [0.3, 1.0, 8.0][(seed % 3) as usize],
                        lean: true,
                        seed,
                        ..Case::default()
                    };
                    cases.push(case);
                }
            }
        }
    }
    each_beside_others(&cases, |case| {
        assert_eq!(forms(case), ["Graph", "Graph"], "{case:?}");
        keeps(case);
    });
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn additive_scores_keep_the_rule_in_their_own_form() {
    let none = MaskKind::default();
    let masks = [
        none,
        MaskKind { causal: true, ..none },
        MaskKind { window: Some((40, 9)), ..none },
        MaskKind { lengths: true, ..none },
        MaskKind { causal: true, lengths: true, window: Some((70, 0)), ..none },
    ];
    let (mut draws, mut cases) = (Draws::new(5), Vec::new());
    for seed in 0..150 {
        let (hq, hk) = draws.of(&[(1, 1), (2, 2), (3, 3), (4, 2)]);
        let case = Case {
            b: 1 + draws.below(2),
            hq,
            hk,
            nq: draws.of(&[1, 5, 63, 64, 65, 129, 257]),
            nk: draws.of(&[1, 3, 64, 65, 130, 300]),
            d: draws.of(&[1, 17, 32, 100, 128, 200]),
            dv: draws.of(&[4, 64, 100, 256]),
            score: ScoreKind::Additive(Activation::Tanh),
            mask: draws.of(&masks),
            offset: draws.happens(0.2).then_some(3),
            w_per_head: draws.happens(0.5),
            spread: draws.of(&[0.01, 0.3, 1.0, 1.0, 3.0, 8.0, 30.0, 200.0]),
            arriving_lse: draws.happens(0.3),
            lean: true,
            seed,
            ..Case::default()
        };
        cases.push(case);
    }
    each_beside_others(&cases, |case| {
        let [forward, backward] = forms(case);
        // A tile would be mostly empty of few queries.
        let tiles = case.nq > 8;
        assert_eq!(forward == "Additive", tiles, "{case:?}");
        assert_eq!(backward == "Additive", tiles && case.hq == case.hk, "{case:?}");
        keeps(case);
    });
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn rows_that_are_not_even_keep_the_rule() {
    let edges = MaskKind { edges: true, ..MaskKind::default() };
    let leaky = ScoreKind::Additive(Activation::LeakyRelu { slope: 0.2 });
    let tanh = ScoreKind::Additive(Activation::Tanh);
    let mut cases = Vec::new();
    // Rows are three numbers longer than what they hold, and heads lie within positions.
    for (seed, (heads, d, dv)) in
        [(8, 16, 16), (2, 8, 8), (4, 4, 4), (8, 1, 16), (1, 128, 128), (3, 17, 64), (2, 64, 8)]
            .into_iter()
            .enumerate()
    {
        for (score, mask) in [(leaky, edges), (tanh, MaskKind::default())] {
            let (hq, hk, seed) = (heads, heads, seed as u64);
            let case = Case { nq: 97, nk: 70, hq, hk, d, dv, score, mask, seed, ..Case::default() };
            cases.push(Case { strided: true, lean: true, ..case });
        }
    }
    each_beside_others(&cases, |case| {
        let data = case.data::<f32>();
        let row = |d: usize| d + 3;
        let shape = |n: usize, d: usize| [case.b, case.hq, n, d];
        let strides = |n: usize, d: usize| [n * case.hq * row(d), row(d), case.hq * row(d)];
        let numbers =
            vec![0f32; case.b * case.hq * case.nq.max(case.nk) * row(case.d.max(case.dv))];
        let view = |n, d| View::strided(&numbers, shape(n, d), strides(n, d)).unwrap();
        let [q, k, v] = [view(case.nq, case.d), view(case.nk, case.d), view(case.nk, case.dv)];
        let forms = cuda::form(&data.spec(), q, k, v).unwrap();
        // Graphs have kernels for such rows too.
        let by_edges = case.mask.edges && (case.d == case.dv || case.d == 1);
        assert_eq!(forms, [if by_edges { "Graph" } else { "Generic" }; 2], "{case:?}");
        keeps(case);
    });
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn more_heads_than_a_grids_second_axis_has_keep_the_rule() {
    let tanh = ScoreKind::Additive(Activation::Tanh);
    let case = Case { b: 33_000, hq: 2, hk: 2, nq: 1, nk: 2, d: 4, dv: 4, ..Case::default() };
    for score in [tanh, ScoreKind::Dot] {
        keeps(Case { score, lean: true, ..case });
    }
    keeps(Case { score: tanh, nq: 9, lean: true, ..case });
}

/// Outputs, log-sum-exps and gradients of a case, of which some numbers are others.
fn with_others(case: Case, change: impl Fn(&mut [Vec<f32>; 4])) -> [Vec<f32>; 5] {
    let data = case.data::<f32>();
    let spec = data.spec();
    let shapes = data.shapes();
    let mut given = [&data.q, &data.k, &data.v, &data.grad_out].map(|x| x.to_vec());
    change(&mut given);
    let views = [0, 1, 2, 3].map(|at| View::new(&given[at], shapes[at]).unwrap());
    let [q, k, v, grad] = views;
    let (mut out, mut lse) = (vec![0f32; given[3].len()], vec![0f32; case.b * case.hq * case.nq]);
    let pass =
        Forward { lse: Some(&mut lse), ..Forward::new(ViewMut::new(&mut out, shapes[3]).unwrap()) };
    gpu().forward(&spec, q, k, v, pass).unwrap();
    let [mut gq, mut gk, mut gv] = [0, 1, 2].map(|at| vec![0f32; given[at].len()]);
    let gradients = Gradients {
        q: Some(ViewMut::new(&mut gq, shapes[0]).unwrap()),
        k: Some(ViewMut::new(&mut gk, shapes[1]).unwrap()),
        v: Some(ViewMut::new(&mut gv, shapes[2]).unwrap()),
        ..Gradients::default()
    };
    let out_view = View::new(&out, shapes[3]).unwrap();
    let saved = Saved { out: Some(out_view), lse: Some(&lse), ..Saved::default() };
    gpu().backward(&spec, q, k, v, Backward::new(grad, saved, gradients)).unwrap();
    [out, lse, gq, gk, gv]
}

/// A key that every query scores −∞ is as good as none: in f32, whose numbers the tensor cores have in
/// parts, an infinity's parts are NaN.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_key_that_is_infinite_is_hidden_as_the_formula_hides_it() {
    let causal = MaskKind { causal: true, ..MaskKind::default() };
    for (mask, d) in [(MaskKind::default(), 64), (causal, 64), (MaskKind::default(), 24)] {
        let case = Case { b: 2, nq: 150, nk: 200, d, dv: d, mask, lean: true, ..Case::default() };
        let away = |far: f32| {
            move |[q, k, _, _]: &mut [Vec<f32>; 4]| {
                q.iter_mut().step_by(d).for_each(|x| *x = 1.0 + x.abs());
                k.chunks_exact_mut(200 * d).for_each(|head| head[70 * d] = far);
            }
        };
        // So far away that its weight is 0 as well.
        let expected = with_others(case, away(-1e6));
        for far in [f32::NEG_INFINITY, f32::MIN] {
            for (found, expected) in with_others(case, away(far)).iter().zip(&expected) {
                for (n, (a, b)) in found.iter().zip(expected).enumerate() {
                    assert!((a - b).abs() <= 2e-5 * b.abs().max(1.0), "{n}: {a}, {b}\n{case:?}");
                }
            }
        }
    }
}

/// The lanes of a warp that have no edge look at key 0.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_graphs_key_without_edges_may_hold_anything() {
    for d in [16, 1] {
        let (n, heads) = (40, 2);
        let pairs: Vec<(usize, usize)> = (0..n).map(|i| (i, 1 + (i * 7) % (n - 1))).collect();
        let edges = Edges::new(n, n, &pairs).unwrap();
        let mut draws = Draws::new(8);
        let mut numbers =
            |count: usize| -> Vec<f32> { (0..count).map(|_| draws.normal() as f32).collect() };
        let (q, mut k, mut v) =
            (numbers(heads * n * d), numbers(heads * n * d), numbers(heads * n * 16));
        let (w, grad) = (numbers(heads * d), numbers(heads * n * 16));
        let mut found = Vec::new();
        for undefined in [false, true] {
            if undefined {
                k.chunks_exact_mut(n * d).for_each(|head| head[..d].fill(f32::NAN));
                v.chunks_exact_mut(n * 16).for_each(|head| head[..16].fill(f32::INFINITY));
            }
            let activation = Activation::LeakyRelu { slope: 0.2 };
            let mut spec = Spec::new(Score::Additive { activation, w: &w });
            spec.mask.edges = Some(&edges);
            let rows = |x, d: usize| View::new(x, [1, heads, n, d]).unwrap();
            let (q, k, v, grad) = (rows(&q, d), rows(&k, d), rows(&v, 16), rows(&grad, 16));
            assert_eq!(cuda::form(&spec, q, k, v).unwrap(), ["Graph", "Graph"]);
            let (mut out, mut lse) = (vec![0f32; heads * n * 16], vec![0f32; heads * n]);
            let to = ViewMut::new(&mut out, [1, heads, n, 16]).unwrap();
            let pass = Forward { lse: Some(&mut lse), ..Forward::new(to) };
            gpu().forward(&spec, q, k, v, pass).unwrap();
            let (mut gq, mut gw) = (vec![0f32; heads * n * d], vec![0f32; heads * d]);
            let gradients = Gradients {
                q: Some(ViewMut::new(&mut gq, [1, heads, n, d]).unwrap()),
                w: Some(&mut gw),
                ..Gradients::default()
            };
            let saved = Saved { out: Some(rows(&out, 16)), lse: Some(&lse), ..Saved::default() };
            gpu().backward(&spec, q, k, v, Backward::new(grad, saved, gradients)).unwrap();
            found.push([out.clone(), gq, gw]);
        }
        assert_eq!(found[0], found[1]);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_thousand_backwards_in_each_form_give_the_same_bits() {
    let dot = Case { nq: 130, nk: 200, d: 40, dv: 24, hq: 4, hk: 2, b: 2, ..Case::default() };
    let edges = MaskKind { edges: true, ..MaskKind::default() };
    let leaky = ScoreKind::Additive(Activation::LeakyRelu { slope: 0.2 });
    let tanh = ScoreKind::Additive(Activation::Tanh);
    let graph = Case { hq: 8, hk: 8, d: 16, dv: 16, score: leaky, mask: edges, ..dot };
    let cases = [
        Case { bias: biases()[7], ..dot },
        Case { lean: true, ..graph },
        Case { lean: true, d: 1, ..graph },
        Case { lean: true, hk: 4, d: 128, dv: 128, score: tanh, ..dot },
        Case { lean: true, ..dot },
    ];
    each_beside_others(&cases, |case| {
        let data = case.data::<f32>();
        let first = data.on(gpu()).bits();
        for repeat in 0..1000 {
            assert!(data.on(gpu()).bits() == first, "repeat {repeat} has other bits\n{case:?}");
        }
        println!("{:?}: 1000 repeats", forms(case));
    });
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn memory_grows_with_the_length_and_not_with_its_square() {
    let width = 128;
    let mut peaks = Vec::new();
    for n in [16384, 65536] {
        let mut draws = Draws::new(3);
        let mut numbers = |count: usize| -> Vec<f32> {
            let some: Vec<f32> = (0..4096).map(|_| draws.normal() as f32).collect();
            some.into_iter().cycle().take(count).collect()
        };
        let [q, k, v, grad] = [0; 4].map(|_| numbers(n * width));
        let w = numbers(width);
        let shape = [1, 1, n, width];
        let spec = Spec::new(Score::Additive { activation: Activation::Tanh, w: &w });
        let [q, k, v, grad] = [&q, &k, &v, &grad].map(|x| View::new(x, shape).unwrap());
        let (mut out, mut lse) = (vec![0f32; n * width], vec![0f32; n]);
        gpu().peak_bytes().unwrap();
        let pass =
            Forward { lse: Some(&mut lse), ..Forward::new(ViewMut::new(&mut out, shape).unwrap()) };
        gpu().forward(&spec, q, k, v, pass).unwrap();
        let mut grads = [0; 3].map(|_| vec![0f32; n * width]);
        let [gq, gk, gv] = &mut grads;
        let mut gw = vec![0f32; width];
        let gradients = Gradients {
            q: Some(ViewMut::new(gq, shape).unwrap()),
            k: Some(ViewMut::new(gk, shape).unwrap()),
            v: Some(ViewMut::new(gv, shape).unwrap()),
            w: Some(&mut gw),
            ..Gradients::default()
        };
        let saved = Saved {
            out: Some(View::new(&out, shape).unwrap()),
            lse: Some(&lse),
            ..Saved::default()
        };
        gpu().backward(&spec, q, k, v, Backward::new(grad, saved, gradients)).unwrap();
        assert!(grads.iter().flatten().chain(&gw).all(|x| x.is_finite()));
        peaks.push(gpu().peak_bytes().unwrap());
        println!("n {n}: {} MiB at most", peaks.last().unwrap() >> 20);
    }
    assert!(peaks[1] < 4 << 30, "{peaks:?}");
    assert!(peaks[1] < 6 * peaks[0], "{peaks:?}");
}

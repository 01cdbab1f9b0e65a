//! Dot products of 16-bit numbers on a GPU's tensor cores. One command runs all of it:
//! `REGARD_UNPROVEN=1 cargo test --workspace --test cuda_dot -- --ignored`.
//!
//! The rule is `case/rule.rs`' twofold rule: the plain formula in the same precision is the one a
//! framework computes step by step, scores, weights and their gradients rounded to 16 bits in between.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

mod case;

use case::*;
use half::{bf16, f16};
use regard_kernels::{
    Backward, Cuda, Element, Forward, Gradients, Normalizer, Saved, Spec, View, ViewMut, cuda,
    reference,
};
use std::sync::OnceLock;

fn gpu() -> &'static Cuda {
    static CUDA: OnceLock<Cuda> = OnceLock::new();
    CUDA.get_or_init(|| Cuda::new(0).unwrap())
}

/// Output, log-sum-exps or thresholds, and the gradients of q, k, v and a bias by distance.
type Results = [Vec<f64>; 6];
const NAMES: [&str; 6] = ["out", "rows", "grad q", "grad k", "grad v", "grad relative"];

/// A case's numbers as they are stored: `[B, H, N, D]`, or `[B, N, H, D]` seen as that.
struct Halves<E> {
    case: Case,
    /// q, k, v, the gradient of the output.
    stored: [Vec<E>; 4],
    shapes: [[usize; 4]; 4],
    by_position: bool,
}

impl<E: Element<Compute = f32>> Halves<E> {
    fn of(case: Case, by_position: bool) -> Self {
        let data = case.data::<f32>();
        let shapes = data.shapes();
        let stored = [&data.q, &data.k, &data.v, &data.grad_out]
            .map(|x| x.iter().map(|&x| E::narrow(x)).collect());
        Self { case, stored, shapes, by_position }
    }

    /// An array as it stands.
    fn placed(&self, at: usize) -> Vec<E> {
        let [_, h, n, d] = self.shapes[at];
        let mut to = self.stored[at].clone();
        if self.by_position {
            for (row, from) in self.stored[at].chunks_exact(d).enumerate() {
                let (b, head, i) = (row / n / h, row / n % h, row % n);
                to[((b * n + i) * h + head) * d..][..d].copy_from_slice(from);
            }
        }
        to
    }

    fn view<'a>(&self, data: &'a [E], at: usize) -> View<'a, E> {
        let shape = self.shapes[at];
        let [_, h, n, d] = shape;
        match self.by_position {
            true => View::strided(data, shape, [n * h * d, d, h * d]).unwrap(),
            false => View::new(data, shape).unwrap(),
        }
    }

    fn fused(&self) -> Results {
        let data = self.case.data::<f32>();
        let spec = data.spec();
        let placed = [0, 1, 2, 3].map(|at| self.placed(at));
        let [q, k, v, grad] = [0, 1, 2, 3].map(|at| self.view(&placed[at], at));
        let sparse = self.is_sparse();
        let few = self.case.nq * self.case.hq / self.case.hk <= 16 && !self.case.mask.segments;
        let forms = match (sparse, self.case.bias.relative.is_some(), few) {
            (true, ..) => ["DotThreshold"; 2],
            (_, true, _) => ["DotBias"; 2],
            (_, _, true) => ["Decode", "Dot"],
            _ => ["Dot"; 2],
        };
        assert_eq!(cuda::form(&spec, q, k, v).unwrap(), forms, "{:?}", self.case);
        let nan = |at: usize| vec![E::narrow(f32::NAN); self.stored[at].len()];
        // Log-sum-exps of softmax, thresholds of the others.
        let (mut out, mut lse) = (nan(3), vec![f32::NAN; self.shapes[3][..3].iter().product()]);
        let mut pass = Forward::new(ViewMut::new(&mut out, self.shapes[3]).unwrap());
        match sparse {
            true => pass.threshold = Some(&mut lse),
            false => pass.lse = Some(&mut lse),
        }
        gpu().forward(&spec, q, k, v, pass).unwrap();
        let [mut gq, mut gk, mut gv] = [nan(0), nan(1), nan(2)];
        let out_view = View::new(&out, self.shapes[3]).unwrap();
        let saved = match sparse {
            true => Saved { threshold: Some(&lse), ..Saved::default() },
            false => Saved { out: Some(out_view), lse: Some(&lse), ..Saved::default() },
        };
        let mut relative = vec![f32::NAN; spec.bias.relative.map_or(0, |x| x.table.len())];
        let gradients = Gradients {
            relative: (!relative.is_empty()).then_some(&mut relative),
            q: Some(ViewMut::new(&mut gq, self.shapes[0]).unwrap()),
            k: Some(ViewMut::new(&mut gk, self.shapes[1]).unwrap()),
            v: Some(ViewMut::new(&mut gv, self.shapes[2]).unwrap()),
            ..Gradients::default()
        };
        let mut pass = Backward::new(grad, saved, gradients);
        pass.grad_lse = data.grad_lse.as_deref();
        gpu().backward(&spec, q, k, v, pass).unwrap();
        let wide = |x: &[E]| x.iter().map(|&x| f64::from(x.widen())).collect::<Vec<f64>>();
        let [lse, relative] = [lse, relative].map(|x| x.into_iter().map(f64::from).collect());
        [wide(&out), lse, wide(&gq), wide(&gk), wide(&gv), relative]
    }

    fn is_sparse(&self) -> bool {
        matches!(self.case.normalizer, Normalizer::Sparsemax | Normalizer::Entmax15)
    }

    /// The reference in double precision.
    fn truth(&self) -> Results {
        let data = self.case.data::<f64>();
        let spec: Spec<f64> = data.spec();
        let wide = self.wide();
        let view = |at: usize| View::new(&wide[at], self.shapes[at]).unwrap();
        let output = reference::forward(&spec, view(0), view(1), view(2)).unwrap();
        let lse = data.grad_lse.as_deref();
        let arriving = reference::Arriving { lse, ..view(3).into() };
        let g = reference::backward(&spec, view(0), view(1), view(2), arriving).unwrap();
        let rows = if self.is_sparse() { output.threshold } else { output.lse };
        let relative = if self.case.bias.relative.is_some() { g.relative } else { Vec::new() };
        [output.out, rows, g.q, g.k, g.v, relative]
    }

    fn wide(&self) -> [Vec<f64>; 4] {
        [0, 1, 2, 3].map(|at| self.stored[at].iter().map(|&x| f64::from(x.widen())).collect())
    }

    /// The plain formula step by step, each step's results rounded to what is stored.
    fn plain(&self) -> Results {
        let round = |x: f64| f64::from(E::narrow(x as f32).widen());
        let Case { b, hq, hk, nq, nk, d, dv, .. } = self.case;
        let [q, k, v, grad] = self.wide();
        let weights_of = self.case.data::<f64>();
        let spec = weights_of.spec();
        let offset = self.case.offset.unwrap_or(nk as isize - nq as isize);
        let (reach, per_head) = self.case.bias.relative.unwrap_or((0, false));
        let entry = |row: usize, j: usize| {
            let far = (j as isize - ((row % nq) as isize + offset))
                .clamp(-(reach as isize), reach as isize);
            let head = if per_head { row / nq % hq } else { 0 };
            head * (2 * reach + 1) + (far + reach as isize) as usize
        };
        // Which pairs are seen, by a softmax whose scores are all equal.
        let spec = Spec { normalizer: Normalizer::Softmax, bias: Default::default(), ..spec };
        let zeros = [vec![0f64; q.len()], vec![0f64; k.len()], vec![0f64; v.len()]];
        let view = |at: usize| View::new(&zeros[at], self.shapes[at]).unwrap();
        let seen = reference::forward(&spec, view(0), view(1), view(2)).unwrap().weights;
        let scale = 1.0 / (d as f64).sqrt();
        let mut r: Results = [
            vec![0.0; b * hq * nq * dv],
            vec![f64::NEG_INFINITY; b * hq * nq],
            vec![0.0; q.len()],
            vec![0.0; k.len()],
            vec![0.0; v.len()],
            vec![0.0; if reach > 0 { weights_of.relative.len() } else { 0 }],
        ];
        if self.is_sparse() {
            r[1].fill(0.0);
        }
        let arriving = weights_of.grad_lse.clone().unwrap_or_else(|| vec![0.0; b * hq * nq]);
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        for row in 0..b * hq * nq {
            let head = row / nq / hq * hk + row / nq % hq / (hq / hk);
            let (qi, gi) = (&q[row * d..][..d], &grad[row * dv..][..dv]);
            let keys: Vec<usize> = (0..nk).filter(|j| seen[row * nk + j] > 0.0).collect();
            let key = |j: usize| &k[(head * nk + j) * d..][..d];
            let value = |j: usize| &v[(head * nk + j) * dv..][..dv];
            if keys.is_empty() {
                continue;
            }
            let bias = |j: usize| if reach > 0 { weights_of.relative[entry(row, j)] } else { 0.0 };
            let score = |&j: &usize| round(scale * dot(qi, key(j)) + bias(j));
            let scores: Vec<f64> = keys.iter().map(score).collect();
            let (w, slopes, of_row) = weigh(&scores, self.case.normalizer);
            let [w, slopes] = [w, slopes].map(|x| x.into_iter().map(round).collect::<Vec<f64>>());
            r[1][row] = of_row;
            let dp: Vec<f64> = keys.iter().map(|&j| round(dot(gi, value(j)))).collect();
            let arrived = if self.is_sparse() { 0.0 } else { arriving[row] };
            let delta = dot(&slopes, &dp) / slopes.iter().sum::<f64>() - arrived;
            for (n, &j) in keys.iter().enumerate() {
                let ds = round(slopes[n] * (dp[n] - delta));
                if reach > 0 {
                    r[5][entry(row, j)] += ds;
                }
                let ds = ds * scale;
                for c in 0..dv {
                    r[0][row * dv + c] += w[n] * value(j)[c];
                    r[4][(head * nk + j) * dv + c] += w[n] * gi[c];
                }
                for c in 0..d {
                    r[2][row * d + c] += ds * key(j)[c];
                    r[3][(head * nk + j) * d + c] += ds * qi[c];
                }
            }
        }
        for at in [0, 2, 3, 4] {
            r[at].iter_mut().for_each(|x| *x = round(*x));
        }
        r
    }

    fn keeps_the_rule(&self) {
        let (truth, plain, fused) = (self.truth(), self.plain(), self.fused());
        for (at, name) in NAMES.into_iter().enumerate() {
            // Two roundings of the largest number, as the rule has it, in what is stored; a log-sum-exp
            // is an f32.
            let epsilon = if at == 1 { 2.0 * f64::from(f32::EPSILON) } else { self.epsilon() };
            let (found, plain) = (error(&fused[at], &truth[at]), error(&plain[at], &truth[at]));
            let allowed = 2.0 * plain + 2.0 * epsilon * largest(&truth[at]).max(1e-3);
            assert!(
                found <= allowed,
                "{name}: {found:e}, {allowed:e} is allowed (plain {plain:e})\n{:?}",
                self.case
            );
        }
    }

    fn epsilon(&self) -> f64 {
        let one = E::narrow(1.0).widen();
        let mut step = 1.0f32;
        while E::narrow(one + step / 2.0).widen() > one {
            step /= 2.0;
        }
        f64::from(step)
    }
}

/// Weights, the derivative's diagonal, and what a row keeps: its log-sum-exp or its threshold.
fn weigh(scores: &[f64], normalizer: Normalizer) -> (Vec<f64>, Vec<f64>, f64) {
    let top = scores.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
    if normalizer == Normalizer::Softmax {
        let lse = top + scores.iter().map(|s| (s - top).exp()).sum::<f64>().ln();
        let w: Vec<f64> = scores.iter().map(|s| (s - lse).exp()).collect();
        return (w.clone(), w, lse);
    }
    let squares = normalizer == Normalizer::Entmax15;
    let half = if squares { 0.5 } else { 1.0 };
    let above = |tau: f64| scores.iter().map(move |s| (s * half - tau).max(0.0));
    let weight = |z: f64| if squares { z * z } else { z };
    let (mut low, mut high) = (top * half - 1.0, top * half);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        match above(middle).map(weight).sum::<f64>() >= 1.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    let slope = |z: f64| if squares { z } else { f64::from(z > 0.0) };
    (above(low).map(weight).collect(), above(low).map(slope).collect(), low)
}

fn masks_of_ranges() -> Vec<MaskKind> {
    let none = MaskKind::default();
    vec![
        none,
        MaskKind { causal: true, ..none },
        MaskKind { window: Some((70, 9)), ..none },
        MaskKind { lengths: true, ..none },
        MaskKind { segments: true, ..none },
        MaskKind { causal: true, window: Some((40, 0)), lengths: true, ..none },
        MaskKind { window: Some((200, 5)), segments: true, lengths: true, ..none },
    ]
}

fn keeps(case: Case, by_position: bool) {
    Halves::<bf16>::of(case, by_position).keeps_the_rule();
    Halves::<f16>::of(case, by_position).keeps_the_rule();
}

#[test]
#[ignore = "needs an NVIDIA GPU of Hopper's kind, and REGARD_UNPROVEN set"]
fn one_tile_is_right() {
    for d in [64, 128] {
        keeps(Case { nq: 64, nk: 64, d, dv: d, ..Case::default() }, false);
        println!("one tile of width {d}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU of Hopper's kind, and REGARD_UNPROVEN set"]
fn every_mask_of_ranges_keeps_the_rule_at_odd_lengths() {
    let mut draws = Draws::new(11);
    let mut seed = 0;
    for mask in masks_of_ranges() {
        for _ in 0..10 {
            seed += 1;
            let (hq, hk) = draws.of(&[(1, 1), (2, 2), (4, 2), (3, 1)]);
            let case = Case {
                b: 1 + draws.below(2),
                hq,
                hk,
                nq: draws.of(&[1, 5, 63, 64, 65, 129, 200, 257, 400]),
                nk: draws.of(&[1, 3, 64, 65, 130, 177, 300, 515]),
                d: draws.of(&[8, 32, 64, 72, 128]),
                dv: draws.of(&[8, 40, 64, 96, 128]),
                mask,
                offset: draws.happens(0.3).then_some(draws.of(&[-70, 3, 120])),
                arriving_lse: draws.happens(0.3),
                spread: draws.of(&[0.1, 1.0, 1.0, 4.0]),
                seed,
                ..Case::default()
            };
            keeps(case, draws.happens(0.5));
        }
        println!("{mask:?}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU of Hopper's kind, and REGARD_UNPROVEN set"]
fn a_bias_by_distance_and_sparse_normalizers_keep_the_rule() {
    let bias = |reach: usize, per_head: bool| BiasKind {
        relative: Some((reach, per_head)),
        ..BiasKind::default()
    };
    let mut seed = 0;
    for mask in masks_of_ranges() {
        for (nq, nk) in [(65, 64), (200, 333), (400, 130)] {
            for d in [64, 128] {
                seed += 1;
                let case = Case {
                    b: 2,
                    hq: 2,
                    hk: 1 + seed as usize % 2,
                    nq,
                    nk,
                    d,
                    dv: d,
                    mask,
                    seed,
                    ..Case::default()
                };
                for reach in [1, 37, 128] {
                    keeps(Case { bias: bias(reach, seed % 2 == 0), ..case }, false);
                }
                for normalizer in [Normalizer::Sparsemax, Normalizer::Entmax15] {
                    keeps(Case { normalizer, ..case }, false);
                }
            }
        }
        println!("{mask:?}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU of Hopper's kind, and REGARD_UNPROVEN set"]
fn f32_in_parts_keeps_the_rule_of_f32() {
    let mut draws = Draws::new(17);
    for mask in masks_of_ranges().into_iter().filter(|mask| !mask.segments) {
        for seed in 0..12 {
            let (hq, hk) = draws.of(&[(1, 1), (2, 2), (4, 2)]);
            let case = Case {
                b: 1 + draws.below(2),
                hq,
                hk,
                nq: draws.of(&[1, 5, 63, 64, 65, 129, 257]),
                nk: draws.of(&[1, 3, 64, 65, 130, 300, 1000]),
                d: draws.of(&[1, 3, 31, 64]),
                dv: draws.of(&[1, 8, 33, 64]),
                mask,
                offset: draws.happens(0.3).then_some(3),
                spread: draws.of(&[0.01, 1.0, 1.0, 3.0, 30.0]),
                arriving_lse: draws.happens(0.3),
                strided: draws.happens(0.5),
                lean: true,
                seed,
                ..Case::default()
            };
            let data = case.data::<f32>();
            let [q, k, v, _] = data.views();
            assert_eq!(cuda::form(&data.spec(), q, k, v).unwrap(), ["DotSplit"; 2], "{case:?}");
            assert!(Oracle::of(case).is_kept_by("cuda", gpu()), "{case:?}");
        }
        println!("{mask:?}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU of Hopper's kind, and REGARD_UNPROVEN set"]
fn few_queries_over_many_keys_keep_the_rule() {
    let none = MaskKind::default();
    for (seed, (hq, hk, nq)) in
        [(1, 1, 1), (8, 2, 1), (16, 1, 1), (4, 2, 3), (2, 1, 8)].into_iter().enumerate()
    {
        for mask in [none, MaskKind { causal: true, lengths: true, ..none }] {
            for nk in [1, 64, 777, 5000] {
                let offset = Some(nk as isize - nq as isize);
                let seed = seed as u64;
                let case = Case {
                    b: 2,
                    hq,
                    hk,
                    nq,
                    nk,
                    d: 128,
                    dv: 64,
                    mask,
                    offset,
                    seed,
                    ..Case::default()
                };
                keeps(case, false);
            }
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU of Hopper's kind, and REGARD_UNPROVEN set"]
fn a_thousand_repeats_give_the_same_bits() {
    let none = MaskKind::default();
    for (d, mask) in [
        (128, none),
        (64, MaskKind { causal: true, ..none }),
        (128, MaskKind { segments: true, ..none }),
    ] {
        let (nq, nk) = (700, 900);
        let case = Case { b: 2, hq: 4, hk: 2, nq, nk, d, dv: d, mask, ..Case::default() };
        let halves = Halves::<bf16>::of(case, false);
        let bits = |r: Results| r.concat().into_iter().map(f64::to_bits).collect::<Vec<u64>>();
        let first = bits(halves.fused());
        for repeat in 0..1000 {
            assert!(bits(halves.fused()) == first, "repeat {repeat} has other bits\n{case:?}");
        }
        println!("width {d}, {mask:?}: 1000 repeats");
    }
}

#[test]
fn nothing_unproven_is_chosen_unless_it_is_asked_for() {
    if std::env::var_os("REGARD_UNPROVEN").is_some() {
        return;
    }
    let case = Case { nq: 64, nk: 64, d: 64, dv: 64, ..Case::default() };
    let halves = Halves::<bf16>::of(case, false);
    let data = case.data::<f32>();
    let [q, k, v] = [0, 1, 2].map(|at| halves.view(&halves.stored[at], at));
    assert_eq!(cuda::form(&data.spec(), q, k, v).unwrap(), ["Generic", "Generic"]);
}

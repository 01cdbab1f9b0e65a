//! Dot products of 16-bit numbers on a GPU's tensor cores. One command runs all of it:
//! `cargo test --workspace --test cuda_dot -- --ignored`.
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
        assert_eq!(cuda::form(&spec, q, k, v).unwrap(), self.forms(), "{:?}", self.case);
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

    /// How forward and backward are computed.
    fn forms(&self) -> [&'static str; 2] {
        let few = self.case.nq * self.case.hq / self.case.hk <= 16 && !self.case.mask.segments;
        match self.case {
            Case { score: ScoreKind::Additive(_), .. } => ["Additive"; 2],
            _ if size_of::<E>() == size_of::<f32>() => ["DotSplit"; 2],
            _ if self.is_sparse() => ["DotThreshold"; 2],
            _ if self.case.bias.relative.is_some() => ["DotBias"; 2],
            _ if few => ["Decode", "Dot"],
            _ => ["Dot"; 2],
        }
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
        let exact = self.case.data::<f64>();
        let ([out, _, rows], [q, k, v, .., relative]) = natural(&exact, &exact.reference());
        let natural = [out, rows, q, k, v, relative];
        for (at, name) in NAMES.into_iter().enumerate() {
            // Two roundings of the largest number, as the rule has it, in what is stored; a log-sum-exp
            // is an f32, and so are the sums that every number comes from.
            let epsilon = if at == 1 { 2.0 * f64::from(f32::EPSILON) } else { self.epsilon() };
            let (found, plain) = (error(&fused[at], &truth[at]), error(&plain[at], &truth[at]));
            let sums = f64::from(f32::EPSILON) * natural[at];
            let allowed = 2.0 * plain + 2.0 * (epsilon * largest(&truth[at])).max(sums);
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
#[ignore = "needs an NVIDIA GPU of Hopper's kind"]
fn one_tile_is_right() {
    for d in [64, 128] {
        keeps(Case { nq: 64, nk: 64, d, dv: d, ..Case::default() }, false);
        println!("one tile of width {d}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU of Hopper's kind"]
fn every_mask_of_ranges_keeps_the_rule_at_odd_lengths() {
    let mut draws = Draws::new(11);
    let mut cases = Vec::new();
    for mask in masks_of_ranges() {
        for _ in 0..20 {
            let seed = cases.len() as u64;
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
            cases.push((case, draws.happens(0.5)));
        }
    }
    each_beside_others(&cases, |(case, by_position)| keeps(case, by_position));
}

#[test]
#[ignore = "needs an NVIDIA GPU of Hopper's kind"]
fn a_bias_by_distance_and_sparse_normalizers_keep_the_rule() {
    let bias = |reach: usize, per_head: bool| BiasKind {
        relative: Some((reach, per_head)),
        ..BiasKind::default()
    };
    let (mut seed, mut cases) = (0, Vec::new());
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
                // Each of these is another text to compile.
                let (reaches, normalizers): (&[usize], &[Normalizer]) = match d {
                    64 => (&[1, 128], &[Normalizer::Sparsemax, Normalizer::Entmax15]),
                    _ => (&[37], &[Normalizer::Entmax15]),
                };
                for &reach in reaches {
                    cases.push(Case { bias: bias(reach, seed % 2 == 0), ..case });
                }
                for &normalizer in normalizers {
                    cases.push(Case { normalizer, ..case });
                }
            }
        }
    }
    each_beside_others(&cases, |case| keeps(case, false));
}

#[test]
#[ignore = "needs an NVIDIA GPU of Hopper's kind"]
fn f32_in_parts_keeps_the_rule_of_f32() {
    let (mut draws, mut cases) = (Draws::new(17), Vec::new());
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
            cases.push(case);
        }
    }
    each_beside_others(&cases, |case| {
        let data = case.data::<f32>();
        let [q, k, v, _] = data.views();
        assert_eq!(cuda::form(&data.spec(), q, k, v).unwrap(), ["DotSplit"; 2], "{case:?}");
        assert!(Oracle::of(case).is_kept_by("cuda", gpu()), "{case:?}");
    });
}

#[test]
#[ignore = "needs an NVIDIA GPU of Hopper's kind"]
fn few_queries_over_many_keys_keep_the_rule() {
    let (none, mut cases) = (MaskKind::default(), Vec::new());
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
                cases.push(case);
            }
        }
    }
    each_beside_others(&cases, |case| keeps(case, false));
}

/// Outputs and gradients where a key and its value, or a query and the gradient of its output, are NaN:
/// some rows do not see the one, some keys are not seen by the other.
fn leaves_others_alone<E: Element<Compute = f32>>(case: Case) {
    for (undefined, [one, other]) in [([1, 2], [0, 2]), ([0, 3], [3, 4])] {
        let mut halves = Halves::<E>::of(case, false);
        for at in undefined {
            let [b, h, n, d] = halves.shapes[at];
            for head in 0..b * h {
                halves.stored[at][(head * n + n / 2) * d] = E::narrow(f32::NAN);
            }
        }
        let (truth, fused) = (halves.truth(), halves.fused());
        for (at, name) in NAMES.into_iter().enumerate() {
            for (n, (&found, &truth)) in fused[at].iter().zip(&truth[at]).enumerate() {
                let close = found == truth || (found - truth).abs() <= 0.05 * truth.abs().max(1.0);
                assert!(
                    close || (found.is_nan() && truth.is_nan()),
                    "{name} {n}: {found}, {truth}\n{case:?}"
                );
            }
        }
        for at in [one, other] {
            let undefined = truth[at].iter().filter(|x| x.is_nan()).count();
            assert!(undefined > 0 && undefined < truth[at].len(), "{case:?}");
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU of Hopper's kind"]
fn what_a_row_does_not_see_does_not_touch_it() {
    let causal = MaskKind { causal: true, ..MaskKind::default() };
    let dot = Case {
        b: 2,
        hq: 4,
        hk: 2,
        nq: 200,
        nk: 333,
        d: 64,
        dv: 40,
        mask: causal,
        ..Case::default()
    };
    let dot = Case { offset: Some(60), ..dot };
    let relative = BiasKind { relative: Some((37, true)), ..BiasKind::default() };
    leaves_others_alone::<bf16>(dot);
    leaves_others_alone::<f16>(Case { d: 128, dv: 128, ..dot });
    leaves_others_alone::<bf16>(Case { bias: relative, ..dot });
    for normalizer in [Normalizer::Sparsemax, Normalizer::Entmax15] {
        leaves_others_alone::<bf16>(Case { normalizer, ..dot });
    }
    leaves_others_alone::<bf16>(Case { nq: 4, offset: Some(164), ..dot });
    leaves_others_alone::<f32>(dot);
    let tanh = ScoreKind::Additive(regard_kernels::Activation::Tanh);
    leaves_others_alone::<f32>(Case { score: tanh, hq: 2, ..dot });
}

#[test]
#[ignore = "needs an NVIDIA GPU of Hopper's kind"]
fn a_thousand_repeats_give_the_same_bits() {
    let none = MaskKind::default();
    let wide = Case { b: 1, hq: 2, hk: 1, nq: 300, nk: 400, d: 128, dv: 128, ..Case::default() };
    let narrow = Case { d: 64, dv: 64, ..wide };
    let relative = BiasKind { relative: Some((37, true)), ..BiasKind::default() };
    let cases = [
        wide,
        Case { mask: MaskKind { causal: true, ..none }, ..narrow },
        Case { mask: MaskKind { segments: true, ..none }, ..wide },
        Case { bias: relative, ..narrow },
        Case { normalizer: Normalizer::Entmax15, ..narrow },
        Case { nq: 4, ..wide },
    ];
    each_beside_others(&cases, |case| {
        let halves = Halves::<bf16>::of(case, false);
        let bits = |r: Results| r.concat().into_iter().map(f64::to_bits).collect::<Vec<u64>>();
        let first = bits(halves.fused());
        for repeat in 0..1000 {
            assert!(bits(halves.fused()) == first, "repeat {repeat} has other bits\n{case:?}");
        }
    });
}

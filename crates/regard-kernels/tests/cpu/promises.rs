//! What the operator promises, one test per promise, on every instruction set of this machine.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use crate::case::*;
use regard_kernels::{
    Activation, Backward, Broadcast, Cpu, Dropout, Edges, Forward, Gradients, Isa, Mask,
    Normalizer, OwnGrads, OwnScore, Saved, Score, Segments, Spec, Team, View, ViewMut, on_team,
    reference, sequential,
};
use std::collections::HashSet;
use std::sync::Mutex;
use std::thread::{self, ThreadId};

fn cpus() -> impl Iterator<Item = Cpu> {
    Isa::ALL.into_iter().filter_map(Cpu::with)
}

#[test]
fn a_fully_masked_row_gives_zeros_and_zero_gradients() {
    for normalizer in NORMALIZERS {
        for score in [ScoreKind::Dot, ScoreKind::Additive(Activation::Tanh)] {
            for nq in [2, 70] {
                let mut case = Case { b: 2, nq, nk: 40, score, normalizer, ..Case::default() };
                case.arriving = true;
                // Position −100: no key is behind or beside the first query.
                case.mask = MaskKind { causal: true, ..MaskKind::default() };
                case.offset = Some(-100);
                let data = case.data::<f32>();
                for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                    let r = data.fused(isa);
                    assert!(r.out.iter().chain(&r.weights).all(|&x| x == 0.0));
                    assert!(r.gradients.iter().flatten().all(|&x| x == 0.0));
                    assert!(r.lse.iter().all(|&x| x == f32::NEG_INFINITY));
                    if normalizer.is_hard() {
                        assert!(r.index.iter().all(|&x| x == -1));
                        assert!(r.log_prob.iter().all(|&x| x == 0.0));
                    }
                }
            }
        }
    }
}

#[test]
fn a_bias_of_minus_infinity_masks() {
    for nq in [3, 33] {
        for normalizer in NORMALIZERS {
            let case = Case {
                nq,
                nk: 20,
                normalizer,
                bias: BiasKind { full: Some([false, false, true, true]), ..BiasKind::default() },
                arriving: true,
                ..Case::default()
            };
            let mut by_bias = case.data::<f32>();
            by_bias.bias.0.fill(0.0);
            let mut seen = vec![true; nq * 20];
            for (at, seen) in seen.iter_mut().enumerate() {
                // Row 1 sees nothing at all.
                *seen = at % 3 != 0 && at / 20 != 1;
                by_bias.bias.0[at] = if *seen { 0.0 } else { f32::NEG_INFINITY };
            }
            for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                let r = by_bias.fused(isa);
                assert!(r.out.iter().all(|x| x.is_finite()), "{isa} {normalizer:?}");
                assert!(r.gradients.iter().flatten().all(|x| x.is_finite()));
                assert!(r.out[4..8].iter().all(|&x| x == 0.0));
                for (weight, seen) in r.weights.iter().zip(&seen) {
                    assert!(*seen || *weight == 0.0);
                }
            }
        }
    }
}

#[test]
fn nothing_is_legal_everywhere() {
    for (b, nq, nk, d, dv) in
        [(0, 3, 3, 2, 2), (1, 0, 3, 2, 2), (1, 3, 0, 2, 2), (1, 3, 3, 0, 2), (1, 3, 3, 2, 0)]
    {
        for nq in [nq, nq * 11] {
            for score in SCORES {
                for normalizer in NORMALIZERS {
                    for edges in [false, true] {
                        let mask = MaskKind { edges, ..MaskKind::default() };
                        keeps_the_rule(Case {
                            b,
                            nq,
                            nk,
                            d,
                            dv,
                            score,
                            normalizer,
                            mask,
                            ..Case::default()
                        });
                    }
                }
            }
        }
    }
}

#[test]
fn a_row_with_one_key_gives_that_value() {
    for nq in [1, 64] {
        for normalizer in [Normalizer::Softmax, Normalizer::Sparsemax, Normalizer::Entmax15] {
            let data = Case { nq, nk: 1, normalizer, ..Case::default() }.data::<f32>();
            for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                for row in data.fused(isa).out.chunks_exact(4) {
                    for (out, v) in row.iter().zip(&data.v) {
                        assert!((out - v).abs() <= 2.0 * f32::EPSILON * v.abs());
                    }
                }
            }
        }
    }
}

#[test]
fn no_edges_give_zeros_and_an_edge_given_twice_counts_once() {
    let once = Edges::new(3, 4, &[(0, 1), (0, 3), (2, 2)]).unwrap();
    let twice = Edges::new(3, 4, &[(2, 2), (0, 3), (0, 1), (0, 1), (2, 2), (0, 3)]).unwrap();
    let none = Edges::new(3, 4, &[]).unwrap();
    let q: Vec<f32> = (0..6).map(|x| x as f32).collect();
    let k: Vec<f32> = (0..8).map(|x| 1.0 - x as f32 / 4.0).collect();
    let run = |cpu: Cpu, edges: &Edges| {
        let spec =
            Spec { mask: Mask { edges: Some(edges), ..Mask::default() }, ..Spec::scaled_dot(2) };
        let mut out = vec![f32::NAN; 6];
        let [q, k] = [View::new(&q, [1, 1, 3, 2]), View::new(&k, [1, 1, 4, 2])].map(Result::unwrap);
        let to = ViewMut::new(&mut out, [1, 1, 3, 2]).unwrap();
        cpu.forward(&spec, q, k, k, Forward::new(to)).unwrap();
        out
    };
    for cpu in cpus() {
        assert_eq!(run(cpu, &none), [0.0; 6]);
        assert_eq!(run(cpu, &once), run(cpu, &twice));
        assert_eq!(run(cpu, &once)[2..4], [0.0; 2]);
        assert_eq!(run(cpu, &once)[4..6], k[4..6]);
    }
}

/// A score that notes which threads compute it.
struct Noting(Mutex<HashSet<ThreadId>>);

impl OwnScore<f32> for Noting {
    fn score(&self, _: &[f32], q: &[f32], k: &[f32]) -> f32 {
        self.0.lock().unwrap().insert(thread::current().id());
        q[0] * k[0]
    }

    fn backward(&self, _: &[f32], _: &[f32], _: &[f32], _: f32, _: OwnGrads<f32>) {}
}

#[test]
fn a_sequential_call_stays_on_the_calling_thread() {
    let noting = Noting(Mutex::default());
    let x = vec![0.5f32; 8 * 200];
    let mut out = vec![0f32; 8 * 200];
    let x = View::new(&x, [1, 8, 200, 1]).unwrap();
    let pass = Forward::new(ViewMut::new(&mut out, [1, 8, 200, 1]).unwrap());
    let spec = Spec::new(Score::Own { score: &noting, parameters: &[] });
    sequential(|| Cpu::best().forward(&spec, x, x, x, pass)).unwrap();
    assert_eq!(noting.0.into_inner().unwrap(), HashSet::from([thread::current().id()]));
}

/// So many threads that are nobody's pool.
struct Threads(usize);

impl Team for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, work: &(dyn Fn() + Sync)) {
        thread::scope(|scope| {
            for _ in 1..self.0 {
                scope.spawn(work);
            }
            work();
        });
    }
}

/// The same bits whenever, and on however many threads.
#[test]
fn repeated_runs_and_other_thread_counts_give_the_same_bits() {
    let pools = [1, 2, 3]
        .map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    for (turn, normalizer) in NORMALIZERS.into_iter().enumerate() {
        for edges in [false, true] {
            for (nq, nk) in [(300, 600), (2, 1100), (650, 70)] {
                let case = Case {
                    hq: 2,
                    nq,
                    nk,
                    d: 16,
                    dv: 8,
                    score: [ScoreKind::Dot, SCORES[2]][turn % 2],
                    bias: BiasKind {
                        key: Some([true, false]),
                        full: Some([true, false, true, true]),
                        relative: Some((3, true)),
                        ..BiasKind::default()
                    },
                    mask: MaskKind { edges, ..MaskKind::default() },
                    normalizer,
                    dropout: Some(0.25),
                    arriving: true,
                    ..Case::default()
                };
                let data = case.data::<f32>();
                for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                    let first = data.fused(isa).bits();
                    for pool in &pools {
                        assert_eq!(first, pool.install(|| data.fused(isa)).bits(), "{case:?}");
                    }
                    assert_eq!(first, sequential(|| data.fused(isa)).bits(), "{case:?}");
                    assert_eq!(first, on_team(&Threads(3), || data.fused(isa)).bits(), "{case:?}");
                }
            }
        }
    }
}

#[test]
fn a_team_computes_and_rayons_threads_do_not() {
    let noting = Noting(Mutex::default());
    let x = vec![0.5f32; 8 * 200];
    let mut out = vec![0f32; 8 * 200];
    let x = View::new(&x, [1, 8, 200, 1]).unwrap();
    let pass = Forward::new(ViewMut::new(&mut out, [1, 8, 200, 1]).unwrap());
    let spec = Spec::new(Score::Own { score: &noting, parameters: &[] });
    let of_rayon: HashSet<ThreadId> =
        rayon::broadcast(|_| thread::current().id()).into_iter().collect();
    on_team(&Threads(2), || Cpu::best().forward(&spec, x, x, x, pass)).unwrap();
    let seen = noting.0.into_inner().unwrap();
    assert!(!seen.is_empty() && seen.len() <= 2 && seen.is_disjoint(&of_rayon), "{seen:?}");
}

/// A team that says it has threads and calls none of them.
struct Nobody;

impl Team for Nobody {
    fn threads(&self) -> usize {
        3
    }

    fn run(&self, _: &(dyn Fn() + Sync)) {}
}

#[test]
fn what_a_team_leaves_is_computed_all_the_same() {
    let case = Case { hq: 4, nq: 130, nk: 90, ..Case::default() };
    let data = case.data::<f32>();
    assert_eq!(data.fused(Isa::best()).bits(), on_team(&Nobody, || data.fused(Isa::best())).bits());
}

/// A task may have all heads that share a bias or a pass may be the bias's own, by the threads.
#[test]
fn a_bias_of_many_heads_has_the_same_bits_in_a_pass_of_its_own_and_without() {
    let pools =
        [1, 5].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    for (hk, own) in [(8, [false, true]), (4, [false, true]), (8, [true, false])] {
        for (nq, nk) in [(130, 200), (70, 97), (33, 300)] {
            let case = Case {
                b: if own[0] { 5 } else { 3 },
                hq: 8,
                hk,
                nq,
                nk,
                d: 16,
                dv: 8,
                bias: BiasKind { full: Some([own[0], own[1], true, true]), ..BiasKind::default() },
                mask: MaskKind { causal: nq == 130, ..MaskKind::default() },
                dropout: (nq == 70).then_some(0.25),
                ..Case::default()
            };
            assert!(!keeps_the_rule(case).is_empty());
            let data = case.data::<f32>();
            for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                let [one, many] = pools.each_ref().map(|p| p.install(|| data.fused(isa)).bits());
                assert_eq!(one, many, "{case:?}");
                assert_eq!(one, data.fused(isa).bits(), "{case:?}");
            }
        }
    }
}

#[test]
fn asking_for_the_weights_changes_no_bit_and_they_multiply_to_the_output() {
    for normalizer in NORMALIZERS {
        for (nq, edges) in [(3, false), (70, false), (70, true)] {
            let case = Case {
                nq,
                nk: 90,
                normalizer,
                mask: MaskKind { edges, causal: true, ..MaskKind::default() },
                dropout: Some(0.3),
                ..Case::default()
            };
            let data = case.data::<f32>();
            let shapes = data.shapes();
            for cpu in cpus() {
                let with = data.fused(cpu.isa());
                let mut out = vec![0f32; with.out.len()];
                let [q, k, v] = [(&data.q, 0), (&data.k, 1), (&data.v, 2)]
                    .map(|(x, a)| View::new(x.as_slice(), shapes[a]).unwrap());
                let to = ViewMut::new(&mut out, shapes[3]).unwrap();
                cpu.forward(&data.spec(), q, k, v, Forward::new(to)).unwrap();
                assert_eq!(out, with.out);
                for (i, row) in with.weights.chunks_exact(90).enumerate() {
                    for d in 0..4 {
                        let sum: f32 =
                            row.iter().zip(data.v.chunks(4)).map(|(w, v)| w * v[d]).sum();
                        assert!((sum - out[i * 4 + d]).abs() < 1e-4 * (1.0 + sum.abs()));
                    }
                }
            }
        }
    }
}

#[test]
fn dropout_drops_its_share_and_backward_drops_the_same() {
    let p = 0.3;
    for (nq, edges) in [(2, false), (200, false), (200, true)] {
        for cpu in cpus() {
            let nk = 301;
            let case = Case {
                hq: 2,
                hk: 2,
                nq,
                nk,
                d: 4,
                dv: 4,
                dropout: Some(p),
                mask: MaskKind { edges, ..MaskKind::default() },
                ..Case::default()
            };
            let mut data = case.data::<f32>();
            let weights = data.fused(cpu.isa()).weights;
            let whole = Case { dropout: None, ..case }.data::<f32>().fused(cpu.isa()).weights;
            let seen: Vec<_> = weights.iter().zip(&whole).filter(|(_, w)| **w > 0.0).collect();
            let dropped = seen.iter().filter(|(w, _)| **w == 0.0).count() as f64;
            let n = seen.len() as f64;
            let spread = (n * p * (1.0 - p)).sqrt();
            assert!((dropped - n * p).abs() < 4.0 * spread, "{dropped} of {n} dropped");
            for (kept, whole) in seen.iter().filter(|(w, _)| **w != 0.0) {
                assert!((*kept * 0.7 / *whole - 1.0).abs() < 1e-4);
            }
            // With a gradient of 1 for one feature, that of v is the sum of the weights given out.
            data.grad_out.fill(0.0);
            data.grad_out.iter_mut().step_by(4).for_each(|g| *g = 1.0);
            let r = data.fused(cpu.isa());
            for j in 0..nk {
                let given: f32 = (0..nq).map(|i| r.weights[i * nk + j]).sum();
                assert!((given - r.gradients[2][j * 4]).abs() < 1e-4 * (1.0 + given));
            }
        }
    }
}

#[test]
fn different_seeds_heads_and_batch_items_drop_different_weights() {
    let case = Case { b: 2, hq: 2, nq: 40, nk: 40, dropout: Some(0.5), ..Case::default() };
    let r = case.data::<f32>().fused(Isa::best());
    let zeros: Vec<Vec<bool>> =
        r.weights.chunks_exact(1600).map(|w| w.iter().map(|&x| x == 0.0).collect()).collect();
    let mut other = case.data::<f32>();
    other.case.seed += 1;
    let other = other.fused(Isa::best()).weights;
    let other: Vec<bool> = other[..1600].iter().map(|&x| x == 0.0).collect();
    for a in 0..4 {
        for b in zeros[a + 1..].iter().chain([&other]) {
            let same = zeros[a].iter().zip(b).filter(|(x, y)| x == y).count();
            assert!((700..900).contains(&same), "{same} of 1600 alike");
        }
    }
}

#[test]
fn sampled_keys_come_as_often_as_their_probability_says() {
    // 4,000 equal queries over eight keys: each draws for itself.
    let (nq, nk) = (4000, 8);
    let q = vec![1f32; nq];
    let k: Vec<f32> = (0..nk).map(|j| j as f32 * 0.4).collect();
    let total: f32 = k.iter().map(|s| s.exp()).sum();
    for cpu in cpus() {
        let mut index = vec![0i64; nq];
        let mut log_prob = vec![0f32; nq];
        let mut out = vec![0f32; nq];
        let spec = Spec {
            normalizer: Normalizer::Sample { seed: 3 },
            ..Spec::new(Score::Dot { scale: 1.0 })
        };
        let [q, k] =
            [View::new(&q, [1, 1, nq, 1]), View::new(&k, [1, 1, nk, 1])].map(Result::unwrap);
        let pass = Forward {
            index: Some(&mut index),
            log_prob: Some(&mut log_prob),
            ..Forward::new(ViewMut::new(&mut out, [1, 1, nq, 1]).unwrap())
        };
        cpu.forward(&spec, q, k, k, pass).unwrap();
        let mut chi = 0.0;
        for j in 0..nk {
            let p = f64::from((j as f32 * 0.4).exp() / total);
            let found = index.iter().filter(|&&x| x == j as i64).count() as f64;
            chi += (found - nq as f64 * p).powi(2) / (nq as f64 * p);
        }
        // 99.9% of fair draws stay below 24.3 with seven degrees of freedom.
        assert!(chi < 24.3, "{}: χ² = {chi}", cpu.isa());
        for (&j, &log) in index.iter().zip(&log_prob) {
            assert!((log - (j as f32 * 0.4 - total.ln())).abs() < 1e-5);
        }
    }
}

#[test]
fn equal_scores_choose_the_first_key() {
    for nq in [1, 20] {
        let mut data =
            Case { nq, nk: 50, normalizer: Normalizer::Argmax, ..Case::default() }.data::<f32>();
        data.k.fill(1.0);
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            assert!(data.fused(isa).index.iter().all(|&j| j == 0));
        }
    }
}

#[test]
fn halves_are_stored_and_computed_in_single_precision() {
    use half::{bf16, f16};
    fn check<E: regard_kernels::Element<Compute = f32>>(epsilon: f32) {
        for nq in [2, 40] {
            let case = Case { hq: 4, hk: 2, nq, nk: 70, d: 31, dv: 17, ..Case::default() };
            let data = case.data::<f32>();
            let shapes = data.shapes();
            let stored = [&data.q, &data.k, &data.v, &data.grad_out]
                .map(|x| x.iter().map(|&x| E::narrow(x)).collect::<Vec<E>>());
            let mut rounded = case.data::<f32>();
            for (to, from) in [
                (&mut rounded.q, &stored[0]),
                (&mut rounded.k, &stored[1]),
                (&mut rounded.v, &stored[2]),
                (&mut rounded.grad_out, &stored[3]),
            ] {
                *to = from.iter().map(|x| x.widen()).collect();
            }
            for cpu in cpus() {
                let single = rounded.fused(cpu.isa());
                let [q, k, v, grad_out] =
                    [0, 1, 2, 3].map(|a| View::new(&stored[a], shapes[a]).unwrap());
                let zeros = |a: usize| vec![E::narrow(0.0); shapes[a].iter().product()];
                let mut out = zeros(3);
                let mut lse = vec![0f32; shapes[3][..3].iter().product()];
                let to = ViewMut::new(&mut out, shapes[3]).unwrap();
                let pass = Forward { lse: Some(&mut lse), ..Forward::new(to) };
                cpu.forward(&data.spec(), q, k, v, pass).unwrap();
                assert_eq!(lse, single.lse, "inside, all is single precision");
                for (x, y) in out.iter().zip(&single.out) {
                    assert!(x.widen() == E::narrow(*y).widen(), "the output is rounded once");
                }
                let mut grads = [zeros(0), zeros(1), zeros(2)];
                let [gq, gk, gv] = &mut grads;
                let saved = Saved {
                    out: Some(View::new(&out, shapes[3]).unwrap()),
                    lse: Some(&lse),
                    ..Saved::default()
                };
                let gradients = Gradients {
                    q: Some(ViewMut::new(gq, shapes[0]).unwrap()),
                    k: Some(ViewMut::new(gk, shapes[1]).unwrap()),
                    v: Some(ViewMut::new(gv, shapes[2]).unwrap()),
                    ..Gradients::default()
                };
                let pass = Backward::new(grad_out, saved, gradients);
                cpu.backward(&data.spec(), q, k, v, pass).unwrap();
                for (found, single) in grads.iter().zip(&single.gradients) {
                    let scale = single.iter().fold(0f32, |top, x| top.max(x.abs()));
                    for (x, y) in found.iter().zip(single) {
                        assert!((x.widen() - y).abs() <= 2.0 * epsilon * scale);
                    }
                }
            }
        }
    }
    check::<bf16>(1.0 / 128.0);
    check::<f16>(1.0 / 1024.0);
}

#[test]
fn masked_out_keys_are_never_read() {
    // Keys beyond the length, the future and the window hold NaN; nothing of it arrives.
    for nq in [4, 80] {
        let case = Case { nq, nk: 300, ..Case::default() };
        let mut data = case.data::<f32>();
        for x in data.k[250 * 4..].iter_mut().chain(&mut data.v[250 * 4..]) {
            *x = f32::NAN;
        }
        let lengths = [250usize];
        for cpu in cpus() {
            for causal in [false, true] {
                let mut spec = data.spec();
                spec.mask = Mask { key_lengths: Some(&lengths), causal, ..Mask::default() };
                spec.offset = Some(100);
                let mut out = vec![0f32; nq * 4];
                let shapes = data.shapes();
                let [q, k, v] = [(&data.q, 0), (&data.k, 1), (&data.v, 2)]
                    .map(|(x, a)| View::new(x.as_slice(), shapes[a]).unwrap());
                let to = ViewMut::new(&mut out, shapes[3]).unwrap();
                cpu.forward(&spec, q, k, v, Forward::new(to)).unwrap();
                assert!(out.iter().all(|x| x.is_finite()));
            }
        }
    }
}

#[test]
fn values_that_are_the_keys_give_the_same_gradients_as_a_copy_of_them() {
    // One array given twice is walked along once.
    for (edges, nq) in [(true, 3), (true, 70), (false, 3), (false, 70)] {
        for d in [3, 8, 16, 31] {
            for (score, normalizer) in [
                (ScoreKind::Dot, Normalizer::Softmax),
                (SCORES[2], Normalizer::Softmax),
                (SCORES[2], Normalizer::Entmax15),
                (ScoreKind::Own, Normalizer::Softmax),
                (SCORES[1], Normalizer::Sample { seed: 2 }),
            ] {
                let mask = MaskKind { edges, ..MaskKind::default() };
                let case =
                    Case { nq, nk: 40, d, dv: d, score, normalizer, mask, ..Case::default() };
                let mut data = case.data::<f32>();
                data.v = data.k.clone();
                let shapes = data.shapes();
                let [q, k, v, grad_out] =
                    [(&data.q, 0), (&data.k, 1), (&data.v, 2), (&data.grad_out, 3)]
                        .map(|(x, a)| View::new(x.as_slice(), shapes[a]).unwrap());
                let zeros = |a: usize| vec![f32::NAN; shapes[a].iter().product()];
                for cpu in cpus() {
                    let gradients = |v| {
                        let mut out = zeros(3);
                        let (mut lse, mut rows) = (vec![0f32; nq], vec![0f32; nq]);
                        let mut index = vec![0i64; nq];
                        let to = ViewMut::new(&mut out, shapes[3]).unwrap();
                        let threshold = normalizer == Normalizer::Entmax15;
                        let pass = Forward {
                            lse: Some(&mut lse),
                            threshold: threshold.then_some(&mut rows),
                            index: normalizer.is_hard().then_some(&mut index),
                            ..Forward::new(to)
                        };
                        cpu.forward(&data.spec(), q, k, v, pass).unwrap();
                        let mut grads = [zeros(0), zeros(1), zeros(2)];
                        let [gq, gk, gv] = &mut grads;
                        let saved = Saved {
                            out: Some(View::new(&out, shapes[3]).unwrap()),
                            lse: Some(&lse),
                            threshold: Some(&rows),
                            index: Some(&index),
                        };
                        let gradients = Gradients {
                            q: Some(ViewMut::new(gq, shapes[0]).unwrap()),
                            k: Some(ViewMut::new(gk, shapes[1]).unwrap()),
                            v: Some(ViewMut::new(gv, shapes[2]).unwrap()),
                            ..Gradients::default()
                        };
                        let pass = Backward {
                            grad_log_prob: normalizer.is_hard().then_some(&data.grad_out[..nq]),
                            ..Backward::new(grad_out, saved, gradients)
                        };
                        cpu.backward(&data.spec(), q, k, v, pass).unwrap();
                        grads
                    };
                    assert!(gradients(k) == gradients(v), "{} {case:?}", cpu.isa());
                }
            }
        }
    }
}

#[test]
fn what_arrives_at_masked_weights_is_not_looked_at() {
    // −∞ and NaN are what the logarithm of a weight of 0 sends back.
    let mask = MaskKind { dense: Some([true; 4]), ..MaskKind::default() };
    for mask in [mask, MaskKind { edges: true, ..mask }, MaskKind { causal: true, ..mask }] {
        for normalizer in NORMALIZERS {
            for nq in [3, 70] {
                let case =
                    Case { nq, nk: 100, mask, normalizer, arriving: true, ..Case::default() };
                let (clean, mut data) = (case.data::<f32>(), case.data::<f32>());
                let scores = Case { normalizer: Normalizer::None, ..case }.data::<f32>();
                let seen = scores.reference().weights;
                let grads = data.grad_weights.as_mut().unwrap();
                for (at, grad) in grads.iter_mut().enumerate().filter(|x| seen[x.0] == 0.0) {
                    *grad = [f32::NAN, f32::NEG_INFINITY][at % 2];
                }
                for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                    let same = data.fused(isa).bits() == clean.fused(isa).bits();
                    assert!(same, "{isa} {normalizer:?} {mask:?}");
                }
            }
        }
    }
}

#[test]
fn a_sampled_key_becomes_likelier_along_the_gradient_of_its_log_probability() {
    for edges in [false, true] {
        for nq in [2, 40] {
            let mask = MaskKind { edges, ..MaskKind::default() };
            let normalizer = Normalizer::Sample { seed: 5 };
            let case = Case { nq, nk: 30, mask, normalizer, arriving: true, ..Case::default() };
            for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                let mut data = case.data::<f32>();
                data.grad_log_prob.as_mut().unwrap().fill(1.0);
                let before = data.fused(isa);
                assert!(before.gradients[0].iter().any(|&x| x != 0.0));
                for (q, grad) in data.q.iter_mut().zip(&before.gradients[0]) {
                    *q += 0.01 * grad;
                }
                let after = data.fused(isa);
                let same = (0..nq).filter(|&i| before.index[i] == after.index[i]);
                for i in same.filter(|&i| before.log_prob[i] != 0.0) {
                    assert!(after.log_prob[i] >= before.log_prob[i]);
                }
            }
        }
    }
}

#[test]
fn gradients_that_cannot_arrive_are_refused() {
    let x = [0f32; 24];
    let view = |n| View::new(&x[..n * 4], [1, 1, n, 4]).unwrap();
    let (q, k) = (view(2), view(3));
    let say = |normalizer, weights: Option<&[f32]>, log_prob: Option<&[f32]>, lse| {
        let saved = Saved { out: Some(q), lse, threshold: None, index: Some(&[0; 2]) };
        let pass = Backward {
            grad_weights: weights,
            grad_log_prob: log_prob,
            ..Backward::new(q, saved, Gradients::default())
        };
        let spec = Spec { normalizer, ..Spec::scaled_dot(4) };
        let arriving = reference::Arriving { weights, log_prob, ..q.into() };
        let by_kernels = Cpu::best().backward(&spec, q, k, k, pass).unwrap_err().to_string();
        let by_reference = reference::backward(&spec, q, k, k, arriving).err();
        // The reference needs nothing saved.
        assert!(by_reference.is_none_or(|error| error.to_string() == by_kernels));
        by_kernels
    };
    let lse = Some(&x[..2]);
    assert_eq!(
        say(Normalizer::Softmax, Some(&x[..5]), None, lse),
        "grad_weights has 5 elements, [B, Hq, Nq, Nk] is [1, 1, 2, 3]"
    );
    assert_eq!(
        say(Normalizer::Argmax, None, Some(&x[..3]), lse),
        "grad_log_prob has 3 elements, [B, Hq, Nq] = [1, 1, 2] needs 2"
    );
    assert_eq!(
        say(Normalizer::Softmax, None, Some(&x[..2]), lse),
        "grad_log_prob was given; Softmax chooses no key"
    );
    assert_eq!(
        say(Normalizer::Sample { seed: 1 }, None, Some(&x[..2]), None),
        "grad_log_prob needs the saved lse of Sample { seed: 1 }"
    );
}

#[test]
fn refusals_name_the_argument_and_both_shapes() {
    let x = [0f32; 64];
    let view = |shape: [usize; 4]| View::new(&x[..shape.iter().product()], shape).unwrap();
    let spec = Spec::scaled_dot(4);
    let say = |spec: &Spec<f32>, q, k, v| {
        spec.check(&view(q), &view(k), &view(v)).unwrap_err().to_string()
    };
    let [q, k] = [[1, 2, 3, 4], [1, 2, 5, 4]];
    assert_eq!(
        say(&spec, [1, 1, 1, 4], [1, 1, 2, 3], [1, 1, 2, 3]),
        "k has head width 3, q has 4; the dot score needs them equal"
    );
    assert_eq!(
        say(&spec, [2, 1, 1, 4], [1, 1, 2, 4], [1, 1, 2, 4]),
        "q, k and v have batch sizes 2, 1 and 1; they must be equal"
    );
    assert_eq!(
        say(&spec, [1, 3, 1, 4], [1, 2, 2, 4], [1, 2, 2, 4]),
        "q has 3 heads, k has 2; the query heads must be a multiple of the key heads"
    );
    assert_eq!(
        say(&spec, q, k, [1, 2, 6, 4]),
        "k has shape [1, 2, 5, 4] and v [1, 2, 6, 4]; they must have as many heads and as many rows"
    );
    let w = [0f32; 5];
    let additive = Spec::new(Score::Additive { activation: Activation::Tanh, w: &w });
    assert_eq!(
        say(&additive, q, k, k),
        "w has 5 elements; the additive score over width 4 needs [4] or [2, 4]"
    );
    let mut masked = spec;
    masked.mask.key_lengths = Some(&[6]);
    assert_eq!(say(&masked, q, k, k), "key_lengths[0] is 6, k has only 5 rows");
    masked.mask = Mask { segments: Some(Segments { q: &[0; 3], k: &[0; 4] }), ..Mask::default() };
    assert_eq!(say(&masked, q, k, k), "k_segments has 4 elements, [B, N] = [1, 5] needs 5");
    let dense = [true; 12];
    masked.mask =
        Mask { dense: Some(Broadcast { data: &dense, shape: [1, 1, 3, 4] }), ..Mask::default() };
    assert_eq!(
        say(&masked, q, k, k),
        "mask has shape [1, 1, 3, 4], which does not broadcast to [B, Hq, Nq, Nk] = [1, 2, 3, 5]"
    );
    let edges = Edges::new(3, 4, &[]).unwrap();
    masked.mask = Mask { edges: Some(&edges), ..Mask::default() };
    assert_eq!(say(&masked, q, k, k), "edges join 3 queries to 4 keys, q has 3 rows and k has 5");
    let mut dropped = spec;
    dropped.dropout = Some(Dropout { p: 1.0, seed: 0 });
    assert_eq!(say(&dropped, q, k, k), "dropout 1 is not in 0 ≤ p < 1");
    assert_eq!(
        Edges::new(2, 2, &[(0, 0), (2, 1)]).unwrap_err().to_string(),
        "edge 1 joins query 2 to key 1; there are 2 queries and 2 keys"
    );
    let mut y = [0f32; 24];
    assert!(
        ViewMut::strided(&mut y, [1, 2, 3, 4], [0, 0, 4])
            .unwrap_err()
            .to_string()
            .contains("overlap")
    );
    assert!(View::strided(&x, [1, 1, 17, 4], [0, 0, 4]).is_err());
}

/// A score of one's own that panics at one pair, forward or backward.
struct Panics {
    forward: bool,
}

impl OwnScore<f32> for Panics {
    fn score(&self, _: &[f32], q: &[f32], k: &[f32]) -> f32 {
        assert!(!self.forward || q[0] + k[0] < 2.0, "this score had enough");
        q[0] * k[0]
    }

    fn backward(&self, _: &[f32], q: &[f32], k: &[f32], grad: f32, _: OwnGrads<f32>) {
        assert!(q[0] + k[0] + grad.abs() < 1.0, "this score had enough");
    }
}

#[test]
fn a_score_that_panics_leaves_nothing_broken() {
    for (nq, edges) in [(3, false), (70, false), (70, true)] {
        let mask = MaskKind { edges, ..MaskKind::default() };
        let case = Case { nq, nk: 90, mask, ..Case::default() };
        let data = case.data::<f32>();
        let [q, k, v, grad_out] = data.views();
        for cpu in cpus() {
            let before = data.fused(cpu.isa());
            for (forward, teamed) in [(true, false), (false, false), (true, true), (false, true)] {
                let score = Panics { forward };
                let spec =
                    Spec { score: Score::Own { score: &score, parameters: &[] }, ..data.spec() };
                let mut array = vec![0f32; data.q.len()];
                let run = || {
                    if forward {
                        let out = ViewMut::new(&mut array, data.shapes()[3]).unwrap();
                        return cpu.forward(&spec, q, k, v, Forward::new(out));
                    }
                    let saved =
                        Saved { out: Some(grad_out), lse: Some(&before.lse), ..Saved::default() };
                    let to = Some(ViewMut::new(&mut array, data.shapes()[0]).unwrap());
                    let gradients = Gradients { q: to, ..Gradients::default() };
                    cpu.backward(&spec, q, k, v, Backward::new(grad_out, saved, gradients))
                };
                let run = std::panic::AssertUnwindSafe(run);
                let ended = match teamed {
                    true => std::panic::catch_unwind(|| on_team(&Threads(2), run)),
                    false => std::panic::catch_unwind(run),
                };
                assert!(ended.is_err(), "the panic was lost");
            }
            assert_eq!(before.bits(), data.fused(cpu.isa()).bits(), "{case:?}");
        }
    }
}

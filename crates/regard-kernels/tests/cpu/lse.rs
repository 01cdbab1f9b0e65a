//! The gradient of the log-sum-exp: by finite differences, by the twofold rule, and as what makes
//! two halves of the keys, computed apart and merged, one call.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use crate::case::*;
use crate::reference::agrees_with_differences;
use regard_kernels::{
    Activation, Backward, Cpu, Forward, Gradients, Isa, Normalizer, Real, Saved, Spec, View,
    ViewMut,
};

const TAKE_ONE: [Normalizer; 3] =
    [Normalizer::Softmax, Normalizer::Argmax, Normalizer::Sample { seed: 7 }];

#[test]
fn the_gradient_of_the_log_sum_exp_agrees_with_finite_differences() {
    let mut turn = 0;
    for score in SCORES {
        for normalizer in TAKE_ONE {
            for mask in masks() {
                turn += 1;
                let case = Case {
                    b: 2,
                    hq: 2,
                    nq: 3,
                    nk: 4,
                    d: 2,
                    dv: 2,
                    score,
                    normalizer,
                    mask,
                    bias: biases()[turn % 8],
                    dropout: (turn % 2 == 0).then_some(0.3),
                    arriving: turn % 3 == 0,
                    arriving_lse: true,
                    seed: turn as u64,
                    ..Case::default()
                };
                let gradients = case.data::<f64>().reference().gradients;
                agrees_with_differences(case, "q", &gradients[0], |data| &mut data.q);
                agrees_with_differences(case, "k", &gradients[1], |data| &mut data.k);
            }
        }
    }
}

#[test]
fn the_gradient_of_the_log_sum_exp_keeps_the_rule_on_both_paths() {
    let mut turn = 0;
    for score in [SCORES[0], SCORES[1], SCORES[2], ScoreKind::Own] {
        for normalizer in TAKE_ONE {
            for mask in masks() {
                turn += 1;
                let case = Case {
                    b: 1 + turn % 2,
                    hq: 2,
                    hk: 1 + turn % 2,
                    nq: [2, 17, 70][turn % 3],
                    nk: [5, 64, 130][turn / 3 % 3],
                    d: [3, 8, 16][turn % 3],
                    dv: [4, 16][turn % 2],
                    score,
                    normalizer,
                    mask,
                    bias: biases()[turn % 8],
                    dropout: (turn % 4 == 0).then_some(0.25),
                    arriving: turn % 5 == 0,
                    arriving_lse: true,
                    strided: turn % 2 == 1,
                    seed: turn as u64,
                    ..Case::default()
                };
                keeps_the_rule(case);
                agrees_in_double(case);
            }
        }
    }
}

#[test]
fn what_arrives_at_an_empty_rows_log_sum_exp_is_not_looked_at() {
    for normalizer in TAKE_ONE {
        for edges in [false, true] {
            for nq in [2, 40] {
                let mask = MaskKind { causal: true, edges, ..MaskKind::default() };
                let offset = Some(-100);
                let arriving_lse = true;
                let case =
                    Case { nq, nk: 30, normalizer, mask, offset, arriving_lse, ..Case::default() };
                let mut data = case.data::<f32>();
                data.grad_lse.as_mut().unwrap().fill(f32::NAN);
                for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                    assert!(data.fused(isa).gradients.iter().flatten().all(|&x| x == 0.0));
                }
            }
        }
    }
}

#[test]
fn a_gradient_of_the_log_sum_exp_is_refused_where_nothing_is_normalized_by_it() {
    let x = [0f32; 12];
    let q = View::new(&x[..8], [1, 1, 2, 4]).unwrap();
    let k = View::new(&x[..12], [1, 1, 3, 4]).unwrap();
    let say = |normalizer, grad_lse: &[f32], lse| {
        let saved = Saved { out: Some(q), lse, threshold: Some(&x[..2]), index: Some(&[0; 2]) };
        let pass =
            Backward { grad_lse: Some(grad_lse), ..Backward::new(q, saved, Gradients::default()) };
        let spec = Spec { normalizer, ..Spec::scaled_dot(4) };
        Cpu::best().backward(&spec, q, k, k, pass).unwrap_err().to_string()
    };
    for normalizer in NORMALIZERS.into_iter().filter(|n| !TAKE_ONE.contains(n)) {
        assert_eq!(
            say(normalizer, &x[..2], Some(&x[..2])),
            format!("grad_lse was given; {normalizer:?} normalizes by no log-sum-exp")
        );
    }
    assert_eq!(
        say(Normalizer::Softmax, &x[..3], Some(&x[..2])),
        "grad_lse has 3 elements, [B, Hq, Nq] = [1, 1, 2] needs 2"
    );
    assert_eq!(say(Normalizer::Argmax, &x[..2], None), "grad_lse needs the saved lse of Argmax");
}

/// Output and log-sum-exp of some keys.
struct Half {
    from: usize,
    to: usize,
    out: Vec<f64>,
    lse: Vec<f64>,
}

/// Rows `from..to` of every head of an array `[1, H, N, D]`.
fn rows<T: Real>(x: &[T], [h, n, d]: [usize; 3], from: usize, to: usize) -> Vec<T> {
    (0..h).flat_map(|h| x[(h * n + from) * d..(h * n + to) * d].to_vec()).collect()
}

#[test]
fn two_halves_of_the_keys_merged_by_their_log_sum_exps_are_one_call_forward_and_backward() {
    // The first sizes go by lists, the others by tiles.
    for (nq, nk, cut) in [(2, 50, 20), (70, 130, 64), (33, 40, 39)] {
        for score in [ScoreKind::Dot, ScoreKind::Additive(Activation::Tanh)] {
            let case = Case { hq: 2, hk: 2, nq, nk, d: 8, dv: 6, score, ..Case::default() };
            let data = case.data::<f64>();
            let whole = data.reference();
            for cpu in Isa::ALL.into_iter().filter_map(Cpu::with) {
                merged_is_whole(cpu, &data, &whole, cut);
            }
        }
    }
}

fn merged_is_whole(cpu: Cpu, data: &Data<f64>, whole: &Results<f64>, cut: usize) {
    let c = data.case;
    let spec = data.spec();
    let [qs, _, _, os] = data.shapes();
    let q = View::new(&data.q, qs).unwrap();
    let shape = |n: usize, d: usize| [1, c.hk, n, d];
    let halves: Vec<Half> = [(0, cut), (cut, c.nk)]
        .into_iter()
        .map(|(from, to)| {
            let (k, v) = (
                rows(&data.k, [c.hk, c.nk, c.d], from, to),
                rows(&data.v, [c.hk, c.nk, c.dv], from, to),
            );
            let mut half =
                Half { from, to, out: vec![0.0; whole.out.len()], lse: vec![0.0; whole.lse.len()] };
            let pass = Forward {
                lse: Some(&mut half.lse),
                ..Forward::new(ViewMut::new(&mut half.out, os).unwrap())
            };
            let k = View::new(&k, shape(to - from, c.d)).unwrap();
            let v = View::new(&v, shape(to - from, c.dv)).unwrap();
            cpu.forward(&spec, q, k, v, pass).unwrap();
            half
        })
        .collect();

    // out = Σ_x share_x · out_x, share_x = exp(lse_x − lse), lse = log Σ_x exp(lse_x)
    let lse: Vec<f64> =
        halves[0].lse.iter().zip(&halves[1].lse).map(|(a, b)| (a.exp() + b.exp()).ln()).collect();
    let near = |x: f64, y: f64| (x - y).abs() <= 1e-12 * (1.0 + y.abs());
    assert!(lse.iter().zip(&whole.lse).all(|(&x, &y)| near(x, y)));
    for (at, &out) in whole.out.iter().enumerate() {
        let row = at / c.dv;
        let merged: f64 = halves.iter().map(|x| (x.lse[row] - lse[row]).exp() * x.out[at]).sum();
        assert!(near(merged, out), "{merged} is not {out}");
    }

    let mut grad_q = vec![0.0; data.q.len()];
    for half in &halves {
        let n = half.to - half.from;
        let shares: Vec<f64> = half.lse.iter().zip(&lse).map(|(x, all)| (x - all).exp()).collect();
        let grad_out: Vec<f64> =
            data.grad_out.iter().enumerate().map(|(at, g)| g * shares[at / c.dv]).collect();
        // ∂out/∂lse_x = share_x · (out_x − out)
        let grad_lse: Vec<f64> = (0..lse.len())
            .map(|row| {
                let at = row * c.dv..(row + 1) * c.dv;
                let pairs = half.out[at.clone()].iter().zip(&whole.out[at.clone()]);
                let moved = pairs.zip(&data.grad_out[at]).map(|((x, all), g)| g * (x - all));
                shares[row] * moved.sum::<f64>()
            })
            .collect();
        let (k, v) = (
            rows(&data.k, [c.hk, c.nk, c.d], half.from, half.to),
            rows(&data.v, [c.hk, c.nk, c.dv], half.from, half.to),
        );
        let mut grads = [vec![0.0; data.q.len()], vec![0.0; k.len()], vec![0.0; v.len()]];
        let [gq, gk, gv] = &mut grads;
        let saved = Saved {
            out: Some(View::new(&half.out, os).unwrap()),
            lse: Some(&half.lse),
            ..Saved::default()
        };
        let gradients = Gradients {
            q: Some(ViewMut::new(gq, qs).unwrap()),
            k: Some(ViewMut::new(gk, shape(n, c.d)).unwrap()),
            v: Some(ViewMut::new(gv, shape(n, c.dv)).unwrap()),
            ..Gradients::default()
        };
        let pass = Backward {
            grad_lse: Some(&grad_lse),
            ..Backward::new(View::new(&grad_out, os).unwrap(), saved, gradients)
        };
        let views = (View::new(&k, shape(n, c.d)).unwrap(), View::new(&v, shape(n, c.dv)).unwrap());
        cpu.backward(&spec, q, views.0, views.1, pass).unwrap();
        grad_q.iter_mut().zip(&grads[0]).for_each(|(to, x)| *to += x);
        for (grad, whole, d) in
            [(&grads[1], &whole.gradients[1], c.d), (&grads[2], &whole.gradients[2], c.dv)]
        {
            let whole = rows(whole, [c.hk, c.nk, d], half.from, half.to);
            assert!(grad.iter().zip(&whole).all(|(&x, &y)| near(x, y)), "{} {c:?}", cpu.isa());
        }
    }
    assert!(
        grad_q.iter().zip(&whole.gradients[0]).all(|(&x, &y)| near(x, y)),
        "{} {c:?}",
        cpu.isa()
    );
}

//! The oracle itself: gradients by finite differences, normalizers by their definitions.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use crate::case::*;
use regard_kernels::{Normalizer, Real, View, reference};
use std::collections::HashSet;

/// Σ grad_out · out, and what arrives elsewhere likewise, for changed inputs. A row that sees nothing has
/// no log-sum-exp.
fn loss(data: &Data<f64>) -> f64 {
    let [q, k, v, _] = data.shapes();
    let output = reference::forward(
        &data.spec(),
        View::new(&data.q, q).unwrap(),
        View::new(&data.k, k).unwrap(),
        View::new(&data.v, v).unwrap(),
    )
    .unwrap();
    let sum = |x: &[f64], grad: Option<&[f64]>| -> f64 {
        x.iter().zip(grad.unwrap_or_default()).map(|(x, g)| x * g).sum()
    };
    sum(&output.out, Some(&data.grad_out))
        + sum(&output.weights, data.grad_weights.as_deref())
        + sum(&output.log_prob, data.grad_log_prob.as_deref())
        + data.grad_lse.as_deref().map_or(0.0, |grad| {
            let rows = output.lse.iter().zip(grad);
            rows.filter(|(lse, _)| lse.is_finite()).map(|(lse, g)| lse * g).sum()
        })
}

/// Compares one gradient with central differences of the loss.
pub(crate) fn agrees_with_differences(
    case: Case,
    name: &str,
    gradient: &[f64],
    part: impl Fn(&mut Data<f64>) -> &mut [f64],
) {
    let step = 1e-5;
    for (at, &analytic) in gradient.iter().enumerate() {
        let mut data = case.data::<f64>();
        let original = part(&mut data)[at];
        part(&mut data)[at] = original + step;
        let above = loss(&data);
        part(&mut data)[at] = original - step;
        let below = loss(&data);
        let numeric = (above - below) / (2.0 * step);
        assert!(
            (numeric - analytic).abs() <= 1e-6 * (1.0 + analytic.abs()),
            "grad {name}[{at}] is {analytic}, differences give {numeric}\n{case:?}"
        );
    }
}

/// Everything beside score, normalizer and bias is drawn, and how each met each is counted.
#[test]
fn every_gradient_agrees_with_finite_differences() {
    let mut met = HashSet::new();
    let mut seed = 0;
    for (score, score_kind) in SCORES.into_iter().enumerate() {
        for (normalizer, normalizer_kind) in NORMALIZERS.into_iter().enumerate() {
            for (bias, bias_kind) in biases().into_iter().enumerate() {
                for _ in 0..2 {
                    seed += 1;
                    let mut draws = Draws::new(seed << 8);
                    let mask = draws.below(masks().len());
                    let flags = [0.5; 4].map(|p| usize::from(draws.happens(p)));
                    let [shared, dropout, arriving, w_per_head] = flags;
                    let choices = [score, normalizer, bias, mask, shared, dropout, arriving];
                    for (x, y) in (0..7).flat_map(|x| (0..x).map(move |y| (x, y))) {
                        met.insert([x, choices[x], y, choices[y]]);
                    }
                    gradients_agree_with_differences(Case {
                        b: 2,
                        hq: 2,
                        hk: 2 - shared,
                        nq: 3,
                        nk: 4,
                        d: 2,
                        dv: 3,
                        score: score_kind,
                        normalizer: normalizer_kind,
                        bias: bias_kind,
                        mask: masks()[mask],
                        dropout: (dropout == 1).then_some(0.3),
                        arriving: arriving == 1,
                        w_per_head: w_per_head == 1,
                        seed,
                        ..Case::default()
                    });
                }
            }
        }
    }
    let counts = [SCORES.len(), NORMALIZERS.len(), biases().len(), masks().len(), 2, 2, 2];
    for (x, y) in (0..7).flat_map(|x| (0..x).map(move |y| (x, y))) {
        for (a, b) in (0..counts[x]).flat_map(|a| (0..counts[y]).map(move |b| (a, b))) {
            assert!(met.contains(&[x, a, y, b]), "choice {a} of {x} never met choice {b} of {y}");
        }
    }
}

fn gradients_agree_with_differences(case: Case) {
    let g = case.data::<f64>().reference().gradients;
    if !case.normalizer.is_hard() || case.arriving {
        agrees_with_differences(case, "q", &g[0], |data| &mut data.q);
        agrees_with_differences(case, "k", &g[1], |data| &mut data.k);
        agrees_with_differences(case, "w", &g[3], |data| &mut data.w);
        agrees_with_differences(case, "own", &g[4], |data| data.own_numbers());
        agrees_with_differences(case, "key_bias", &g[5], |data| &mut data.key_bias.0);
        agrees_with_differences(case, "bias", &g[6], |data| &mut data.bias.0);
        agrees_with_differences(case, "relative", &g[7], |data| &mut data.relative);
    } else {
        for gradient in [0, 1, 3, 4, 5, 6, 7].map(|n| &g[n]) {
            assert!(gradient.iter().all(|&x| x == 0.0), "a hard choice sent a gradient");
        }
    }
    agrees_with_differences(case, "v", &g[2], |data| &mut data.v);
}

#[test]
fn normalized_weights_are_a_distribution_and_sparsemax_has_zeros() {
    for normalizer in [Normalizer::Softmax, Normalizer::Sparsemax, Normalizer::Entmax15] {
        let case = Case { nq: 20, nk: 30, spread: 2.0, normalizer, ..Case::default() };
        let results = case.data::<f64>().reference();
        for row in results.weights.chunks_exact(30) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(row.iter().all(|&p| p >= 0.0));
        }
        let zeros = results.weights.iter().filter(|&&p| p == 0.0).count();
        assert_eq!(zeros > 0, normalizer != Normalizer::Softmax, "{normalizer:?}: {zeros} zeros");
    }
}

#[test]
fn thresholds_satisfy_their_equations() {
    let case = Case { nq: 20, nk: 30, spread: 2.0, ..Case::default() };
    let scores = Case { normalizer: Normalizer::None, ..case }.data::<f64>().reference().weights;
    let sparse =
        Case { normalizer: Normalizer::Sparsemax, ..case }.data::<f64>().reference().threshold;
    let entmax =
        Case { normalizer: Normalizer::Entmax15, ..case }.data::<f64>().reference().threshold;
    for (i, row) in scores.chunks_exact(30).enumerate() {
        let sum: f64 = row.iter().map(|s| (s - sparse[i]).max(0.0)).sum();
        assert!((sum - 1.0).abs() < 1e-12, "Σ max(s − τ, 0) = {sum}");
        let sum: f64 = row.iter().map(|s| (s / 2.0 - entmax[i]).max(0.0).powi(2)).sum();
        assert!((sum - 1.0).abs() < 1e-12, "Σ max(s/2 − τ, 0)² = {sum}");
    }
}

#[test]
fn the_log_sum_exp_is_what_its_name_says() {
    let case = Case { nq: 7, nk: 9, ..Case::default() };
    let scores = Case { normalizer: Normalizer::None, ..case }.data::<f64>().reference().weights;
    let lse = case.data::<f64>().reference().lse;
    for (row, lse) in scores.chunks_exact(9).zip(lse) {
        let direct = row.iter().map(|s| s.exp()).sum::<f64>().ln();
        assert!((direct - lse.f64()).abs() < 1e-12);
    }
}

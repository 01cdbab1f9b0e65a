//! Numbers to attend to, and the formula in plain loops.

use regard_kernels::philox;

/// Numbers between −1 and 1, the same every time.
pub(crate) fn noise(stream: u32, n: usize) -> Vec<f64> {
    let number = |word: u32| f64::from(word as i32) / f64::from(i32::MAX);
    // Exact in bf16 too, so that every type is given the same numbers.
    (0..n as u32)
        .map(|at| (number(philox([at, 0, 0, stream], [7; 2])[0]) * 64.0).round() / 64.0)
        .collect()
}

/// softmax(scores) · v for one head, where `score` gives −∞ to what is not seen.
///
/// v `[Nk, Dv]`; gives out `[Nq, Dv]` and weights `[Nq, Nk]`.
pub(crate) fn softmax_attention(
    [nq, nk, dv]: [usize; 3],
    score: impl Fn(usize, usize) -> f64,
    v: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let (mut out, mut weights) = (vec![0.0; nq * dv], vec![0.0; nq * nk]);
    for i in 0..nq {
        let scores: Vec<f64> = (0..nk).map(|j| score(i, j)).collect();
        let total: f64 = scores.iter().map(|s| s.exp()).sum();
        for j in (0..nk).filter(|&j| scores[j] > f64::NEG_INFINITY) {
            weights[i * nk + j] = scores[j].exp() / total;
            for d in 0..dv {
                out[i * dv + d] += weights[i * nk + j] * v[j * dv + d];
            }
        }
    }
    (out, weights)
}

/// q_i · k_j
pub(crate) fn dot(q: &[f64], k: &[f64], d: usize, i: usize, j: usize) -> f64 {
    q[i * d..][..d].iter().zip(&k[j * d..][..d]).map(|(q, k)| q * k).sum()
}

/// Fails with both numbers where two arrays differ by more than `tolerance`, of their size where
/// that is above 1. −∞ equals itself.
#[track_caller]
pub(crate) fn assert_close(what: &str, got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
        let near = (got - expected).abs() <= tolerance * expected.abs().max(1.0);
        assert!(near || got == expected, "{what}[{at}] is {got}, expected {expected}");
    }
}

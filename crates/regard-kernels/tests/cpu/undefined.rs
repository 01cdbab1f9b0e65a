//! Infinite and undefined inputs: what they spread to, and what they do not.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use crate::case::*;
use regard_kernels::Normalizer;
use regard_kernels::cpu::Path;

/// Where a number is replaced by another.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Query,
    Key,
    Value,
    Bias,
}

const BAD: [f64; 3] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];

fn spoil<T: regard_kernels::Real>(data: &mut Data<T>, place: Place, at: usize, bad: f64) {
    let array = match place {
        Place::Query => &mut data.q,
        Place::Key => &mut data.k,
        Place::Value => &mut data.v,
        Place::Bias => &mut data.bias.0,
    };
    array[at] = T::of(bad);
}

/// Queries that go by lists, and by tiles, on every instruction set.
const QUERIES: [usize; 2] = [2, 20];

fn checks_its_paths(data: &Data<f32>) {
    for isa in isas() {
        let lists = data.case.mask.edges || data.case.nq == QUERIES[0];
        assert_eq!(data.path(isa), if lists { Path::Lists } else { Path::Tiles });
    }
}

/// Everything forward gives, and backward where keys are hidden, is what the oracle gives: NaN where it has NaN, the same infinities, and
/// the other numbers by the rule. Without dropout: whether an undefined weight that was dropped is 0
/// or undefined is left open.
#[test]
fn what_a_bad_number_gives_is_what_the_plain_formula_gives() {
    let full = BiasKind { full: Some([true; 4]), ..BiasKind::default() };
    let mut seed = 0;
    for score in SCORES {
        for normalizer in NORMALIZERS {
            for nq in QUERIES {
                for place in [Place::Query, Place::Key, Place::Value, Place::Bias] {
                    for bad in BAD {
                        for _ in 0..2 {
                            seed += 1;
                            let mut draws = Draws::new(seed);
                            let spoils_bias = place == Place::Bias;
                            let case = Case {
                                nq,
                                nk: draws.of(&[20, 110]),
                                d: draws.of(&[4, 17]),
                                score,
                                mask: draws.of(&masks()),
                                bias: if spoils_bias { full } else { BiasKind::default() },
                                normalizer,
                                strided: draws.happens(0.5),
                                seed,
                                ..Case::default()
                            };
                            agrees_with_the_oracle(case, place, draws.uniform(), bad);
                        }
                    }
                }
            }
        }
    }
}

fn agrees_with_the_oracle(case: Case, place: Place, share: f64, bad: f64) {
    let (mut exact, mut data) = (case.data::<f64>(), case.data::<f32>());
    checks_its_paths(&data);
    // Terms as large as without the bad number, which has no size.
    let (scales, of_gradients) = natural(&exact, &exact.reference());
    let len = match place {
        Place::Query => data.q.len(),
        Place::Key => data.k.len(),
        Place::Value => data.v.len(),
        Place::Bias => data.bias.0.len(),
    };
    let at = (share * len as f64) as usize;
    spoil(&mut exact, place, at, bad);
    spoil(&mut data, place, at, bad);
    let (oracle, plain) = (exact.reference(), data.reference());
    for isa in isas() {
        let fused = data.fused(isa);
        let say = format!("{isa} {bad} in {place:?} at {at}\n{case:?}");
        assert_eq!(fused.index, oracle.index, "{say}");
        let check = |name: &str, fused: &[f32], plain: &[f32], oracle: &[f64], scale: f64| {
            let plain = error(plain, oracle);
            assert!(plain.is_finite(), "the plain formula fails in {name}: {say}");
            let (found, most) = (error(fused, oracle), allowed(plain, scale.max(largest(oracle))));
            assert!(found <= most, "{name}: error {found:e}, allowed {most:e}, {say}");
        };
        check("out", &fused.out, &plain.out, &oracle.out, scales[0]);
        check("weights", &fused.weights, &plain.weights, &oracle.weights, scales[1]);
        check("lse", &fused.lse, &plain.lse, &oracle.lse, scales[2]);
        // An empty row has no threshold.
        let of_rows = |x: &[f32]| -> Vec<f32> {
            let rows = x.iter().zip(&oracle.lse).filter(|row| *row.1 != f64::NEG_INFINITY);
            rows.map(|row| *row.0).collect()
        };
        let oracles = oracle.threshold.iter().zip(&oracle.lse);
        let oracles = oracles.filter(|row| *row.1 != f64::NEG_INFINITY);
        let oracles: Vec<f64> = oracles.map(|row| *row.0).collect();
        let [fused_rows, plain_rows] = [&fused.threshold, &plain.threshold].map(|x| of_rows(x));
        check("threshold", &fused_rows, &plain_rows, &oracles, scales[2]);
        check("log_prob", &fused.log_prob, &plain.log_prob, &oracle.log_prob, scales[2]);
        // Where nothing is hidden, which of a row's numbers are undefined is left to the kernels.
        if hides(&case) {
            for (n, name) in GRADIENTS.into_iter().enumerate() {
                // A pair whose score has no gradient at all may be left out, where the formula has
                // 0 · ∞; what the formula says is finite must be so, and as exact as ever.
                let defined = |x: &[f32]| -> Vec<f32> {
                    let numbers = x.iter().zip(&oracle.gradients[n]);
                    numbers.filter(|number| number.1.is_finite()).map(|number| *number.0).collect()
                };
                let [fused, plain] = [&fused, &plain].map(|x| defined(&x.gradients[n]));
                let oracle = oracle.gradients[n].iter().copied().filter(|x| x.is_finite());
                check(name, &fused, &plain, &oracle.collect::<Vec<f64>>(), of_gradients[n]);
            }
        }
    }
}

/// Whether a key can be hidden from a query by more than that a graph has no edge there.
fn hides(case: &Case) -> bool {
    let edges = MaskKind { edges: case.mask.edges, ..MaskKind::default() };
    case.mask != edges || case.bias != BiasKind::default()
}

/// Whether query i may attend to key j of a problem with one head: a finite score has a sigmoid.
fn visible(case: Case) -> Vec<bool> {
    let open = Case { normalizer: Normalizer::Sigmoid, dropout: None, ..case };
    open.data::<f64>().reference().weights.iter().map(|&p| p > 0.0).collect()
}

/// Panics unless the rows that `untouched` names are what they are without the bad number.
fn leaves_alone(case: Case, place: Place, at: usize, untouched: impl Fn(usize) -> bool) {
    let (clean, mut data) = (case.data::<f32>(), case.data::<f32>());
    checks_its_paths(&data);
    spoil(&mut data, place, at, f64::NAN);
    for isa in isas() {
        let (before, after) = (clean.fused(isa), data.fused(isa));
        let say = format!("{isa} NaN in {place:?} at {at}\n{case:?}");
        // tanh is computed in other ways beside a NaN, so not to the bit.
        let near = |x: f32, y: f32| x == y || (x - y).abs() <= 1e-5 * (1.0 + x.abs());
        let alike = |name: &str, i: usize, x: &[f32], y: &[f32], width: usize| {
            for (&x, &y) in x[i * width..][..width].iter().zip(&y[i * width..]) {
                assert!(near(x, y), "{name} of row {i} was {x}, is {y}, {say}");
            }
        };
        for i in 0..case.nq {
            if untouched(i) {
                alike("out", i, &before.out, &after.out, case.dv);
                alike("weights", i, &before.weights, &after.weights, case.nk);
                alike("lse", i, &before.lse, &after.lse, 1);
                assert_eq!(before.index[i], after.index[i], "{say}");
                alike("grad q", i, &before.gradients[0], &after.gradients[0], case.d);
            } else if !case.normalizer.is_hard() {
                let out = &after.out[i * case.dv..][..case.dv];
                assert!(out.iter().any(|x| x.is_nan()), "row {i} forgot the NaN: {out:?}, {say}");
            }
        }
    }
}

#[test]
fn a_nan_in_a_query_touches_that_row_and_no_other() {
    for (score, normalizer) in SCORES.into_iter().flat_map(|s| NORMALIZERS.map(|n| (s, n))) {
        for nq in QUERIES {
            for mask in masks() {
                let case = Case { nq, nk: 20, score, mask, normalizer, ..Case::default() };
                let seen = visible(case);
                let empty = |i: usize| !seen[i * 20..][..20].contains(&true);
                leaves_alone(case, Place::Query, 1, |i| i != 0 || empty(i));
            }
        }
    }
}

#[test]
fn a_nan_in_a_key_or_a_value_touches_the_rows_that_may_attend_to_it_and_no_other() {
    for (score, normalizer) in SCORES.into_iter().flat_map(|s| NORMALIZERS.map(|n| (s, n))) {
        for nq in QUERIES {
            for mask in masks() {
                let case = Case { nq, nk: 20, score, mask, normalizer, ..Case::default() };
                let seen = visible(case);
                // The last key is hidden from most rows by position and by length.
                for (place, j) in
                    [(Place::Key, 7), (Place::Value, 7), (Place::Key, 19), (Place::Value, 19)]
                {
                    // A hard choice never falls on a NaN; whom it was taken from chooses anew, and
                    // an undefined value is somebody's choice or nobody's.
                    let hard = normalizer.is_hard();
                    let clean = case.data::<f32>().reference().index;
                    leaves_alone(case, place, j * 4 + 2, |i| {
                        !seen[i * 20 + j] && (!hard || clean[i] != j as i64)
                    });
                }
            }
        }
    }
}

#[test]
fn what_is_hidden_from_every_row_touches_nothing() {
    for (score, normalizer) in SCORES.into_iter().flat_map(|s| NORMALIZERS.map(|n| (s, n))) {
        for nq in QUERIES {
            let mask = MaskKind { dense: Some([false, false, false, true]), ..MaskKind::default() };
            for mask in [mask, MaskKind { edges: true, ..mask }] {
                let case = Case { nq, nk: 20, score, mask, normalizer, ..Case::default() };
                let seen = visible(case);
                let hidden = (0..20).find(|j| (0..nq).all(|i| !seen[i * 20 + j])).unwrap();
                for place in [Place::Key, Place::Value] {
                    leaves_alone(case, place, hidden * 4, |_| true);
                }
            }
        }
    }
}

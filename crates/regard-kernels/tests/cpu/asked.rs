//! Asking for more never changes what is asked for, and what nobody asks for need not be there:
//! whatever the path, and however the keys are cut.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use crate::case::*;
use regard_kernels::{Backward, Cpu, Forward, Gradients, Isa, Saved, View, ViewMut};

/// What forward may be asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    lse: bool,
    index: bool,
    log_prob: bool,
}

#[derive(Debug, PartialEq)]
struct Given {
    out: Vec<u32>,
    lse: Option<Vec<u32>>,
    index: Option<Vec<i64>>,
    log_prob: Option<Vec<u32>>,
}

fn forward(cpu: Cpu, data: &Data<f32>, asked: Asked) -> Given {
    let [qs, ks, vs, os] = data.shapes();
    let rows = os[0] * os[1] * os[2];
    let numbers = |wanted: bool| wanted.then(|| vec![f32::NAN; rows]);
    let mut out = vec![f32::NAN; rows * os[3]];
    let (mut lse, mut log_prob) = (numbers(asked.lse), numbers(asked.log_prob));
    let mut index = asked.index.then(|| vec![-7; rows]);
    let pass = Forward {
        lse: lse.as_deref_mut(),
        index: index.as_deref_mut(),
        log_prob: log_prob.as_deref_mut(),
        ..Forward::new(ViewMut::new(&mut out, os).unwrap())
    };
    let views = [(&data.q, qs), (&data.k, ks), (&data.v, vs)];
    let [q, k, v] = views.map(|(x, shape)| View::new(x, shape).unwrap());
    cpu.forward(&data.spec(), q, k, v, pass).unwrap();
    let bits = |x: Vec<f32>| x.into_iter().map(f32::to_bits).collect();
    Given { out: bits(out), lse: lse.map(bits), index, log_prob: log_prob.map(bits) }
}

#[test]
fn what_forward_gives_does_not_depend_on_what_else_it_is_asked_for() {
    // Lists whole and cut, tiles whole and cut, and rows with nothing to attend to.
    for (nq, nk) in [(1, 30), (2, 1500), (40, 100), (33, 2000)] {
        for normalizer in NORMALIZERS {
            for (edges, lengths) in [(false, false), (false, true), (true, true)] {
                let mask = MaskKind { edges, lengths, ..MaskKind::default() };
                let case = Case { b: 2, nq, nk, mask, normalizer, seed: 3, ..Case::default() };
                let data = case.data::<f32>();
                let hard = normalizer.is_hard();
                for cpu in Isa::ALL.into_iter().filter_map(Cpu::with) {
                    let all = Asked { lse: true, index: hard, log_prob: hard };
                    let all = forward(cpu, &data, all);
                    for n in 0..8 {
                        let asked = Asked { lse: n & 1 > 0, index: n & 2 > 0, log_prob: n & 4 > 0 };
                        if !hard && (asked.index || asked.log_prob) {
                            continue;
                        }
                        let given = forward(cpu, &data, asked);
                        assert_eq!(given.out, all.out, "{asked:?} {case:?}");
                        assert!(given.lse.is_none_or(|x| Some(x) == all.lse), "{asked:?} {case:?}");
                        let index = given.index;
                        assert!(index.is_none_or(|x| Some(x) == all.index), "{asked:?} {case:?}");
                        let log_prob = given.log_prob;
                        assert!(
                            log_prob.is_none_or(|x| Some(x) == all.log_prob),
                            "{asked:?} {case:?}"
                        );
                    }
                }
            }
        }
    }
}

/// The gradients of q, k, v and of what the score learns, those of them that are asked for.
fn backward(cpu: Cpu, data: &Data<f32>, asked: [bool; 4]) -> [Vec<f32>; 4] {
    let [qs, ks, vs, os] = data.shapes();
    let rows = os[0] * os[1] * os[2];
    let (mut out, mut lse) = (vec![f32::NAN; rows * os[3]], vec![f32::NAN; rows]);
    let pass = Forward { lse: Some(&mut lse), ..Forward::new(ViewMut::new(&mut out, os).unwrap()) };
    let views = [(&data.q, qs), (&data.k, ks), (&data.v, vs), (&data.grad_out, os)];
    let [q, k, v, grad_out] = views.map(|(x, shape)| View::new(x, shape).unwrap());
    cpu.forward(&data.spec(), q, k, v, pass).unwrap();
    let additive = matches!(data.case.score, ScoreKind::Additive(_));
    let learned = match data.case.score {
        ScoreKind::Additive(_) => data.w.len(),
        ScoreKind::Own => data.own.len(),
        _ => data.parameters.len(),
    };
    let lengths = [qs, ks, vs].map(|shape| shape.iter().product());
    let lengths = [lengths[0], lengths[1], lengths[2], learned];
    let mut grads = [0, 1, 2, 3].map(|n| vec![0f32; if asked[n] { lengths[n] } else { 0 }]);
    let [gq, gk, gv, learned] = &mut grads;
    fn view(x: &mut [f32], shape: [usize; 4]) -> Option<ViewMut<'_, f32>> {
        (!x.is_empty()).then(|| ViewMut::new(x, shape).unwrap())
    }
    let learned = (!learned.is_empty()).then_some(&mut learned[..]);
    let (w, own) = if additive { (learned, None) } else { (None, learned) };
    let gradients = Gradients {
        q: view(gq, qs),
        k: view(gk, ks),
        v: view(gv, vs),
        w,
        own,
        ..Gradients::default()
    };
    let saved =
        Saved { out: Some(View::new(&out, os).unwrap()), lse: Some(&lse), ..Saved::default() };
    cpu.backward(&data.spec(), q, k, v, Backward::new(grad_out, saved, gradients)).unwrap();
    grads
}

#[test]
fn what_backward_gives_does_not_depend_on_what_else_it_is_asked_for() {
    for (nq, nk) in [(2, 30), (40, 100)] {
        for score in SCORES {
            for edges in [false, true] {
                let mask = MaskKind { edges, ..MaskKind::default() };
                let data = Case { b: 2, nq, nk, score, mask, seed: 5, ..Case::default() }.data();
                for cpu in Isa::ALL.into_iter().filter_map(Cpu::with) {
                    let all = backward(cpu, &data, [true; 4]);
                    assert!(all[..3].iter().all(|x| x.iter().any(|&x| x != 0.0)), "{score:?}");
                    for n in 0..16 {
                        let asked = [0, 1, 2, 3].map(|at| n >> at & 1 > 0);
                        let some = backward(cpu, &data, asked);
                        for at in (0..4).filter(|&at| asked[at]) {
                            assert_eq!(some[at], all[at], "{asked:?} {score:?} {nq} × {nk}");
                        }
                    }
                }
            }
        }
    }
}

//! Asking for more never changes what is asked for, and what nobody asks for need not be there:
//! whatever the path, and however the keys are cut.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

mod case;

use case::*;
use regard_kernels::{Cpu, Forward, Isa, View, ViewMut};

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

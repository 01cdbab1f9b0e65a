//! Every score, mask, bias and normalizer, forward and backward, by tiles and by lists, on every
//! instruction set of the machine and in both precisions, on a thread with 1 MiB of stack. The
//! numbers are compared by the rule that the crate's own tests have.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

#[path = "../../../crates/regard-kernels/tests/case/mod.rs"]
mod case;

use case::{BiasKind, Case, MaskKind, NORMALIZERS, SCORES, ScoreKind, agrees_in_double, biases};
use case::{isas, keeps_the_rule, masks};
use regard_kernels::cpu::Path;
use regard_kernels::half::{bf16, f16};
use regard_kernels::{Cpu, Element, Forward, Isa, Normalizer, Spec, View, ViewMut};

const STACK: usize = 1 << 20;

/// As a consumer's thread would, whatever the environment says of stacks.
fn on_a_small_stack(check: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, check);
        if let Err(panic) = thread.unwrap().join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Few queries go by lists, more by tiles; widths on both sides of a register's.
const SIZES: [[usize; 4]; 4] = [[1, 19, 5, 3], [2, 70, 33, 40], [33, 40, 17, 8], [66, 97, 4, 20]];

#[test]
fn every_score_meets_every_mask_bias_and_normalizer() {
    on_a_small_stack(|| {
        let (masks, biases) = (masks(), biases());
        let mut paths = Vec::new();
        let mut checked = 0;
        for (s, &score) in SCORES.iter().enumerate() {
            // Every mask, bias and normalizer with every score, though not all of them together.
            let longest = masks.len().max(biases.len()).max(NORMALIZERS.len());
            for n in 0..longest {
                let [nq, nk, d, dv] = SIZES[(n + s) % SIZES.len()];
                let normalizer = NORMALIZERS[n % NORMALIZERS.len()];
                let case = Case {
                    score,
                    mask: masks[n % masks.len()],
                    bias: biases[(n + s) % biases.len()],
                    normalizer,
                    hq: 2,
                    nq,
                    nk,
                    d,
                    dv,
                    dropout: (n % 3 == 0).then_some(0.25),
                    arriving: n % 2 == 0 || normalizer.is_hard(),
                    strided: n % 2 == 1,
                    seed: (100 * s + n) as u64,
                    ..Case::default()
                };
                checked += keeps_the_rule(case).len();
                if n % 5 == 0 {
                    agrees_in_double(case);
                }
                paths.extend(isas().map(|isa| (isa, case.data::<f32>().path(isa))));
            }
        }
        // A choice between equals, which rounding decides, is not compared.
        let all = isas().count() * SCORES.len() * masks.len();
        assert!(checked * 20 >= all * 19, "{checked} of {all} were compared");
        for isa in isas() {
            assert!([Path::Tiles, Path::Lists].iter().all(|&path| paths.contains(&(isa, path))));
        }
    });
}

#[test]
fn narrow_graphs_and_the_kernels_of_tanh_fit_too() {
    use regard_kernels::Activation::{LeakyRelu, Tanh};
    on_a_small_stack(|| {
        let edges = MaskKind { edges: true, ..MaskKind::default() };
        for (score, mask) in [
            (ScoreKind::Additive(LeakyRelu { slope: 0.2 }), edges),
            (ScoreKind::Dot, edges),
            (ScoreKind::Additive(Tanh), MaskKind::default()),
        ] {
            for spread in [0.05, 1.0, 2.5, 5.0, 30.0] {
                for (nq, lean) in [(1, true), (40, true), (40, false)] {
                    let sizes = Case { hq: 2, hk: 2, nq, nk: 40, d: 8, dv: 8, ..Case::default() };
                    let bias = BiasKind::default();
                    keeps_the_rule(Case { score, mask, bias, spread, lean, ..sizes });
                }
            }
        }
    });
}

/// The output of softmax attention over numbers of a stored type.
fn stored<E: Element>(isa: Isa, number: impl Fn(f32) -> E) -> Vec<E> {
    let all: Vec<E> = (0..70 * 64).map(|i| number((i % 13) as f32 / 16.0)).collect();
    let view = || View::new(&all, [1, 1, 70, 64]).unwrap();
    let mut out = vec![number(0.0); all.len()];
    let to = Forward::new(ViewMut::new(&mut out, [1, 1, 70, 64]).unwrap());
    let spec = Spec { normalizer: Normalizer::Softmax, ..Spec::scaled_dot(64) };
    Cpu::with(isa).unwrap().forward(&spec, view(), view(), view(), to).unwrap();
    out
}

#[test]
fn every_stored_type_is_read_and_written() {
    on_a_small_stack(|| {
        for isa in isas() {
            let wide = stored(isa, |x| x);
            let near = |name: &str, all: Vec<f64>, allowed: f64| {
                for (x, y) in wide.iter().zip(all) {
                    assert!((f64::from(*x) - y).abs() < allowed, "{isa} {name}: {y}, not {x}");
                }
            };
            near("f64", stored(isa, f64::from), 1e-5);
            let bf16 = stored(isa, bf16::from_f32).into_iter().map(bf16::to_f64);
            near("bf16", bf16.collect(), 1e-2);
            let f16 = stored(isa, f16::from_f32).into_iter().map(f16::to_f64);
            near("f16", f16.collect(), 1e-3);
        }
    });
}

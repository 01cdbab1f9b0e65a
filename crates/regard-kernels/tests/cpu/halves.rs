//! bf16 numbers: stored in 8 bits, computed as exactly as `f32`, also where a matrix unit has them.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use crate::case::*;
use half::bf16;
use regard_kernels::{
    Backward, Cpu, Forward, Gradients, Isa, Normalizer, Saved, Spec, View, ViewMut, reference,
};

fn cpus() -> impl Iterator<Item = Cpu> {
    Isa::ALL.into_iter().filter_map(Cpu::with)
}

/// The case's numbers as bf16, and the same widened.
struct Halves {
    case: Case,
    /// q, k, v, the gradient of the output.
    stored: [Vec<bf16>; 4],
    shapes: [[usize; 4]; 4],
}

/// Output and gradients of q, k, v and a full bias.
type Results = [Vec<f64>; 5];

impl Halves {
    fn of(case: Case) -> Self {
        let data = case.data::<f32>();
        let shapes = data.shapes();
        let stored = [&data.q, &data.k, &data.v, &data.grad_out]
            .map(|x| x.iter().map(|&x| bf16::from_f32(x)).collect());
        Self { case, stored, shapes }
    }

    fn fused(&self, cpu: Cpu) -> Results {
        let data = self.case.data::<f32>();
        let spec = data.spec();
        let view = |at: usize| View::new(&self.stored[at], self.shapes[at]).unwrap();
        let zeros = |at: usize| vec![bf16::ZERO; self.stored[at].len()];
        let (mut out, mut lse) = (zeros(3), vec![0f32; self.shapes[3][..3].iter().product()]);
        let softmax = spec.normalizer == Normalizer::Softmax;
        let mut pass = Forward::new(ViewMut::new(&mut out, self.shapes[3]).unwrap());
        pass.lse = softmax.then_some(&mut lse);
        cpu.forward(&spec, view(0), view(1), view(2), pass).unwrap();
        let [mut q, mut k, mut v] = [zeros(0), zeros(1), zeros(2)];
        let saved = Saved {
            out: Some(View::new(&out, self.shapes[3]).unwrap()),
            lse: softmax.then_some(&lse),
            ..Saved::default()
        };
        let mut bias = vec![0f32; spec.bias.full.map_or(0, |bias| bias.data.len())];
        let gradients = Gradients {
            bias: (!bias.is_empty()).then_some(&mut bias),
            q: Some(ViewMut::new(&mut q, self.shapes[0]).unwrap()),
            k: Some(ViewMut::new(&mut k, self.shapes[1]).unwrap()),
            v: Some(ViewMut::new(&mut v, self.shapes[2]).unwrap()),
            ..Gradients::default()
        };
        let pass = Backward::new(view(3), saved, gradients);
        cpu.backward(&spec, view(0), view(1), view(2), pass).unwrap();
        let [out, q, k, v] =
            [out, q, k, v].map(|x| x.iter().map(|x| x.to_f64()).collect::<Vec<f64>>());
        [out, q, k, v, bias.into_iter().map(f64::from).collect()]
    }

    /// The weights, where they are asked for.
    fn weights(&self, cpu: Cpu) -> Vec<f32> {
        let data = self.case.data::<f32>();
        let view = |at: usize| View::new(&self.stored[at], self.shapes[at]).unwrap();
        let mut out = vec![bf16::ZERO; self.stored[3].len()];
        let [b, h, nq, _] = self.shapes[3];
        let mut weights = vec![0f32; b * h * nq * self.case.nk];
        let mut pass = Forward::new(ViewMut::new(&mut out, self.shapes[3]).unwrap());
        pass.weights = Some(&mut weights);
        cpu.forward(&data.spec(), view(0), view(1), view(2), pass).unwrap();
        weights
    }

    /// By the reference in a precision, everything rounded to bf16 at the end where `rounded`.
    fn plain<T: regard_kernels::Real>(&self, rounded: bool) -> Results {
        let data = self.case.data::<T>();
        let spec: Spec<T> = data.spec();
        let wide: Vec<Vec<T>> =
            self.stored.iter().map(|x| x.iter().map(|x| T::of(x.to_f64())).collect()).collect();
        let view = |at: usize| View::new(&wide[at], self.shapes[at]).unwrap();
        let output = reference::forward(&spec, view(0), view(1), view(2)).unwrap();
        let round = |x: T| if rounded { bf16::from_f64(x.f64()).to_f64() } else { x.f64() };
        // Softmax's backward takes Σ p·dp from the stored output; what rounding moved it by acts
        // like a gradient of the log-sum-exp.
        let rows = output.out.chunks_exact(self.case.dv).zip(wide[3].chunks_exact(self.case.dv));
        let moved = rows.map(|(out, grad)| {
            out.iter().zip(grad).map(|(&x, &g)| g * T::of(x.f64() - round(x))).sum::<T>()
        });
        let moved: Vec<T> = moved.collect();
        let softmax = spec.normalizer == Normalizer::Softmax;
        let lse = (rounded && softmax).then_some(&moved[..]);
        let arriving = reference::Arriving { lse, ..view(3).into() };
        let g = reference::backward(&spec, view(0), view(1), view(2), arriving).unwrap();
        let [out, q, k, v] =
            [output.out, g.q, g.k, g.v].map(|x| x.into_iter().map(round).collect::<Vec<f64>>());
        [out, q, k, v, g.bias.iter().map(|x| x.f64()).collect()]
    }

    fn keeps_the_rule(&self) {
        let truth = self.plain::<f64>(false);
        let plain = self.plain::<f32>(true);
        let error = |x: &[f64], at: usize| {
            x.iter().zip(&truth[at]).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
        };
        for cpu in cpus() {
            let fused = self.fused(cpu);
            let names = ["out", "grad q", "grad k", "grad v", "grad bias"];
            for (at, name) in names.into_iter().enumerate() {
                // A bias' gradient is f32, and sums of what two bf16 numbers keep: 16 bits.
                let largest = truth[at].iter().fold(0f64, |top, x| top.max(x.abs()));
                let kept = if at == 4 { largest * 2f64.powi(-15) } else { 0.0 };
                let (found, allowed) = (error(&fused[at], at), 2.0 * error(&plain[at], at) + kept);
                assert!(
                    found <= allowed,
                    "{name} on {}: {found:e}, {allowed:e} is allowed\n{:?}",
                    cpu.isa(),
                    self.case
                );
            }
        }
    }
}

#[test]
fn bf16_keeps_the_rule_at_every_width_and_length() {
    for (turn, d) in [31, 32, 64, 96, 128, 256].into_iter().enumerate() {
        for (nq, nk) in [(9, 2), (33, 31), (64, 96), (65, 97), (129, 200), (70, 289)] {
            let dv = [64, 32, 96, 33][(turn + nk) % 4];
            let case = Case { hq: 2, hk: 2, nq, nk, d, dv, seed: nk as u64, ..Case::default() };
            Halves::of(case).keeps_the_rule();
        }
    }
}

#[test]
fn bf16_keeps_the_rule_with_every_mask_bias_and_weighing() {
    let mut seed = 0;
    for mask in masks() {
        for bias in biases() {
            for normalizer in [Normalizer::Softmax, Normalizer::Sigmoid, Normalizer::None] {
                seed += 1;
                Halves::of(Case {
                    b: 1 + seed as usize % 2,
                    hq: 2,
                    hk: 1 + seed as usize % 2,
                    nq: 66,
                    nk: 98,
                    d: 64,
                    dv: 32,
                    mask,
                    bias,
                    normalizer,
                    dropout: (seed % 3 == 0).then_some(0.25),
                    seed,
                    ..Case::default()
                })
                .keeps_the_rule();
            }
        }
    }
}

#[test]
fn bf16_weights_are_those_of_the_plain_formula() {
    for mask in masks().into_iter().filter(|mask| !mask.edges) {
        let halves = Halves::of(Case { nq: 70, nk: 130, d: 64, dv: 32, mask, ..Case::default() });
        let wide = |at: usize| halves.stored[at].iter().map(|x| x.to_f64()).collect::<Vec<f64>>();
        let wide = [0, 1, 2].map(wide);
        let view = |at: usize| View::new(&wide[at], halves.shapes[at]).unwrap();
        let data = halves.case.data::<f64>();
        let spec = data.spec();
        let truth = reference::forward(&spec, view(0), view(1), view(2)).unwrap();
        for cpu in cpus() {
            for (found, truth) in halves.weights(cpu).iter().zip(&truth.weights) {
                assert!((f64::from(*found) - truth).abs() < 1e-5, "{found} is {truth}: {mask:?}");
            }
        }
    }
}

#[test]
fn bf16_gives_the_same_bits_on_any_number_of_threads() {
    let halves = Halves::of(Case { hq: 2, nq: 200, nk: 300, d: 64, dv: 64, ..Case::default() });
    for cpu in cpus() {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| halves.fused(cpu))
        };
        let one = run(1);
        assert!([2, 3].into_iter().all(|threads| run(threads) == one), "{}", cpu.isa());
    }
}

#[test]
fn a_number_that_is_none_stays_in_the_rows_that_see_it() {
    let case = Case { nq: 70, nk: 100, d: 64, dv: 64, ..Case::default() };
    let mut halves = Halves::of(case);
    halves.stored[0][3 * 64 + 5] = bf16::NAN;
    for cpu in cpus() {
        let [out, ..] = halves.fused(cpu);
        for (i, row) in out.chunks_exact(64).enumerate() {
            assert_eq!(row.iter().all(|x| x.is_nan()), i == 3, "row {i} on {}", cpu.isa());
        }
    }
}

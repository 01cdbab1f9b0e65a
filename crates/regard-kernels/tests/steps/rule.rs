//! The rule of `case/rule.rs` for any operation.

pub use crate::case::largest;
use crate::case::{allowed, allowed_in_double, error};
use regard_kernels::{Cpu, Isa, Real};
use std::fmt::Debug;

/// One operation on given numbers.
pub trait Step: Debug + Sync {
    /// What it results in.
    const RESULTS: &'static [&'static str];
    /// By the reference.
    fn plain<T: Real>(&self) -> Vec<Vec<T>>;
    /// By the kernels.
    fn fused<T: Real>(&self, cpu: Cpu) -> Vec<Vec<T>>;
    /// For each result its largest term times √n for a sum of n; 0 says the result itself.
    fn terms(&self) -> Vec<f64> {
        vec![0.0; Self::RESULTS.len()]
    }
}

pub fn cpus() -> impl Iterator<Item = Cpu> {
    Isa::ALL.into_iter().filter_map(Cpu::with)
}

pub fn of<T: Real>(x: &[f64]) -> Vec<T> {
    x.iter().map(|&x| T::of(x)).collect()
}

/// Panics unless every result of every instruction set keeps the rule.
pub fn keeps_the_rule<S: Step>(step: &S) {
    let oracle = step.plain::<f64>();
    let plain = step.plain::<f32>();
    let terms = step.terms();
    assert_eq!(oracle.len(), S::RESULTS.len());
    for cpu in cpus() {
        let single = step.fused::<f32>(cpu);
        let double = step.fused::<f64>(cpu);
        for (at, name) in S::RESULTS.iter().enumerate() {
            let (oracle, plain) = (&oracle[at], error(&plain[at], &oracle[at]));
            assert!(!oracle.iter().any(|x| x.is_nan()), "the oracle has a NaN in {name}\n{step:?}");
            assert!(plain.is_finite(), "the plain formula fails in {name}\n{step:?}");
            assert_eq!(single[at].len(), oracle.len(), "{name} has another length\n{step:?}");
            let scale = largest(oracle).max(terms[at]);
            let (found, most) = (error(&single[at], oracle), allowed(plain, scale));
            let isa = cpu.isa();
            assert!(
                found <= most,
                "{isa} {name}: error {found:e}, allowed {most:e} (plain {plain:e}, scale \
                 {scale:e})\n{step:?}"
            );
            // The plain formula in f64 is the oracle itself: some roundings must do.
            let (found, most) = (error(&double[at], oracle), allowed_in_double(50.0, scale));
            assert!(
                found <= most,
                "{isa} {name} in f64: error {found:e}, allowed {most:e}\n{step:?}"
            );
        }
    }
}

/// Panics unless one, two and three threads give the same bits.
pub fn has_the_same_bits_on_any_threads<S: Step>(step: &S) {
    for cpu in cpus() {
        let on = |threads: usize| -> Vec<u32> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let results = pool.install(|| step.fused::<f32>(cpu));
            results.iter().flatten().map(|x| x.to_bits()).collect()
        };
        let one = on(1);
        assert_eq!(one, on(2), "{step:?}");
        assert_eq!(one, on(3), "{step:?}");
    }
}

/// Panics unless `gradient` is that of Σ weight · result by the part of the input at hand.
pub fn agrees_with_differences(
    name: &str,
    input: &[f64],
    gradient: &[f64],
    loss: impl Fn(&[f64]) -> f64,
) {
    assert_eq!(input.len(), gradient.len(), "{name}");
    let step = 1e-5;
    let mut moved = input.to_vec();
    for (at, &analytic) in gradient.iter().enumerate() {
        moved[at] = input[at] + step;
        let above = loss(&moved);
        moved[at] = input[at] - step;
        let below = loss(&moved);
        moved[at] = input[at];
        let numeric = (above - below) / (2.0 * step);
        assert!(
            (numeric - analytic).abs() <= 1e-6 * (1.0 + analytic.abs()),
            "grad {name}[{at}] is {analytic}, differences give {numeric}"
        );
    }
}

pub fn weighed(x: &[f64], weight: &[f64]) -> f64 {
    x.iter().zip(weight).map(|(x, w)| x * w).sum()
}

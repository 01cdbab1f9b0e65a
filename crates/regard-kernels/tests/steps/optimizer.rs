use crate::case::Draws;
use crate::rule::*;
use regard_kernels::step::reference;
use regard_kernels::{Adam, AdamTensor, Cpu, Real, Sgd, SgdTensor};

/// Tensors of these sizes: tasks end inside some, and hold many others.
const SIZES: [usize; 7] = [1, 0, 33, 70_000, 7, 1000, 5];

#[derive(Debug)]
struct AdamCase(Adam);

fn numbers() -> [Vec<Vec<f64>>; 4] {
    let mut draws = Draws::new(3);
    [0, 1, 2, 3].map(|which| {
        let tensors = SIZES.iter().map(|&n| draws.normals(n, 1.0));
        // The mean of the squares is never negative.
        let squared =
            |x: Vec<f64>| if which == 3 { x.iter().map(|x| x.abs()).collect() } else { x };
        tensors.map(squared).collect()
    })
}

impl Step for AdamCase {
    const RESULTS: &'static [&'static str] = &["param", "m", "v"];

    fn plain<T: Real>(&self) -> Vec<Vec<T>> {
        let [param, grad, m, v] = numbers().map(|x| of::<T>(&x.concat()));
        let mut results = vec![vec![]; 3];
        for at in 0..param.len() {
            let new = reference::adam(&self.0, param[at], grad[at], m[at], v[at]);
            results.iter_mut().zip(new).for_each(|(to, x)| to.push(x));
        }
        results
    }

    fn fused<T: Real>(&self, cpu: Cpu) -> Vec<Vec<T>> {
        let [mut param, grad, mut m, mut v] =
            numbers().map(|x| x.iter().map(|x| of::<T>(x)).collect::<Vec<_>>());
        let mut tensors: Vec<AdamTensor<T>> = (param.iter_mut().zip(&grad))
            .zip(m.iter_mut().zip(&mut v))
            .map(|((param, grad), (m, v))| AdamTensor { param, grad, m, v })
            .collect();
        cpu.adam(&mut tensors, &self.0).unwrap();
        vec![param.concat(), m.concat(), v.concat()]
    }

    fn terms(&self) -> Vec<f64> {
        // m / √v is as large as √v is small.
        let [param, ..] = self.plain::<f64>().try_into().unwrap_or([const { vec![] }; 3]);
        vec![largest(&param), 5.0, 25.0]
    }
}

#[test]
fn adam_keeps_the_rule() {
    for decoupled in [false, true] {
        for (step, weight_decay, grad_scale) in [(1, 0.0, 1.0), (7, 0.1, 0.3), (100_000, 0.01, 1.0)]
        {
            let adam =
                Adam { lr: 0.01, step, weight_decay, decoupled, grad_scale, ..Adam::default() };
            keeps_the_rule(&AdamCase(adam));
        }
    }
}

#[derive(Debug)]
struct SgdCase(Sgd);

impl Step for SgdCase {
    const RESULTS: &'static [&'static str] = &["param", "momentum"];

    fn plain<T: Real>(&self) -> Vec<Vec<T>> {
        let [param, grad, momentum, _] = numbers().map(|x| of::<T>(&x.concat()));
        let kept = self.0.momentum != 0.0;
        let mut results = vec![vec![]; 2];
        for at in 0..param.len() {
            let [new, along] = reference::sgd(&self.0, param[at], grad[at], momentum[at]);
            results[0].push(new);
            results[1].push(if kept { along } else { momentum[at] });
        }
        results
    }

    fn fused<T: Real>(&self, cpu: Cpu) -> Vec<Vec<T>> {
        let [mut param, grad, mut momentum, _] =
            numbers().map(|x| x.iter().map(|x| of::<T>(x)).collect::<Vec<_>>());
        let mut tensors: Vec<SgdTensor<T>> = (param.iter_mut().zip(&grad))
            .zip(&mut momentum)
            .map(|((param, grad), momentum)| SgdTensor { param, grad, momentum })
            .collect();
        cpu.sgd(&mut tensors, &self.0).unwrap();
        vec![param.concat(), momentum.concat()]
    }

    fn terms(&self) -> Vec<f64> {
        vec![5.0, 5.0]
    }
}

#[test]
fn sgd_keeps_the_rule() {
    for (momentum, nesterov) in [(0.0, false), (0.9, false), (0.9, true)] {
        for (weight_decay, grad_scale) in [(0.0, 1.0), (0.1, 0.3)] {
            let sgd = Sgd { lr: 0.1, momentum, nesterov, weight_decay, grad_scale };
            keeps_the_rule(&SgdCase(sgd));
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    has_the_same_bits_on_any_threads(&AdamCase(Adam { weight_decay: 0.1, ..Adam::default() }));
    let [_, grad, ..] = numbers().map(|x| x.iter().map(|x| of::<f32>(x)).collect::<Vec<_>>());
    let slices: Vec<&[f32]> = grad.iter().map(|x| &x[..]).collect();
    for cpu in cpus() {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| cpu.sum_of_squares(&slices)).to_bits()
        };
        assert!(on(1) == on(2) && on(1) == on(3));
    }
}

#[test]
fn the_sum_of_squares_is_exact_to_double_precision() {
    let [x, ..] = numbers();
    let known: f64 = x.iter().flatten().map(|x| x * x).sum();
    for cpu in cpus() {
        let single: Vec<Vec<f32>> = x.iter().map(|x| of::<f32>(x)).collect();
        let slices: Vec<&[f32]> = single.iter().map(|x| &x[..]).collect();
        assert!((cpu.sum_of_squares(&slices) / known - 1.0).abs() < 1e-13);
        // Squares that f32 could not hold.
        assert!((cpu.sum_of_squares(&[&[1e30f32][..]]) / 1e60 - 1.0).abs() < 1e-6);
        assert_eq!(cpu.sum_of_squares::<f32>(&[]), 0.0);
        assert_eq!(cpu.sum_of_squares::<f32>(&[&[], &[]]), 0.0);
    }
}

#[test]
fn refusals_name_the_tensor() {
    let (mut p, mut m, mut v) = ([0f32; 2], [0f32; 2], [0f32; 3]);
    let tensor = AdamTensor { param: &mut p, grad: &[0.0; 2], m: &mut m, v: &mut v };
    assert_eq!(
        Cpu::best().adam(&mut [tensor], &Adam::default()).unwrap_err().to_string(),
        "v of tensor 0 has 3 elements, its parameter has 2"
    );
    let none: &mut [AdamTensor<f32>] = &mut [];
    assert_eq!(
        Cpu::best().adam(none, &Adam { step: 0, ..Adam::default() }).unwrap_err().to_string(),
        "step is 0; the first step is 1"
    );
}

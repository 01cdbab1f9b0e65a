use crate::case::Draws;
use crate::rule::*;
use regard_kernels::step::reference;
use regard_kernels::{Cpu, LayerNorm, LayerNormGrads, Real};

#[derive(Debug)]
struct Case {
    rows: usize,
    width: usize,
    scaled: bool,
    /// How far the mean is from 0.
    shift: f64,
}

impl Case {
    /// x, gamma, beta, grad_out
    fn numbers(&self) -> [Vec<f64>; 4] {
        let mut draws = Draws::new(self.rows as u64 + 1000 * self.width as u64);
        let n = self.rows * self.width;
        let mut numbers = [n, self.width, self.width, n].map(|n| draws.normals(n, 1.0));
        for x in &mut numbers[0] {
            *x = f64::from((*x + self.shift) as f32);
        }
        numbers
    }

    fn norm<'a, T>(&self, gamma: &'a [T], beta: &'a [T]) -> LayerNorm<'a, T> {
        let given = |x| self.scaled.then_some(x);
        LayerNorm { width: self.width, gamma: given(gamma), beta: given(beta), eps: 1e-5 }
    }
}

impl Step for Case {
    const RESULTS: &'static [&'static str] =
        &["out", "mean_rstd", "grad x", "grad gamma", "grad beta"];

    fn plain<T: Real>(&self) -> Vec<Vec<T>> {
        let [x, gamma, beta, grad] = self.numbers().map(|x| of::<T>(&x));
        let norm = self.norm(&gamma, &beta);
        let (out, mean_rstd) = reference::layer_norm(&x, &norm);
        let [grad_x, grad_gamma, grad_beta] = reference::layer_norm_backward(&x, &norm, &grad);
        vec![out, mean_rstd, grad_x, grad_gamma, grad_beta]
    }

    fn fused<T: Real>(&self, cpu: Cpu) -> Vec<Vec<T>> {
        let [x, gamma, beta, grad] = self.numbers().map(|x| of::<T>(&x));
        let norm = self.norm(&gamma, &beta);
        let nan = |n| vec![T::of(f64::NAN); n];
        let (mut out, mut mean_rstd) = (nan(x.len()), nan(2 * self.rows));
        if self.width == 0 {
            mean_rstd.clear();
        }
        cpu.layer_norm(&x, &norm, &mut out, &mut mean_rstd).unwrap();
        let mut grads = [nan(x.len()), nan(self.width), nan(self.width)];
        let [grad_x, grad_gamma, grad_beta] = &mut grads;
        let asked =
            LayerNormGrads { x: Some(grad_x), gamma: Some(grad_gamma), beta: Some(grad_beta) };
        cpu.layer_norm_backward(&x, &norm, &mean_rstd, &grad, asked).unwrap();
        let mut alone = nan(x.len());
        let asked = LayerNormGrads { x: Some(&mut alone), gamma: None, beta: None };
        cpu.layer_norm_backward(&x, &norm, &mean_rstd, &grad, asked).unwrap();
        assert_eq!(alone, grads[0]);
        [out, mean_rstd].into_iter().chain(grads).collect()
    }

    fn terms(&self) -> Vec<f64> {
        let [x, gamma, beta, grad] = self.numbers();
        let rstd = largest(&reference::layer_norm(&x, &self.norm(&gamma, &beta)).1);
        // A unit is as wrong as the mean it is taken from, times 1/deviation.
        let reach = largest(&x);
        let unit = (reach * rstd).max(1.0);
        let gamma = if self.scaled { largest(&gamma).max(1.0) } else { 1.0 };
        let (grad, rows) = (largest(&grad), (self.rows as f64).sqrt());
        vec![unit * gamma, reach, grad * gamma * rstd * unit, grad * unit * rows, grad * rows]
    }
}

#[test]
fn layer_norm_keeps_the_rule() {
    for (rows, width) in [(1, 1), (3, 5), (2, 16), (5, 33), (70, 257), (300, 64), (4, 1000)] {
        for scaled in [false, true] {
            for shift in [0.0, 3.0] {
                keeps_the_rule(&Case { rows, width, scaled, shift });
            }
        }
    }
    for (rows, width) in [(0, 0), (0, 5), (3, 0)] {
        keeps_the_rule(&Case { rows, width, scaled: true, shift: 0.0 });
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    has_the_same_bits_on_any_threads(&Case { rows: 999, width: 65, scaled: true, shift: 1.0 });
}

#[test]
fn a_constant_row_gives_beta_and_no_infinity() {
    for cpu in cpus() {
        let norm = LayerNorm { width: 3, gamma: None, beta: Some(&[1f32, 2.0, 3.0]), eps: 1e-5 };
        let (mut out, mut mean_rstd) = ([0f32; 3], [0f32; 2]);
        cpu.layer_norm(&[7.0; 3], &norm, &mut out, &mut mean_rstd).unwrap();
        assert_eq!(out, [1.0, 2.0, 3.0]);
    }
}

#[test]
fn a_row_that_is_not_a_number_harms_no_other() {
    for cpu in cpus() {
        for bad in [f32::NAN, f32::INFINITY] {
            let norm = LayerNorm { width: 2, gamma: None, beta: None, eps: 0.0 };
            let (mut out, mut mean_rstd) = ([0f32; 4], [0f32; 4]);
            cpu.layer_norm(&[bad, 1.0, 1.0, 3.0], &norm, &mut out, &mut mean_rstd).unwrap();
            assert!(out[0].is_nan() && out[2..] == [-1.0, 1.0]);
        }
    }
}

#[test]
fn the_reference_agrees_with_finite_differences() {
    let case = Case { rows: 3, width: 5, scaled: true, shift: 0.5 };
    let [x, gamma, beta, grad] = case.numbers();
    let norm = case.norm(&gamma, &beta);
    let [grad_x, grad_gamma, grad_beta] = reference::layer_norm_backward(&x, &norm, &grad);
    let loss = |x: &[f64], gamma: &[f64], beta: &[f64]| {
        weighed(&reference::layer_norm(x, &case.norm(gamma, beta)).0, &grad)
    };
    agrees_with_differences("x", &x, &grad_x, |x| loss(x, &gamma, &beta));
    agrees_with_differences("gamma", &gamma, &grad_gamma, |gamma| loss(&x, gamma, &beta));
    agrees_with_differences("beta", &beta, &grad_beta, |beta| loss(&x, &gamma, beta));
}

#[test]
fn refusals_name_both_lengths() {
    let cpu = Cpu::best();
    let mut norm = LayerNorm { width: 3, gamma: None, beta: None, eps: 1e-5 };
    let refused = |norm: &LayerNorm<f32>, x: &[f32], kept: usize| {
        let (mut out, mut kept) = (vec![0.0; x.len()], vec![0.0; kept]);
        cpu.layer_norm(x, norm, &mut out, &mut kept).unwrap_err().to_string()
    };
    assert_eq!(refused(&norm, &[0.0; 7], 4), "x has 7 elements, which are no whole rows of 3");
    assert_eq!(refused(&norm, &[0.0; 6], 5), "mean_rstd has 5 elements, 2 rows need [2, 2]");
    norm.gamma = Some(&[1.0; 2]);
    assert_eq!(refused(&norm, &[0.0; 6], 4), "gamma has 2 elements, a row has 3");
}

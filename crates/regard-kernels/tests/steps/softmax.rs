use crate::case::Draws;
use crate::rule::*;
use regard_kernels::step::reference;
use regard_kernels::{Cpu, Real};

#[derive(Debug)]
struct Case {
    rows: usize,
    width: usize,
    spread: f64,
}

impl Case {
    fn numbers(&self) -> [Vec<f64>; 2] {
        let mut draws = Draws::new(self.rows as u64 + 1000 * self.width as u64);
        let n = self.rows * self.width;
        [self.spread, 1.0].map(|spread| draws.normals(n, spread))
    }
}

impl Step for Case {
    const RESULTS: &'static [&'static str] = &["out", "grad", "log out", "log grad"];

    fn plain<T: Real>(&self) -> Vec<Vec<T>> {
        let [x, grad] = self.numbers().map(|x| of::<T>(&x));
        let (out, log) =
            (reference::softmax(&x, self.width), reference::log_softmax(&x, self.width));
        let back = reference::softmax_backward(&out, self.width, &grad);
        let log_back = reference::log_softmax_backward(&log, self.width, &grad);
        vec![out, back, log, log_back]
    }

    fn fused<T: Real>(&self, cpu: Cpu) -> Vec<Vec<T>> {
        let [x, grad] = self.numbers().map(|x| of::<T>(&x));
        let mut results = vec![vec![T::of(f64::NAN); x.len()]; 4];
        let [out, back, log, log_back] = &mut results[..] else { unreachable!() };
        cpu.softmax(&x, self.width, out).unwrap();
        cpu.softmax_backward(out, self.width, &grad, back).unwrap();
        cpu.log_softmax(&x, self.width, log).unwrap();
        cpu.log_softmax_backward(log, self.width, &grad, log_back).unwrap();
        results
    }

    fn terms(&self) -> Vec<f64> {
        let [x, grad] = self.numbers();
        let grad = largest(&grad) * (self.width as f64).sqrt();
        // eʸ is as wrong, relatively, as y is absolutely.
        let log = 2.0 * largest(&x) + (self.width.max(1) as f64).ln();
        vec![1.0, grad, log, grad * log.max(1.0)]
    }
}

#[test]
fn softmax_keeps_the_rule() {
    for (rows, width) in [(1, 1), (3, 5), (2, 16), (5, 33), (70, 257), (300, 64), (2, 5000)] {
        for spread in [0.1, 1.0, 20.0] {
            keeps_the_rule(&Case { rows, width, spread });
        }
    }
    for (rows, width) in [(0, 0), (0, 5), (3, 0)] {
        keeps_the_rule(&Case { rows, width, spread: 1.0 });
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    has_the_same_bits_on_any_threads(&Case { rows: 999, width: 65, spread: 1.0 });
}

#[test]
fn a_class_of_minus_infinity_has_no_share() {
    let nothing = f32::NEG_INFINITY;
    for cpu in cpus() {
        for width in [3, 40, 200] {
            let mut x = vec![nothing; width];
            (x[1], x[2]) = (0.0, 0.0);
            let mut out = vec![9.0; width];
            cpu.softmax(&x, width, &mut out).unwrap();
            assert!((out[1] - 0.5).abs() < 1e-6 && (out[2] - 0.5).abs() < 1e-6);
            assert!(out.iter().enumerate().all(|(c, &p)| c == 1 || c == 2 || p == 0.0));
            x[2] = f32::NAN;
            cpu.softmax(&x, width, &mut out).unwrap();
            assert!(out.iter().all(|p| p.is_nan()));
        }
    }
}

#[test]
fn the_reference_agrees_with_finite_differences() {
    let [x, grad] = Case { rows: 3, width: 5, spread: 1.0 }.numbers();
    let back = reference::softmax_backward(&reference::softmax(&x, 5), 5, &grad);
    agrees_with_differences("x", &x, &back, |x| weighed(&reference::softmax(x, 5), &grad));
    let back = reference::log_softmax_backward(&reference::log_softmax(&x, 5), 5, &grad);
    agrees_with_differences("x", &x, &back, |x| weighed(&reference::log_softmax(x, 5), &grad));
}

#[test]
fn refusals_name_both_lengths() {
    let refused = Cpu::best().softmax(&[0f32; 7], 3, &mut [0.0; 7]).unwrap_err().to_string();
    assert_eq!(refused, "x has 7 elements, which are no whole rows of 3");
}

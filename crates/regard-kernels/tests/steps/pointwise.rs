use crate::case::Draws;
use crate::rule::*;
use regard_kernels::step::reference;
use regard_kernels::{Activation, Cpu, Real};

const ACTS: [Activation; 10] = [
    Activation::Identity,
    Activation::Relu,
    Activation::LeakyRelu { slope: 0.2 },
    Activation::Gelu,
    Activation::GeluTanh,
    Activation::Silu,
    Activation::Tanh,
    Activation::Sigmoid,
    Activation::Elu { alpha: 1.5 },
    Activation::Exp,
];

#[derive(Debug)]
struct Case {
    act: Activation,
    rows: usize,
    width: usize,
    biased: bool,
    spread: f64,
}

impl Case {
    fn numbers(&self) -> [Vec<f64>; 3] {
        let mut draws = Draws::new(self.rows as u64 + 1000 * self.width as u64);
        let n = self.rows * self.width;
        [(n, self.spread), (self.width, 1.0), (n, 1.0)].map(|(n, spread)| draws.normals(n, spread))
    }
}

impl Step for Case {
    const RESULTS: &'static [&'static str] = &["out", "grad x", "grad bias"];

    fn plain<T: Real>(&self) -> Vec<Vec<T>> {
        let [x, bias, grad] = self.numbers().map(|x| of::<T>(&x));
        let bias = self.biased.then_some(&bias[..]);
        let (grad_x, grad_bias) = reference::pointwise_backward(&x, bias, self.act, &grad);
        vec![reference::pointwise(&x, bias, self.act), grad_x, grad_bias]
    }

    fn fused<T: Real>(&self, cpu: Cpu) -> Vec<Vec<T>> {
        let [x, bias, grad] = self.numbers().map(|x| of::<T>(&x));
        let bias = self.biased.then_some(&bias[..]);
        let nan = T::of(f64::NAN);
        let mut out = vec![nan; x.len()];
        let mut grad_x = out.clone();
        let mut grad_bias = vec![nan; bias.map_or(0, <[T]>::len)];
        cpu.pointwise(&x, bias, self.act, &mut out).unwrap();
        let to_bias = self.biased.then_some(&mut grad_bias[..]);
        cpu.pointwise_backward(&x, bias, self.act, &grad, Some(&mut grad_x), to_bias).unwrap();
        vec![out, grad_x, grad_bias]
    }

    fn terms(&self) -> Vec<f64> {
        let [x, bias, grad] = self.numbers();
        let reach = largest(&x) + if self.biased { largest(&bias) } else { 0.0 };
        // |slope| is at most 1.13 but for eˣ, whose result is its own scale.
        let steep = if self.act == Activation::Exp { reach.exp() } else { 1.0 };
        let grad = largest(&grad) * steep;
        vec![reach.max(1.0), grad, grad * (self.rows as f64).sqrt()]
    }
}

#[test]
fn every_activation_keeps_the_rule() {
    for act in ACTS {
        for (rows, width) in [(1, 1), (3, 5), (7, 16), (4, 33), (130, 257), (600, 64)] {
            for biased in [false, true] {
                for spread in [0.01, 1.0, 6.0] {
                    keeps_the_rule(&Case { act, rows, width, biased, spread });
                }
            }
        }
    }
}

#[test]
fn nothing_in_gives_nothing_out() {
    for (rows, width) in [(0, 0), (0, 5), (3, 0)] {
        for biased in [false, true] {
            let act = Activation::Gelu;
            keeps_the_rule(&Case { act, rows, width, biased, spread: 1.0 });
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let act = Activation::Gelu;
    for (rows, width) in [(700, 100), (3, 20000)] {
        let case = Case { act, rows, width, biased: true, spread: 1.0 };
        has_the_same_bits_on_any_threads(&case);
    }
}

#[test]
fn the_tails_of_gelu_are_exact_where_the_plain_formula_is_not() {
    // x · Φ(x) from tables; 1 + erf(x/√2) has no digit left at −6 in f32.
    for (x, known) in [(-6.0, -5.919_525_9e-9), (-3.0, -4.049_694e-3), (-0.5, -0.154_268_77)] {
        for cpu in cpus() {
            let (mut single, mut double) = ([0f32], [0f64]);
            cpu.pointwise(&[x as f32], None, Activation::Gelu, &mut single).unwrap();
            cpu.pointwise(&[x], None, Activation::Gelu, &mut double).unwrap();
            for found in [f64::from(single[0]), double[0]] {
                assert!((found / known - 1.0).abs() < 3e-6, "{}: {x}: {found}", cpu.isa());
            }
        }
    }
}

#[test]
fn what_is_not_a_number_stays_visible_and_infinity_goes_where_it_should() {
    let x = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 200.0, -200.0];
    for act in ACTS {
        for cpu in cpus() {
            let (mut out, mut grad) = ([0f32; 5], [0f32; 5]);
            cpu.pointwise(&x, None, act, &mut out).unwrap();
            cpu.pointwise_backward(&x, None, act, &[1.0; 5], Some(&mut grad), None).unwrap();
            assert!(out[0].is_nan(), "{} {act:?}", cpu.isa());
            let plain = reference::pointwise(&x, None, act);
            for (found, plain) in out.iter().zip(&plain).skip(1) {
                assert!(
                    found == plain || found.is_nan() && plain.is_nan(),
                    "{} {act:?}: {out:?}, not {plain:?}",
                    cpu.isa()
                );
            }
        }
    }
}

#[test]
fn the_reference_agrees_with_finite_differences() {
    for act in ACTS {
        let case = Case { act, rows: 3, width: 4, biased: true, spread: 1.0 };
        let [x, bias, grad] = case.numbers();
        let (grad_x, grad_bias) = reference::pointwise_backward(&x, Some(&bias), act, &grad);
        agrees_with_differences("x", &x, &grad_x, |x| {
            weighed(&reference::pointwise(x, Some(&bias), act), &grad)
        });
        agrees_with_differences("bias", &bias, &grad_bias, |bias| {
            weighed(&reference::pointwise(&x, Some(bias), act), &grad)
        });
    }
}

#[test]
fn refusals_name_both_lengths() {
    let cpu = Cpu::best();
    let refused = |error: Result<(), regard_kernels::Error>| error.unwrap_err().to_string();
    let act = Activation::Relu;
    assert_eq!(
        refused(cpu.pointwise(&[0f32; 7], Some(&[0.0; 3]), act, &mut [0.0; 7])),
        "x has 7 elements, which are no whole rows of the bias's 3"
    );
    assert_eq!(
        refused(cpu.pointwise(&[0f32; 6], None, act, &mut [0.0; 5])),
        "out has 5 elements, x has 6"
    );
    let grad = Some(&mut [0f32; 2][..]);
    assert_eq!(
        refused(cpu.pointwise_backward(&[0.0; 6], None, act, &[0.0; 6], None, grad)),
        "grad_bias has 2 elements, bias has 0"
    );
}

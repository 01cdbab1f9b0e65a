use crate::case::Draws;
use crate::rule::*;
use regard_kernels::step::reference;
use regard_kernels::{Cpu, CrossEntropy, Real};

#[derive(Debug)]
struct Case {
    rows: usize,
    classes: usize,
    smoothing: f64,
    ignore: Option<i64>,
    spread: f64,
}

impl Case {
    fn numbers(&self) -> ([Vec<f64>; 2], Vec<i64>) {
        let mut draws = Draws::new(self.rows as u64 + 1000 * self.classes as u64);
        let numbers = [(self.rows * self.classes, self.spread), (self.rows, 1.0)]
            .map(|(n, spread)| draws.normals(n, spread));
        let targets = (0..self.rows)
            .map(|row| match self.ignore {
                Some(ignored) if row % 3 == 1 => ignored,
                _ => draws.below(self.classes) as i64,
            })
            .collect();
        (numbers, targets)
    }

    fn rule(&self) -> CrossEntropy {
        CrossEntropy { label_smoothing: self.smoothing, ignore_index: self.ignore }
    }
}

impl Step for Case {
    const RESULTS: &'static [&'static str] = &["loss", "lse", "grad logits"];

    fn plain<T: Real>(&self) -> Vec<Vec<T>> {
        let (numbers, targets) = self.numbers();
        let [logits, grad] = numbers.map(|x| of::<T>(&x));
        let (loss, lse) = reference::cross_entropy(&logits, &targets, &self.rule());
        let grad = reference::cross_entropy_backward(&logits, &targets, &self.rule(), &lse, &grad);
        vec![loss, lse, grad]
    }

    fn fused<T: Real>(&self, cpu: Cpu) -> Vec<Vec<T>> {
        let (numbers, targets) = self.numbers();
        let [logits, grad] = numbers.map(|x| of::<T>(&x));
        let nan = |n| vec![T::of(f64::NAN); n];
        let (mut loss, mut lse) = (nan(self.rows), nan(self.rows));
        let (rule, mut to) = (self.rule(), nan(logits.len()));
        cpu.cross_entropy(&logits, &targets, &rule, &mut loss, &mut lse).unwrap();
        cpu.cross_entropy_backward(&logits, &targets, &rule, &lse, &grad, &mut to).unwrap();
        vec![loss, lse, to]
    }

    fn terms(&self) -> Vec<f64> {
        let ([logits, grad], _) = self.numbers();
        let reach = 2.0 * largest(&logits) + (self.classes as f64).ln();
        vec![reach, reach, largest(&grad) * reach.max(1.0)]
    }
}

#[test]
fn cross_entropy_keeps_the_rule() {
    for (rows, classes) in [(1, 1), (3, 5), (7, 16), (5, 33), (70, 257), (300, 64), (3, 8000)] {
        for smoothing in [0.0, 0.1, 1.0] {
            for ignore in [None, Some(-100), Some(0)] {
                for spread in [1.0, 15.0] {
                    keeps_the_rule(&Case { rows, classes, smoothing, ignore, spread });
                }
            }
        }
    }
    keeps_the_rule(&Case { rows: 0, classes: 5, smoothing: 0.1, ignore: None, spread: 1.0 });
}

#[test]
fn threads_do_not_change_a_bit() {
    let case = Case { rows: 999, classes: 65, smoothing: 0.1, ignore: Some(-1), spread: 1.0 };
    has_the_same_bits_on_any_threads(&case);
}

#[test]
fn another_class_of_minus_infinity_does_not_matter() {
    let nothing = f32::NEG_INFINITY;
    for cpu in cpus() {
        let (mut loss, mut lse, mut grad) = ([0f32], [0f32], [0f32; 3]);
        let (logits, rule) = ([0.0, nothing, 0.0], CrossEntropy::default());
        cpu.cross_entropy(&logits, &[2], &rule, &mut loss, &mut lse).unwrap();
        assert!((loss[0] - 2f32.ln()).abs() < 1e-6);
        cpu.cross_entropy_backward(&logits, &[2], &rule, &lse, &[1.0], &mut grad).unwrap();
        assert!((grad[0] - 0.5).abs() < 1e-6 && grad[1] == 0.0 && (grad[2] + 0.5).abs() < 1e-6);
    }
}

#[test]
fn a_logit_that_is_not_a_number_shows_in_its_row_alone() {
    for cpu in cpus() {
        for bad in [f32::NAN, f32::INFINITY] {
            let (mut loss, mut lse) = ([0f32; 2], [0f32; 2]);
            let rule = CrossEntropy::default();
            cpu.cross_entropy(&[bad, 0.0, 0.0, 0.0], &[1, 1], &rule, &mut loss, &mut lse).unwrap();
            assert!(loss[0].is_nan() && (loss[1] - 2f32.ln()).abs() < 1e-6);
        }
    }
}

#[test]
fn the_reference_agrees_with_finite_differences() {
    for smoothing in [0.0, 0.3] {
        let case = Case { rows: 4, classes: 5, smoothing, ignore: Some(-1), spread: 1.0 };
        let ([logits, grad], targets) = case.numbers();
        let rule = case.rule();
        let (_, lse) = reference::cross_entropy(&logits, &targets, &rule);
        let back = reference::cross_entropy_backward(&logits, &targets, &rule, &lse, &grad);
        agrees_with_differences("logits", &logits, &back, |logits| {
            weighed(&reference::cross_entropy(logits, &targets, &rule).0, &grad)
        });
    }
}

#[test]
fn a_target_that_is_no_class_is_refused_with_its_row() {
    let (mut loss, mut lse) = ([0f32; 2], [0f32; 2]);
    let cpu = Cpu::best();
    let mut refused = |targets: &[i64], logits: &[f32]| {
        let rule = CrossEntropy { label_smoothing: 0.0, ignore_index: Some(-100) };
        cpu.cross_entropy(logits, targets, &rule, &mut loss, &mut lse).unwrap_err().to_string()
    };
    assert_eq!(refused(&[-100, 3], &[0.0; 6]), "target 3 of row 1 is none of the 3 classes");
    assert_eq!(refused(&[-1, 0], &[0.0; 6]), "target -1 of row 0 is none of the 3 classes");
    assert_eq!(
        refused(&[0, 0], &[0.0; 5]),
        "logits has 5 elements, which are no whole rows for 2 targets"
    );
}

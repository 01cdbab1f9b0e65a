use crate::case::Draws;
use crate::rule::*;
use regard_kernels::step::reference;
use regard_kernels::{Cell, Cpu, Real, Recurrent, RecurrentGrads, RecurrentOut, RecurrentSeed};

const CELLS: [Cell; 4] = [Cell::Rnn, Cell::RnnRelu, Cell::Gru, Cell::Lstm];

#[derive(Clone, Copy, Debug)]
struct Case {
    cell: Cell,
    batch: usize,
    steps: usize,
    hidden: usize,
    /// Whether there are b_hh, h0 and c0, and gradients of the outputs as well as the last state.
    full: bool,
    ragged: bool,
    reverse: bool,
}

const PLAIN: Case = Case {
    cell: Cell::Gru,
    batch: 3,
    steps: 4,
    hidden: 5,
    full: true,
    ragged: false,
    reverse: false,
};

struct Data<T> {
    case: Case,
    gates_x: Vec<T>,
    w_hh: Vec<T>,
    b_hh: Vec<T>,
    h0: Vec<T>,
    c0: Vec<T>,
    grad_out: Vec<T>,
    grad_h: Vec<T>,
    grad_c: Vec<T>,
    lengths: Vec<usize>,
}

impl Case {
    fn data<T: Real>(&self) -> Data<T> {
        let (b, t, h, g) = (self.batch, self.steps, self.hidden, self.cell.gates() * self.hidden);
        let mut draws = Draws::new((b + 100 * t + 10_000 * h) as u64);
        let spread = 0.7 / (h.max(1) as f64).sqrt();
        let mut normals = |n: usize, spread: f64| of::<T>(&draws.normals(n, spread));
        Data {
            case: *self,
            gates_x: normals(b * t * g, 1.0),
            w_hh: normals(g * h, spread),
            b_hh: normals(g, 0.5),
            h0: normals(b * h, 0.5),
            c0: normals(b * h, 0.5),
            grad_out: normals(b * t * h, 1.0),
            grad_h: normals(b * h, 1.0),
            grad_c: normals(b * h, 1.0),
            // One of nothing, one of everything.
            lengths: (0..b).map(|at| if at == 1 { 0 } else { t - at * 3 % (t + 1) }).collect(),
        }
    }
}

impl<T: Real> Data<T> {
    fn layer(&self) -> Recurrent<'_, T> {
        let Case { cell, batch, steps, hidden, full, ragged, reverse } = self.case;
        Recurrent {
            cell,
            batch,
            steps,
            hidden,
            w_hh: &self.w_hh,
            b_hh: full.then_some(&self.b_hh),
            h0: full.then_some(&self.h0),
            c0: (full && cell == Cell::Lstm).then_some(&self.c0),
            lengths: ragged.then_some(&self.lengths),
            reverse,
        }
    }

    fn seed(&self) -> RecurrentSeed<'_, T> {
        RecurrentSeed {
            out: self.case.full.then_some(&self.grad_out),
            h: Some(&self.grad_h),
            c: (self.case.cell == Cell::Lstm).then_some(&self.grad_c),
        }
    }
}

impl Step for Case {
    const RESULTS: &'static [&'static str] =
        &["out", "h", "c", "grad gates_x", "grad w_hh", "grad b_hh", "grad h0", "grad c0"];

    fn plain<T: Real>(&self) -> Vec<Vec<T>> {
        let data = self.data::<T>();
        let output = reference::recurrent(&data.gates_x, &data.layer());
        let grads = reference::recurrent_backward(&data.gates_x, &data.layer(), data.seed());
        let reference::RecurrentGradients { gates_x, w_hh, b_hh, h0, c0, .. } = grads;
        vec![output.out, output.h, output.c, gates_x, w_hh, b_hh, h0, c0]
    }

    fn fused<T: Real>(&self, cpu: Cpu) -> Vec<Vec<T>> {
        let data = self.data::<T>();
        let layer = data.layer();
        let nan = |n| vec![T::of(f64::NAN); n];
        let states = self.batch * self.hidden;
        let mut out = nan(self.steps * states);
        let (mut h, mut c) = (nan(states), nan(states));
        let mut saved = nan(layer.saved_len());
        let to = RecurrentOut {
            out: &mut out,
            h: Some(&mut h),
            c: Some(&mut c),
            saved: Some(&mut saved),
        };
        cpu.recurrent(&data.gates_x, &layer, to).unwrap();
        let (mut gates_x, mut w_hh) = (nan(data.gates_x.len()), nan(data.w_hh.len()));
        let mut b_hh = nan(data.b_hh.len());
        let (mut h0, mut c0) = (nan(states), nan(states));
        let grads = RecurrentGrads {
            gates_x: &mut gates_x,
            w_hh: Some(&mut w_hh),
            b_hh: Some(&mut b_hh),
            h0: Some(&mut h0),
            c0: Some(&mut c0),
        };
        cpu.recurrent_backward(&layer, &out, &saved, data.seed(), grads).unwrap();
        vec![out, h, c, gates_x, w_hh, b_hh, h0, c0]
    }

    fn terms(&self) -> Vec<f64> {
        let data = self.data::<f64>();
        let root = (self.hidden as f64).sqrt();
        let gate = largest(&data.gates_x) + 1.0;
        // Through the product, and summed over a sequence's steps.
        let grad = largest(&data.grad_out).max(largest(&data.grad_h)) * root.max(1.0);
        let rows = (self.batch as f64 * self.steps as f64).sqrt();
        vec![gate, gate, gate, grad, grad * rows, grad * rows, grad, grad]
    }
}

#[test]
fn every_unit_keeps_the_rule() {
    for cell in CELLS {
        for (batch, steps, hidden) in
            [(1, 1, 1), (3, 4, 5), (2, 1, 33), (17, 7, 12), (40, 3, 37), (16, 5, 64), (5, 9, 130)]
        {
            for (full, ragged, reverse) in [
                (false, false, false),
                (true, false, true),
                (true, true, false),
                (true, true, true),
            ] {
                keeps_the_rule(&Case { cell, batch, steps, hidden, full, ragged, reverse });
            }
        }
        for (batch, steps, hidden) in [(0, 3, 4), (3, 0, 4), (3, 4, 0)] {
            keeps_the_rule(&Case { cell, batch, steps, hidden, ..PLAIN });
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    for cell in CELLS {
        let case = Case { cell, batch: 50, steps: 9, hidden: 70, ragged: true, ..PLAIN };
        has_the_same_bits_on_any_threads(&case);
    }
}

#[test]
fn a_padded_batch_gives_the_same_bits_as_each_sequence_alone() {
    for cell in CELLS {
        for reverse in [false, true] {
            let case = Case { cell, batch: 19, steps: 6, ragged: true, reverse, ..PLAIN };
            let mut data = case.data::<f32>();
            let (h, g) = (case.hidden, cell.gates() * case.hidden);
            // What lies in the padding must not matter, whatever it is.
            for (b, &length) in data.lengths.iter().enumerate() {
                data.gates_x[(b * 6 + length) * g..(b + 1) * 6 * g].fill(f32::NAN);
            }
            for cpu in cpus() {
                let run = |gates_x: &[f32], layer: &Recurrent<f32>| {
                    let mut out = vec![9.0; layer.batch * layer.steps * h];
                    let mut last = vec![9.0; layer.batch * h];
                    let to =
                        RecurrentOut { out: &mut out, h: Some(&mut last), c: None, saved: None };
                    cpu.recurrent(gates_x, layer, to).unwrap();
                    (out, last)
                };
                let (out, last) = run(&data.gates_x, &data.layer());
                for (b, &length) in data.lengths.iter().enumerate() {
                    let state = b * h..(b + 1) * h;
                    let alone = Recurrent {
                        batch: 1,
                        steps: length,
                        h0: Some(&data.h0[state.clone()]),
                        c0: data.layer().c0.map(|c0| &c0[state.clone()]),
                        lengths: None,
                        ..data.layer()
                    };
                    let (own, own_last) = run(&data.gates_x[b * 6 * g..][..length * g], &alone);
                    assert_eq!(out[b * 6 * h..][..length * h], own);
                    assert!(out[(b * 6 + length) * h..(b + 1) * 6 * h].iter().all(|&x| x == 0.0));
                    assert_eq!(last[state], own_last);
                }
            }
        }
    }
}

#[test]
fn an_input_that_is_not_a_number_shows_in_its_sequence_alone() {
    for cell in CELLS {
        let mut data = Case { cell, ..PLAIN }.data::<f32>();
        data.gates_x[0] = f32::NAN;
        for cpu in cpus() {
            let mut out = vec![0.0; 3 * 4 * 5];
            let to = RecurrentOut { out: &mut out, h: None, c: None, saved: None };
            cpu.recurrent(&data.gates_x, &data.layer(), to).unwrap();
            assert!(out[..4 * 5].iter().any(|x| x.is_nan()), "{cell:?}");
            assert!(out[4 * 5..].iter().all(|x| x.is_finite()));
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_vanishing_gradient_becomes_zero_and_nothing_between() {
    for cell in CELLS {
        let case = Case { cell, steps: 60, full: false, ..PLAIN };
        let mut data = case.data::<f32>();
        // Each step takes the gradient a few powers of ten further down.
        data.w_hh.iter_mut().for_each(|w| *w *= 1e-3);
        data.gates_x.iter_mut().for_each(|x| *x -= 4.0);
        for cpu in cpus() {
            let layer = data.layer();
            let (mut out, mut saved) = (vec![0.0; 3 * 60 * 5], vec![0.0; layer.saved_len()]);
            let to = RecurrentOut { out: &mut out, h: None, c: None, saved: Some(&mut saved) };
            cpu.recurrent(&data.gates_x, &layer, to).unwrap();
            let mut gates_x = vec![9.0; data.gates_x.len()];
            let grads = RecurrentGrads {
                gates_x: &mut gates_x,
                w_hh: None,
                b_hh: None,
                h0: None,
                c0: None,
            };
            cpu.recurrent_backward(&layer, &out, &saved, data.seed(), grads).unwrap();
            assert!(gates_x.contains(&0.0), "{cell:?} did not vanish");
            assert!(!gates_x.iter().any(|x| x.is_subnormal()), "{} {cell:?}", cpu.isa());
        }
    }
}

#[test]
fn the_reference_agrees_with_finite_differences() {
    for cell in CELLS {
        for (ragged, reverse) in [(false, false), (true, true)] {
            let case = Case { cell, ragged, reverse, ..PLAIN };
            let data = case.data::<f64>();
            let layer = data.layer();
            let grads = reference::recurrent_backward(&data.gates_x, &layer, data.seed());
            let loss = |gates_x: &[f64], layer: &Recurrent<f64>| {
                let output = reference::recurrent(gates_x, layer);
                let cells = if cell == Cell::Lstm { weighed(&output.c, &data.grad_c) } else { 0.0 };
                weighed(&output.out, &data.grad_out) + weighed(&output.h, &data.grad_h) + cells
            };
            let gates_x = &data.gates_x;
            agrees_with_differences("gates_x", gates_x, &grads.gates_x, |x| loss(x, &layer));
            agrees_with_differences("w_hh", &data.w_hh, &grads.w_hh, |w_hh| {
                loss(gates_x, &Recurrent { w_hh, ..layer })
            });
            agrees_with_differences("b_hh", &data.b_hh, &grads.b_hh, |b_hh| {
                loss(gates_x, &Recurrent { b_hh: Some(b_hh), ..layer })
            });
            agrees_with_differences("h0", &data.h0, &grads.h0, |h0| {
                loss(gates_x, &Recurrent { h0: Some(h0), ..layer })
            });
            if cell == Cell::Lstm {
                agrees_with_differences("c0", &data.c0, &grads.c0, |c0| {
                    loss(gates_x, &Recurrent { c0: Some(c0), ..layer })
                });
            }
        }
    }
}

#[test]
fn refusals_name_the_shape() {
    let data = PLAIN.data::<f32>();
    let refused = |layer: &Recurrent<f32>| {
        let mut out = [0.0; 60];
        let to = RecurrentOut { out: &mut out, h: None, c: None, saved: None };
        Cpu::best().recurrent(&data.gates_x, layer, to).unwrap_err().to_string()
    };
    let layer = data.layer();
    assert_eq!(
        refused(&Recurrent { w_hh: &[0.0; 7], ..layer }),
        "w_hh has 7 elements; B 3, T 4, H 5 and 3 gates need 75"
    );
    assert_eq!(
        refused(&Recurrent { lengths: Some(&[4, 5, 1]), ..layer }),
        "length 5 of sequence 1 is more than the 4 steps"
    );
    assert_eq!(
        refused(&Recurrent { c0: Some(&[0.0; 15]), ..layer }),
        "c0 is given, but Gru has no cells"
    );
}

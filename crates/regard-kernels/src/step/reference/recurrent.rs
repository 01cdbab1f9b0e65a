//! Recurrent layers in plain loops: each sequence alone, over its own steps.

use crate::{Cell, Real, Recurrent, RecurrentSeed};

/// Everything forward gives.
/// At every step hₜ = f(hₜ₋₁, xₜ), out ← hₜ, f being the [`Cell`]; [`recurrent`] has an example.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecurrentOutput<T> {
    /// `[B, T, H]`
    pub out: Vec<T>,
    /// `[B, H]`
    pub h: Vec<T>,
    /// `[B, H]`; zeros but for the LSTM.
    pub c: Vec<T>,
}

/// Every gradient, in the shape of what it is the gradient of.
/// For a loss L: ∂L/∂gates_x, ∂L/∂w_hh, and so on. [`recurrent_backward`] has an example.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecurrentGradients<T> {
    /// `[B, T, G·H]`
    pub gates_x: Vec<T>,
    /// `[G·H, H]`
    pub w_hh: Vec<T>,
    /// `[G·H]`
    pub b_hh: Vec<T>,
    /// `[B, H]`
    pub h0: Vec<T>,
    /// `[B, H]`
    pub c0: Vec<T>,
}

/// One step of one sequence: what went in, and what backward needs of what came out.
struct Step<T> {
    t: usize,
    h: Vec<T>,
    c: Vec<T>,
    /// The gates after their activations.
    gates: Vec<T>,
    /// W·h + b
    inner: Vec<T>,
    new_h: Vec<T>,
    new_c: Vec<T>,
}

fn sigmoid<T: Real>(x: T) -> T {
    let e = (-x.abs()).exp();
    if x < T::ZERO { e / (T::ONE + e) } else { T::ONE / (T::ONE + e) }
}

/// All steps of sequence b, in the order they are taken.
fn walk<T: Real>(gates_x: &[T], layer: &Recurrent<T>, b: usize) -> Vec<Step<T>> {
    let h = layer.hidden;
    let g = layer.cell.gates() * h;
    let state = |given: Option<&[T]>| match given {
        Some(all) => all[b * h..(b + 1) * h].to_vec(),
        None => vec![T::ZERO; h],
    };
    let (mut now_h, mut now_c) = (state(layer.h0), state(layer.c0));
    let length = layer.lengths.map_or(layer.steps, |lengths| lengths[b]);
    let mut steps = Vec::new();
    for s in 0..length {
        let t = if layer.reverse { length - 1 - s } else { s };
        let x = &gates_x[(b * layer.steps + t) * g..][..g];
        let inner: Vec<T> = (0..g)
            .map(|row| {
                let dot: T = (0..h).map(|j| layer.w_hh[row * h + j] * now_h[j]).sum();
                dot + layer.b_hh.map_or(T::ZERO, |b_hh| b_hh[row])
            })
            .collect();
        let mut gates: Vec<T> = x.iter().zip(&inner).map(|(&x, &inner)| x + inner).collect();
        let (mut new_h, mut new_c) = (vec![T::ZERO; h], vec![T::ZERO; h]);
        for j in 0..h {
            match layer.cell {
                Cell::Rnn => new_h[j] = gates[j].tanh(),
                Cell::RnnRelu => new_h[j] = if gates[j] <= T::ZERO { T::ZERO } else { gates[j] },
                Cell::Gru => {
                    let (r, z) = (sigmoid(gates[j]), sigmoid(gates[h + j]));
                    let n = (x[2 * h + j] + r * inner[2 * h + j]).tanh();
                    new_h[j] = (T::ONE - z) * n + z * now_h[j];
                    (gates[j], gates[h + j], gates[2 * h + j]) = (r, z, n);
                }
                Cell::Lstm => {
                    let (i, f) = (sigmoid(gates[j]), sigmoid(gates[h + j]));
                    let (g, o) = (gates[2 * h + j].tanh(), sigmoid(gates[3 * h + j]));
                    new_c[j] = f * now_c[j] + i * g;
                    new_h[j] = o * new_c[j].tanh();
                    (gates[j], gates[h + j]) = (i, f);
                    (gates[2 * h + j], gates[3 * h + j]) = (g, o);
                }
            }
        }
        let step = Step { t, h: now_h, c: now_c, gates, inner, new_h, new_c };
        (now_h, now_c) = (step.new_h.clone(), step.new_c.clone());
        steps.push(step);
    }
    steps
}

/// A recurrent layer over all steps.
///
/// ```
/// use regard_kernels::{Cell, Recurrent, step::reference};
/// let layer = Recurrent {
///     cell: Cell::RnnRelu, batch: 1, steps: 3, hidden: 1, w_hh: &[1f64], b_hh: None, h0: None,
///     c0: None, lengths: Some(&[2]), reverse: false,
/// };
/// let output = reference::recurrent(&[1.0, 2.0, 3.0], &layer);
/// assert_eq!((output.out, output.h), (vec![1.0, 3.0, 0.0], vec![3.0]));
/// ```
pub fn recurrent<T: Real>(gates_x: &[T], layer: &Recurrent<T>) -> RecurrentOutput<T> {
    let (h, states) = (layer.hidden, layer.batch * layer.hidden);
    let given = |x: Option<&[T]>| x.map_or(vec![T::ZERO; states], <[T]>::to_vec);
    let mut output = RecurrentOutput {
        out: vec![T::ZERO; layer.steps * states],
        h: given(layer.h0),
        c: given(layer.c0),
    };
    for b in 0..layer.batch {
        for step in walk(gates_x, layer, b) {
            output.out[(b * layer.steps + step.t) * h..][..h].copy_from_slice(&step.new_h);
            output.h[b * h..][..h].copy_from_slice(&step.new_h);
            output.c[b * h..][..h].copy_from_slice(&step.new_c);
        }
    }
    output
}

/// The gradients of everything.
///
/// ```
/// use regard_kernels::{Cell, Recurrent, RecurrentSeed, step::reference};
/// let layer = Recurrent {
///     cell: Cell::RnnRelu, batch: 1, steps: 2, hidden: 1, w_hh: &[3f64], b_hh: None, h0: None,
///     c0: None, lengths: None, reverse: false,
/// };
/// let seed = RecurrentSeed { out: None, h: Some(&[1.0]), c: None };
/// let grads = reference::recurrent_backward(&[1.0, 2.0], &layer, seed);
/// assert_eq!((grads.gates_x, grads.w_hh), (vec![3.0, 1.0], vec![1.0]));
/// ```
pub fn recurrent_backward<T: Real>(
    gates_x: &[T],
    layer: &Recurrent<T>,
    seed: RecurrentSeed<T>,
) -> RecurrentGradients<T> {
    let (h, states) = (layer.hidden, layer.batch * layer.hidden);
    let g = layer.cell.gates() * h;
    let given = |x: Option<&[T]>| x.map_or(vec![T::ZERO; states], <[T]>::to_vec);
    let mut grads = RecurrentGradients {
        gates_x: vec![T::ZERO; gates_x.len()],
        w_hh: vec![T::ZERO; g * h],
        b_hh: vec![T::ZERO; g],
        h0: given(seed.h),
        c0: given(seed.c),
    };
    for b in 0..layer.batch {
        for step in walk(gates_x, layer, b).iter().rev() {
            let row = b * layer.steps + step.t;
            // By the gates as the input adds to them, and as the recurrent product does.
            let (mut by_x, mut by_h) = (vec![T::ZERO; g], vec![T::ZERO; g]);
            let mut before = vec![T::ZERO; h];
            for j in 0..h {
                let grad = grads.h0[b * h + j] + seed.out.map_or(T::ZERO, |out| out[row * h + j]);
                let to = UnitGrads {
                    by_x: &mut by_x,
                    by_h: &mut by_h,
                    before: &mut before[j],
                    c: &mut grads.c0[b * h + j],
                };
                unit_backward(layer.cell, step, (h, j), grad, to);
            }
            for (row, &by_h) in by_h.iter().enumerate() {
                grads.b_hh[row] += by_h;
                for (j, before) in before.iter_mut().enumerate() {
                    grads.w_hh[row * h + j] += by_h * step.h[j];
                    *before += by_h * layer.w_hh[row * h + j];
                }
            }
            grads.gates_x[row * g..][..g].copy_from_slice(&by_x);
            grads.h0[b * h..][..h].copy_from_slice(&before);
        }
    }
    grads
}

/// What one unit's state sends back.
struct UnitGrads<'a, T> {
    /// To the gates as the input adds to them.
    by_x: &'a mut [T],
    /// To the gates as the recurrent product does.
    by_h: &'a mut [T],
    /// To the state before, but for the gates.
    before: &'a mut T,
    /// What arrives at the cell's memory, and then what it sends to the memory before.
    c: &'a mut T,
}

/// The gradients of unit `j` of `h` in one step.
fn unit_backward<T: Real>(
    cell: Cell,
    step: &Step<T>,
    (h, j): (usize, usize),
    grad: T,
    to: UnitGrads<T>,
) {
    let UnitGrads { by_x, by_h, before, c } = to;
    let gate = |n: usize| step.gates[n * h + j];
    let one = T::ONE;
    match cell {
        Cell::Rnn => {
            by_x[j] = grad * (one - step.new_h[j] * step.new_h[j]);
            by_h[j] = by_x[j];
        }
        Cell::RnnRelu => {
            by_x[j] = if step.new_h[j] > T::ZERO { grad } else { T::ZERO };
            by_h[j] = by_x[j];
        }
        Cell::Gru => {
            let (r, z, n) = (gate(0), gate(1), gate(2));
            let grad_n = grad * (one - z) * (one - n * n);
            by_x[j] = grad_n * step.inner[2 * h + j] * r * (one - r);
            by_x[h + j] = grad * (step.h[j] - n) * z * (one - z);
            by_x[2 * h + j] = grad_n;
            (by_h[j], by_h[h + j]) = (by_x[j], by_x[h + j]);
            by_h[2 * h + j] = grad_n * r;
            *before = grad * z;
        }
        Cell::Lstm => {
            let (i, f, g, o) = (gate(0), gate(1), gate(2), gate(3));
            let squashed = step.new_c[j].tanh();
            let grad_c = *c + grad * o * (one - squashed * squashed);
            by_x[j] = grad_c * g * i * (one - i);
            by_x[h + j] = grad_c * step.c[j] * f * (one - f);
            by_x[2 * h + j] = grad_c * i * (one - g * g);
            by_x[3 * h + j] = grad * squashed * o * (one - o);
            for n in 0..4 {
                by_h[n * h + j] = by_x[n * h + j];
            }
            *c = grad_c * f;
        }
    }
}

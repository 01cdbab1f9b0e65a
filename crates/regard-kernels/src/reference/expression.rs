//! Expressions by their formulas: the value of every part of the tree, then, last part first, the
//! score's derivative by each.

use crate::expression::{Function, Operation, Term};
use crate::spec::Parameter;
use crate::{Expression, Real};

/// One query and one key under an expression.
pub(super) struct Pair<'a, T> {
    pub(super) expression: &'a Expression,
    pub(super) parameters: &'a [Parameter<'a, T>],
    /// The query head, whose rows of the parameters these are.
    pub(super) h: usize,
    pub(super) q: &'a [T],
    pub(super) k: &'a [T],
}

impl<T: Real> Pair<'_, T> {
    pub(super) fn score(&self) -> T {
        self.values().last().and_then(|score| score.first()).copied().unwrap_or(T::ZERO)
    }

    /// Adds `grad` times the derivative of the score to each gradient; those of the parameters
    /// follow each other, each in its shape.
    pub(super) fn backward(&self, grad: T, grad_q: &mut [T], grad_k: &mut [T], own: &mut [T]) {
        let values = self.values();
        let mut grads: Vec<Vec<T>> = values.iter().map(|x| vec![T::ZERO; x.len()]).collect();
        if let Some(last) = grads.last_mut() {
            last.fill(grad);
        }
        for (at, &term) in self.expression.terms().iter().enumerate().rev() {
            let grad = std::mem::take(&mut grads[at]);
            match term {
                Term::Query => add(grad_q, &grad),
                Term::Key => add(grad_k, &grad),
                Term::Parameter(n) => {
                    let before: usize = self.parameters[..n].iter().map(|p| p.data.len()).sum();
                    let [heads, width] = self.parameters[n].shape;
                    let row = if heads == 1 { 0 } else { self.h * width };
                    add(&mut own[before + row..][..width], &grad);
                }
                Term::Number(_) | Term::Width | Term::Pi => {}
                Term::Negate(a) => {
                    let part: Vec<T> = grad.iter().map(|&g| -g).collect();
                    add(&mut grads[a], &part);
                }
                Term::Operation(operation, a, b) => {
                    let (by_a, by_b) =
                        operation_slopes(operation, &values[a], &values[b], &grad, self.q.len());
                    add(&mut grads[a], &by_a);
                    add(&mut grads[b], &by_b);
                }
                Term::Call(function, a, _) if function.reduces() => {
                    let part = self.reduction_slope(function, &values[a], values[at][0], grad[0]);
                    add(&mut grads[a], &part);
                }
                Term::Call(function, a, b) => {
                    let (x, y) = (&values[a], &values[b]);
                    for (d, &g) in grad.iter().enumerate() {
                        let [by_x, by_y] = slopes(function, at_feature(x, d), at_feature(y, d));
                        *place(&mut grads[a], d) += g * by_x;
                        if by_y != T::ZERO {
                            *place(&mut grads[b], d) += g * by_y;
                        }
                    }
                }
            }
        }
    }

    /// The value of every part: one number, or one for each feature.
    fn values(&self) -> Vec<Vec<T>> {
        let width = self.q.len();
        let mut values: Vec<Vec<T>> = Vec::new();
        for &term in self.expression.terms() {
            let value = match term {
                Term::Query => self.q.to_vec(),
                Term::Key => self.k.to_vec(),
                Term::Parameter(n) => self.parameters[n].of_head(self.h).to_vec(),
                Term::Number(x) => vec![T::of(x)],
                Term::Width => vec![T::of(width as f64)],
                Term::Pi => vec![T::of(std::f64::consts::PI)],
                Term::Negate(a) => values[a].iter().map(|&x| -x).collect(),
                Term::Operation(Operation::Dot, a, b) => {
                    let (a, b) = (&values[a], &values[b]);
                    vec![(0..width).map(|d| at_feature(a, d) * at_feature(b, d)).sum()]
                }
                Term::Operation(operation, a, b) => {
                    zip(&values[a], &values[b], |a, b| match operation {
                        Operation::Add => a + b,
                        Operation::Subtract => a - b,
                        Operation::Divide => a / b,
                        Operation::Multiply | Operation::Dot => a * b,
                    })
                }
                Term::Call(function, a, _) if function.reduces() => {
                    let row = (0..width).map(|d| at_feature(&values[a], d));
                    vec![match function {
                        Function::Norm => row.map(|x| x * x).sum::<T>().sqrt(),
                        Function::Mean => row.sum::<T>() / T::of(width as f64),
                        _ => row.sum(),
                    }]
                }
                Term::Call(function, a, b) => {
                    zip(&values[a], &values[b], |x, y| value(function, x, y))
                }
            };
            values.push(value);
        }
        values
    }

    /// The derivative of a sum, mean or norm by its row.
    fn reduction_slope(&self, function: Function, row: &[T], value: T, grad: T) -> Vec<T> {
        let width = self.q.len();
        let slope = |x: T| match function {
            Function::Norm if value == T::ZERO => T::ZERO,
            Function::Norm => grad * x / value,
            Function::Mean => grad / T::of(width as f64),
            _ => grad,
        };
        (0..width).map(|d| slope(at_feature(row, d))).collect()
    }
}

/// A number stands for a row of that number. A row of width 1 is both.
fn at_feature<T: Real>(x: &[T], d: usize) -> T {
    if x.len() == 1 { x[0] } else { x[d] }
}

fn place<T>(x: &mut [T], d: usize) -> &mut T {
    if x.len() == 1 { &mut x[0] } else { &mut x[d] }
}

/// Adds a number for each feature to a row, or their sum to a number.
fn add<T: Real>(to: &mut [T], part: &[T]) {
    for (d, &x) in part.iter().enumerate() {
        *place(to, d) += x;
    }
}

fn zip<T: Real>(a: &[T], b: &[T], f: impl Fn(T, T) -> T) -> Vec<T> {
    // Not the longer: a head may have no features at all.
    let n = if a.len() == 1 { b.len() } else { a.len() };
    (0..n).map(|d| f(at_feature(a, d), at_feature(b, d))).collect()
}

/// The parts of the derivatives by both operands, feature by feature.
fn operation_slopes<T: Real>(
    operation: Operation,
    a: &[T],
    b: &[T],
    grad: &[T],
    width: usize,
) -> (Vec<T>, Vec<T>) {
    let n = if operation == Operation::Dot { width } else { grad.len() };
    (0..n)
        .map(|d| {
            let (a, b, g) = (at_feature(a, d), at_feature(b, d), at_feature(grad, d));
            match operation {
                Operation::Add => (g, g),
                Operation::Subtract => (g, -g),
                Operation::Multiply | Operation::Dot => (g * b, g * a),
                Operation::Divide => (g / b, -g * a / (b * b)),
            }
        })
        .unzip()
}

fn value<T: Real>(function: Function, x: T, y: T) -> T {
    match function {
        Function::Square => x * x,
        Function::Sqrt => x.sqrt(),
        Function::Abs => x.abs(),
        Function::Exp => x.exp(),
        Function::Log => x.ln(),
        Function::Tanh => x.tanh(),
        Function::Sigmoid => sigmoid(x),
        Function::Relu => {
            if x < T::ZERO {
                T::ZERO
            } else {
                x
            }
        }
        Function::LeakyRelu => {
            if x > T::ZERO {
                x
            } else {
                y * x
            }
        }
        Function::Gelu => x * normal(x).0,
        Function::Softplus => x.max(T::ZERO) + (-x.abs()).exp().ln_1p(),
        Function::Sin => x.sin(),
        Function::Cos => x.cos(),
        Function::Max => {
            if y > x {
                y
            } else {
                x
            }
        }
        Function::Min => {
            if y < x {
                y
            } else {
                x
            }
        }
        Function::Sum | Function::Mean | Function::Norm => x,
    }
}

/// The derivatives by both arguments; a function of one has its whole in the first.
fn slopes<T: Real>(function: Function, x: T, y: T) -> [T; 2] {
    let (zero, one) = (T::ZERO, T::ONE);
    let positive = if x > zero { one } else { zero };
    let slope = match function {
        Function::Square => T::of(2.0) * x,
        Function::Sqrt if x == zero => zero,
        Function::Sqrt => T::of(0.5) / x.sqrt(),
        Function::Abs if x < zero => -one,
        Function::Abs | Function::Relu => positive,
        Function::Exp => x.exp(),
        Function::Log => one / x,
        Function::Tanh => one - x.tanh() * x.tanh(),
        Function::Sigmoid => sigmoid(x) * (one - sigmoid(x)),
        Function::LeakyRelu if x > zero => one,
        Function::LeakyRelu => return [y, x],
        Function::Gelu => normal(x).0 + x * normal(x).1,
        Function::Softplus => sigmoid(x),
        Function::Sin => x.cos(),
        Function::Cos => -x.sin(),
        Function::Max if y > x => return [zero, one],
        Function::Min if y < x => return [zero, one],
        Function::Max | Function::Min => one,
        Function::Sum | Function::Mean | Function::Norm => one,
    };
    [slope, zero]
}

fn sigmoid<T: Real>(x: T) -> T {
    let e = (-x.abs()).exp();
    if x > T::ZERO { T::ONE / (T::ONE + e) } else { e / (T::ONE + e) }
}

/// The normal distribution's share below x, and its density there.
fn normal<T: Real>(x: T) -> (T, T) {
    let half = T::of(0.5);
    let share = half * (T::ONE + (x * T::of(std::f64::consts::FRAC_1_SQRT_2)).erf());
    (share, T::of(0.398_942_280_401_432_7) * (-half * x * x).exp())
}

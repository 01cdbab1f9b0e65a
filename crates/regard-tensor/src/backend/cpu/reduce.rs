//! Many numbers to few.

use crate::backend::Extreme;
use crate::dtype::{Float, floats};
use crate::layout::around;
use crate::parallel::{self, PIECE};
use crate::{Result, Scalar, Tensor};
use regard_kernels::Cpu;
use std::cmp::Ordering;

/// The sum of a row, in eight parts: fast, and less rounding than one after the other.
fn row_sum<T: Float>(x: &[T]) -> T {
    let mut parts = [T::ZERO; 8];
    let chunks = x.chunks_exact(8);
    let rest: T = chunks.remainder().iter().copied().sum();
    for chunk in chunks {
        for (part, &x) in parts.iter_mut().zip(chunk) {
            *part += x;
        }
    }
    let [a, b, c, d, e, f, g, h] = parts;
    ((a + b) + (c + d)) + ((e + f) + (g + h)) + rest
}

/// Sums over the middle axis of `[outer, n, inner]`.
fn sum_middle<T: Float>(x: &[T], n: usize, inner: usize, to: &mut [T]) {
    if to.is_empty() {
        return;
    }
    if inner == 1 {
        let least = (PIECE / n.max(1)).max(1);
        if n > 8 * PIECE && to.len() < 8 {
            // Few long rows: parts of each, in a fixed cut.
            for (row, to) in to.iter_mut().enumerate() {
                let x = &x[row * n..][..n];
                let parts = parallel::collect(n.div_ceil(PIECE), 1, &|at| {
                    row_sum(&x[at * PIECE..n.min((at + 1) * PIECE)])
                });
                *to = row_sum(&parts);
            }
        } else {
            parallel::chunks(to, 1, least, &|row, to| to[0] = row_sum(&x[row * n..][..n]));
        }
        return;
    }
    let outer = to.len() / inner;
    // Few columns and many rows: cut the rows too, by the shape alone.
    let cuts = if outer * inner >= PIECE { 1 } else { (n * inner / (2 * PIECE)).clamp(1, 16) };
    if cuts == 1 {
        parallel::rows(to, inner, |row, to| add_rows(&x[row * n * inner..][..n * inner], to));
        return;
    }
    let each = n.div_ceil(cuts);
    for (at, to) in to.chunks_mut(inner).enumerate() {
        let x = &x[at * n * inner..][..n * inner];
        let parts = parallel::collect(n.div_ceil(each), 1, &|at| {
            let mut part = vec![T::ZERO; inner];
            add_rows(&x[at * each * inner..n.min((at + 1) * each) * inner], &mut part);
            part
        });
        to.fill(T::ZERO);
        for part in parts {
            to.iter_mut().zip(part).for_each(|(to, x)| *to += x);
        }
    }
}

fn add_rows<T: Float>(x: &[T], to: &mut [T]) {
    to.fill(T::ZERO);
    let inner = to.len();
    // A block of columns at a time, so that the sums stay in the nearest cache.
    for start in (0..inner).step_by(1024) {
        let end = (start + 1024).min(inner);
        for row in x.chunks_exact(inner) {
            to[start..end].iter_mut().zip(&row[start..end]).for_each(|(to, &x)| *to += x);
        }
    }
}

/// The shape without an axis.
fn without(x: &Tensor, axis: usize) -> Vec<usize> {
    let mut shape = x.shape().to_vec();
    shape.remove(axis);
    shape
}

pub(super) fn sum(x: &Tensor, axis: usize) -> Result<Tensor> {
    let (_, n, inner) = around(x.shape(), axis);
    floats!(x.dtype(), "sum", T => {
        let from = x.as_slice::<T>("sum")?;
        Tensor::build(&without(x, axis), |to: &mut [T]| sum_middle(from, n, inner, to))
    })
}

pub(super) fn arg_extreme(op: &str, x: &Tensor, axis: usize, which: Extreme) -> Result<Tensor> {
    let (_, n, inner) = around(x.shape(), axis);
    floats!(x.dtype(), op, T => {
        let from = x.as_slice::<T>(op)?;
        Tensor::build(&without(x, axis), |to: &mut [i64]| {
            parallel::pieces(to, |start, to| {
                for (i, to) in to.iter_mut().enumerate() {
                    let (row, column) = ((start + i) / inner, (start + i) % inner);
                    let x = |j: usize| from[(row * n + j) * inner + column];
                    let mut best = 0;
                    for j in 1..n {
                        let better = match which {
                            Extreme::Smallest => x(j) < x(best),
                            Extreme::Largest => x(j) > x(best),
                        };
                        if better || (x(j).is_nan() && !x(best).is_nan()) {
                            best = j;
                        }
                    }
                    *to = best as i64;
                }
            });
        })
    })
}

/// A NaN before any number, then the larger, then the earlier.
fn before(x: &impl Fn(usize) -> f64, a: usize, b: usize) -> Ordering {
    let nan = x(b).is_nan().cmp(&x(a).is_nan());
    nan.then(x(b).partial_cmp(&x(a)).unwrap_or(Ordering::Equal)).then(a.cmp(&b))
}

/// The most of the largest numbers that one walk keeps in order.
const FEW: usize = 32;

/// Where the `k` largest of n numbers are, in order: a walk that keeps them.
fn few_largest(x: &impl Fn(usize) -> f64, n: usize, k: usize) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::with_capacity(k + 1);
    for j in 0..n {
        let is_among =
            order.len() < k || order.last().is_some_and(|&last| before(x, j, last).is_lt());
        if is_among {
            let place = order.partition_point(|&other| before(x, other, j).is_lt());
            order.insert(place, j);
            order.truncate(k);
        }
    }
    order
}

/// As [`few_largest`], by a selection and a sort.
fn many_largest(x: &impl Fn(usize) -> f64, n: usize, k: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    if k < n {
        order.select_nth_unstable_by(k - 1, |&a, &b| before(x, a, b));
    }
    order.truncate(k);
    order.sort_unstable_by(|&a, &b| before(x, a, b));
    order
}

pub(super) fn top_k(x: &Tensor, axis: usize, k: usize) -> Result<Tensor> {
    let (outer, n, inner) = around(x.shape(), axis);
    let mut shape = x.shape().to_vec();
    shape[axis] = k;
    floats!(x.dtype(), "topk", T => {
        let from = x.as_slice::<T>("topk")?;
        let chosen = parallel::collect(outer * inner, (PIECE / n.max(1)).max(1), &|row| {
            let x = |j: usize| from[(row / inner * n + j) * inner + row % inner].to_f64();
            if k <= FEW { few_largest(&x, n, k) } else { many_largest(&x, n, k) }
        });
        Tensor::build(&shape, |to: &mut [i64]| {
            for (at, to) in to.iter_mut().enumerate() {
                let (row, column) = (at / (k * inner), at % inner);
                *to = chosen[row * inner + column][at / inner % k] as i64;
            }
        })
    })
}

pub(super) fn cumsum(x: &Tensor, axis: usize, reverse: bool) -> Result<Tensor> {
    let (_, n, inner) = around(x.shape(), axis);
    floats!(x.dtype(), "cumsum", T => {
        let from = x.as_slice::<T>("cumsum")?;
        Tensor::build(x.shape(), |to: &mut [T]| {
            parallel::rows(to, n * inner, |row, to| {
                to.copy_from_slice(&from[row * n * inner..][..n * inner]);
                for step in 1..n {
                    let (now, last) =
                        if reverse { (n - 1 - step, n - step) } else { (step, step - 1) };
                    for column in 0..inner {
                        to[now * inner + column] += to[last * inner + column];
                    }
                }
            });
        })
    })
}

pub(super) fn sum_of_squares(all: &[&Tensor]) -> Result<f64> {
    fn of<T: Float>(all: &[&Tensor]) -> Result<f64> {
        let numbers = all.iter().filter(|x| x.dtype() == T::DTYPE);
        let numbers = numbers.map(|x| x.as_slice::<T>("norm")).collect::<Result<Vec<_>>>()?;
        Ok(Cpu::best().sum_of_squares(&numbers))
    }
    Ok(of::<f32>(all)? + of::<f64>(all)?)
}

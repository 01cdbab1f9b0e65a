//! Walking strided operands together: what every elementwise operation stands on.

use crate::layout::{Dims, Layout, MOST_AXES};
use crate::parallel;

/// N operands of one shape, axes joined where all of them allow it.
pub(crate) struct Walk<const N: usize> {
    /// Outer sizes; the last axis apart.
    outer: [usize; MOST_AXES],
    axes: usize,
    /// Length and strides of the innermost axis.
    inner: usize,
    steps: [usize; N],
    strides: [[usize; N]; MOST_AXES],
    offsets: [usize; N],
}

impl<const N: usize> Walk<N> {
    /// Over layouts that have been broadcast to one shape.
    pub(crate) fn new(shape: &Dims, layouts: [&Layout; N]) -> Self {
        let mut joined: [(usize, [usize; N]); MOST_AXES] = [(1, [0; N]); MOST_AXES];
        let mut n = 0;
        for axis in 0..shape.len() {
            let size = shape[axis];
            if size == 1 {
                continue;
            }
            let strides = layouts.map(|l| l.strides[axis]);
            if n > 0 && (0..N).all(|x| joined[n - 1].1[x] == strides[x] * size) {
                joined[n - 1] = (joined[n - 1].0 * size, strides);
            } else {
                joined[n] = (size, strides);
                n += 1;
            }
        }
        if n == 0 {
            (joined[0], n) = ((1, [1; N]), 1);
        }
        Self {
            outer: joined.map(|j| j.0),
            axes: n - 1,
            inner: joined[n - 1].0,
            steps: joined[n - 1].1,
            strides: joined.map(|j| j.1),
            offsets: layouts.map(|l| l.offset),
        }
    }

    /// Where each operand's row begins.
    fn row(&self, mut row: usize) -> [usize; N] {
        let mut at = self.offsets;
        for axis in (0..self.axes).rev() {
            let index = row % self.outer[axis];
            row /= self.outer[axis];
            for (at, stride) in at.iter_mut().zip(self.strides[axis]) {
                *at += index * stride;
            }
        }
        at
    }

    /// Calls `f` with parts of rows: where the part starts in `to`, which is contiguous, and where
    /// in each operand.
    fn each<R: Send>(&self, to: &mut [R], f: impl Fn(&mut [R], [usize; N]) + Sync) {
        parallel::pieces(to, |start, to| {
            let mut at = 0;
            while at < to.len() {
                let (row, column) = ((start + at) / self.inner, (start + at) % self.inner);
                let n = (self.inner - column).min(to.len() - at);
                let mut from = self.row(row);
                for (from, step) in from.iter_mut().zip(self.steps) {
                    *from += column * step;
                }
                f(&mut to[at..at + n], from);
                at += n;
            }
        });
    }
}

/// to = f(a)
pub(crate) fn map<A: Copy + Sync, R: Send>(
    a: (&[A], &Layout),
    to: &mut [R],
    f: impl Fn(A) -> R + Sync,
) {
    let walk = Walk::new(&a.1.shape, [a.1]);
    let data = a.0;
    let [step] = walk.steps;
    walk.each(to, |to, [a]| {
        if step == 1 {
            let a = &data[a..a + to.len()];
            to.iter_mut().zip(a).for_each(|(to, &a)| *to = f(a));
        } else {
            to.iter_mut().enumerate().for_each(|(i, to)| *to = f(data[a + i * step]));
        }
    });
}

/// to = f(a, b), both broadcast to `shape`
pub(crate) fn zip<A: Copy + Sync, B: Copy + Sync, R: Send>(
    shape: &Dims,
    a: (&[A], &Layout),
    b: (&[B], &Layout),
    to: &mut [R],
    f: impl Fn(A, B) -> R + Sync,
) {
    let walk = Walk::new(shape, [a.1, b.1]);
    let (x, y) = (a.0, b.0);
    let [da, db] = walk.steps;
    walk.each(to, |to, [a, b]| match (da, db) {
        (1, 1) => {
            let (x, y) = (&x[a..a + to.len()], &y[b..b + to.len()]);
            to.iter_mut().zip(x).zip(y).for_each(|((to, &x), &y)| *to = f(x, y));
        }
        (1, 0) => {
            let (x, y) = (&x[a..a + to.len()], y[b]);
            to.iter_mut().zip(x).for_each(|(to, &x)| *to = f(x, y));
        }
        (0, 1) => {
            let (x, y) = (x[a], &y[b..b + to.len()]);
            to.iter_mut().zip(y).for_each(|(to, &y)| *to = f(x, y));
        }
        _ => {
            let rows = to.iter_mut().enumerate();
            rows.for_each(|(i, to)| *to = f(x[a + i * da], y[b + i * db]));
        }
    });
}

/// to = f(a, b, c), all broadcast to `shape`
pub(crate) fn zip3<A: Copy + Sync, B: Copy + Sync, C: Copy + Sync, R: Send>(
    shape: &Dims,
    a: (&[A], &Layout),
    b: (&[B], &Layout),
    c: (&[C], &Layout),
    to: &mut [R],
    f: impl Fn(A, B, C) -> R + Sync,
) {
    let walk = Walk::new(shape, [a.1, b.1, c.1]);
    let (x, y, z) = (a.0, b.0, c.0);
    let [da, db, dc] = walk.steps;
    walk.each(to, |to, [a, b, c]| {
        if [da, db, dc] == [1; 3] {
            let n = to.len();
            let from = x[a..a + n].iter().zip(&y[b..b + n]).zip(&z[c..c + n]);
            to.iter_mut().zip(from).for_each(|(to, ((&x, &y), &z))| *to = f(x, y, z));
        } else {
            let rows = to.iter_mut().enumerate();
            rows.for_each(|(i, to)| *to = f(x[a + i * da], y[b + i * db], z[c + i * dc]));
        }
    });
}

/// f(place, x) for each of some contiguous numbers and its place by a layout.
pub(crate) fn scatter<T: Copy>(to: &mut [T], layout: &Layout, from: &[T], f: impl Fn(&mut T, T)) {
    if from.is_empty() {
        return;
    }
    let walk = Walk::new(&layout.shape, [layout]);
    let [step] = walk.steps;
    for (row, from) in from.chunks(walk.inner).enumerate() {
        let [at] = walk.row(row);
        if step == 1 {
            to[at..at + from.len()].iter_mut().zip(from).for_each(|(to, &x)| f(to, x));
        } else {
            from.iter().enumerate().for_each(|(i, &x)| f(&mut to[at + i * step], x));
        }
    }
}

//! Many numbers to few: sums, means, largest values.

use crate::dtype::{Float, floats};
use crate::layout::{Dims, axis};
use crate::parallel::{self, PIECE};
use crate::{DType, Result, Tensor, ensure};
use rayon::prelude::*;

/// The tensor as `[outer, n, inner]` around an axis.
pub(crate) fn around(shape: &[usize], at: usize) -> (usize, usize, usize) {
    (shape[..at].iter().product(), shape[at], shape[at + 1..].iter().product())
}

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
                let parts: Vec<T> = x[row * n..][..n].par_chunks(PIECE).map(row_sum).collect();
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
        let parts: Vec<Vec<T>> = x
            .par_chunks(each * inner)
            .map(|x| {
                let mut part = vec![T::ZERO; inner];
                add_rows(x, &mut part);
                part
            })
            .collect();
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

impl Tensor {
    /// The sum over an axis, which goes away.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.sum(0)?.to_vec::<f32>()?, [4.0, 6.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn sum(&self, at: isize) -> Result<Tensor> {
        let at = axis("sum", at, self.shape())?;
        let x = self.detach().contiguous()?;
        let mut shape = self.shape().to_vec();
        shape.remove(at);
        let (_, n, inner) = around(self.shape(), at);
        let out = floats!(x.dtype(), "sum", T => {
            let from = x.as_slice::<T>("sum")?;
            Tensor::build(&shape, |to: &mut [T]| sum_middle(from, n, inner, to))
        })?;
        let before = *self.dims();
        Ok(out.record("sum", &[self], move |g, to| {
            to.add(0, g.unsqueeze(at)?.broadcast_to(&before)?)
        }))
    }

    /// The sum of all numbers.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.sum_all()?.item()?, 10.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn sum_all(&self) -> Result<Tensor> {
        self.reshape(&[self.numel()])?.sum(0)
    }

    /// The mean over an axis, which goes away.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.mean(1)?.to_vec::<f32>()?, [1.5, 3.5]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn mean(&self, at: isize) -> Result<Tensor> {
        let n = self.shape()[axis("mean", at, self.shape())?];
        ensure!(n > 0, "mean: axis {at} of {:?} is empty", self.shape());
        self.sum(at)?.scale(1.0 / n as f64)
    }

    /// The mean of all numbers.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.mean_all()?.item()?, 2.5);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn mean_all(&self) -> Result<Tensor> {
        self.reshape(&[self.numel()])?.mean(0)
    }

    /// The largest number along an axis, which goes away, and its index; the first among equals,
    /// a NaN before any number. The gradient goes to the one chosen.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![1f32, 5.0, 3.0, 4.0], &[2, 2])?;
    /// let (largest, index) = x.max(1)?;
    /// assert_eq!(largest.to_vec::<f32>()?, [5.0, 4.0]);
    /// assert_eq!(index.to_vec::<i64>()?, [1, 1]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn max(&self, at: isize) -> Result<(Tensor, Tensor)> {
        self.extreme("max", at, false)
    }

    /// The smallest number along an axis and where it is, the first of equals; NaN where there is one.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let (least, at) = Tensor::from([[3f32, 1.0, 2.0]]).min(1)?;
    /// assert_eq!((least.to_vec::<f32>()?, at.to_vec::<i64>()?), (vec![1.0], vec![1]));
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn min(&self, at: isize) -> Result<(Tensor, Tensor)> {
        self.extreme("min", at, true)
    }

    /// Where the largest number along an axis is, the first of equals; that of a NaN where there is
    /// one.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from([[3f32, 1.0, 2.0]]);
    /// assert_eq!(x.argmax(1)?.to_vec::<i64>()?, [0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn argmax(&self, at: isize) -> Result<Tensor> {
        Ok(self.detach().extreme("argmax", at, false)?.1)
    }

    /// As [`Tensor::argmax`], of the smallest.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from([[3f32, 1.0, 2.0]]);
    /// assert_eq!(x.argmin(1)?.to_vec::<i64>()?, [1]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn argmin(&self, at: isize) -> Result<Tensor> {
        Ok(self.detach().extreme("argmin", at, true)?.1)
    }

    fn extreme(&self, op: &str, at: isize, least: bool) -> Result<(Tensor, Tensor)> {
        let at = axis(op, at, self.shape())?;
        let (_, n, inner) = around(self.shape(), at);
        ensure!(n > 0, "{op}: axis {at} of {:?} is empty", self.shape());
        let x = self.detach().contiguous()?;
        let mut shape = self.shape().to_vec();
        shape.remove(at);
        let index = floats!(x.dtype(), op, T => {
            let from = x.as_slice::<T>(op)?;
            Tensor::build(&shape, |to: &mut [i64]| {
                parallel::pieces(to, |start, to| {
                    for (i, to) in to.iter_mut().enumerate() {
                        let (row, column) = ((start + i) / inner, (start + i) % inner);
                        let x = |j: usize| from[(row * n + j) * inner + column];
                        let mut best = 0;
                        for j in 1..n {
                            let better = if least { x(j) < x(best) } else { x(j) > x(best) };
                            if better || (x(j).is_nan() && !x(best).is_nan()) {
                                best = j;
                            }
                        }
                        *to = best as i64;
                    }
                });
            })
        })?;
        let largest = self.gather(at as isize, &index.unsqueeze(at)?)?.squeeze(at as isize)?;
        Ok((largest, index))
    }

    /// Summed over the axes along which `shape` was broadcast to this tensor's.
    pub(crate) fn sum_to(&self, shape: &Dims) -> Result<Tensor> {
        if self.dims() == shape {
            return Ok(self.clone());
        }
        // The halves are not computed in.
        if !self.dtype().is_float() {
            return self.to_dtype(DType::F32)?.sum_to(shape)?.to_dtype(self.dtype());
        }
        let mut x = self.clone();
        while x.rank() > shape.len() {
            x = x.sum(0)?;
        }
        for at in 0..shape.len() {
            if shape[at] == 1 && x.shape()[at] != 1 {
                x = x.sum(at as isize)?.unsqueeze(at)?;
            }
        }
        Ok(x)
    }
}

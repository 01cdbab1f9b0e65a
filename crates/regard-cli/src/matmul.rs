//! Matrix products by the `gemm` crate: the graph case's projections, and the yardstick that
//! attention is measured by.

use gemm::Parallelism;
use rayon::current_num_threads;
use regard_kernels::Real;
use std::time::Instant;

/// A matrix, or its transpose, row after row.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    data: &'a [T],
    rows: usize,
    columns: usize,
    transposed: bool,
}

impl<'a, T> Matrix<'a, T> {
    /// `[rows, columns]`; panics where the slice has another length.
    pub fn new(data: &'a [T], rows: usize, columns: usize) -> Self {
        assert_eq!(data.len(), rows * columns);
        Self { data, rows, columns, transposed: false }
    }

    /// `[columns, rows]` of the same numbers.
    pub fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    fn shape(&self) -> (usize, usize) {
        if self.transposed { (self.columns, self.rows) } else { (self.rows, self.columns) }
    }

    /// From a column to the next, and from a row to the next.
    fn strides(&self) -> (isize, isize) {
        let row = self.columns as isize;
        if self.transposed { (row, 1) } else { (1, row) }
    }
}

/// c = a · b on all threads; panics where the shapes do not fit.
pub fn multiply<T: Real>(c: &mut [T], a: Matrix<T>, b: Matrix<T>) {
    let ((m, k), (inner, n)) = (a.shape(), b.shape());
    assert!(k == inner && c.len() == m * n, "[{m}, {k}] · [{inner}, {n}] into {}", c.len());
    let ((a_cs, a_rs), (b_cs, b_rs)) = (a.strides(), b.strides());
    // More than one thread is worth asking for only where there is one.
    let threads = current_num_threads();
    let parallelism = if threads > 1 { Parallelism::Rayon(0) } else { Parallelism::None };
    // SAFETY: the shapes fit, as asserted, and each slice holds its matrix.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c.as_mut_ptr(),
            1,
            n as isize,
            false,
            a.data.as_ptr(),
            a_cs,
            a_rs,
            b.data.as_ptr(),
            b_cs,
            b_rs,
            T::ZERO,
            T::ONE,
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// The operations of `[m, k] · [k, n]`.
pub const fn flops(m: usize, k: usize, n: usize) -> f64 {
    2.0 * m as f64 * k as f64 * n as f64
}

/// A product large enough to show what the machine can do.
pub struct Yardstick<T> {
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<T>,
}

/// The yardstick's rows, columns and depth.
const SIZE: usize = 1024;

/// The operations of the yardstick's product.
pub const YARDSTICK_FLOPS: f64 = flops(SIZE, SIZE, SIZE);

impl<T: Real> Yardstick<T> {
    /// Two matrices of plain numbers, and room for their product.
    pub fn new() -> Self {
        let fill =
            |step: usize| (0..SIZE * SIZE).map(|x| T::of((x * step % 17) as f64 - 8.0)).collect();
        let mut yardstick = Self { a: fill(3), b: fill(5), c: vec![T::ZERO; SIZE * SIZE] };
        yardstick.seconds();
        yardstick
    }

    /// Computes the product once.
    pub fn seconds(&mut self) -> f64 {
        let start = Instant::now();
        let [a, b] = [&self.a, &self.b].map(|x| Matrix::new(x, SIZE, SIZE));
        multiply(&mut self.c, a, b);
        start.elapsed().as_secs_f64()
    }
}

impl<T: Real> Default for Yardstick<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_and_one_with_a_transpose_are_what_they_say() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 0.0, 2.0, 1.0, 1.0, 3.0]);
        let mut c = [0.0; 4];
        multiply(&mut c, Matrix::new(&a, 2, 3), Matrix::new(&b, 3, 2));
        assert_eq!(c, [8.0, 11.0, 20.0, 23.0]);
        multiply(&mut c, Matrix::new(&a, 3, 2).transposed(), Matrix::new(&b, 3, 2));
        assert_eq!(c, [1.0 + 6.0 + 5.0, 3.0 + 15.0, 2.0 + 8.0 + 6.0, 4.0 + 18.0]);
    }
}

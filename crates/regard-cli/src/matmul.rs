//! The matrix product that attention is measured by.

use anyhow::Result;
use regard_kernels::{Base, Cpu, Matrix, Real};
use std::time::Instant;

/// The operations of `[m, k] · [k, n]`.
pub const fn flops(m: usize, k: usize, n: usize) -> f64 {
    2.0 * m as f64 * k as f64 * n as f64
}

/// A product large enough to show what the machine can do.
pub struct Yardstick<T> {
    cpu: Cpu,
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
    pub fn new(cpu: Cpu) -> Result<Self> {
        let fill =
            |step: usize| (0..SIZE * SIZE).map(|x| T::of((x * step % 17) as f64 - 8.0)).collect();
        let mut yardstick = Self { cpu, a: fill(3), b: fill(5), c: vec![T::ZERO; SIZE * SIZE] };
        yardstick.seconds()?;
        Ok(yardstick)
    }

    /// Computes the product once.
    pub fn seconds(&mut self) -> Result<f64> {
        let start = Instant::now();
        let (a, b) = (Matrix::new(&self.a, SIZE, SIZE)?, Matrix::new(&self.b, SIZE, SIZE)?);
        self.cpu.matmul(a, b, Base::Nothing, &mut self.c)?;
        Ok(start.elapsed().as_secs_f64())
    }
}

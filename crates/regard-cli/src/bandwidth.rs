//! How fast the machine reads memory: the yardstick that decoding is measured by.

use rayon::prelude::*;
use regard_kernels::reading::sum;
use std::hint::black_box;
use std::time::Instant;

/// Floats a thread reads before it asks for more: long enough that asking costs nothing.
const PART: usize = 1 << 16;

/// A buffer to read.
pub struct Yardstick {
    buffer: Vec<f32>,
}

impl Yardstick {
    /// A buffer of so many bytes.
    pub fn new(bytes: usize) -> Self {
        let yardstick = Self { buffer: vec![1.0; bytes / size_of::<f32>()] };
        yardstick.seconds();
        yardstick
    }

    /// Reads the buffer once, on all threads.
    pub fn seconds(&self) -> f64 {
        let start = Instant::now();
        let total: f32 = self.buffer.par_chunks(PART).map(sum).sum();
        black_box(total);
        start.elapsed().as_secs_f64()
    }

    /// What is read.
    pub fn bytes(&self) -> usize {
        size_of_val(self.buffer.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_kernels::reading::{LANES, STREAMS, sum_lanes};

    #[test]
    fn every_number_is_read_once() {
        let numbers: Vec<f32> = (0..LANES * STREAMS * 3 + 7).map(|x| x as f32).collect();
        let n = numbers.len() as f32;
        assert_eq!(sum(&numbers), n * (n - 1.0) / 2.0);
        assert_eq!(sum_lanes(&numbers), n * (n - 1.0) / 2.0);
    }
}

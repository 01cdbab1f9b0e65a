//! How fast the machine reads memory: the yardstick that decoding is measured by.

use rayon::prelude::*;
use std::hint::black_box;
use std::time::Instant;

/// Floats summed side by side: two of the widest registers.
const LANES: usize = 32;
/// Places a thread reads at in turn, which is a little faster than one after the other.
const STREAMS: usize = 4;
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

fn sum(numbers: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the machine has the instructions.
            return unsafe { sum_avx512(numbers) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the machine has the instructions.
            return unsafe { sum_avx2(numbers) };
        }
    }
    sum_lanes(numbers)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn sum_avx512(numbers: &[f32]) -> f32 {
    sum_lanes(numbers)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_avx2(numbers: &[f32]) -> f32 {
    sum_lanes(numbers)
}

#[inline(always)]
fn sum_lanes(numbers: &[f32]) -> f32 {
    let stream = numbers.len() / STREAMS / LANES * LANES;
    let (streams, rest) = numbers.split_at(stream * STREAMS);
    let mut lanes = [[0.0; LANES]; STREAMS];
    for at in (0..stream).step_by(LANES) {
        for (n, lanes) in lanes.iter_mut().enumerate() {
            for (lane, x) in lanes.iter_mut().zip(&streams[n * stream + at..][..LANES]) {
                *lane += x;
            }
        }
    }
    lanes.as_flattened().iter().sum::<f32>() + rest.iter().sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_read_once() {
        let numbers: Vec<f32> = (0..LANES * STREAMS * 3 + 7).map(|x| x as f32).collect();
        let n = numbers.len() as f32;
        assert_eq!(sum(&numbers), n * (n - 1.0) / 2.0);
        assert_eq!(sum_lanes(&numbers), n * (n - 1.0) / 2.0);
    }
}

//! Reading memory as fast as the machine does: the sum behind the program's yardstick.

/// Floats summed side by side: two of the widest registers.
pub const LANES: usize = 32;
/// Places a thread reads at in turn, which is a little faster than one after the other.
pub const STREAMS: usize = 4;

/// The sum of numbers, in any order, with the widest registers there are. For the program's bench.
pub fn sum(numbers: &[f32]) -> f32 {
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

/// The same with the registers that every machine has.
#[inline(always)]
pub fn sum_lanes(numbers: &[f32]) -> f32 {
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

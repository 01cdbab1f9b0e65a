//! A curve with noise.

use super::normal;
use crate::Result;
use regard::tensor::Random;

/// x is within 0 and this.
const WIDTH: f64 = 5.0;
const NOISE: f64 = 0.5;

/// `count` points (x, y): x anywhere within 0 and 5, in no order, and y = [`sine_truth`] of x with
/// normal noise of deviation 0.5.
///
/// ```
/// let points = regard_data::toy::sine(50, 1)?;
/// assert!(points.iter().all(|(x, _)| (0.0..5.0).contains(x)));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn sine(count: usize, seed: u64) -> Result<Vec<(f32, f32)>> {
    let random = Random::named(seed, "sine");
    let noise = normal(&random, count, NOISE)?;
    let point = |noise: f32| {
        let x = (WIDTH * random.number()) as f32;
        (x, sine_truth(x) + noise)
    };
    Ok(noise.into_iter().map(point).collect())
}

/// The curve without noise: 2 sin x + x^0.8.
///
/// ```
/// assert_eq!(regard_data::toy::sine_truth(0.0), 0.0);
/// ```
pub fn sine_truth(x: f32) -> f32 {
    let x = f64::from(x);
    (2.0 * x.sin() + x.powf(0.8)) as f32
}

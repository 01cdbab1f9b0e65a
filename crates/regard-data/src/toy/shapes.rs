//! Small gray pictures of shapes.

use super::{balanced, normal};
use crate::{Error, Result};
use regard::tensor::Random;

const NAMES: [&str; 4] = ["circle", "square", "triangle", "cross"];
const NOISE: f64 = 0.05;
/// Below this, shapes cannot be told apart.
const LEAST_SIDE: usize = 8;

/// `count` pictures of side × side pixels from 0 (black) to 1, row by row, as many of each of four
/// shapes, of any place, size and brightness, with noise: (shape, pixels). Refuses a side below 8.
///
/// ```
/// let shapes = regard_data::toy::shapes(4, 16, 1)?;
/// assert!(shapes.iter().all(|(_, pixels)| pixels.len() == 16 * 16));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn shapes(count: usize, side: usize, seed: u64) -> Result<Vec<(String, Vec<f32>)>> {
    if side < LEAST_SIDE {
        return Err(Error::invalid(format!(
            "shapes of side {side} were asked for; below {LEAST_SIDE} they look alike"
        )));
    }
    let random = Random::named(seed, "shapes");
    let labels = balanced(&random, count, NAMES.len());
    labels.into_iter().map(|at| Ok((NAMES[at].into(), draw(&random, NAMES[at], side)?))).collect()
}

fn draw(random: &Random, name: &str, side: usize) -> Result<Vec<f32>> {
    let width = side as f64;
    // Half of what the shape spans.
    let reach = width * (0.2 + 0.2 * random.number());
    let place = || reach + (width - 2.0 * reach) * random.number();
    let (center_x, center_y) = (place(), place());
    let bright = 0.5 + 0.5 * random.number();

    let mut pixels = normal(random, side * side, NOISE)?;
    for (at, pixel) in pixels.iter_mut().enumerate() {
        let middle = |at: usize| at as f64 + 0.5;
        let x = (middle(at % side) - center_x) / reach;
        let y = (middle(at / side) - center_y) / reach;
        if covers(name, x, y) {
            *pixel += bright as f32;
        }
        *pixel = pixel.clamp(0.0, 1.0);
    }
    Ok(pixels)
}

/// Whether a shape that spans −1..1 both ways covers a point; y grows downwards.
fn covers(name: &str, x: f64, y: f64) -> bool {
    let inside = x.abs() <= 1.0 && y.abs() <= 1.0;
    match name {
        "circle" => x.hypot(y) <= 1.0,
        "square" => inside,
        "triangle" => inside && x.abs() <= (y + 1.0) / 2.0,
        _ => inside && x.abs().min(y.abs()) <= 0.3,
    }
}

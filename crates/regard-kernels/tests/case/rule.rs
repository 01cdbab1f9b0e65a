//! The rule that every comparison of this crate keeps, here and nowhere else:
//!
//! Against the f64 oracle, a kernel's largest error is at most twice that of the plain formula in
//! the same precision, plus two roundings of the largest term that enters the result, √n of them
//! for a sum of n.
//!
//! Without the second part the rule would ask for what the plain formula has by luck, where few
//! numbers are compared or large terms cancel. In f64 the plain formula is the oracle itself, so
//! there a number of roundings of that term is allowed and nothing else.

use regard_kernels::Real;

/// What the rule allows in f32: `plain` is the plain formula's error, `scale` the largest term
/// times √n.
pub fn allowed(plain: f64, scale: f64) -> f64 {
    2.0 * plain + 2.0 * f64::from(f32::EPSILON) * scale
}

/// What is allowed in f64 after so many roundings.
pub fn allowed_in_double(roundings: f64, scale: f64) -> f64 {
    roundings * f64::EPSILON * scale
}

/// The largest error; infinite where one is NaN or infinite and the other is not the same.
pub fn error<T: Real>(x: &[T], oracle: &[f64]) -> f64 {
    x.iter().zip(oracle).fold(0.0, |top, (x, &o)| match x.f64() {
        x if x == o || (x.is_nan() && o.is_nan()) => top,
        x if !x.is_finite() || !o.is_finite() => f64::INFINITY,
        x => top.max((x - o).abs()),
    })
}

/// The largest magnitude among the finite numbers.
pub fn largest(x: &[f64]) -> f64 {
    x.iter().filter(|x| x.is_finite()).fold(0.0, |top, x| top.max(x.abs()))
}

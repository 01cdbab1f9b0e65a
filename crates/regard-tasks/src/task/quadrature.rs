//! Gauss–Legendre quadrature: the points where a function is computed to have its integral.

use std::f64::consts::PI;

/// The points in (0, 1) and their weights, which sum to 1: exact for polynomials of degree 2n − 1.
pub(crate) fn gauss_legendre(n: usize) -> Vec<(f64, f64)> {
    (0..n)
        .map(|i| {
            let mut x = (PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos();
            let mut slope = 1.0;
            // Newton's method from that guess is done after a few steps.
            for _ in 0..20 {
                let value;
                (value, slope) = legendre(n, x);
                x -= value / slope;
            }
            (0.5 + 0.5 * x, 1.0 / ((1.0 - x * x) * slope * slope))
        })
        .collect()
}

/// Pₙ(x) by its recurrence (k + 1) Pₖ₊₁ = (2k + 1) x Pₖ − k Pₖ₋₁, and its derivative.
fn legendre(n: usize, x: f64) -> (f64, f64) {
    let (mut before, mut value) = (0.0, 1.0);
    for k in 0..n {
        let k = k as f64;
        (before, value) = (value, ((2.0 * k + 1.0) * x * value - k * before) / (k + 1.0));
    }
    (value, n as f64 * (x * value - before) / (x * x - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monomials_have_the_integrals_that_are_known() {
        for n in [1, 2, 5, 32] {
            let points = gauss_legendre(n);
            assert!(points.iter().all(|&(x, _)| x > 0.0 && x < 1.0));
            for degree in 0..2 * n {
                let sum: f64 = points.iter().map(|(x, w)| w * x.powi(degree as i32)).sum();
                let known = 1.0 / (degree as f64 + 1.0);
                assert!((sum - known).abs() < 1e-13, "{n} points, degree {degree}: {sum}");
            }
        }
    }
}

//! Whether one model is better than another, or luckier.

use regard::tensor::Random;
use regard_data::{Error, Result};

/// Signs drawn for a test.
const DRAWS: usize = 10_000;

/// A paired permutation test: how likely a difference of the means at least as large as the one of
/// `a` and `b` is, where for each example chance says which of both numbers is whose. Two-sided, by
/// drawing (Noreen 1989), the same for the same numbers. Refuses lists of different lengths.
///
/// ```
/// use regard_tasks::metric::permutation_test;
/// let right = [1.0; 50];
/// let mut wrong = [1.0; 50];
/// wrong[..20].fill(0.0);
/// assert!(permutation_test(&right, &wrong)? < 0.001);
/// assert_eq!(permutation_test(&right, &right)?, 1.0);
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn permutation_test(a: &[f64], b: &[f64]) -> Result<f64> {
    if a.len() != b.len() {
        let (a, b) = (a.len(), b.len());
        return Err(Error::invalid(format!("{a} numbers cannot be paired with {b}")));
    }
    // A pair without a difference has it in either order.
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).filter(|d| *d != 0.0).collect();
    let observed = differences.iter().sum::<f64>().abs();
    let random = Random::named(1, "permutation test");
    // What differs by rounding alone is as large.
    let as_large = observed * (1.0 - 1e-9);
    let mut reached = 0;
    for _ in 0..DRAWS {
        let signed = differences.iter().map(|d| if random.number() < 0.5 { *d } else { -d });
        reached += usize::from(signed.sum::<f64>().abs() >= as_large);
    }
    Ok((reached + 1) as f64 / (DRAWS + 1) as f64)
}

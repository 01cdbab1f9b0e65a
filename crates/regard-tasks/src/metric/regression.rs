//! How near numbers are to the truth.

use regard_data::{Error, Result};

/// The mean of the squared differences. Refuses lists that are empty or of different lengths.
///
/// ```
/// use regard_tasks::metric::mean_squared_error;
/// assert_eq!(mean_squared_error(&[1.0, 2.0], &[1.0, 4.0])?, 2.0);
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn mean_squared_error<T: Copy + Into<f64>>(truth: &[T], predicted: &[T]) -> Result<f64> {
    if truth.len() != predicted.len() || truth.is_empty() {
        let (truth, predicted) = (truth.len(), predicted.len());
        return Err(Error::invalid(format!(
            "there are {predicted} predictions for {truth} numbers"
        )));
    }
    let squares = truth.iter().zip(predicted).map(|(&a, &b)| (a.into() - b.into()).powi(2));
    Ok(squares.sum::<f64>() / truth.len() as f64)
}

/// R²: the part of the truth's variance that the predictions explain; 1 at best, below 0 where the
/// truth's mean would be nearer. Of a constant truth, 1 where it was predicted exactly and 0
/// otherwise. Refuses lists that are empty or of different lengths.
///
/// ```
/// use regard_tasks::metric::r_squared;
/// assert_eq!(r_squared(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0])?, 1.0);
/// assert_eq!(r_squared(&[1.0, 2.0, 3.0], &[2.0, 2.0, 2.0])?, 0.0);
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn r_squared<T: Copy + Into<f64>>(truth: &[T], predicted: &[T]) -> Result<f64> {
    let error = mean_squared_error(truth, predicted)?;
    let truth: Vec<f64> = truth.iter().map(|&one| one.into()).collect();
    let mean = truth.iter().sum::<f64>() / truth.len() as f64;
    let variance = mean_squared_error(&truth, &vec![mean; truth.len()])?;
    Ok(match (error, variance) {
        (0.0, _) => 1.0,
        (_, 0.0) => 0.0,
        _ => 1.0 - error / variance,
    })
}

//! A number as files and people write it.

/// A number that is finite in the precision models compute in (f32); or what is wrong with it.
///
/// ```
/// use regard_data::files::number;
/// assert_eq!(number(" 2.5"), Ok(2.5));
/// assert_eq!(number("two").unwrap_err(), "`two` is not a finite number");
/// assert!(number("1e39").unwrap_err().contains("beyond the numbers computed in"));
/// ```
pub fn number(cell: &str) -> Result<f64, String> {
    let cell = cell.trim();
    match cell.parse::<f64>() {
        Ok(number) if (number as f32).is_finite() => Ok(number),
        // `inf` and `nan` have no digits.
        Ok(_) if cell.contains(|c: char| c.is_ascii_digit()) => {
            Err(format!("`{cell}` is beyond the numbers computed in (f32, up to 3.4e38)"))
        }
        _ => Err(format!("`{cell}` is not a finite number")),
    }
}

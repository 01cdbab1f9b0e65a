//! Rows of letters that are to be written again: nothing to learn but to carry every letter, so what
//! is lost is lost on the way from the source.

use super::{distinct, pick};
use crate::Result;
use regard::tensor::Random;

const LETTERS: [&str; 20] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s",
    "t",
];
const SHORTEST: usize = 3;
const LONGEST: usize = 20;

/// `count` rows of 3 to 20 letters with spaces between, each twice: as the source and as the target.
///
/// ```
/// let copies = regard_data::toy::copies(50, 1)?;
/// assert!(copies.iter().all(|(source, target)| source == target));
/// let lengths = copies.iter().map(|(source, _)| source.split(' ').count());
/// assert!(lengths.into_iter().all(|length| (3..=20).contains(&length)));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn copies(count: usize, seed: u64) -> Result<Vec<(String, String)>> {
    let random = Random::named(seed, "copies");
    let draw = || {
        let length = SHORTEST + random.below(LONGEST - SHORTEST + 1);
        (0..length).map(|_| *pick(&random, &LETTERS)).collect::<Vec<_>>().join(" ")
    };
    let drawn = distinct(count, "copies", draw, |row| vec![row.clone()])?;
    Ok(drawn.into_iter().map(|row| (row.clone(), row)).collect())
}

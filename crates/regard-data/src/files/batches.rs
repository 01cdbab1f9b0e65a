//! Examples of similar length together, so that little is filled up with padding.

use crate::{Error, Result};
use regard::tensor::Random;
use serde::{Deserialize, Serialize};

/// From so many batches at a time the examples are sorted by length: more gives less padding, fewer
/// gives more chance.
const POOL: usize = 100;

/// How much goes into a batch at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchSize {
    /// So many sequences.
    Sequences(usize),
    /// So many tokens, padding counted; one sequence where that alone is longer.
    Tokens(usize),
}

impl BatchSize {
    fn holds(self, sequences: usize, longest: usize) -> bool {
        match self {
            Self::Sequences(most) => sequences <= most,
            Self::Tokens(most) => sequences.saturating_mul(longest) <= most,
        }
    }

    /// About how many sequences of these lengths a batch holds.
    fn sequences(self, lengths: &[usize]) -> usize {
        match self {
            Self::Sequences(most) => most,
            Self::Tokens(most) => {
                most.saturating_mul(lengths.len()) / lengths.iter().sum::<usize>().max(1)
            }
        }
    }
}

/// Batches of the examples with these lengths, each example once, as indices in `lengths`. With
/// chance: those of a batch are of similar length, and batches come in any order. Without: all in
/// the order of their lengths. Refuses batches of nothing.
///
/// ```
/// use regard::prelude::*;
/// use regard_data::files::{BatchSize, batches};
/// assert_eq!(batches(&[9, 1, 8, 2], BatchSize::Sequences(2), None)?, [[1, 3], [2, 0]]);
/// let some = batches(&[9, 1, 8, 2], BatchSize::Tokens(18), Some(&Random::new(1)))?;
/// assert_eq!(some.concat().len(), 4);
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn batches(
    lengths: &[usize],
    size: BatchSize,
    random: Option<&Random>,
) -> Result<Vec<Vec<usize>>> {
    if matches!(size, BatchSize::Sequences(0) | BatchSize::Tokens(0)) {
        return Err(Error::invalid("a batch holds at least 1; 0 was asked for"));
    }
    let Some(random) = random else {
        return Ok(sorted(lengths, (0..lengths.len()).collect(), size));
    };
    let pool = size.sequences(lengths).max(1).saturating_mul(POOL);
    let order = random.order(lengths.len());
    let batches: Vec<_> =
        order.chunks(pool).flat_map(|pool| sorted(lengths, pool.to_vec(), size)).collect();
    Ok(random.order(batches.len()).into_iter().map(|index| batches[index].clone()).collect())
}

/// Examples from short to long, cut into batches.
fn sorted(lengths: &[usize], mut examples: Vec<usize>, size: BatchSize) -> Vec<Vec<usize>> {
    examples.sort_by_key(|&example| lengths[example]);
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for example in examples {
        match batches.last_mut() {
            Some(batch) if size.holds(batch.len() + 1, lengths[example]) => batch.push(example),
            _ => batches.push(vec![example]),
        }
    }
    batches
}

//! Where the parts lie among embedded examples.

use super::part::Part;
use regard_data::{Error, Result, sampled_count};
use std::ops::Range;

/// A part of embedded examples, of which `size` are learned. They are the same for every seed of a
/// training, so that runs can be compared: `draw` makes as many as it is asked for. Where data are only
/// sampled, no more than `most` are learned.
pub(crate) fn part<T>(
    part: Part,
    (size, most): (usize, usize),
    draw: impl FnOnce(usize) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let size = made(size, most)?;
    let all = place_of(Part::Training, size)?.end;
    let place = place_of(part, size)?;
    Ok(draw(all)?.into_iter().take(place.end).skip(place.start).collect())
}

/// As [`part`], where fewer examples are the first of more: no more are made than the part needs. These are
/// pictures and recordings.
pub(crate) fn part_in_order<T>(
    part: Part,
    size: usize,
    draw: impl FnOnce(usize) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let place = place_of(part, made(size, PICTURES)?)?;
    Ok(draw(place.end)?.into_iter().skip(place.start).collect())
}

/// How many texts or points are made to be learned where data are only sampled, and how many pictures or
/// recordings, of which each takes a millisecond or more.
pub(crate) const TEXTS: usize = 5000;
/// The same of texts of a hundred words.
pub(crate) const LONG_TEXTS: usize = 1000;
pub(crate) const PICTURES: usize = 200;
/// Numbers are made at once, and a regression learns no more than so many anyway.
pub(crate) const NUMBERS: usize = usize::MAX;

/// How many are made of so many that are asked for.
pub(crate) fn made(size: usize, most: usize) -> Result<usize> {
    check_size(size, MAX_EXAMPLES)?;
    Ok(sampled_count("embedded examples", size, most))
}

/// Where a part lies among the embedded examples, of which training has the last.
fn place_of(part: Part, size: usize) -> Result<Range<usize>> {
    let held = (size / 10).clamp(50, 500);
    Ok(match part {
        Part::Validation => 0..held,
        Part::Test => held..2 * held,
        Part::Training => 2 * held..2 * held + size,
    })
}

/// The most embedded examples.
const MAX_EXAMPLES: usize = 10_000_000;

/// Refuses more embedded examples than can be made.
pub(crate) fn check_size(size: usize, most: usize) -> Result<()> {
    if size <= most {
        return Ok(());
    }
    Err(Error::invalid(format!("`data.size` cannot be {size}; it is {most} at most")))
}

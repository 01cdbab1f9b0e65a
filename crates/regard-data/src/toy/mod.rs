//! Data that the program carries in itself: generators, each deterministic from its seed.
//!
//! Texts come in random order and no two are the same, so however they are cut into parts, no
//! part holds a sentence of another.

mod blocks;
mod captioned;
mod copies;
mod cue;
mod dates;
mod distance;
mod graph;
mod karate;
mod negation;
mod neighbors;
mod phrases;
mod recognized;
mod reports;
mod shapes;
mod sine;
mod spoken;
mod stories;
mod tagged;
mod tones;
mod touching;

pub use blocks::blocks;
pub use captioned::{CaptionLanguage, Captioned, captioned, plainly_captioned};
pub use copies::copies;
pub use cue::cues;
pub use dates::dates;
pub use distance::{Distant, distant};
pub use graph::Graph;
pub use karate::karate;
pub use negation::opinions;
pub use neighbors::{Telling, matching, misleading};
pub use phrases::phrases;
pub use recognized::{Recognized, SceneReader};
pub use reports::reports;
pub use shapes::shapes;
pub use sine::{sine, sine_truth};
pub use spoken::{SPOKEN_RATE, Spoken, spoken};
pub use stories::{Story, StoryLanguage, stories};
pub use tagged::tagged;
pub use tones::{TONE_RATE, tones};
pub use touching::{COLORS, touching};

use crate::{Error, Result};
use regard::DType;
use regard::tensor::Random;
use std::collections::HashSet;

/// How many draws in a row may repeat what there is before a generator counts as exhausted.
const PATIENCE: usize = 2000;

fn pick<'a, T>(random: &Random, from: &'a [T]) -> &'a T {
    &from[random.below(from.len())]
}

fn chance(random: &Random, likelihood: f64) -> bool {
    random.number() < likelihood
}

/// `count` labels below `labels` in random order, as many of each as can be.
fn balanced(random: &Random, count: usize, labels: usize) -> Vec<usize> {
    random.order(count).into_iter().map(|at| at % labels).collect()
}

/// `count` normal numbers around 0.
fn normal(random: &Random, count: usize, deviation: f64) -> Result<Vec<f32>> {
    Ok(random.normal(&[count], 0.0, deviation, DType::F32)?.to_vec()?)
}

/// `count` draws of which no two have a text in common.
fn distinct<T>(
    count: usize,
    what: &str,
    mut draw: impl FnMut() -> T,
    texts: impl Fn(&T) -> Vec<String>,
) -> Result<Vec<T>> {
    let mut seen = HashSet::new();
    let mut drawn = Vec::with_capacity(count);
    let mut repeats = 0;
    while drawn.len() < count {
        let one = draw();
        let keys = texts(&one);
        if keys.iter().any(|key| seen.contains(key)) {
            repeats += 1;
            if repeats == PATIENCE {
                let made = drawn.len();
                return Err(Error::invalid(format!(
                    "{count} different {what} were asked for; there are hardly more than {made}"
                )));
            }
        } else {
            repeats = 0;
            seen.extend(keys);
            drawn.push(one);
        }
    }
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_texts_than_a_generator_has_are_refused() {
        let random = Random::new(1);
        let draw =
            |count| distinct(count, "dice", || random.below(6), |face| vec![face.to_string()]);
        let mut faces = draw(6).unwrap();
        faces.sort();
        assert_eq!(faces, [0, 1, 2, 3, 4, 5]);
        assert_eq!(
            draw(7).unwrap_err().to_string(),
            "7 different dice were asked for; there are hardly more than 6"
        );
    }
}

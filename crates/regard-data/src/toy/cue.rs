//! Texts whose label hangs on one word among many that say nothing.

use super::{balanced, distinct, pick};
use crate::Result;
use regard::tensor::Random;

/// A label and its cue words.
const TOPICS: [(&str, [&str; 5]); 4] = [
    ("kitchen", ["kettle", "spoon", "oven", "soup", "flour"]),
    ("sea", ["harbour", "sail", "anchor", "tide", "whale"]),
    ("music", ["violin", "chorus", "drum", "melody", "trumpet"]),
    ("sky", ["comet", "cloud", "planet", "thunder", "moonlight"]),
];

/// Words of every topic.
const DECOYS: [&str; 48] = [
    "the", "a", "and", "of", "then", "with", "near", "after", "before", "there", "was", "is",
    "had", "came", "went", "took", "saw", "kept", "found", "left", "stood", "old", "small",
    "quiet", "long", "bright", "late", "early", "green", "heavy", "someone", "nobody", "we",
    "they", "she", "he", "morning", "evening", "door", "road", "letter", "friend", "window",
    "story", "garden", "stone", "again", "slowly",
];

/// Words in a text, the least and the most.
const LENGTH: (usize, usize) = (8, 40);

/// `count` different texts of 8 to 40 words, (label, text), as many of each of the four labels.
/// Exactly one word is a cue, anywhere in the text.
///
/// ```
/// let texts = regard_data::toy::cues(8, 1)?;
/// assert_eq!(texts.iter().filter(|(label, _)| label == "sea").count(), 2);
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn cues(count: usize, seed: u64) -> Result<Vec<(String, String)>> {
    let random = Random::named(seed, "cues");
    let labels = balanced(&random, count, TOPICS.len());
    let mut drawn = 0;
    let draw = || {
        let (label, cues) = TOPICS[labels[drawn % count]];
        drawn += 1;
        let length = LENGTH.0 + random.below(LENGTH.1 - LENGTH.0 + 1);
        let mut words: Vec<&str> = (0..length).map(|_| *pick(&random, &DECOYS)).collect();
        words[random.below(length)] = *pick(&random, &cues);
        (label.to_string(), words.join(" "))
    };
    distinct(count, "texts", draw, |(_, text)| vec![text.clone()])
}

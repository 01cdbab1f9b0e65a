//! Little opinions, some of them the other way round.

use super::{balanced, chance, distinct, pick};
use crate::Result;
use regard::tensor::Random;

const LABELS: [&str; 2] = ["good", "bad"];
/// Words of praise and of blame.
const WORDS: [[&str; 6]; 2] = [
    ["lovely", "clever", "moving", "funny", "bright", "fresh"],
    ["dull", "clumsy", "boring", "silly", "bleak", "stale"],
];
const NEGATIONS: [&str; 4] = ["not", "never", "hardly", "nowhere"];
const DEGREES: [&str; 4] = ["very", "really", "so", "too"];
const SUBJECTS: [&str; 6] = ["film", "story", "music", "ending", "cast", "dialogue"];
const VERBS: [&str; 4] = ["is", "was", "seemed", "felt"];
/// What says nothing, with negations in it too.
const ASIDES: [&str; 10] = [
    "we did not come late",
    "it never rained",
    "the hall was full",
    "my friend sat near the door",
    "nobody hardly moved",
    "they had not sold every seat",
    "it lasted two hours",
    "we walked home after that",
    "the lights went out",
    "i had never been there",
];

/// `count` different texts, (label, text), as many of each of the two labels. Each has one opinion,
/// "the music was not very bright", among remarks that hold none; half of the opinions are negated
/// and mean the opposite of their word, and the remarks have negations of their own.
///
/// ```
/// let texts = regard_data::toy::opinions(40, 1)?;
/// assert_eq!(texts.iter().filter(|(label, _)| label == "good").count(), 20);
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn opinions(count: usize, seed: u64) -> Result<Vec<(String, String)>> {
    let random = Random::named(seed, "opinions");
    let labels = balanced(&random, count, LABELS.len());
    let mut drawn = 0;
    let draw = || {
        let label = labels[drawn % count];
        drawn += 1;
        let negated = chance(&random, 0.5);
        let word = *pick(&random, &WORDS[if negated { 1 - label } else { label }]);
        let mut opinion = vec!["the", *pick(&random, &SUBJECTS), *pick(&random, &VERBS)];
        if negated {
            opinion.push(*pick(&random, &NEGATIONS));
        }
        if chance(&random, 0.5) {
            opinion.push(*pick(&random, &DEGREES));
        }
        opinion.push(word);
        let mut parts = vec![opinion.join(" ")];
        for _ in 0..1 + random.below(3) {
            let at = random.below(parts.len() + 1);
            parts.insert(at, pick(&random, &ASIDES).to_string());
        }
        (LABELS[label].to_string(), parts.join(" , "))
    };
    distinct(count, "texts", draw, |(_, text)| vec![text.clone()])
}

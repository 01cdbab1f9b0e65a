//! Sentences with the part of speech of each word, by the tags of Universal Dependencies. Many
//! words are of several: "I saw a saw". Often the neighbors tell which; sometimes only what comes
//! much later does: "I knew that old sheep behind the house" means one sheep, until a verb follows.

use super::{distinct, pick};
use crate::Result;
use regard::tensor::Random;

/// What each symbol may become: words with tags, and symbols. Where sentences can begin with the
/// same words, the rules are written side by side.
const RULES: [(&str, &[&str]); 24] = [
    (
        "S",
        &[
            "WHO saw/VERB THING MAYBE_PP WHEN",
            "WHO can/AUX ACT WHEN",
            "MANY ACT WHEN",
            "WHO went/VERB to/ADP the/DET PLACE to/PART ACT",
            "WHO wanted/VERB to/PART ACT WHEN",
            "the/DET NOUN PP is/AUX ADJ",
            "WHO came/VERB back/ADV with/ADP THING",
            "WHO hurt/VERB MY back/NOUN PP",
            "MANY swim/VERB well/ADV PP",
            "the/DET SKY rose/VERB over/ADP the/DET PLACE WHEN",
            "the/DET MAYBE_ADJ MAN PP leaves/VERB WHEN",
            "the/DET MAYBE_ADJ MAN PP saw/VERB the/DET leaves/NOUN WHEN",
            "the/DET leaves/NOUN PP fell/VERB WHEN",
            "ONE leaves/VERB the/DET NOUN PP",
            "that/PRON is/AUX a/DET MAYBE_ADJ NOUN",
            "the/DET NOUN that/PRON WHO saw/VERB PP is/AUX ADJ",
            "KNOWING",
            "KNOWING",
            "SEEING",
            "SEEING",
            "BEGINNING",
        ],
    ),
    (
        "KNOWING",
        &[
            "WHO knew/VERB that/DET MAYBE_ADJ FISH MAYBE_PP",
            "WHO knew/VERB that/SCONJ MAYBE_ADJ FISH MAYBE_PP can/AUX MOVE",
            "WHO knew/VERB that/SCONJ MAYBE_ADJ FISH MAYBE_PP MOVE",
        ],
    ),
    (
        "SEEING",
        &[
            "WHO saw/VERB her/PRON duck/VERB PP",
            "WHO saw/VERB her/PRON duck/NOUN PP MOVE",
            "WHO saw/VERB her/PRON train/VERB PP",
            "WHO saw/VERB her/PRON train/NOUN PP MOVE",
            "WHO saw/VERB her/PRON watch/VERB PP",
            "WHO saw/VERB her/PRON watch/NOUN PP MOVE",
        ],
    ),
    (
        "BEGINNING",
        &[
            "light/VERB lamps/NOUN PP",
            "light/ADJ lamps/NOUN PP MOVE",
            "book/VERB rooms/NOUN PP",
            "train/VERB dogs/NOUN PP",
        ],
    ),
    (
        "ACT",
        &[
            "book/VERB a/DET MAYBE_ADJ room/NOUN",
            "book/VERB the/DET train/NOUN",
            "watch/VERB THING",
            "watch/VERB the/DET duck/NOUN fly/VERB PP",
            "light/VERB the/DET MAYBE_ADJ lamp/NOUN",
            "ring/VERB the/DET MAYBE_ADJ bell/NOUN",
            "train/VERB the/DET MAYBE_ADJ duck/NOUN",
            "bear/VERB the/DET cold/NOUN well/ADV",
            "fly/VERB to/ADP the/DET PLACE",
            "saw/VERB the/DET MAYBE_ADJ wood/NOUN",
            "duck/VERB PP",
            "can/VERB the/DET fish/NOUN PP",
        ],
    ),
    ("THING", &["a/DET MAYBE_ADJ NOUN", "the/DET MAYBE_ADJ NOUN", "that/DET NOUN", "MY NOUN"]),
    (
        "NOUN",
        &[
            "saw/NOUN",
            "can/NOUN",
            "book/NOUN",
            "watch/NOUN",
            "fly/NOUN",
            "light/NOUN",
            "well/NOUN",
            "ring/NOUN",
            "duck/NOUN",
            "train/NOUN",
            "bear/NOUN",
            "rose/NOUN",
            "dog/NOUN",
            "lamp/NOUN",
        ],
    ),
    ("MY", &["my/PRON", "his/PRON", "our/PRON", "their/PRON"]),
    ("WHO", &["MANY", "ONE"]),
    ("MANY", &["I/PRON", "you/PRON", "we/PRON", "they/PRON", "the/DET children/NOUN"]),
    ("ONE", &["she/PRON", "he/PRON", "Anna/PROPN", "the/DET MAYBE_ADJ MAN"]),
    ("MAN", &["man/NOUN", "woman/NOUN", "teacher/NOUN", "sailor/NOUN"]),
    ("FISH", &["fish/NOUN", "sheep/NOUN", "deer/NOUN"]),
    ("MOVE", &["move/VERB", "jump/VERB", "stop/VERB", "fall/VERB"]),
    ("SKY", &["sun/NOUN", "moon/NOUN"]),
    ("MAYBE_ADJ", &["", "ADJ", "light/ADJ"]),
    ("ADJ", &["old/ADJ", "red/ADJ", "big/ADJ", "small/ADJ", "quiet/ADJ"]),
    ("MAYBE_PP", &["", "PP", "PP PP"]),
    ("PP", &["PREP the/DET PLACE", "PREP the/DET ADJ PLACE"]),
    ("PREP", &["behind/ADP", "near/ADP", "in/ADP", "under/ADP"]),
    ("PLACE", &["house/NOUN", "tree/NOUN", "garden/NOUN", "river/NOUN", "well/NOUN"]),
    ("WHEN", &["", "", "today/NOUN", "again/ADV", "DAY"]),
    ("DAY", &["on/ADP Monday/PROPN", "on/ADP Sunday/PROPN"]),
    ("END", &["./PUNCT"]),
];

/// `count` different sentences, each word with its tag.
///
/// ```
/// let sentences = regard_data::toy::tagged(2, 1)?;
/// assert!(sentences.iter().all(|words| words.last() == Some(&(".".into(), "PUNCT".into()))));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn tagged(count: usize, seed: u64) -> Result<Vec<Vec<(String, String)>>> {
    let random = Random::named(seed, "tagged");
    let draw = || {
        let mut words = vec![];
        expand(&random, "S", &mut words);
        expand(&random, "END", &mut words);
        words
    };
    distinct(count, "tagged sentences", draw, |words| {
        let words: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
        vec![words.join(" ")]
    })
}

fn expand(random: &Random, symbol: &str, words: &mut Vec<(String, String)>) {
    if let Some((word, tag)) = symbol.split_once('/') {
        return words.push((word.into(), tag.into()));
    }
    let rule = RULES.iter().find(|(name, _)| *name == symbol);
    let (_, choices) = rule.expect("every symbol has a rule");
    for part in pick(random, choices).split_whitespace() {
        expand(random, part, words);
    }
}

//! What stands behind the errors of a part: the picture or the sound of an example, the words that are
//! taken for something else, and how far numbers are off.

use crate::refusal::Refusal;
use crate::runs::OneRun;
use regard_tasks::metric::Judged;
use regard_tasks::task::{Input, Part};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Most groups of errors, and most words of each.
const MOST_GROUPS: usize = 12;
const MOST_WORDS: usize = 5;
/// Most numbers that are drawn.
const MOST_NUMBERS: usize = 2000;

/// What an example of a part can be shown by beside its text: its picture, or its sound.
pub(crate) fn evidence(
    run: &OneRun,
    part: Part,
    count: usize,
) -> Result<Option<&'static str>, Refusal> {
    let loaded = run.loaded()?;
    let abilities = loaded.model.abilities();
    if abilities.sees.is_some() {
        return Ok(Some("picture"));
    }
    let hears = count > 0 && abilities.hears.is_some();
    let sound = hears.then(|| abilities.sound(&Input::example(part, 0)).ok().flatten());
    Ok(sound.flatten().map(|_| "sound"))
}

/// A label and what was predicted in its place.
type Confused<'a> = (&'a str, &'a str);

/// The confusions that occur most, each with the words that it has in common: of words with a label
/// each the words themselves, else those that stand oftener in its texts than in the others.
pub(crate) fn groups(all: &[Judged]) -> Vec<Value> {
    let mut counts: HashMap<Confused, usize> = HashMap::new();
    let pairs = all.iter().flat_map(|one| &one.labels).filter(|(truth, given)| truth != given);
    for (truth, given) in pairs {
        *counts.entry((truth, given)).or_default() += 1;
    }
    let mut most: Vec<(Confused, usize)> = counts.into_iter().collect();
    most.sort_by(|(a, n), (b, m)| m.cmp(n).then(a.cmp(b)));
    most.truncate(MOST_GROUPS);
    let one = |((truth, predicted), n): (Confused, usize)| {
        let words = match all.iter().all(|one| one.labels.len() <= 1) {
            true => telling_words(all, (truth, predicted)),
            false => labeled_words(all, (truth, predicted)),
        };
        json!({ "truth": truth, "predicted": predicted, "n": n, "words": words })
    };
    most.into_iter().map(one).collect()
}

fn is_one((truth, given): &(String, String), confused: Confused) -> bool {
    (&truth[..], &given[..]) == confused
}

/// The most frequent of some words, with how often each is there.
fn frequent(counts: HashMap<&str, usize>) -> Vec<(&str, usize)> {
    let mut words: Vec<(&str, usize)> = counts.into_iter().collect();
    words.sort_by(|(a, n), (b, m)| m.cmp(n).then(a.cmp(b)));
    words.truncate(MOST_WORDS);
    words
}

/// The words that have this label and were given that one, where each label is a word's.
fn labeled_words<'a>(all: &'a [Judged], confused: Confused) -> Vec<(&'a str, usize)> {
    let mut counts = HashMap::new();
    for one in all {
        let words: Vec<&str> = one.input.split(' ').collect();
        // A recording has labels, and no words.
        if words.len() != one.labels.len() {
            continue;
        }
        let pairs = words.iter().zip(&one.labels);
        for (word, _) in pairs.filter(|(_, labels)| is_one(labels, confused)) {
            *counts.entry(*word).or_default() += 1;
        }
    }
    frequent(counts)
}

/// The words that stand in more of these texts than chance has it: at least twice, and in twice the
/// share of all texts.
fn telling_words<'a>(all: &'a [Judged], confused: Confused) -> Vec<(&'a str, usize)> {
    let is_one = |one: &&Judged| one.labels.iter().any(|pair| is_one(pair, confused));
    let mut counts: HashMap<&'a str, usize> = HashMap::new();
    let (mut everywhere, mut texts) = (HashMap::<&'a str, usize>::new(), 0usize);
    for one in all {
        let mut words: Vec<&'a str> = words(&one.input).collect();
        words.sort_unstable();
        words.dedup();
        for word in &words {
            *everywhere.entry(word).or_default() += 1;
        }
        if is_one(&one) {
            texts += 1;
            words.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
        }
    }
    let share = |n: usize, of: usize| n as f64 / of.max(1) as f64;
    counts
        .retain(|word, n| *n >= 2 && share(*n, texts) >= 2.0 * share(everywhere[word], all.len()));
    frequent(counts)
}

/// The words of a text; none where it only names a place, such as `test:3`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_place = text
        .split_once(':')
        .is_some_and(|(part, index)| Part::named(part).is_some() && index.parse::<usize>().is_ok());
    let text = if is_place { "" } else { text };
    text.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty())
}

/// What is true and what was predicted where those are numbers, example by example; of many some, evenly
/// chosen.
pub(crate) fn residuals(all: &[Judged]) -> Option<Value> {
    let numbers = |one: &Judged| Some((one.index, one.numbers?));
    let all: Vec<(usize, (f64, f64))> = all.iter().filter_map(numbers).collect();
    if all.is_empty() {
        return None;
    }
    let far = all.iter().map(|(_, (truth, given))| (given - truth).abs());
    let mean = far.clone().sum::<f64>() / all.len() as f64;
    let some = all.iter().step_by(all.len().div_ceil(MOST_NUMBERS));
    let points: Vec<_> = some.map(|(index, (truth, given))| (index, truth, given)).collect();
    let greatest = far.fold(0.0, f64::max);
    Some(json!({ "count": all.len(), "points": points, "mean": mean, "greatest": greatest }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(input: &str, labels: &[(&str, &str)]) -> Judged {
        let labels = labels.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        Judged { input: input.into(), labels, ..Judged::default() }
    }

    #[test]
    fn confused_words_are_those_whose_label_it_is() {
        let all = [
            judged("they run home", &[("P", "P"), ("V", "N"), ("N", "N")]),
            judged("run and walk", &[("V", "N"), ("C", "C"), ("V", "N")]),
            judged("a run", &[("D", "D"), ("N", "V")]),
        ];
        let found = groups(&all);
        assert_eq!(
            found,
            [
                json!({ "truth": "V", "predicted": "N", "n": 3, "words": [["run", 2], ["walk", 1]] }),
                json!({ "truth": "N", "predicted": "V", "n": 1, "words": [["run", 1]] }),
            ]
        );
    }

    #[test]
    fn texts_that_are_confused_have_the_words_that_others_lack() {
        let wrong = [("sea", "kitchen")];
        let right = [("kitchen", "kitchen")];
        let all = [
            judged("the cook sails", &wrong),
            judged("the cook, a boat", &wrong),
            judged("the oven", &right),
            judged("the pan", &right),
            judged("the oven", &right),
        ];
        assert_eq!(groups(&all)[0]["words"], json!([["cook", 2]]), "`the` stands everywhere");
        let pictures = [judged("test:0", &wrong), judged("test:1", &wrong)];
        assert_eq!(groups(&pictures)[0]["words"], json!([]));
    }

    #[test]
    fn residuals_have_all_digits_and_are_no_more_than_can_be_drawn() {
        let one =
            |index| Judged { index, numbers: Some((index as f64 / 1e9, 0.0)), ..Judged::default() };
        let all: Vec<Judged> = (0..4001).map(one).collect();
        let found = residuals(&all).unwrap_or_default();
        assert_eq!(found["points"].as_array().map(Vec::len), Some(1334));
        assert_eq!(found["points"][1], json!([3, 3e-9, 0.0]));
        assert_eq!((&found["count"], &found["greatest"]), (&json!(4001), &json!(4e-6)));
        assert!(residuals(&[judged("a", &[])]).is_none());
    }
}

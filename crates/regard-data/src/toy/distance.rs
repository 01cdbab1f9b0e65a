//! Sentences in which a word's label stands some words before it, among decoys.

use super::{distinct, pick};
use crate::{Error, Result};
use regard::tensor::Random;

/// A sentence, a label for each word, and for the words that ask how far before them it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distant {
    /// The words.
    pub words: Vec<String>,
    /// A label for each; "-" for those that ask nothing.
    pub labels: Vec<String>,
    /// How many words before it the label of each was told; none where nothing is asked.
    pub distances: Vec<Option<usize>>,
}

const NAMES: [&str; 6] = ["anna", "ben", "cora", "dan", "eva", "finn"];
const COLORS: [&str; 4] = ["red", "green", "blue", "gold"];
const OTHERS: [&str; 24] = [
    "stone", "river", "cloud", "lamp", "road", "tree", "window", "table", "bread", "paper",
    "clock", "wheel", "grass", "smoke", "chair", "brick", "glass", "sugar", "cotton", "marble",
    "feather", "candle", "ladder", "basket",
];

/// The label of words that ask nothing.
const NOTHING: &str = "-";
/// The shortest distance.
const NEAREST: usize = 2;
/// Words beyond the farthest distance.
const SLACK: usize = 12;

/// A sentence that is being written: none where a place is free.
struct Draft<'a> {
    random: &'a Random,
    words: Vec<Option<String>>,
}

impl Draft<'_> {
    fn is_free(&self, at: usize) -> bool {
        self.words[at].is_none()
    }

    fn put(&mut self, at: usize, word: String) {
        self.words[at] = Some(word);
    }

    /// A free place within a range, where there is one soon.
    fn place(&self, from: usize, until: usize) -> Option<usize> {
        if from >= until {
            return None;
        }
        let tries = (0..10).map(|_| from + self.random.below(until - from));
        tries.into_iter().find(|&at| self.is_free(at))
    }

    /// A name's color, told `distance` words before it is asked for, with one of any color told
    /// before that and one after, where there is room. Where it is asked for.
    fn ask(&mut self, name: &str, color: usize, distance: usize) -> Option<usize> {
        let n = self.words.len();
        let places: Vec<usize> =
            (distance..n).filter(|&at| self.is_free(at) && self.is_free(at - distance)).collect();
        if places.is_empty() {
            return None;
        }
        let at = *pick(self.random, &places);
        let told = at - distance;
        self.put(at, name.to_string());
        self.put(told, format!("{name}-{}", COLORS[color]));
        for (from, until) in [(0, told), (at + 1, n)] {
            // Any color: what stands nearby says nothing of the one that is asked for.
            let other = pick(self.random, &COLORS);
            if let Some(place) = self.place(from, until) {
                self.put(place, format!("{name}-{other}"));
            }
        }
        Some(at)
    }
}

fn sentence(random: &Random, farthest: usize) -> Distant {
    let n = farthest + SLACK + random.below(8);
    let mut draft = Draft { random, words: vec![None; n] };
    let mut labels = vec![NOTHING.to_string(); n];
    let mut distances = vec![None; n];
    for at in random.order(NAMES.len()) {
        // As many short distances as long ones: every doubling is as likely.
        let doublings = (farthest as f64 / NEAREST as f64).log2();
        let distance = (NEAREST as f64 * (doublings * random.number()).exp2()).round() as usize;
        let distance = distance.clamp(NEAREST, farthest);
        let color = random.below(COLORS.len());
        if let Some(asks) = draft.ask(NAMES[at], color, distance) {
            labels[asks] = COLORS[color].into();
            distances[asks] = Some(distance);
        }
    }
    let word = |word: Option<String>| word.unwrap_or_else(|| pick(random, &OTHERS).to_string());
    Distant { words: draft.words.into_iter().map(word).collect(), labels, distances }
}

/// `count` different sentences in which names are asked for a color: "anna-red" tells anna's, and
/// the word "anna", 2 to `farthest` words later, has the label "red". Other names are told between,
/// anna's color is told once before that and once afterwards, any of the four: only the last one
/// before the question counts. Refuses a distance below 2 and above 1000.
///
/// ```
/// let sentence = &regard_data::toy::distant(1, 16, 1)?[0];
/// let asks = sentence.distances.iter().position(Option::is_some).unwrap();
/// let told = asks - sentence.distances[asks].unwrap();
/// let expected = format!("{}-{}", sentence.words[asks], sentence.labels[asks]);
/// assert_eq!(sentence.words[told], expected);
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn distant(count: usize, farthest: usize, seed: u64) -> Result<Vec<Distant>> {
    if !(NEAREST..=1000).contains(&farthest) {
        let what = format!("a distance of {farthest} words; it is {NEAREST} to 1000");
        return Err(Error::invalid(what));
    }
    let random = Random::named(seed, "distance");
    distinct(count, "sentences", || sentence(&random, farthest), |s| vec![s.words.join(" ")])
}

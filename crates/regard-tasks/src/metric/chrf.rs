//! chrF as sacreBLEU counts it: n-grams of characters, spaces left out. Popović, "chrF: character
//! n-gram F-score for automatic MT evaluation" (2015) and "chrF++: words helping character n-grams"
//! (2017).

use super::text;
use regard_data::Result;

/// Characters in the longest n-gram.
const CHARACTERS: usize = 6;
/// Words in the longest n-gram of chrF++.
const WORDS: usize = 2;
/// β²: recall counts twice as much as precision.
const BETA_SQUARED: f64 = 4.0;

/// The chrF2 of a corpus, from 0 to 100: `references` has, for each hypothesis, its references, at
/// least one. Refuses lists of different lengths and a hypothesis without a reference.
///
/// ```
/// let score = regard_tasks::metric::chrf(&["cat"], &[vec!["cat"]])?;
/// assert!((score - 100.0).abs() < 1e-9);
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn chrf<H: AsRef<str>, R: AsRef<str>>(hypotheses: &[H], references: &[Vec<R>]) -> Result<f64> {
    corpus(hypotheses, references, 0)
}

/// As [`chrf`], with words and pairs of words counted beside the characters: chrF2++.
pub fn chrf_plus_plus<H: AsRef<str>, R: AsRef<str>>(
    hypotheses: &[H],
    references: &[Vec<R>],
) -> Result<f64> {
    corpus(hypotheses, references, WORDS)
}

fn corpus<H: AsRef<str>, R: AsRef<str>>(
    hypotheses: &[H],
    references: &[Vec<R>],
    word_order: usize,
) -> Result<f64> {
    text::check(hypotheses, references)?;
    let mut sum = vec![Matches::default(); CHARACTERS + word_order];
    for (hypothesis, references) in hypotheses.iter().zip(references) {
        let hypothesis = Line::new(hypothesis.as_ref());
        let of_reference = |line: &R| hypothesis.matches(&Line::new(line.as_ref()), word_order);
        let mut best: Option<(f64, Vec<Matches>)> = None;
        for matches in references.iter().map(of_reference) {
            let score = f_score(&matches);
            if best.as_ref().is_none_or(|(highest, _)| score > *highest) {
                best = Some((score, matches));
            }
        }
        for (sum, one) in sum.iter_mut().zip(best.map_or(vec![], |(_, matches)| matches)) {
            sum.add(one);
        }
    }
    Ok(f_score(&sum))
}

/// The n-grams of one order: how many there are on each side, and on both.
#[derive(Clone, Copy, Default)]
struct Matches {
    hypothesis: usize,
    reference: usize,
    both: usize,
}

impl Matches {
    fn of<T: Eq + std::hash::Hash>(hypothesis: &[T], reference: &[T], order: usize) -> Self {
        let allowed = text::ngrams(reference, order);
        if allowed.is_empty() {
            return Self::default();
        }
        let both = text::ngrams(hypothesis, order)
            .into_iter()
            .map(|(ngram, count)| count.min(allowed.get(ngram).copied().unwrap_or(0)))
            .sum();
        let count = |line: &[T]| (line.len() + 1).saturating_sub(order);
        Self { hypothesis: count(hypothesis), reference: count(reference), both }
    }

    fn add(&mut self, other: Self) {
        self.hypothesis += other.hypothesis;
        self.reference += other.reference;
        self.both += other.both;
    }
}

/// The F-score of the mean precision and the mean recall, over the orders that both sides have.
fn f_score(matches: &[Matches]) -> f64 {
    let counted: Vec<_> =
        matches.iter().filter(|one| one.hypothesis > 0 && one.reference > 0).collect();
    let mean = |of: fn(&Matches) -> usize| {
        let parts = counted.iter().map(|one| one.both as f64 / of(one) as f64);
        parts.sum::<f64>() / counted.len() as f64
    };
    let (precision, recall) = (mean(|one| one.hypothesis), mean(|one| one.reference));
    if counted.is_empty() || precision + recall == 0.0 {
        return 0.0;
    }
    100.0 * (1.0 + BETA_SQUARED) * precision * recall / (BETA_SQUARED * precision + recall)
}

struct Line {
    characters: Vec<char>,
    words: Vec<String>,
}

impl Line {
    fn new(line: &str) -> Self {
        Self {
            characters: line.chars().filter(|&c| !text::is_space(c)).collect(),
            words: text::words(line).flat_map(without_mark).collect(),
        }
    }

    fn matches(&self, reference: &Line, word_order: usize) -> Vec<Matches> {
        let characters = (1..=CHARACTERS)
            .map(|order| Matches::of(&self.characters, &reference.characters, order));
        let words = (1..=word_order).map(|order| Matches::of(&self.words, &reference.words, order));
        characters.chain(words).collect()
    }
}

/// A word and the mark at its end; or, if there is none, at its start.
fn without_mark(word: &str) -> Vec<String> {
    let ends = |mark: Option<char>| mark.is_some_and(|mark| mark.is_ascii_punctuation());
    let at = if word.chars().nth(1).is_none() {
        0
    } else if ends(word.chars().next_back()) {
        word.len() - 1
    } else if ends(word.chars().next()) {
        1
    } else {
        0
    };
    let (first, second) = word.split_at(at);
    [first, second].iter().filter(|part| !part.is_empty()).map(|part| part.to_string()).collect()
}

//! How good the answer to a question is, as the scripts of SQuAD and of CMRC 2018 count: exact match
//! and F1, each the best over the answers that people gave.

use super::text::{is_space, words};
use regard_data::text::treebank_words;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Whose rules say when two answers are the same and what they have in common.
///
/// ```
/// use regard_tasks::metric::AnswerRule;
/// let gold = ["the Denver Broncos", "Broncos"];
/// assert_eq!(AnswerRule::Squad.exact_match("Denver Broncos!", &gold), 1.0);
/// assert_eq!(AnswerRule::Squad.f1("a Denver team", &gold), 0.5);
/// // the longest run in common, 光荣, is 2 of 3 and 2 of 5 characters
/// assert_eq!(AnswerRule::Cmrc.f1("由光荣", &["光荣和公司"]), 0.5);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerRule {
    /// SQuAD 1.1: words without case, punctuation and articles; F1 over the bag of them.
    #[default]
    #[serde(rename = "squad")]
    Squad,
    /// SQuAD 2.0: the same, and an empty answer is right where there is none.
    #[serde(rename = "squad-2.0")]
    SquadTwo,
    /// CMRC 2018: Chinese by characters, other scripts by words, without punctuation; F1 over the
    /// longest run in common.
    #[serde(rename = "cmrc")]
    Cmrc,
}

impl AnswerRule {
    /// 1 where it is the same as one of the answers, else 0.
    pub fn exact_match(self, predicted: &str, answers: &[impl AsRef<str>]) -> f64 {
        let same = |answer: &str| match self {
            Self::Squad | Self::SquadTwo => normalized(answer) == normalized(predicted),
            Self::Cmrc => without_marks(answer) == without_marks(predicted),
        };
        best(self.counted(answers), |answer| f64::from(u8::from(same(answer))))
    }

    /// The harmonic mean of precision and recall, with the answer that it is best with.
    pub fn f1(self, predicted: &str, answers: &[impl AsRef<str>]) -> f64 {
        let one = |answer: &str| match self {
            Self::Squad | Self::SquadTwo => {
                let (answer, predicted) = (normalized(answer), normalized(predicted));
                if self == Self::SquadTwo && (answer.is_empty() || predicted.is_empty()) {
                    return f64::from(u8::from(answer == predicted));
                }
                let (answer, predicted): (Vec<&str>, Vec<&str>) =
                    (words(&answer).collect(), words(&predicted).collect());
                f1(common(&answer, &predicted), predicted.len(), answer.len())
            }
            Self::Cmrc => {
                let (answer, predicted) = (segments(answer), segments(predicted));
                f1(longest_run(&answer, &predicted), predicted.len(), answer.len())
            }
        };
        best(self.counted(answers), one)
    }

    /// The answers that count: SQuAD 2.0 leaves out those of which nothing is left, and asks for an
    /// empty one where there is no other.
    fn counted(self, answers: &[impl AsRef<str>]) -> Vec<&str> {
        let mut all: Vec<&str> = answers.iter().map(AsRef::as_ref).collect();
        if self == Self::SquadTwo {
            all.retain(|answer| !normalized(answer).is_empty());
            if all.is_empty() {
                all.push("");
            }
        }
        all
    }
}

fn best(answers: Vec<&str>, one: impl Fn(&str) -> f64) -> f64 {
    answers.into_iter().map(one).fold(0.0, f64::max)
}

fn f1(same: usize, predicted: usize, answer: usize) -> f64 {
    if same == 0 {
        return 0.0;
    }
    let (precision, recall) = (same as f64 / predicted as f64, same as f64 / answer as f64);
    2.0 * precision * recall / (precision + recall)
}

/// Small letters, without ASCII punctuation and articles, one space between words.
fn normalized(answer: &str) -> String {
    let text: String =
        answer.to_lowercase().chars().filter(|c| !c.is_ascii_punctuation()).collect();
    let mut kept = String::with_capacity(text.len());
    // An article is a whole run of letters and digits; what is not such a run ends it.
    for run in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let word = run.trim_end_matches(|c: char| !c.is_alphanumeric());
        let rest = &run[word.len()..];
        kept.push_str(if matches!(word, "a" | "an" | "the") { " " } else { word });
        kept.push_str(rest);
    }
    words(&kept).collect::<Vec<_>>().join(" ")
}

/// How many words both have, each as often as in the one that has it less.
fn common(a: &[&str], b: &[&str]) -> usize {
    let mut left: HashMap<&str, usize> = HashMap::new();
    a.iter().for_each(|word| *left.entry(word).or_default() += 1);
    let taken = |word: &&&str| match left.get_mut(**word) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    b.iter().filter(taken).count()
}

/// The marks that CMRC's script leaves out. Its list also has an ellipsis of two characters, which
/// no single character equals.
const MARKS: &str = "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』";

fn is_mark(c: char) -> bool {
    MARKS.contains(c)
}

fn without_marks(answer: &str) -> String {
    answer.to_lowercase().trim_matches(is_space).chars().filter(|c| !is_mark(*c)).collect()
}

/// Chinese characters one by one, what is between them as English words.
fn segments(answer: &str) -> Vec<String> {
    let is_han = |c: char| ('\u{4e00}'..='\u{9fa5}').contains(&c);
    let mut segments = Vec::new();
    let mut other = String::new();
    for c in without_marks(answer).chars() {
        if is_han(c) {
            segments.extend(treebank_words(&std::mem::take(&mut other)));
            segments.push(c.to_string());
        } else {
            other.push(c);
        }
    }
    segments.extend(treebank_words(&other));
    segments
}

/// The length of the longest run of neighbors that both have.
fn longest_run(a: &[String], b: &[String]) -> usize {
    let mut longest = 0;
    let mut before = vec![0; b.len() + 1];
    for x in a {
        let mut now = vec![0; b.len() + 1];
        for (at, y) in b.iter().enumerate() {
            if x == y {
                now[at + 1] = before[at] + 1;
                longest = longest.max(now[at + 1]);
            }
        }
        before = now;
    }
    longest
}

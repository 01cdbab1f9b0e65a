//! ROUGE-1, -2 and -L as rouge-score counts them, without stemming. Lin, "ROUGE: a package for
//! automatic evaluation of summaries" (2004).

use super::text;
use regard_data::{Error, Result};
use serde::{Deserialize, Serialize};

/// What ROUGE counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RougeTokenization {
    /// Words of Latin letters and digits, as rouge-score does; all else stands between words.
    #[default]
    Words,
    /// Words of letters and digits of any script: for Arabic, Hebrew, Russian, Hindi, Korean, …
    Unicode,
    /// The words of Latin letters, and every other letter or digit by itself: for scripts without
    /// spaces between words, as Chinese, Japanese and Thai.
    Characters,
}

/// Precision, recall and their harmonic mean, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Overlap {
    /// The share of what was written that is in the reference.
    pub precision: f64,
    /// The share of the reference that was written.
    pub recall: f64,
    /// Their harmonic mean.
    pub f1: f64,
}

/// ROUGE of a text, or its mean over many.
///
/// ```
/// use regard_tasks::metric::{Rouge, RougeTokenization};
/// let rouge = Rouge::new("The cat sat here.", "the cat sits here", RougeTokenization::Words);
/// assert_eq!((rouge.one.f1, rouge.l.recall), (0.75, 0.75));
/// assert!((rouge.two.precision - 1.0 / 3.0).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rouge {
    /// Of single words.
    pub one: Overlap,
    /// Of pairs of neighbors.
    pub two: Overlap,
    /// Of the longest common subsequence.
    pub l: Overlap,
}

impl Rouge {
    /// Of one text and its reference.
    pub fn new(written: &str, reference: &str, tokenization: RougeTokenization) -> Self {
        let (written, reference) = (tokenization.tokens(written), tokenization.tokens(reference));
        Self {
            one: neighbors(&written, &reference, 1),
            two: neighbors(&written, &reference, 2),
            l: Overlap::new(longest_common(&written, &reference), written.len(), reference.len()),
        }
    }

    /// The mean over texts, each with its reference. Refuses lists of different lengths.
    pub fn corpus<A: AsRef<str>, B: AsRef<str>>(
        written: &[A],
        references: &[B],
        tokenization: RougeTokenization,
    ) -> Result<Self> {
        if written.len() != references.len() {
            let (given, expected) = (written.len(), references.len());
            let what = format!("there are {given} texts for {expected} references");
            return Err(Error::invalid(what));
        }
        let pairs = written.iter().zip(references);
        let all: Vec<Self> =
            pairs.map(|(a, b)| Self::new(a.as_ref(), b.as_ref(), tokenization)).collect();
        let mean = |of: &dyn Fn(&Self) -> Overlap| {
            let sum = |part: &dyn Fn(Overlap) -> f64| {
                all.iter().map(|rouge| part(of(rouge))).sum::<f64>() / all.len().max(1) as f64
            };
            Overlap {
                precision: sum(&|overlap| overlap.precision),
                recall: sum(&|overlap| overlap.recall),
                f1: sum(&|overlap| overlap.f1),
            }
        };
        Ok(Self {
            one: mean(&|rouge| rouge.one),
            two: mean(&|rouge| rouge.two),
            l: mean(&|rouge| rouge.l),
        })
    }
}

impl Overlap {
    fn new(common: usize, written: usize, reference: usize) -> Self {
        let share = |of: usize| common as f64 / of.max(1) as f64;
        let (precision, recall) = (share(written), share(reference));
        let f1 = match precision + recall > 0.0 {
            true => 2.0 * precision * recall / (precision + recall),
            false => 0.0,
        };
        Self { precision, recall, f1 }
    }
}

impl RougeTokenization {
    /// What suits references: words as rouge-score counts them, unless a third of the letters or more
    /// are of another script, whose words rouge-score does not see.
    ///
    /// ```
    /// use regard_tasks::metric::RougeTokenization as By;
    /// assert_eq!(By::suiting(&["Où est le café ?", "A cat (猫) sat here."]), By::Words);
    /// assert_eq!(By::suiting(&["القطة على السجادة"]), By::Unicode);
    /// assert_eq!(By::suiting(&["我有2本book", "猫"]), By::Characters);
    /// ```
    pub fn suiting<R: AsRef<str>>(references: &[R]) -> Self {
        let letters = || references.iter().flat_map(|line| line.as_ref().chars());
        let letters = || letters().filter(|c| c.is_alphanumeric());
        let all = letters().count();
        let other = letters().filter(|&c| !is_latin(c)).count();
        let unspaced = letters().filter(|&c| is_unspaced(c)).count();
        match other > 0 && 3 * other >= all {
            false => Self::Words,
            true if 2 * unspaced >= other => Self::Characters,
            true => Self::Unicode,
        }
    }

    fn tokens(self, line: &str) -> Vec<String> {
        let mut tokens: Vec<String> = Vec::new();
        let mut open = false;
        for c in line.to_lowercase().chars() {
            let joins = match self {
                Self::Unicode => c.is_alphanumeric() || (open && is_mark(c)),
                Self::Words | Self::Characters => c.is_ascii_lowercase() || c.is_ascii_digit(),
            };
            match (joins, tokens.last_mut()) {
                (true, Some(word)) if open => word.push(c),
                (true, _) => tokens.push(c.to_string()),
                (false, _) if self == Self::Characters && c.is_alphanumeric() => {
                    tokens.push(c.to_string());
                }
                _ => {}
            }
            open = joins;
        }
        tokens
    }
}

/// Latin letters with and without accents, and digits.
fn is_latin(c: char) -> bool {
    c.is_ascii() || matches!(c, '\u{80}'..='\u{2af}' | '\u{1e00}'..='\u{1eff}')
}

/// Letters of scripts that have no spaces between words: Thai, Lao, Burmese, Khmer, Chinese, Japanese.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{2e80}'..='\u{312f}'
        | '\u{3190}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9d}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Signs within words that are no letters to Unicode: accents, points of Hebrew and Arabic, viramas,
/// joiners.
fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}'
        | '\u{591}'..='\u{5bd}'
        | '\u{5bf}'..='\u{5c7}'
        | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}'
        | '\u{670}'
        | '\u{6d6}'..='\u{6ed}'
        | '\u{900}'..='\u{963}'
        | '\u{966}'..='\u{dff}'
        | '\u{200c}'..='\u{200d}')
}

/// The overlap of runs of `order` neighbors.
fn neighbors(written: &[String], reference: &[String], order: usize) -> Overlap {
    let (own, theirs) = (text::ngrams(written, order), text::ngrams(reference, order));
    let common = theirs.iter().map(|(ngram, &count)| count.min(*own.get(ngram).unwrap_or(&0)));
    let count = |tokens: &[String]| (tokens.len() + 1).saturating_sub(order);
    Overlap::new(common.sum(), count(written), count(reference))
}

fn longest_common(a: &[String], b: &[String]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut diagonal = 0;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = if x == y { diagonal + 1 } else { above.max(row[j]) };
            diagonal = above;
        }
    }
    row[b.len()]
}

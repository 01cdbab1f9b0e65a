//! BLEU as sacreBLEU counts it, to the last digit: its tokenizations, with their quirks, its
//! smoothing and its brevity penalty. Papineni, Roukos, Ward, Zhu, "BLEU: a method for automatic
//! evaluation of machine translation" (2002); Post, "A call for clarity in reporting BLEU scores"
//! (2018).

use super::text;
use regard_data::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;

/// The longest n-grams that count.
const ORDER: usize = 4;

/// The version of sacreBLEU that the fixtures were made with.
const SACREBLEU: &str = "2.6.0";

/// How a sentence becomes tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tokenization {
    /// Western languages, as mteval-v13a did.
    #[default]
    #[serde(rename = "13a")]
    Western,
    /// Chinese characters by themselves, the rest as Western languages.
    #[serde(rename = "zh")]
    Chinese,
    /// Each character by itself.
    #[serde(rename = "char")]
    Characters,
    /// At spaces only.
    #[serde(rename = "none")]
    Spaces,
}

/// What stands for a precision of nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Smoothing {
    /// A half of one match for the first order without a match, a quarter for the next, and so on.
    #[default]
    Exponential,
    /// Nothing: one order without a match and the score is 0.
    None,
}

/// A corpus's BLEU and what it was counted from.
///
/// ```
/// use regard_tasks::metric::{Bleu, Tokenization};
/// let bleu = Bleu::corpus(&["A cat sat here."], &[vec!["A cat sat here."]], Tokenization::Western)?;
/// assert!((bleu.score - 100.0).abs() < 1e-9);
/// # Ok::<(), regard_tasks::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bleu {
    /// From 0 to 100.
    pub score: f64,
    /// Of 1-grams to 4-grams, each from 0 to 100, smoothed.
    pub precisions: [f64; ORDER],
    /// How many n-grams were also in a reference.
    pub correct: [usize; ORDER],
    /// How many n-grams there were.
    pub total: [usize; ORDER],
    /// The brevity penalty, from 0 to 1.
    pub brevity: f64,
    /// Tokens of all hypotheses.
    pub hypothesis_length: usize,
    /// Tokens of the references nearest in length.
    pub reference_length: usize,
}

impl Bleu {
    /// The BLEU of a corpus with exponential smoothing: `references` has, for each hypothesis,
    /// its references, at least one. Refuses lists of different lengths and a hypothesis without
    /// a reference.
    pub fn corpus<H: AsRef<str>, R: AsRef<str>>(
        hypotheses: &[H],
        references: &[Vec<R>],
        tokenization: Tokenization,
    ) -> Result<Self> {
        Self::smoothed(hypotheses, references, tokenization, Smoothing::default())
    }

    /// As [`Bleu::corpus`], with a smoothing of one's choice.
    pub fn smoothed<H: AsRef<str>, R: AsRef<str>>(
        hypotheses: &[H],
        references: &[Vec<R>],
        tokenization: Tokenization,
        smoothing: Smoothing,
    ) -> Result<Self> {
        text::check(hypotheses, references)?;
        let mut counts = Counts::default();
        for (hypothesis, references) in hypotheses.iter().zip(references) {
            let hypothesis = tokenization.tokens(hypothesis.as_ref());
            let references: Vec<_> =
                references.iter().map(|line| tokenization.tokens(line.as_ref())).collect();
            counts.add(&hypothesis, &references);
        }
        Ok(counts.bleu(smoothing))
    }
}

impl fmt::Display for Bleu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, two, three, four] = self.precisions;
        write!(
            f,
            "{:.2} ({one:.1}/{two:.1}/{three:.1}/{four:.1}, brevity {:.3}, {} tokens for {})",
            self.score, self.brevity, self.hypothesis_length, self.reference_length
        )
    }
}

#[derive(Default)]
struct Counts {
    correct: [usize; ORDER],
    total: [usize; ORDER],
    hypothesis_length: usize,
    reference_length: usize,
}

impl Counts {
    fn add(&mut self, hypothesis: &[String], references: &[Vec<String>]) {
        let length = hypothesis.len();
        self.hypothesis_length += length;
        // The nearest in length; of two as near, the shorter.
        self.reference_length += references
            .iter()
            .map(Vec::len)
            .min_by_key(|&reference| (reference.abs_diff(length), reference))
            .unwrap_or(0);
        for order in 1..=ORDER {
            let mut allowed: HashMap<&[String], usize> = HashMap::new();
            for reference in references {
                for (ngram, count) in text::ngrams(reference, order) {
                    let most = allowed.entry(ngram).or_default();
                    *most = count.max(*most);
                }
            }
            for (ngram, count) in text::ngrams(hypothesis, order) {
                self.total[order - 1] += count;
                self.correct[order - 1] += count.min(allowed.get(ngram).copied().unwrap_or(0));
            }
        }
    }

    fn bleu(self, smoothing: Smoothing) -> Bleu {
        let Self { correct, total, hypothesis_length, reference_length } = self;
        let brevity = match (hypothesis_length, reference_length) {
            (length, reference) if length >= reference => 1.0,
            (0, _) => 0.0,
            (length, reference) => (1.0 - reference as f64 / length as f64).exp(),
        };
        let mut precisions = [0.0; ORDER];
        let mut score = 0.0;
        if correct.iter().any(|&count| count > 0) {
            precisions = smooth(&correct, &total, smoothing);
            if precisions.iter().all(|&precision| precision > 0.0) {
                let logs: f64 = precisions.iter().map(|precision| precision.ln()).sum();
                score = brevity * (logs / ORDER as f64).exp();
            }
        }
        Bleu { score, precisions, correct, total, brevity, hypothesis_length, reference_length }
    }
}

fn smooth(correct: &[usize; ORDER], total: &[usize; ORDER], smoothing: Smoothing) -> [f64; ORDER] {
    let mut precisions = [0.0; ORDER];
    let mut part = 1.0;
    for (order, precision) in precisions.iter_mut().enumerate() {
        let (correct, total) = (correct[order] as f64, total[order] as f64);
        if total == 0.0 {
            break;
        }
        *precision = match smoothing {
            Smoothing::Exponential if correct == 0.0 => {
                part *= 2.0;
                100.0 / (part * total)
            }
            _ => 100.0 * correct / total,
        };
    }
    precisions
}

impl Tokenization {
    /// The one of sacreBLEU's name: `13a`, `zh`, `char` or `none`.
    ///
    /// ```
    /// use regard_tasks::metric::Tokenization;
    /// assert_eq!(Tokenization::named("zh")?, Tokenization::Chinese);
    /// assert!(Tokenization::named("ja").is_err());
    /// # Ok::<(), regard_tasks::Error>(())
    /// ```
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "13a" => Ok(Self::Western),
            "zh" => Ok(Self::Chinese),
            "char" => Ok(Self::Characters),
            "none" => Ok(Self::Spaces),
            _ => Err(Error::invalid(format!(
                "BLEU knows no tokenization {name:?}; there are 13a, zh, char and none"
            ))),
        }
    }

    /// What suits these references: Chinese where a third of their characters or more are, else that of
    /// Western languages.
    ///
    /// ```
    /// use regard_tasks::metric::Tokenization;
    /// assert_eq!(Tokenization::suiting(&["我有2本book", "猫"]), Tokenization::Chinese);
    /// assert_eq!(Tokenization::suiting(&["A cat (猫) sat here."]), Tokenization::Western);
    /// ```
    pub fn suiting<R: AsRef<str>>(references: &[R]) -> Self {
        let all = || references.iter().flat_map(|line| line.as_ref().chars());
        let written = all().filter(|&c| !text::is_space(c)).count();
        let chinese = all().filter(|&c| is_chinese(c)).count();
        if written > 0 && 3 * chinese >= written { Self::Chinese } else { Self::Western }
    }

    /// What sacreBLEU writes beside a BLEU of one reference, so that others count the same way. The
    /// version is that of sacreBLEU whose scores ours are tested to be.
    ///
    /// ```
    /// use regard_tasks::metric::Tokenization;
    /// let signature = Tokenization::Western.signature();
    /// assert!(signature.starts_with("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2."));
    /// ```
    pub fn signature(self) -> String {
        self.signature_for(&[[""]])
    }

    /// As [`Tokenization::signature`], of a BLEU with these references for each sentence.
    ///
    /// ```
    /// use regard_tasks::metric::Tokenization;
    /// let signature = Tokenization::Chinese.signature_for(&[vec!["a", "b"], vec!["c"]]);
    /// assert!(signature.starts_with("nrefs:var|case:mixed|eff:no|tok:zh|"));
    /// ```
    pub fn signature_for<R, S: AsRef<[R]>>(self, references: &[S]) -> String {
        let count = |references: &S| references.as_ref().len();
        let first = references.first().map_or(1, count);
        let nrefs = match references.iter().all(|references| count(references) == first) {
            true => first.to_string(),
            false => "var".into(),
        };
        let name = match self {
            Self::Western => "13a",
            Self::Chinese => "zh",
            Self::Characters => "char",
            Self::Spaces => "none",
        };
        format!("nrefs:{nrefs}|case:mixed|eff:no|tok:{name}|smooth:exp|version:{SACREBLEU}")
    }

    /// The tokens of a line.
    ///
    /// ```
    /// use regard_tasks::metric::Tokenization;
    /// assert_eq!(Tokenization::Western.tokens("It's 1,000.5, no?"), ["It's", "1,000.5", ",", "no", "?"]);
    /// assert_eq!(Tokenization::Chinese.tokens("我有2本book"), ["我", "有", "2", "本", "book"]);
    /// ```
    pub fn tokens(self, line: &str) -> Vec<String> {
        match self {
            Self::Western => split_western(&format!(" {} ", unescape(text::trim_end(line)))),
            Self::Chinese => split_western(&set_apart(text::trim(line), is_chinese)),
            Self::Characters => {
                line.chars().filter(|&c| !text::is_space(c)).map(String::from).collect()
            }
            Self::Spaces => text::words(line).map(String::from).collect(),
        }
    }
}

fn unescape(line: &str) -> String {
    line.replace("<skipped>", "")
        .replace("-\n", "")
        .replace('\n', " ")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
}

/// Marks stand alone; so do periods and commas that are not within a number, and dashes after a
/// digit.
fn split_western(line: &str) -> Vec<String> {
    let line = set_apart(line, is_mark);
    let period = |c| matches!(c, '.' | ',');
    let digit = |c: char| c.is_ascii_digit();
    let line = at_pairs(&line, |a, b| !digit(a) && period(b), |a, b| format!("{a} {b} "));
    let line = at_pairs(&line, |a, b| period(a) && !digit(b), |a, b| format!(" {a} {b}"));
    let line = at_pairs(&line, |a, b| digit(a) && b == '-', |a, b| format!("{a} {b} "));
    text::words(&line).map(String::from).collect()
}

/// ASCII marks but the apostrophe, the comma, the dash and the period.
fn is_mark(c: char) -> bool {
    c.is_ascii_punctuation() && !matches!(c, '\'' | ',' | '-' | '.')
}

fn set_apart(line: &str, alone: impl Fn(char) -> bool) -> String {
    line.chars().map(|c| if alone(c) { format!(" {c} ") } else { c.to_string() }).collect()
}

/// Rewrites pairs of neighbors from left to right. A character belongs to one pair at most, as in
/// the regular expressions this stands for: in "a..b" the second period has lost its neighbor.
fn at_pairs(
    line: &str,
    here: impl Fn(char, char) -> bool,
    rewrite: impl Fn(char, char) -> String,
) -> String {
    let mut rewritten = String::new();
    let mut rest = line.chars().peekable();
    while let Some(a) = rest.next() {
        match rest.peek() {
            Some(&b) if here(a, b) => {
                rest.next();
                rewritten += &rewrite(a, b);
            }
            _ => rewritten.push(a),
        }
    }
    rewritten
}

/// What sacreBLEU takes for a Chinese character. Its range for Extension B is written with five
/// digits where Python reads four, and so holds U+2001 to U+2A6D: curly quotes, dashes, arrows.
fn is_chinese(c: char) -> bool {
    matches!(c,
        '\u{2001}'..='\u{2a6d}'
        | '\u{2e80}'..='\u{2fdf}'
        | '\u{2ff0}'..='\u{303f}'
        | '\u{3100}'..='\u{312f}'
        | '\u{31a0}'..='\u{31ef}'
        | '\u{3200}'..='\u{4db5}'
        | '\u{4e00}'..='\u{9fbb}'
        | '\u{f900}'..='\u{fa2d}'
        | '\u{fa30}'..='\u{fa6a}'
        | '\u{fa70}'..='\u{fad9}'
        | '\u{fe10}'..='\u{fe1f}'
        | '\u{fe30}'..='\u{fe4f}'
        | '\u{ff00}'..='\u{ffef}')
}

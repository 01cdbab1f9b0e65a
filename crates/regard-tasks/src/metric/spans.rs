//! Spans of B-, I-, E-, S- and O labels, and how many were found, as seqeval counts them (which counts
//! as the script conlleval does): a span may begin with I-, and the ends need not be marked.

use regard_data::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// A stretch of tokens with one type: "PER" from 3 to 5.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The type: what stands behind the first dash.
    pub kind: String,
    /// The first token.
    pub first: usize,
    /// The last token.
    pub last: usize,
}

/// How many spans were found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpanScore {
    /// The share of the found spans that are right.
    pub precision: f64,
    /// The share of the right spans that were found.
    pub recall: f64,
    /// Their harmonic mean.
    pub f1: f64,
    /// How many spans there are.
    pub support: usize,
}

/// Whether labels mark spans: each is `O` or has B-, I-, E- or S- before its type, and some have.
///
/// ```
/// use regard_tasks::metric::mark_spans;
/// assert!(mark_spans(&["O", "B-PER", "I-PER"]) && !mark_spans(&["NOUN", "O"]));
/// ```
pub fn mark_spans<L: AsRef<str>>(labels: &[L]) -> bool {
    let is_marked = |label: &&L| {
        let mut parts = label.as_ref().splitn(2, '-');
        matches!(parts.next(), Some("B" | "I" | "E" | "S")) && parts.next().is_some()
    };
    let marked = labels.iter().filter(is_marked).count();
    marked > 0
        && labels.iter().filter(|label| label.as_ref() == "O").count() + marked == labels.len()
}

/// The spans of a sentence's labels.
///
/// ```
/// use regard_tasks::metric::spans;
/// let found = spans(&["B-PER", "I-PER", "O", "I-LOC", "B-LOC"]);
/// assert_eq!(found.len(), 3);
/// assert_eq!((found[0].kind.as_str(), found[0].first, found[0].last), ("PER", 0, 1));
/// ```
pub fn spans<L: AsRef<str>>(labels: &[L]) -> Vec<Span> {
    let mut all = Vec::new();
    let (mut before, mut first) = (Label { tag: 'O', kind: "" }, 0);
    let labels = labels.iter().map(|label| Label::of(label.as_ref()));
    for (at, now) in labels.chain([Label::of("O")]).enumerate() {
        if before.ends_before(now) {
            all.push(Span { kind: before.kind.into(), first, last: at.saturating_sub(1) });
        }
        if now.begins_after(before) {
            first = at;
        }
        before = now;
    }
    all
}

#[derive(Clone, Copy)]
struct Label<'a> {
    tag: char,
    kind: &'a str,
}

impl<'a> Label<'a> {
    fn of(label: &'a str) -> Self {
        let tag = label.chars().next().unwrap_or('O');
        let rest = &label[label.chars().next().map_or(0, char::len_utf8)..];
        let kind = rest.split_once('-').map_or(rest, |(_, kind)| kind);
        Self { tag, kind: if kind.is_empty() { "_" } else { kind } }
    }

    fn is_outside(self) -> bool {
        matches!(self.tag, 'O' | '.')
    }

    /// Whether a span that this is the last known token of ends before the next.
    fn ends_before(self, next: Self) -> bool {
        let by_tag = match self.tag {
            'E' | 'S' => true,
            'B' | 'I' => matches!(next.tag, 'B' | 'S' | 'O'),
            _ => false,
        };
        by_tag || (!self.is_outside() && self.kind != next.kind)
    }

    /// Whether a span begins here.
    fn begins_after(self, before: Self) -> bool {
        let by_tag = match self.tag {
            'B' | 'S' => true,
            'E' | 'I' => matches!(before.tag, 'E' | 'S' | 'O'),
            _ => false,
        };
        by_tag || (!self.is_outside() && before.kind != self.kind)
    }
}

/// How many of the true spans of each type were found, and of all together: the types in order, then
/// the whole under an empty name. A span counts where type, first and last token are right. Refuses
/// sentences of other numbers or lengths.
///
/// ```
/// use regard_tasks::metric::span_scores;
/// let truth = [vec!["B-PER", "I-PER", "O"]];
/// let scores = span_scores(&truth, &[vec!["B-PER", "O", "O"]])?;
/// assert_eq!((scores[""].f1, scores["PER"].support), (0.0, 1));
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn span_scores<L: AsRef<str>>(
    truth: &[Vec<L>],
    predicted: &[Vec<L>],
) -> Result<BTreeMap<String, SpanScore>> {
    let lengths = |all: &[Vec<L>]| all.iter().map(Vec::len).collect::<Vec<_>>();
    if lengths(truth) != lengths(predicted) {
        return Err(Error::invalid("spans are compared in sentences of the same lengths"));
    }
    // All sentences in one, as seqeval does: an `O` between two ends every span.
    let gather = |all: &[Vec<L>]| -> BTreeSet<Span> {
        let labels = |sentence: &Vec<L>| -> Vec<String> {
            let labels = sentence.iter().map(|label| label.as_ref().to_owned());
            labels.chain(["O".to_owned()]).collect()
        };
        spans(&all.iter().flat_map(labels).collect::<Vec<_>>()).into_iter().collect()
    };
    let (truth, predicted) = (gather(truth), gather(predicted));
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::from([("", [0; 3])]);
    for (place, all) in [&truth, &predicted].into_iter().enumerate() {
        for span in all {
            counts.entry(&span.kind).or_default()[place] += 1;
        }
    }
    for span in truth.intersection(&predicted) {
        counts.entry(&span.kind).or_default()[2] += 1;
    }
    let whole = counts.values().fold([0; 3], |sum, one| [0, 1, 2].map(|i| sum[i] + one[i]));
    counts.insert("", whole);
    let share = |some: usize, all: usize| if all == 0 { 0.0 } else { some as f64 / all as f64 };
    let score = |[support, found, right]: [usize; 3]| {
        let (precision, recall) = (share(right, found), share(right, support));
        let f1 = match precision + recall {
            0.0 => 0.0,
            sum => 2.0 * precision * recall / sum,
        };
        SpanScore { precision, recall, f1, support }
    };
    Ok(counts.into_iter().map(|(kind, counts)| (kind.to_owned(), score(counts))).collect())
}

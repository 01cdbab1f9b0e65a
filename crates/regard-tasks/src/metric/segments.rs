//! How well stretches of equal labels were found, whatever their frames: by their overlap, and by
//! their order. Lea, Flynn, Vidal, Reiter, Hager, "Temporal convolutional networks for action
//! segmentation and detection" (2017).

use regard_data::{Error, Result};
use serde::Serialize;

/// Segments that were found, of all sequences together.
///
/// ```
/// use regard_tasks::metric::SegmentScore;
/// // "a a b b" was taken for "a a a b": both segments overlap by half or more
/// let score = SegmentScore::count(&[vec![0, 0, 1, 1]], &[vec![0, 0, 0, 1]])?;
/// assert_eq!((score.f1(), score.error_rate()), (1.0, 0.0));
/// // "a b a a" has one segment too many
/// let score = SegmentScore::count(&[vec![0, 0, 0, 0]], &[vec![0, 1, 0, 0]])?;
/// assert_eq!((score.found, score.predicted, score.truth), (1, 3, 1));
/// # Ok::<(), regard_tasks::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SegmentScore {
    /// Predicted segments that share at least half of their time with a true one of the same label
    /// (half of what both cover together); each true one is found once at most.
    pub found: usize,
    /// Predicted segments.
    pub predicted: usize,
    /// True segments.
    pub truth: usize,
    /// Segments replaced, left out or added, to make the true order of labels of the predicted.
    pub errors: usize,
}

/// A stretch of equal labels: the label, where it begins, and where the next one does.
pub type LabelRun = (usize, usize, usize);

/// The stretches of equal labels.
///
/// ```
/// use regard_tasks::metric::label_runs;
/// assert_eq!(label_runs(&[7, 7, 3]), [(7, 0, 2), (3, 2, 3)]);
/// ```
pub fn label_runs(labels: &[usize]) -> Vec<LabelRun> {
    let mut runs: Vec<LabelRun> = Vec::new();
    for (at, &label) in labels.iter().enumerate() {
        match runs.last_mut() {
            Some((known, _, end)) if *known == label => *end = at + 1,
            _ => runs.push((label, at, at + 1)),
        }
    }
    runs
}

impl SegmentScore {
    /// Counts over sequences of labels: what is true, what was predicted. Refuses lists of different
    /// lengths.
    pub fn count(truth: &[Vec<usize>], predicted: &[Vec<usize>]) -> Result<Self> {
        if truth.len() != predicted.len() {
            let (given, expected) = (predicted.len(), truth.len());
            let what = format!("there are {given} predictions for {expected} sequences");
            return Err(Error::invalid(what));
        }
        let mut all = Self::default();
        for (truth, predicted) in truth.iter().zip(predicted) {
            let (truth, predicted) = (label_runs(truth), label_runs(predicted));
            all.found += found(&truth, &predicted);
            all.predicted += predicted.len();
            all.truth += truth.len();
            let labels = |runs: &[LabelRun]| runs.iter().map(|run| run.0).collect::<Vec<_>>();
            all.errors += super::error_rate::distance(&labels(&predicted), &labels(&truth));
        }
        Ok(all)
    }

    /// The harmonic mean of precision and recall, from 0 to 1.
    pub fn f1(&self) -> f64 {
        match self.predicted + self.truth {
            0 => 0.0,
            both => 2.0 * self.found as f64 / both as f64,
        }
    }

    /// Errors in the order of labels, over how many segments there are.
    pub fn error_rate(&self) -> f64 {
        self.errors as f64 / self.truth.max(1) as f64
    }
}

fn found(truth: &[LabelRun], predicted: &[LabelRun]) -> usize {
    let mut taken = vec![false; truth.len()];
    let mut count = 0;
    for &(label, start, end) in predicted {
        let share = |&(other, from, to): &LabelRun| {
            let common = end.min(to).saturating_sub(start.max(from));
            let both = end.max(to) - start.min(from);
            if other == label { common as f64 / both as f64 } else { 0.0 }
        };
        let best = (0..truth.len()).max_by(|&a, &b| share(&truth[a]).total_cmp(&share(&truth[b])));
        if let Some(best) = best.filter(|&best| !taken[best] && share(&truth[best]) >= 0.5) {
            taken[best] = true;
            count += 1;
        }
    }
    count
}

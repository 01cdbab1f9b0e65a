//! How labels were told apart: counts of what was taken for what, and the scores that follow.

use crate::metric::scores::Scores;
use regard::tensor::Better;
use regard_data::{Error, Result};
use serde::Serialize;

/// How often each label was taken for each.
///
/// ```
/// use regard_tasks::metric::Confusion;
/// let confusion = Confusion::count(&[0, 0, 1, 1], &[0, 1, 1, 1], &["cat", "dog"])?;
/// assert_eq!(confusion.counts, [[1, 1], [0, 2]]);
/// assert_eq!(confusion.accuracy(), 0.75);
/// # Ok::<(), regard_tasks::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confusion {
    /// The labels' names.
    pub labels: Vec<String>,
    /// Row: what is true; column: what was predicted.
    pub counts: Vec<Vec<usize>>,
}

/// One label's line of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LabelScore {
    /// The label's name.
    pub label: String,
    /// Of what was predicted to be it, the part that is; 0 where nothing was.
    pub precision: f64,
    /// Of what is it, the part that was predicted to be; 0 where nothing is.
    pub recall: f64,
    /// The harmonic mean of both; 0 where both are.
    pub f1: f64,
    /// How many are it.
    pub support: usize,
}

impl Confusion {
    /// Counts indices in `labels`: what is true, what was predicted. Refuses lists of different
    /// lengths and an index beyond the labels.
    pub fn count(truth: &[usize], predicted: &[usize], labels: &[impl AsRef<str>]) -> Result<Self> {
        if truth.len() != predicted.len() {
            let (truth, predicted) = (truth.len(), predicted.len());
            return Err(Error::invalid(format!(
                "there are {predicted} predictions for {truth} labels"
            )));
        }
        if let Some(beyond) = truth.iter().chain(predicted).find(|&&at| at >= labels.len()) {
            let count = labels.len();
            return Err(Error::invalid(format!("label {beyond} is not among {count} labels")));
        }
        let mut counts = vec![vec![0; labels.len()]; labels.len()];
        for (&truth, &predicted) in truth.iter().zip(predicted) {
            counts[truth][predicted] += 1;
        }
        Ok(Self { labels: labels.iter().map(|label| label.as_ref().into()).collect(), counts })
    }

    /// The part that was predicted right; 0 where nothing was predicted.
    pub fn accuracy(&self) -> f64 {
        let right: usize = (0..self.labels.len()).map(|at| self.counts[at][at]).sum();
        part(right, self.counts.iter().flatten().sum())
    }

    /// The mean of the labels' F1, over the labels that are true or were predicted at least once.
    pub fn macro_f1(&self) -> f64 {
        let seen: Vec<f64> = (0..self.labels.len())
            .filter(|&at| self.support(at) + self.predicted(at) > 0)
            .map(|at| self.f1(at))
            .collect();
        if seen.is_empty() { 0.0 } else { seen.iter().sum::<f64>() / seen.len() as f64 }
    }

    /// F1 of all labels' counts together: where every item has one label and one predicted, each
    /// wrong prediction misses one label and invents one, so it is the accuracy.
    pub fn micro_f1(&self) -> f64 {
        self.accuracy()
    }

    /// The measures of a model that chooses among labels; its accuracy decides.
    ///
    /// ```
    /// use regard_tasks::metric::Confusion;
    /// let confusion = Confusion::count(&[0, 1], &[0, 1], &["cat", "dog"])?;
    /// assert_eq!(confusion.scores(0.1).first(), ("accuracy", 1.0));
    /// # Ok::<(), regard_tasks::Error>(())
    /// ```
    pub fn scores(&self, loss: f64) -> Scores {
        Scores::new("accuracy", self.accuracy(), Better::Higher)
            .with("macro F1", self.macro_f1())
            .with("micro F1", self.micro_f1())
            .with("loss", loss)
    }

    /// A line for each label, in their order.
    pub fn table(&self) -> Vec<LabelScore> {
        let line = |(at, label): (usize, &String)| LabelScore {
            label: label.clone(),
            precision: part(self.counts[at][at], self.predicted(at)),
            recall: part(self.counts[at][at], self.support(at)),
            f1: self.f1(at),
            support: self.support(at),
        };
        self.labels.iter().enumerate().map(line).collect()
    }

    fn support(&self, at: usize) -> usize {
        self.counts[at].iter().sum()
    }

    fn predicted(&self, at: usize) -> usize {
        self.counts.iter().map(|row| row[at]).sum()
    }

    fn f1(&self, at: usize) -> f64 {
        part(2 * self.counts[at][at], self.support(at) + self.predicted(at))
    }
}

fn part(some: usize, all: usize) -> f64 {
    if all == 0 { 0.0 } else { some as f64 / all as f64 }
}

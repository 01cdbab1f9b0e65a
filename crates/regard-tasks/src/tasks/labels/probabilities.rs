//! The probability of every label for some examples, and what is measured of it.

use crate::metric::Confusion;
use crate::metric::judged::Judged;
use crate::metric::scores::Scores;
use crate::task::input::Input;
use crate::task::prediction::{Alternative, Prediction};
use crate::task::report::{PerExample, Report};
use crate::tasks::labels::labelings::descending;
use regard::Tensor;
use regard::tensor::CrossEntropy;
use regard_data::{Error, Result};

/// The probabilities of C labels for N examples.
pub(crate) struct LabelProbabilities<'a> {
    labels: &'a [String],
    /// Labels behind those that are only in what is true.
    unseen: Vec<String>,
    logits: Tensor,
    /// N × C
    probabilities: Vec<f32>,
}

/// The index of the greatest number; the first of equals.
pub(crate) fn argmax(numbers: &[f32]) -> usize {
    let greater = |best: usize, at: usize| if numbers[at] > numbers[best] { at } else { best };
    (0..numbers.len()).fold(0, greater)
}

/// The labels with the greatest probabilities, so many at most; the first of equals first.
pub(crate) fn likeliest(labels: &[String], probabilities: &[f32], n: usize) -> Vec<Alternative> {
    let order = descending(probabilities);
    let alternative = |&at: &usize| Alternative {
        output: labels[at].clone(),
        score: f64::from(probabilities[at]),
    };
    order.iter().take(n).map(alternative).collect()
}

/// Refuses numbers of a model, so many for each of some things, that are none: whoever reads NaN as a
/// probability is misled.
pub(crate) fn check_finite(numbers: &[f32], each: usize, thing: &str) -> Result<()> {
    match numbers.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(at) => Err(Error::invalid(format!(
            "the model gives no number for {thing} {}: what it reads is too large, or its training \
             diverged",
            at / each.max(1) + 1
        ))),
    }
}

/// As [`check_finite`], of logarithms, which may be −∞.
pub(crate) fn check_nan(log_probs: &[f32]) -> Result<()> {
    match log_probs.iter().any(|x| x.is_nan()) {
        false => Ok(()),
        true => Err(Error::invalid(
            "the model gives no number for a label: what it reads is too large, or its training diverged",
        )),
    }
}

impl<'a> LabelProbabilities<'a> {
    /// From logits `[N, C]`. Refuses what has no probability.
    pub(crate) fn new(labels: &'a [String], logits: Tensor) -> Result<Self> {
        let probabilities = logits.softmax(1)?.to_vec::<f32>()?;
        check_finite(&probabilities, labels.len(), "input")?;
        Ok(Self { labels, unseen: Vec::new(), logits, probabilities })
    }

    /// To be measured where labels are true that training has not seen.
    pub(crate) fn with_unseen(self, unseen: &[String]) -> Self {
        Self { unseen: unseen.to_vec(), ..self }
    }

    fn each(&self) -> impl Iterator<Item = &[f32]> {
        self.probabilities.chunks(self.labels.len().max(1))
    }

    /// The likeliest label of each.
    pub(crate) fn best(&self) -> Vec<usize> {
        self.each().map(argmax).collect()
    }

    fn measured(&self, truth: &[usize]) -> Result<(Scores, Confusion)> {
        let names = [self.labels, &self.unseen].concat();
        let confusion = Confusion::count(truth, &self.best(), &names)?;
        Ok((confusion.scores(self.loss(truth)?), confusion))
    }

    /// The mean of −ln p of what is true, over the examples whose label the model knows.
    fn loss(&self, truth: &[usize]) -> Result<f64> {
        let known = truth.iter().enumerate().filter(|(_, label)| **label < self.labels.len());
        let (rows, targets): (Vec<i64>, Vec<i64>) =
            known.map(|(row, &label)| (row as i64, label as i64)).unzip();
        if rows.is_empty() {
            return Ok(f64::NAN);
        }
        let n = rows.len();
        let logits = match n == truth.len() {
            true => self.logits.clone(),
            false => self.logits.rows(&Tensor::from_vec(rows, &[n])?)?,
        };
        let targets = Tensor::from_vec(targets, &[n])?;
        Ok(logits.cross_entropy(&targets, CrossEntropy::default())?.item()?)
    }

    /// How good they are; accuracy decides.
    pub(crate) fn scores(&self, truth: &[usize]) -> Result<Scores> {
        Ok(self.measured(truth)?.0)
    }

    /// How good they are, with all that can be said of examples that have these names.
    pub(crate) fn report(&self, inputs: &[String], truth: &[usize]) -> Result<Report> {
        let (scores, confusion) = self.measured(truth)?;
        let name = |label: usize| confusion.labels[label].clone();
        let outputs: Vec<String> = self.best().into_iter().map(name).collect();
        let samples = inputs.iter().zip(truth).zip(&outputs).take(3);
        let samples = samples.map(|((i, &t), o)| (i.clone(), name(t), o.clone())).collect();
        let right = truth.iter().zip(self.best()).map(|(&truth, best)| f64::from(truth == best));
        let each = Some(PerExample { measure: "accuracy".into(), values: right.collect() });
        let (examples, confusion) = (truth.len(), Some(confusion));
        Ok(Report { scores, examples, confusion, samples, each, outputs, ..Report::default() })
    }

    /// The likeliest labels of each example, so many at most, with their probabilities.
    pub(crate) fn n_best(&self, n: usize) -> Vec<Vec<Alternative>> {
        self.each().map(|row| likeliest(self.labels, row, n)).collect()
    }

    /// What was made of each example, of which these are the inputs, the lengths and the truth.
    pub(crate) fn judged(
        &self,
        inputs: &[String],
        lengths: &[usize],
        truth: &[usize],
    ) -> Vec<Judged> {
        let name = |label: usize| match label.checked_sub(self.labels.len()) {
            None => self.labels[label].clone(),
            Some(unseen) => self.unseen.get(unseen).cloned().unwrap_or_default(),
        };
        let one = |(index, row): (usize, &[f32])| {
            let (truth, output) = (truth[index], argmax(row));
            let likely = row.get(truth).map(|&p| f64::from(p.max(f32::MIN_POSITIVE)));
            Judged {
                index,
                input: inputs[index].clone(),
                truth: name(truth),
                output: name(output),
                loss: likely.map_or(f64::NAN, |p| -p.ln()),
                length: lengths[index],
                labels: vec![(name(truth), name(output))],
                numbers: None,
            }
        };
        self.each().enumerate().map(one).collect()
    }

    /// One prediction for each input, with the probability of every label.
    pub(crate) fn predictions(&self, inputs: &[Input]) -> Vec<Prediction> {
        let prediction = |(input, row): (&Input, &[f32])| {
            let each = self.labels.iter().zip(row);
            let each = each.map(|(label, &p)| (label.clone(), serde_json::json!(p)));
            let probabilities: serde_json::Map<String, serde_json::Value> = each.collect();
            Prediction {
                input: input.to_string(),
                output: self.labels[argmax(row)].clone(),
                details: serde_json::json!({ "probabilities": probabilities }),
            }
        };
        inputs.iter().zip(self.each()).map(prediction).collect()
    }
}

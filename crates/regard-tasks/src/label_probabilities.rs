//! The probability of every label for some examples, and what is measured of it.

use crate::metric::Confusion;
use crate::{Prediction, Report, Result, Scores};
use regard::Tensor;
use regard::tensor::CrossEntropy;

/// The probabilities of C labels for N examples.
pub(crate) struct LabelProbabilities<'a> {
    labels: &'a [String],
    logits: Tensor,
    /// N × C
    probabilities: Vec<f32>,
}

/// The index of the greatest number; the first of equals.
fn argmax(numbers: &[f32]) -> usize {
    let greater = |best: usize, at: usize| if numbers[at] > numbers[best] { at } else { best };
    (0..numbers.len()).fold(0, greater)
}

impl<'a> LabelProbabilities<'a> {
    /// From logits `[N, C]`.
    pub(crate) fn new(labels: &'a [String], logits: Tensor) -> Result<Self> {
        let probabilities = logits.softmax(1)?.to_vec::<f32>()?;
        Ok(Self { labels, logits, probabilities })
    }

    fn each(&self) -> impl Iterator<Item = &[f32]> {
        self.probabilities.chunks(self.labels.len().max(1))
    }

    /// The likeliest label of each.
    pub(crate) fn best(&self) -> Vec<usize> {
        self.each().map(argmax).collect()
    }

    fn measured(&self, truth: &[usize]) -> Result<(Scores, Confusion)> {
        let targets = truth.iter().map(|&label| label as i64).collect();
        let targets = Tensor::from_vec(targets, &[truth.len()])?;
        let loss = self.logits.cross_entropy(&targets, CrossEntropy::default())?.item()?;
        let confusion = Confusion::count(truth, &self.best(), self.labels)?;
        Ok((confusion.scores(loss), confusion))
    }

    /// How good they are; accuracy decides.
    pub(crate) fn scores(&self, truth: &[usize]) -> Result<Scores> {
        Ok(self.measured(truth)?.0)
    }

    /// How good they are, with all that can be said of examples that have these names.
    pub(crate) fn report(&self, inputs: &[String], truth: &[usize]) -> Result<Report> {
        let (scores, confusion) = self.measured(truth)?;
        let name = |label: usize| self.labels[label].clone();
        let outputs: Vec<String> = self.best().into_iter().map(name).collect();
        let samples = inputs.iter().zip(truth).zip(&outputs).take(3);
        let samples = samples.map(|((i, &t), o)| (i.clone(), name(t), o.clone())).collect();
        let (examples, confusion) = (truth.len(), Some(confusion));
        Ok(Report { scores, examples, confusion, samples, outputs, ..Report::default() })
    }

    /// One prediction for each input, with the probability of every label.
    pub(crate) fn predictions(&self, inputs: &[String]) -> Vec<Prediction> {
        let prediction = |(input, row): (&String, &[f32])| {
            let each = self.labels.iter().zip(row);
            let each = each.map(|(label, &p)| (label.clone(), serde_json::json!(p)));
            let probabilities: serde_json::Map<String, serde_json::Value> = each.collect();
            Prediction {
                input: input.clone(),
                output: self.labels[argmax(row)].clone(),
                details: serde_json::json!({ "probabilities": probabilities }),
            }
        };
        inputs.iter().zip(self.each()).map(prediction).collect()
    }
}

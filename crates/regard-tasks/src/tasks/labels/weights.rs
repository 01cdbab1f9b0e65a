//! How much each label counts while a model learns.

use crate::options::class_weights::ClassWeights;
use regard::attention::Reinforce;
use regard::models::{Classified, SequenceLabeler, Sequences};
use regard::tensor::CrossEntropy;
use regard::{DType, Mode, Tensor};
use regard_data::{Error, Result};

/// The weights of labels, by their numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LabelWeights(Vec<f64>);

impl LabelWeights {
    /// For these labels, of which training has these examples; none where all count the same.
    /// Refuses the weight of a label that there is not.
    pub(crate) fn new<'a>(
        option: &ClassWeights,
        labels: &[String],
        examples: impl IntoIterator<Item = &'a usize>,
    ) -> Result<Option<Self>> {
        let weights = match option {
            ClassWeights::None => return Ok(None),
            ClassWeights::Balanced => {
                let mut counts = vec![0usize; labels.len()];
                examples.into_iter().for_each(|&label| counts[label] += 1);
                balanced(&counts)
            }
            ClassWeights::ByLabel(named) => {
                if let Some(label) = named.keys().find(|label| !labels.contains(label)) {
                    return Err(Error::invalid(format!(
                        "`training.class_weights`: `{label}` is not among the {} labels of the \
                         training part",
                        labels.len()
                    )));
                }
                labels.iter().map(|label| named.get(label).copied().unwrap_or(1.0)).collect()
            }
        };
        Ok(Some(Self(weights)))
    }

    /// The mean loss of what was classified, each example counted as its target's weight says; where choices were drawn
    /// by chance, and REINFORCE trains them, with its loss, by the examples' own losses.
    pub(crate) fn attended_loss(
        weights: Option<&Self>,
        attended: &Classified,
        targets: Vec<i64>,
        rule: CrossEntropy,
        reinforce: &mut Option<Reinforce>,
    ) -> Result<Tensor> {
        let rows = Tensor::from_slice(&targets, &[targets.len()])?;
        let losses = attended.logits.cross_entropy_rows(&rows, rule)?;
        let loss = match weights {
            None => losses.mean_all()?,
            Some(weights) => weights.mean(&losses, &targets)?,
        };
        match (reinforce, &attended.log_prob) {
            (Some(reinforce), Some(log_prob)) => {
                let rewards = losses.scale(-1.0)?.detach();
                Ok(loss.add(&reinforce.loss(&rewards, log_prob, None)?)?)
            }
            _ => Ok(loss),
        }
    }

    /// The mean of losses `[N]`, each counted as its target's weight says; a target below 0 counts
    /// nothing.
    pub(crate) fn mean(&self, losses: &Tensor, targets: &[i64]) -> Result<Tensor> {
        let weight = |&target: &i64| match usize::try_from(target) {
            Ok(label) => self.0[label],
            Err(_) => 0.0,
        };
        let weights: Vec<f64> = targets.iter().map(weight).collect();
        let sum: f64 = weights.iter().sum();
        let weights = Tensor::from_vec(weights, &[targets.len()])?.to_dtype(losses.dtype())?;
        let scale = if sum > 0.0 { 1.0 / sum } else { 0.0 };
        Ok(losses.mul(&weights)?.sum_all()?.scale(scale)?)
    }

    /// What the mean over examples of these labels divides by: their weights, or how many they are.
    pub(crate) fn sum<'a>(
        weights: Option<&Self>,
        labels: impl IntoIterator<Item = &'a usize>,
    ) -> f64 {
        let weight = |&label: &usize| weights.map_or(1.0, |weights| weights.0[label]);
        labels.into_iter().map(weight).sum()
    }

    /// The loss of logits `[N, C]`, with these weights where there are some.
    pub(crate) fn loss(
        weights: Option<&Self>,
        logits: &Tensor,
        targets: Vec<i64>,
        rule: CrossEntropy,
    ) -> Result<Tensor> {
        let rows = Tensor::from_vec(targets.clone(), &[targets.len()])?;
        match weights {
            None => Ok(logits.cross_entropy(&rows, rule)?),
            Some(weights) => weights.mean(&logits.cross_entropy_rows(&rows, rule)?, &targets),
        }
    }

    /// The loss of a labeler for targets `[B, N]`, with these weights where there are some.
    pub(crate) fn sequence_loss(
        weights: Option<&Self>,
        labeler: &SequenceLabeler,
        sequences: &Sequences,
        targets: &Tensor,
        mode: Mode,
    ) -> Result<Tensor> {
        const NO_LABEL: i64 = -1;
        if weights.is_none() {
            return Ok(labeler.loss(sequences, targets, mode)?);
        }
        let logits = labeler.forward(sequences, mode)?;
        let (b, n, labels) = (logits.shape()[0], logits.shape()[1], logits.shape()[2]);
        let mut targets = targets.to_dtype(DType::I64)?.to_vec::<i64>()?;
        for (at, target) in targets.iter_mut().enumerate() {
            if at % n >= sequences.lengths.map_or(n, |lengths| lengths[at / n]) {
                *target = NO_LABEL;
            }
        }
        let rule = CrossEntropy {
            label_smoothing: labeler.config().label_smoothing,
            ignore_index: Some(NO_LABEL),
        };
        Self::loss(weights, &logits.reshape(&[b * n, labels])?, targets, rule)
    }
}

/// n / (k · count) of each label; 1 where there is none of it.
fn balanced(counts: &[usize]) -> Vec<f64> {
    let n = counts.iter().sum::<usize>() as f64;
    let k = counts.iter().filter(|&&count| count > 0).count() as f64;
    let weight = |&count: &usize| if count == 0 { 1.0 } else { n / (k * count as f64) };
    counts.iter().map(weight).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn balanced_weights_are_those_of_scikit_learn() {
        // compute_class_weight("balanced", classes=[0, 1, 2], y=[0] * 6 + [1] * 3 + [2])
        let expected = [10.0 / 18.0, 10.0 / 9.0, 10.0 / 3.0];
        for (weight, expected) in balanced(&[6, 3, 1]).iter().zip(expected) {
            assert!((weight - expected).abs() < 1e-12, "{weight} {expected}");
        }
    }

    #[test]
    fn a_weight_of_two_is_the_example_twice() {
        let rows = [[0.5f32, -1.0, 0.2], [1.5, 0.3, -0.7], [0.0, 2.0, 1.0]];
        let loss = |which: &[usize], targets: Vec<i64>, weights: Option<&LabelWeights>| {
            let logits: Vec<f32> = which.iter().flat_map(|&row| rows[row]).collect();
            let logits = Tensor::from_vec(logits, &[which.len(), 3]).unwrap();
            let rule = CrossEntropy { ignore_index: Some(-1), ..CrossEntropy::default() };
            LabelWeights::loss(weights, &logits, targets, rule).unwrap().item().unwrap()
        };
        let weights = LabelWeights(vec![1.0, 2.0, 1.0]);
        let weighted = loss(&[0, 1, 2], vec![0, 1, -1], Some(&weights));
        assert!((weighted - loss(&[0, 1, 1], vec![0, 1, 1], None)).abs() < 1e-6);
        assert!((weighted - loss(&[0, 1], vec![0, 1], None)).abs() > 1e-3);
    }
}

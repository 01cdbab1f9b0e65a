//! A model in training, with its data.

use crate::metric::scores::Scores;
use crate::task::model::Model;
use regard::Tensor;
use regard::attention::Reinforce;
use regard::tensor::Random;
use regard_data::Result;
use std::collections::BTreeMap;

/// A model in training, together with its training and validation examples. [`train`](crate::train::train)
/// runs its epochs.
pub trait Learner {
    /// The model.
    fn model(&self) -> &dyn Model;

    /// The batches of an epoch: shuffled indices into the training part, at most `batch` in each.
    fn batches(&self, batch: usize, random: &Random) -> Result<Vec<Vec<usize>>>;

    /// The loss of a batch, a scalar that [`Tensor::backward`] takes the gradients of.
    fn loss(&mut self, batch: &[usize], random: &Random) -> Result<Tensor>;

    /// What the mean that is the loss of a batch divides by: the number of its examples, unless a
    /// task says otherwise. Where several processes share a batch, their losses weigh by this.
    fn weight(&self, batch: &[usize]) -> f64 {
        batch.len() as f64
    }

    /// The metrics on the validation part; the first decides which epoch is the best.
    fn validate(&self) -> Result<Scores>;

    /// Prepares the model for its first step, such as by pretrained vectors; gives what is worth
    /// saying of it. Not called where a training is resumed.
    fn start(&mut self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Inputs for [`Model::predict`] out of the validation part, as text.
    fn samples(&self, n: usize) -> Vec<String>;

    /// What should be known before hours are spent, in sentences: labels of the validation part that
    /// training does not have, rows that were left out.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What trains its hard attention, where that samples.
    fn reinforce(&self) -> Option<&Reinforce> {
        None
    }

    /// The same, to be trained or restored.
    fn reinforce_mut(&mut self) -> Option<&mut Reinforce> {
        None
    }

    /// What a checkpoint must hold beside the parameters and the optimizer's state: the baseline of
    /// REINFORCE, where there is one.
    fn state(&self) -> Result<BTreeMap<String, Tensor>> {
        Ok(self.reinforce().map_or(Ok(BTreeMap::new()), Reinforce::state)?)
    }

    /// Restores what [`Learner::state`] gave, from a checkpoint.
    fn set_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        match self.reinforce_mut() {
            Some(reinforce) => Ok(reinforce.set_state(state)?),
            None => Ok(()),
        }
    }
}

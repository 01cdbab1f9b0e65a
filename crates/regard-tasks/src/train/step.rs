//! One step: the losses of some batches, their gradients, the optimizer.

use super::ranks::{Sum, part};
use super::trainer::Trainer;
use regard::tensor::Random;
use regard_data::{Error, Result};

impl Trainer<'_> {
    /// One step on the gradients of a group of batches. Gives whether a rank wants to stop.
    pub(super) fn step(&mut self, group: &[Vec<usize>], rate: f64, stop: bool) -> Result<bool> {
        let together = self.ranks.size() > 1;
        let mut sum = self.own(group, stop)?;
        if together {
            let reinforce = self.learner.reinforce_mut();
            sum.all_reduce(self.ranks, &self.parameters, reinforce)?;
            self.check_loss(sum.loss)?;
        }
        self.state.loss += sum.loss;
        if let Some(gradients) = &sum.gradients {
            self.optimizer.step(gradients, rate)?;
        }
        self.state.step += 1;
        self.state.batch += group.len();
        if let Some(journal) = &mut self.journal {
            journal.step(self.state.step, sum.loss / group.len() as f64, rate)?;
        }
        if let Some(average) = &mut self.average {
            average.take(self.state.step)?;
        }
        Ok(sum.stop)
    }

    /// The gradients of this rank's share of a group of batches.
    fn own(&mut self, group: &[Vec<usize>], stop: bool) -> Result<Sum> {
        let mut sum = Sum { gradients: None, loss: 0.0, share: 0.0, stop };
        for (i, batch) in group.iter().enumerate() {
            let own = part(batch, self.ranks);
            let share = match self.ranks.size() {
                1 => 1.0,
                _ => self.share(own, batch),
            };
            if share == 0.0 {
                continue;
            }
            let loss = self.learner.loss(own, &self.random(i))?;
            let value = loss.item()?;
            if self.ranks.size() == 1 {
                self.check_loss(value)?;
            }
            sum.loss += value * share;
            sum.share += share / group.len() as f64;
            // A model with nothing to learn, such as a kernel of fixed width, takes no step.
            if !loss.has_gradient() {
                continue;
            }
            let gradients = loss.scale(share / group.len() as f64)?.backward()?;
            match &mut sum.gradients {
                None => sum.gradients = Some(gradients),
                Some(sum) => sum.add(gradients)?,
            }
        }
        Ok(sum)
    }

    /// How much the loss of a part of a batch counts in that of the batch.
    fn share(&self, part: &[usize], batch: &[usize]) -> f64 {
        match self.learner.weight(batch) {
            0.0 => 0.0,
            whole => self.learner.weight(part) / whole,
        }
    }

    /// The random numbers of a batch: every rank has others.
    fn random(&self, batch: usize) -> Random {
        let name = format!("step {} batch {batch}", self.state.step);
        match (self.ranks.size(), self.ranks.rank()) {
            (1, _) => Random::named(self.config.seed, &name),
            (_, rank) => Random::named(self.config.seed, &format!("{name} rank {rank}")),
        }
    }

    fn check_loss(&self, loss: f64) -> Result<()> {
        if loss.is_finite() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the loss became {loss} at step {} of epoch {}; a lower `training.learning_rate` or \
             `training.clip_norm` may help",
            self.state.step + 1,
            self.state.epoch + 1
        )))
    }
}

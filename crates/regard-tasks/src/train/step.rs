//! One step: the losses of some batches, their gradients, the optimizer.

use super::ranks::{Sum, part};
use super::trainer::Trainer;
use regard::Tensor;
use regard::tensor::{Device, Random, with_precision};
use regard_data::{Error, Result};

/// A step whose losses are not counted yet: a GPU is still at it, and whoever reads them waits for it.
pub(super) struct Uncounted {
    /// The losses, each with its share of the step's.
    losses: Vec<(Tensor, f64)>,
    /// What was read of them already.
    read: f64,
    step: u64,
    batches: usize,
    rate: f64,
}

impl Uncounted {
    /// How many batches it took.
    pub(super) fn batches(&self) -> usize {
        self.batches
    }
}

impl Trainer<'_> {
    /// One step on the gradients of a group of batches. Gives whether a rank wants to stop.
    pub(super) fn step(&mut self, group: &[Vec<usize>], rate: f64, stop: bool) -> Result<bool> {
        let together = self.ranks.size() > 1;
        let (mut sum, losses) = self.own(group, stop)?;
        if together {
            let reinforce = self.learner.reinforce_mut();
            sum.all_reduce(self.ranks, &self.parameters, reinforce)?;
            self.check_loss(sum.loss, self.state.step + 1)?;
        }
        if let Some(gradients) = &sum.gradients {
            self.optimizer.step(gradients, rate)?;
        }
        self.state.step += 1;
        self.state.batch += group.len();
        if let Some(average) = &mut self.average {
            average.take(self.state.step)?;
        }
        // The host prepares this step while a GPU is at the one before, whose loss it reads now.
        self.count_losses()?;
        let (step, waits) = (self.state.step, !losses.is_empty());
        self.uncounted =
            Some(Uncounted { losses, read: sum.loss, step, batches: group.len(), rate });
        if !waits {
            self.count_losses()?;
        }
        Ok(sum.stop)
    }

    /// Reads and counts the losses of the last step, where that was not done.
    pub(super) fn count_losses(&mut self) -> Result<()> {
        let Some(Uncounted { losses, read, step, batches, rate }) = self.uncounted.take() else {
            return Ok(());
        };
        let mut sum = read;
        for (loss, share) in losses {
            let value = loss.item()?;
            self.check_loss(value, step)?;
            sum += value * share;
        }
        self.state.loss += sum;
        match &mut self.journal {
            Some(journal) => journal.step(step, sum / batches as f64, rate),
            None => Ok(()),
        }
    }

    /// The gradients of this rank's share of a group of batches, and the losses that lie on a GPU, with their shares.
    fn own(&mut self, group: &[Vec<usize>], stop: bool) -> Result<(Sum, Vec<(Tensor, f64)>)> {
        let mut sum = Sum { gradients: None, loss: 0.0, share: 0.0, stop };
        let mut unread = Vec::new();
        for (i, batch) in group.iter().enumerate() {
            let own = part(batch, self.ranks);
            let share = match self.ranks.size() {
                1 => 1.0,
                _ => self.share(own, batch),
            };
            if share == 0.0 {
                continue;
            }
            let random = self.random(i);
            let precision = self.config.precision.of_products();
            let loss = with_precision(precision, || self.learner.loss(own, &random))?;
            if self.ranks.size() == 1 && loss.device() != Device::Cpu {
                unread.push((loss.detach(), share));
            } else {
                let value = loss.item()?;
                if self.ranks.size() == 1 {
                    self.check_loss(value, self.state.step + 1)?;
                }
                sum.loss += value * share;
            }
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
        Ok((sum, unread))
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

    fn check_loss(&self, loss: f64, step: u64) -> Result<()> {
        if loss.is_finite() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the loss became {loss} at step {step} of epoch {}; a lower `training.learning_rate` or \
             `training.clip_norm` may help",
            self.state.epoch + 1
        )))
    }
}

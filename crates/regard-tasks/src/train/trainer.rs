//! The loop: batches, steps, validation, checkpoints.

use super::average::Average;
use super::callback::{Callback, Plan, Progress};
use super::journal::Journal;
use super::ranks::{Alone, Ranks, share};
use super::start::is_frozen;
use super::step::Uncounted;
use crate::metric::scores::Scores;
use crate::options::training::TrainingConfig;
use crate::run::checkpoint::{Checkpoint, TrainerState};
use crate::run::folder::Run;
use crate::run::record::Record;
use crate::run::snapshot::SAMPLES;
use crate::run::snapshot::Snapshot;
use crate::task::learner::Learner;
use regard::tensor::{Optimizer, Parameter, Random, Schedule};
use regard_data::unwatched;
use regard_data::{Error, Result};

/// How a training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All epochs are done.
    Done,
    /// It did not get better for so long that it stopped by itself.
    Early,
    /// It was stopped; a checkpoint keeps its place.
    Stopped,
}

/// Trains a model in a run's folder; goes on from its last checkpoint where it has one. Stopped
/// and resumed, or straight through: the same bits in every file but `clock.json`. Refuses a folder
/// that another process trains in.
pub fn train(
    learner: &mut dyn Learner,
    config: &TrainingConfig,
    run: &Run,
    callback: &mut dyn Callback,
) -> Result<Ended> {
    train_together(learner, config, Some(run), &mut Alone, callback)
}

/// Trains one model by several processes: each takes its share of every batch, and all make the same
/// step on the sum of their gradients, weighted by what their losses are means over
/// ([`Learner::weight`]). Rank 0 has the run's folder, validates and writes; the others have none.
/// All of them have read the same data under the same options.
///
/// Sums are added up in another order than by one process, and every rank draws random numbers of
/// its own (dropout, augmentation): without such the parameters are those of one process but for
/// rounding.
pub fn train_together(
    learner: &mut dyn Learner,
    config: &TrainingConfig,
    run: Option<&Run>,
    ranks: &mut dyn Ranks,
    callback: &mut dyn Callback,
) -> Result<Ended> {
    config.check()?;
    let _lock = run.map(Run::lock).transpose()?;
    let mut trainer = Trainer::new(learner, config, run, ranks)?;
    trainer.begin(callback)?;
    trainer.begin_events()?;
    let ended = trainer.run(callback)?;
    if let Some(journal) = &mut trainer.journal {
        journal.draw()?;
    }
    // Whoever goes on from here finds all files written.
    trainer.agree(false)?;
    Ok(ended)
}

pub(super) struct Trainer<'a> {
    pub(super) learner: &'a mut dyn Learner,
    pub(super) config: &'a TrainingConfig,
    pub(super) ranks: &'a mut dyn Ranks,
    pub(super) optimizer: Optimizer,
    /// What the optimizer moves.
    pub(super) parameters: Vec<Parameter>,
    pub(super) average: Option<Average>,
    pub(super) state: TrainerState,
    /// The last step, where its losses are not in the state yet.
    pub(super) uncounted: Option<Uncounted>,
    /// What is written; rank 0 has it.
    pub(super) journal: Option<Journal<'a>>,
}

impl<'a> Trainer<'a> {
    fn new(
        learner: &'a mut dyn Learner,
        config: &'a TrainingConfig,
        run: Option<&'a Run>,
        ranks: &'a mut dyn Ranks,
    ) -> Result<Self> {
        let all = learner.model().parameters();
        let mut optimizer = Optimizer::new(all, config.rule())?;
        if config.clip_norm > 0.0 {
            optimizer = optimizer.clipped(config.clip_norm)?;
        }
        optimizer = optimizer.without(&|name| is_frozen(name, &config.freeze));
        let mut parameters = all.all();
        parameters.retain(|parameter| !is_frozen(parameter.name(), &config.freeze));
        let average = (config.ema_decay > 0.0).then(|| Average::new(all, config.ema_decay));
        let state = TrainerState { seed: config.seed, ..TrainerState::default() };
        let journal = run.map(Journal::new).transpose()?;
        let uncounted = None;
        Ok(Self {
            learner,
            config,
            ranks,
            optimizer,
            parameters,
            average,
            state,
            uncounted,
            journal,
        })
    }

    /// The parameters as they are, and the place.
    fn weights(&self) -> Checkpoint {
        let mut checkpoint = Checkpoint::new(self.state.clone());
        checkpoint.put("model", self.learner.model().parameters().tensors());
        checkpoint
    }

    /// All that going on needs.
    pub(super) fn whole(&self) -> Result<Checkpoint> {
        let mut checkpoint = self.weights();
        checkpoint.put("optimizer", self.optimizer.state()?);
        checkpoint.put("learner", self.learner.state()?);
        if let Some(average) = &self.average {
            checkpoint.put("average", average.state());
        }
        Ok(checkpoint)
    }

    fn checkpoint(&mut self) -> Result<()> {
        if self.journal.is_none() {
            return Ok(());
        }
        let checkpoint = self.whole()?;
        match &mut self.journal {
            Some(journal) => journal.checkpoint(&checkpoint),
            None => Ok(()),
        }
    }

    /// The batches of an epoch, in groups whose gradients are added up.
    fn batches(&self, epoch: usize) -> Result<Vec<Vec<usize>>> {
        let random = Random::named(self.config.seed, &format!("epoch {epoch}"));
        let batches = self.learner.batches(self.config.batch_size, &random)?;
        if batches.is_empty() {
            return Err(Error::invalid("the training part holds no examples"));
        }
        Ok(batches)
    }

    fn run(&mut self, callback: &mut dyn Callback) -> Result<Ended> {
        // How many there are is asked of the first epoch, wherever the run is resumed.
        let batches = self.batches(0)?.len();
        callback.begin(&Plan {
            epochs: self.config.epochs,
            done: self.state.epoch,
            batches,
            batch: self.state.batch,
            parameters: self.learner.model().learned(),
        });
        let steps = self.config.epochs * batches.div_ceil(self.config.accumulation_steps);
        let schedule = self.config.schedule(steps as u64);
        schedule.check()?;
        while self.state.epoch < self.config.epochs {
            if self.is_out_of_patience() {
                return Ok(Ended::Early);
            }
            let batches = self.batches(self.state.epoch)?;
            if self.epoch(&batches, &schedule, callback)? == Ended::Stopped {
                return self.stop();
            }
            // The state still says that validation is to come: whoever stops it comes back to it.
            let loss = self.state.loss / batches.len() as f64;
            if self.validation_is_due() {
                let rate = self.rate(&schedule, self.state.step.saturating_sub(1));
                match self.validate() {
                    Ok(scores) => callback.epoch(&self.validated(scores, loss, rate)?),
                    Err(Error::Stopped) => return self.stop(),
                    Err(error) => return Err(error),
                }
            } else {
                self.next_epoch();
            }
            if self.agree(callback.stop())? && self.state.epoch < self.config.epochs {
                return self.stop();
            }
        }
        Ok(Ended::Done)
    }

    /// Keeps the place.
    fn stop(&mut self) -> Result<Ended> {
        if let Some(journal) = &mut self.journal {
            journal.rest();
        }
        self.checkpoint()?;
        Ok(Ended::Stopped)
    }

    /// What is left of an epoch's batches.
    fn epoch(
        &mut self,
        batches: &[Vec<usize>],
        schedule: &Schedule,
        callback: &mut dyn Callback,
    ) -> Result<Ended> {
        let (minutes, epochs) = (self.config.checkpoint_minutes, self.config.epochs);
        if let Some(journal) = &mut self.journal {
            journal.begin_epoch();
        }
        for group in batches[self.state.batch..].chunks(self.config.accumulation_steps) {
            let rate = self.rate(schedule, self.state.step);
            // Alone one stops after the step; together, where all have heard of it.
            let together = self.ranks.size() > 1;
            let stop = self.step(group, rate, together && callback.stop())?;
            if self.uncounted.as_ref().is_some_and(|step| step.batches() == self.state.batch) {
                // There is no other loss to tell.
                self.count_losses()?;
            }
            let counted = self.state.batch - self.uncounted.as_ref().map_or(0, Uncounted::batches);
            let progress = Progress {
                epoch: self.state.epoch + 1,
                batch: self.state.batch,
                batches: batches.len(),
                examples: group.iter().map(Vec::len).sum(),
                loss: self.state.loss / counted as f64,
                rate,
            };
            callback.batch(&progress);
            if let Some(journal) = &mut self.journal {
                journal.progress(&progress, group.len(), epochs)?;
            }
            if stop || !together && callback.stop() {
                self.count_losses()?;
                return Ok(Ended::Stopped);
            }
            if self.journal.as_ref().is_some_and(|journal| journal.is_due(minutes)) {
                self.count_losses()?;
                self.checkpoint()?;
            }
        }
        self.count_losses()?;
        Ok(Ended::Done)
    }

    /// The rate of a step.
    fn rate(&self, schedule: &Schedule, step: u64) -> f64 {
        let cut = self.state.plateau.as_ref().map_or(1.0, |plateau| plateau.rate);
        schedule.rate(step) * cut
    }

    fn next_epoch(&mut self) {
        let state = &mut self.state;
        (state.epoch, state.batch, state.loss) = (state.epoch + 1, 0, 0.0);
    }

    /// Whether the epoch just done is one to validate after.
    fn validation_is_due(&self) -> bool {
        let epoch = self.state.epoch + 1;
        epoch.is_multiple_of(self.config.validate_every) || epoch == self.config.epochs
    }

    fn is_out_of_patience(&self) -> bool {
        self.config.patience > 0 && self.state.waited >= self.config.patience
    }

    /// Begins what TensorBoard reads, where it is wanted and there is something left to tell.
    fn begin_events(&mut self) -> Result<()> {
        match &mut self.journal {
            Some(journal) if self.config.tensorboard && self.state.epoch < self.config.epochs => {
                journal.begin_events(self.state.step)
            }
            _ => Ok(()),
        }
    }

    /// Whether one of the ranks says so.
    fn agree(&mut self, own: bool) -> Result<bool> {
        let mut count = vec![f32::from(u8::from(own))];
        self.ranks.all_reduce(&mut count)?;
        Ok(count[0] > 0.0)
    }

    /// The measures on the validation part, which rank 0 tells the others.
    fn validate(&mut self) -> Result<Scores> {
        if self.ranks.size() == 1 {
            return self.averaged(|trainer| trainer.learner.validate());
        }
        let own = (self.ranks.rank() == 0).then(|| {
            match self.averaged(|trainer| trainer.learner.validate()) {
                Ok(scores) => serde_json::to_vec(&scores).map_err(|error| error.to_string()),
                Err(Error::Stopped) => Ok(Vec::new()),
                Err(error) => Err(error.to_string()),
            }
        });
        let told = share(self.ranks, own)?;
        if told.is_empty() {
            return Err(Error::Stopped);
        }
        serde_json::from_slice(&told).map_err(|error| Error::invalid(error.to_string()))
    }

    /// All that is written after an epoch was validated.
    fn validated(&mut self, scores: Scores, loss: f64, rate: f64) -> Result<Record> {
        self.check_diverged(&scores)?;
        self.next_epoch();
        let state = &mut self.state;
        let best = scores.beats_or_ties(state.best, state.best_loss);
        let (_, value) = scores.first();
        if best {
            (state.best, state.best_loss, state.waited) = (Some(value), scores.loss(), 0);
        } else {
            state.waited += 1;
        }
        if state.plateau.is_none() {
            state.plateau = self.config.plateau(scores.better);
        }
        if let Some(plateau) = &mut state.plateau {
            plateau.observe(value);
        }
        let (epoch, step) = (state.epoch, state.step);
        let record = Record { epoch, step, loss, rate, seconds: 0.0, validation: scores, best };
        let Some(journal) = &mut self.journal else { return Ok(record) };
        journal.rest();
        let record = journal.timed(record)?;
        if best {
            self.averaged(|trainer| match &trainer.journal {
                Some(journal) => journal.best(&trainer.weights()),
                None => Ok(()),
            })?;
        }
        let taken = self.keep_samples(epoch);
        if let Some(journal) = &mut self.journal {
            journal.record(taken)?;
        }
        self.checkpoint()?;
        Ok(record)
    }

    /// Refuses an epoch whose loss on the validation part is beyond all numbers: no such model is the
    /// best of anything.
    fn check_diverged(&self, scores: &Scores) -> Result<()> {
        let loss = ["loss", "perplexity", "MSE"].into_iter();
        let infinite = loss.filter_map(|name| Some((name, scores.get(name)?)));
        match infinite.into_iter().find(|(_, value)| value.is_infinite()) {
            None => Ok(()),
            Some((name, value)) => Err(Error::invalid(format!(
                "the validation part's {name} is {value} after epoch {}: the training diverged; a \
                 lower `training.learning_rate` or `training.clip_norm` may help",
                self.state.epoch + 1
            ))),
        }
    }

    /// What the model makes of a few samples now; none where a sample cannot be shown, which ends no
    /// training. Whoever wants to stop is heard afterwards: the checkpoint says that they were kept.
    fn keep_samples(&self, epoch: usize) -> Option<Snapshot> {
        let samples = self.learner.samples(SAMPLES);
        let take = |trainer: &Self| Snapshot::take(epoch, trainer.learner.model(), &samples);
        unwatched(|| self.averaged(take)).ok()
    }

    /// With the running mean of the parameters in place, where one is kept.
    fn averaged<R>(&self, run: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        match &self.average {
            Some(average) => average.with(|| run(self)),
            None => run(self),
        }
    }
}

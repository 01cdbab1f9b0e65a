//! The loop: batches, steps, validation, checkpoints.

use super::average::Average;
use super::clock::Clock;
use super::curves::curves;
use super::events::EventFile;
use super::start::{is_frozen, prepare};
use super::{Callback, Checkpoint, Plan, Progress, Record, TrainerState, TrainingConfig};
use crate::{Error, Learner, Result, Run, Scores};
use regard::tensor::{Gradients, Optimizer, Random, Schedule};
use std::time::{Duration, Instant};

/// How often the curves are drawn anew while a model learns: a picture may cost more than an epoch.
const DRAWING: Duration = Duration::from_secs(5);

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
    config.check()?;
    let _lock = run.lock()?;
    let mut trainer = Trainer::new(learner, config, run)?;
    trainer.resume_or_start(callback)?;
    trainer.begin_events()?;
    let ended = trainer.run(callback)?;
    trainer.draw()?;
    Ok(ended)
}

struct Trainer<'a> {
    learner: &'a mut dyn Learner,
    config: &'a TrainingConfig,
    run: &'a Run,
    optimizer: Optimizer,
    average: Option<Average>,
    state: TrainerState,
    records: Vec<Record>,
    clock: Clock,
    /// What TensorBoard reads, where it is wanted.
    events: Option<EventFile>,
    drawn: Instant,
    /// When the last checkpoint was.
    written: Instant,
}

impl<'a> Trainer<'a> {
    fn new(learner: &'a mut dyn Learner, config: &'a TrainingConfig, run: &'a Run) -> Result<Self> {
        let parameters = learner.model().parameters();
        let mut optimizer = Optimizer::new(parameters, config.rule())?;
        if config.clip > 0.0 {
            optimizer = optimizer.clipped(config.clip)?;
        }
        optimizer = optimizer.without(&|name| is_frozen(name, &config.freeze));
        let average = (config.average > 0.0).then(|| Average::new(parameters, config.average));
        let state = TrainerState { seed: config.seed, ..TrainerState::default() };
        let (records, clock, now) = (Vec::new(), Clock::resume(run, 0)?, Instant::now());
        let (drawn, written) = (now, now);
        let events = None;
        Ok(Self {
            learner,
            config,
            run,
            optimizer,
            average,
            state,
            records,
            clock,
            events,
            drawn,
            written,
        })
    }

    /// Begins what TensorBoard reads, where it is wanted and there is something left to tell.
    fn begin_events(&mut self) -> Result<()> {
        if self.config.tensorboard && self.state.epoch < self.config.epochs {
            self.events = Some(EventFile::begin(self.run, self.state.step)?);
        }
        Ok(())
    }

    /// Goes back to the last checkpoint; where there is none, begins from what the options name.
    fn resume_or_start(&mut self, callback: &mut dyn Callback) -> Result<()> {
        let path = self.run.path("last.safetensors");
        if !path.exists() {
            return self.start(callback);
        }
        let checkpoint = Checkpoint::read(&path)?;
        let refuse = |error: Error| Error::file(&path, error);
        checkpoint.set_parameters(self.learner.model().parameters()).map_err(refuse)?;
        self.optimizer.set_state(&checkpoint.group("optimizer"))?;
        self.learner.set_state(&checkpoint.group("learner")).map_err(refuse)?;
        if let Some(average) = &mut self.average {
            average.set_state(&checkpoint.group("average")).map_err(refuse)?;
        }
        self.state = checkpoint.state;
        if self.state.seed != self.config.seed {
            let what = format!("began with the seed {}", self.state.seed);
            return Err(Error::file(&path, what));
        }
        self.records = Record::read(self.run, self.state.epoch)?;
        self.clock = Clock::resume(self.run, self.state.epoch)?;
        Ok(())
    }

    fn start(&mut self, callback: &mut dyn Callback) -> Result<()> {
        prepare(self.learner, self.config, callback)?;
        if let Some(average) = &mut self.average {
            *average = Average::new(self.learner.model().parameters(), self.config.average);
        }
        Ok(())
    }

    /// The parameters as they are, and the place.
    fn weights(&self) -> Checkpoint {
        let mut checkpoint = Checkpoint::new(self.state.clone());
        checkpoint.put("model", self.learner.model().parameters().tensors());
        checkpoint
    }

    /// All that going on needs.
    fn checkpoint(&mut self) -> Result<()> {
        let mut checkpoint = self.weights();
        checkpoint.put("optimizer", self.optimizer.state()?);
        checkpoint.put("learner", self.learner.state()?);
        if let Some(average) = &self.average {
            checkpoint.put("average", average.state());
        }
        self.clock.write(self.run)?;
        checkpoint.write(&self.run.path("last.safetensors"))?;
        self.written = Instant::now();
        Ok(())
    }

    /// The batches of an epoch, in groups whose gradients are added up.
    fn batches(&self, epoch: usize) -> Result<Vec<Vec<usize>>> {
        let random = Random::named(self.config.seed, &format!("epoch {epoch}"));
        let batches = self.learner.batches(self.config.batch, &random)?;
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
            parameters: self.learner.model().parameters().numel(),
        });
        let steps = self.config.epochs * batches.div_ceil(self.config.accumulate);
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
                match self.averaged(|trainer| trainer.learner.validate()) {
                    Ok(scores) => callback.epoch(&self.validated(scores, loss, rate)?),
                    Err(Error::Stopped) => return self.stop(),
                    Err(error) => return Err(error),
                }
            } else {
                self.next_epoch();
            }
            if callback.stop() && self.state.epoch < self.config.epochs {
                return self.stop();
            }
        }
        Ok(Ended::Done)
    }

    /// Keeps the place.
    fn stop(&mut self) -> Result<Ended> {
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
        let minutes = self.config.checkpoint_minutes;
        for group in batches[self.state.batch..].chunks(self.config.accumulate) {
            let rate = self.rate(schedule, self.state.step);
            self.step(group, rate)?;
            callback.batch(&Progress {
                epoch: self.state.epoch + 1,
                batch: self.state.batch,
                batches: batches.len(),
                examples: group.iter().map(Vec::len).sum(),
                loss: self.state.loss / self.state.batch as f64,
                rate,
            });
            if callback.stop() {
                return Ok(Ended::Stopped);
            }
            if minutes > 0.0 && self.written.elapsed().as_secs_f64() > 60.0 * minutes {
                self.checkpoint()?;
            }
        }
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

    /// One step on the gradients of a group of batches.
    fn step(&mut self, group: &[Vec<usize>], rate: f64) -> Result<()> {
        let mut sum: Option<Gradients> = None;
        let before = self.state.loss;
        for (i, batch) in group.iter().enumerate() {
            let name = format!("step {} batch {i}", self.state.step);
            let random = Random::named(self.config.seed, &name);
            let loss = self.learner.loss(batch, &random)?;
            let value = loss.item()?;
            if !value.is_finite() {
                return Err(Error::invalid(format!(
                    "the loss became {value} at step {} of epoch {}; a lower `training.rate` or \
                     `training.clip` may help",
                    self.state.step + 1,
                    self.state.epoch + 1
                )));
            }
            self.state.loss += value;
            // A model with nothing to learn, such as a kernel of fixed width, takes no step.
            if !loss.has_gradient() {
                continue;
            }
            let gradients = loss.scale(1.0 / group.len() as f64)?.backward()?;
            match &mut sum {
                None => sum = Some(gradients),
                Some(sum) => sum.add(gradients)?,
            }
        }
        if let Some(gradients) = sum {
            self.optimizer.step(&gradients, rate)?;
        }
        self.state.step += 1;
        self.state.batch += group.len();
        if let Some(events) = &mut self.events {
            let loss = (self.state.loss - before) / group.len() as f64;
            events.step(self.state.step, loss, rate)?;
        }
        if let Some(average) = &mut self.average {
            average.take(self.state.step)?;
        }
        Ok(())
    }

    /// All that is written after an epoch was validated.
    fn validated(&mut self, scores: Scores, loss: f64, rate: f64) -> Result<Record> {
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
        let seconds = self.clock.epoch(epoch);
        let record = Record { epoch, step, loss, rate, seconds, validation: scores, best };
        self.records.push(record.clone());
        if let Some(events) = &mut self.events {
            events.epoch(&record)?;
        }
        if best {
            self.averaged(|trainer| {
                trainer.weights().write(&trainer.run.path("best.safetensors"))
            })?;
        }
        Record::write(self.run, &self.records)?;
        if self.records.len() == 1 || self.drawn.elapsed() > DRAWING {
            self.draw()?;
        }
        self.checkpoint()?;
        Ok(record)
    }

    fn draw(&mut self) -> Result<()> {
        if !self.records.is_empty() {
            let svg = curves(&self.run.name(), &self.records);
            self.run.write("curves.svg", svg.as_bytes())?;
        }
        self.drawn = Instant::now();
        Ok(())
    }

    /// With the running mean of the parameters in place, where one is kept.
    fn averaged<R>(&self, run: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        match &self.average {
            Some(average) => average.with(|| run(self)),
            None => run(self),
        }
    }
}

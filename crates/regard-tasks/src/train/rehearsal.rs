//! A training that is tried and leaves nothing behind.

use super::callback::{Callback, Plan};
use super::start::prepare;
use crate::options::training::TrainingConfig;
use crate::task::learner::Learner;
use regard::tensor::{Optimizer, Random};
use regard_data::{Error, Result};
use std::time::{Duration, Instant};

/// What a training would take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rehearsal {
    /// How long it would be.
    pub plan: Plan,
    /// Whole batches that were tried; none where one alone would have taken too long.
    pub tried: usize,
    /// Examples of the batch that was tried last.
    pub examples: usize,
    /// Seconds for a batch, on average over those that were tried; where none was, by its examples.
    pub seconds: f64,
}

/// How long batches are tried.
const LONGEST: Duration = Duration::from_millis(800);
/// How many are tried at most.
const MOST: usize = 20;

/// Does all that [`train`](crate::train::train) does before the first epoch, and then a few steps, spread
/// over an epoch, for about a second; writes no file. The model is changed by it: it is of no more use.
pub fn rehearse(
    learner: &mut dyn Learner,
    config: &TrainingConfig,
    callback: &mut dyn Callback,
) -> Result<Rehearsal> {
    config.check()?;
    prepare(learner, config, callback)?;
    let random = Random::named(config.seed, "epoch 0");
    let batches = learner.batches(config.batch_size, &random)?;
    if batches.is_empty() {
        return Err(Error::invalid("the training part holds no examples"));
    }
    let parameters = learner.model().parameters();
    let plan = Plan {
        epochs: config.epochs,
        done: 0,
        batches: batches.len(),
        batch: 0,
        parameters: learner.model().learned(),
    };
    let mut optimizer = Optimizer::new(parameters, config.rule())?;
    let mut step = |examples: &[usize], at: usize| -> Result<Duration> {
        let begun = Instant::now();
        let random = Random::named(config.seed, &format!("step {at} batch 0"));
        let loss = learner.loss(examples, &random)?;
        if loss.has_gradient() {
            optimizer.step(&loss.backward()?, config.learning_rate)?;
        }
        if callback.stop() {
            return Err(Error::Stopped);
        }
        Ok(begun.elapsed())
    };
    let begun = Instant::now();
    // A large model's batch can take minutes: so much of it as there is time for tells how long.
    let mut part = 1;
    while part < batches[0].len() {
        let took = step(&batches[0][..part], 0)?.as_secs_f64();
        let next = (part * 4).min(batches[0].len());
        let all = batches[0].len() as f64 / part as f64;
        if begun.elapsed().as_secs_f64() + took * next as f64 / part as f64 > LONGEST.as_secs_f64()
        {
            return Ok(Rehearsal { plan, tried: 0, examples: part, seconds: took * all });
        }
        part = next;
    }
    let (mut tried, mut took) = (0, Duration::ZERO);
    for batch in batches.iter().step_by(batches.len().div_ceil(MOST)) {
        took += step(batch, tried)?;
        tried += 1;
        if begun.elapsed() > LONGEST {
            break;
        }
    }
    let seconds = took.as_secs_f64() / tried as f64;
    Ok(Rehearsal { plan, tried, examples: batches[0].len(), seconds })
}

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
    /// Batches that were tried.
    pub tried: usize,
    /// Seconds for a batch, on average over those that were tried.
    pub seconds: f64,
}

/// How long batches are tried.
const LONGEST: Duration = Duration::from_secs(3);
/// How many are tried at most.
const MOST: usize = 20;

/// Does all that [`train`](crate::train::train) does before the first epoch, and then a few steps, spread
/// over an epoch; writes no file. The model is changed by it: it is of no more use.
pub fn rehearse(
    learner: &mut dyn Learner,
    config: &TrainingConfig,
    callback: &mut dyn Callback,
) -> Result<Rehearsal> {
    config.check()?;
    prepare(learner, config, callback)?;
    let random = Random::named(config.seed, "epoch 0");
    let batches = learner.batches(config.batch, &random)?;
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
    let begun = Instant::now();
    let mut tried = 0;
    for batch in batches.iter().step_by(batches.len().div_ceil(MOST)) {
        let random = Random::named(config.seed, &format!("step {tried} batch 0"));
        let loss = learner.loss(batch, &random)?;
        if loss.has_gradient() {
            optimizer.step(&loss.backward()?, config.rate)?;
        }
        tried += 1;
        if callback.stop() {
            return Err(Error::Stopped);
        }
        if begun.elapsed() > LONGEST {
            break;
        }
    }
    Ok(Rehearsal { plan, tried, seconds: begun.elapsed().as_secs_f64() / tried as f64 })
}

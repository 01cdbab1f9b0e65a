//! Callbacks: what is told of a training while it runs, and what may stop it.

use crate::run::record::Record;

/// How long a training will be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Epochs in all.
    pub epochs: usize,
    /// Epochs done already.
    pub done: usize,
    /// Batches in an epoch.
    pub batches: usize,
    /// Batches done of the epoch that has begun.
    pub batch: usize,
    /// Numbers in the model.
    pub parameters: usize,
}

/// How far an epoch has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The epoch, from 1.
    pub epoch: usize,
    /// Batches done of it.
    pub batch: usize,
    /// Batches in it.
    pub batches: usize,
    /// Examples in the batch just done.
    pub examples: usize,
    /// The mean loss of the epoch so far.
    pub loss: f64,
    /// The learning rate.
    pub rate: f64,
}

/// Called while a model is trained: at the start, after each batch and after each validated epoch.
/// It may stop the training.
pub trait Callback {
    /// Something to be said before the first batch.
    fn note(&mut self, _text: &str) {}

    /// Before the first batch.
    fn begin(&mut self, _plan: &Plan) {}

    /// After a batch.
    fn batch(&mut self, _progress: &Progress) {}

    /// After an epoch that was validated.
    fn epoch(&mut self, _record: &Record) {}

    /// Whether to stop now, with a checkpoint.
    fn stop(&self) -> bool {
        false
    }
}

/// A callback that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Callback for Silent {}

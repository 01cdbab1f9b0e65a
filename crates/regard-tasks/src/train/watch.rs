//! Who looks on while a model learns.

use super::Record;

/// What a run has before it.
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

/// Where an epoch stands.
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

/// Who looks on while a model learns, and may stop it.
pub trait Watch {
    /// A run begins.
    fn begin(&mut self, _plan: &Plan) {}

    /// A batch is done.
    fn batch(&mut self, _progress: &Progress) {}

    /// An epoch is done and validated.
    fn epoch(&mut self, _record: &Record) {}

    /// Whether to stop now, with a checkpoint.
    fn stop(&self) -> bool {
        false
    }
}

/// Nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Watch for Silent {}

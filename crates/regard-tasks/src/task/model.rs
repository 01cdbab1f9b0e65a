//! What a model does once it is trained.

use crate::metric::judged::Judged;
use crate::task::abilities::Abilities;
use crate::task::input::{Asks, Input};
use crate::task::named_rows::NamedRows;
use crate::task::part::Part;
use crate::task::prediction::{Alternative, Prediction};
use crate::task::report::Report;
use regard::tensor::Parameters;
use regard_data::{Error, Result};
use regard_picture::scene::Scene;

/// A model that can be evaluated, used and looked at, from any thread.
pub trait Model: Send + Sync {
    /// Its parameters.
    fn parameters(&self) -> &Parameters;

    /// How many numbers are learned: data that a model keeps beside its parameters are not counted.
    fn learned(&self) -> usize {
        self.parameters().numel()
    }

    /// The weights that belong to tokens or labels: they fit no other vocabulary, however equal the
    /// shapes.
    fn named_rows(&self) -> Vec<NamedRows>;

    /// What its preprocessing learned from the training part, as JSON: vocabularies, labels, means.
    /// A run keeps it in `vocabulary.json`.
    fn vocabulary(&self) -> Result<String>;

    /// The metrics on a part of the dataset that its options name.
    fn evaluate(&self, part: Part) -> Result<Report>;

    /// What can be asked of it.
    fn asks(&self) -> Asks;

    /// Every example of a part, in order, with what it makes of it and how far that is from the
    /// truth.
    fn judge(&self, part: Part) -> Result<Vec<Judged>>;

    /// A prediction for each input.
    fn predict(&self, inputs: &[Input]) -> Result<Vec<Prediction>>;

    /// The best outputs for each input, so many at most, the best first. Refuses where a task has one
    /// output alone.
    fn n_best(&self, _inputs: &[Input], _n: usize) -> Result<Vec<Vec<Alternative>>> {
        Err(Error::invalid("this task has one output for an input, and no others beside it"))
    }

    /// Its attention weights for an input, as named scenes, the most telling first.
    fn show(&self, input: &Input) -> Result<Vec<(String, Scene)>>;

    /// What should be predicted for an input, as text; none where that is not known.
    fn truth(&self, _input: &Input) -> Option<String> {
        None
    }

    /// An example as somebody would type it; none where it is nothing that is typed.
    fn typed(&self, _input: &Input) -> Result<Option<String>> {
        Ok(None)
    }

    /// What it can do beyond that.
    fn abilities(&self) -> Abilities<'_>;
}

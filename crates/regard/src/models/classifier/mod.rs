//! One class for a whole sequence.

mod config;
mod model;

pub use config::{ClassifierConfig, ClassifierPooling};
pub use model::{Classified, SequenceClassifier};

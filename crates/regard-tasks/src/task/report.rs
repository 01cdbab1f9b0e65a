//! How good a model is on a part of its dataset.

use crate::metric::Confusion;
use crate::metric::scores::Scores;
use serde::{Deserialize, Serialize};

/// A model's metrics on a part of the dataset.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The metrics.
    pub scores: Scores,
    /// How many examples.
    pub examples: usize,
    /// The confusion matrix of a model that chooses among labels.
    pub confusion: Option<Confusion>,
    /// A metric over groups of examples, such as sentences by length.
    pub groups: Option<Groups>,
    /// How many values the model's attention to its input read, where that is one that can choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values_read: Option<ValuesRead>,
    /// A metric by the position in the source, where it is known of each word which position it comes from.
    pub places: Option<Groups>,
    /// A few examples: input, expected output, output.
    pub samples: Vec<(String, String, String)>,
    /// A number for each example, by which two models can be compared example by example.
    #[serde(skip)]
    pub each: Option<PerExample>,
    /// What should be known of the measures, in sentences.
    pub notes: Vec<String>,
    /// How the measures were counted, in sacreBLEU's words, where that has to be said beside them.
    pub signature: Option<String>,
    /// All outputs, in the order of the data and one for each of its lines, for a file.
    #[serde(skip)]
    pub outputs: Vec<String>,
}

/// A number for each example; a higher one is better.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PerExample {
    /// What it says.
    pub measure: String,
    /// One for each example that was measured, in the order of the data.
    pub values: Vec<f64>,
}

/// A metric over groups of examples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Groups {
    /// What is measured.
    pub measure: String,
    /// What the groups are made by.
    pub by: String,
    /// Names and values.
    pub values: Vec<(String, f64)>,
}

/// How many values attention read: all that a query sees, or the one that it chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ValuesRead {
    /// For each output, on average.
    pub per_output: f64,
    /// Of so many that it could see.
    pub of: f64,
}

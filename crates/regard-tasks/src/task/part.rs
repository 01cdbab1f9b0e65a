//! A part of a dataset, and the names by which its examples are asked for.

use serde::{Deserialize, Serialize};

/// A part of the dataset, often called a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The examples that batches are made of.
    Training,
    /// The examples that the best epoch's checkpoint is chosen by.
    Validation,
    /// The examples that nothing is chosen by.
    Test,
}

impl Part {
    /// A part by its name.
    ///
    /// ```
    /// use regard_tasks::task::Part;
    /// assert_eq!([Part::named("test"), Part::named("rest")], [Some(Part::Test), None]);
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "train" | "training" => Some(Self::Training),
            "val" | "validation" => Some(Self::Validation),
            "test" => Some(Self::Test),
            _ => None,
        }
    }

    /// Its name, as options have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Training => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}

/// The part and the index that an input like `test:17` names, counted from 0.
pub(crate) fn example_reference(input: &str) -> Option<(Part, usize)> {
    let (part, at) = input.trim().split_once(':')?;
    Some((Part::named(part)?, at.parse().ok()?))
}

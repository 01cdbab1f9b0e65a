//! The options of `regress`.

use crate::options::requirement::Condition::Is;
use crate::options::requirement::Requirement;
use crate::options::template::Checked;
use crate::options::training::TrainingConfig;
use crate::task::held_out::HeldOutOptions;
use crate::tasks::components::{ScoreKind, ScoreOptions, needs};
use regard::attention::BilinearScale;
use regard::models::KernelRegressionConfig;
use regard_data::files::{Column, Separator, TableColumns};
use regard_data::{Error, Result};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Config {
    pub(super) data: Data,
    pub(super) model: Model,
    pub(super) training: TrainingConfig,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Data {
    pub(super) size: usize,
    pub(super) train: Option<PathBuf>,
    pub(super) validation: Option<PathBuf>,
    pub(super) test: Option<PathBuf>,
    separator: Separator,
    target_column: Option<Column>,
    #[serde(default)]
    feature_columns: Vec<Column>,
    #[serde(flatten)]
    pub(super) held_out: HeldOutOptions,
    pub(super) encoding: Option<String>,
}

impl Data {
    /// The columns that are read.
    pub(super) fn columns(&self) -> TableColumns {
        TableColumns {
            separator: self.separator,
            features: self.feature_columns.clone(),
            target: self.target_column.clone(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Kernel,
    Mean,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Model {
    pub(super) model: Kind,
    score: ScoreKind,
    score_hidden: usize,
    expression: String,
    expression_numbers: Vec<String>,
    bandwidth: f64,
    learn_bandwidth: bool,
    per_column: bool,
    windowed: bool,
    nearest: Option<usize>,
}

impl Model {
    /// Whether nearness counts by the Gaussian kernel.
    pub(super) fn is_gaussian(&self) -> bool {
        self.score == ScoreKind::Gaussian
    }
}

/// What the options need of each other to have an effect.
pub(super) fn needs() -> Vec<Requirement> {
    let of_kernel = [
        "model.score",
        "model.score_hidden",
        "model.expression",
        "model.expression_numbers",
        "model.bandwidth",
        "model.learn_bandwidth",
        "model.per_column",
        "model.windowed",
        "model.nearest",
    ];
    let of_gaussian =
        ["model.bandwidth", "model.learn_bandwidth", "model.per_column", "model.windowed"];
    let columns = ["data.separator", "data.target_column", "data.feature_columns"];
    let mut all = [needs::common(), needs::score()].concat();
    all.extend(Requirement::each(&of_kernel, &[vec![Is("model.model", &["kernel"])]]));
    all.extend(Requirement::each(&of_gaussian, &[vec![Is("model.score", &["gaussian"])]]));
    all.extend(Requirement::each(&columns, &needs::any_file()));
    all.extend([
        Requirement::new("model.learn_bandwidth", &[Is("model.per_column", &["false"])]),
        Requirement::never("training.label_smoothing", "a regression has no labels"),
        Requirement::never(
            "training.batch_size",
            "a step sees all points, each predicted from the others",
        ),
        Requirement::never("training.accumulation_steps", "a step sees all points"),
    ]);
    all
}

impl Checked for Config {
    fn check(&self) -> Result<()> {
        self.data.held_out.check()?;
        let width = self.model.bandwidth;
        if !(width.is_finite() && width > 0.0) {
            return Err(Error::invalid(format!(
                "`model.bandwidth` cannot be {width}; it is above 0"
            )));
        }
        if self.model.nearest == Some(0) {
            return Err(Error::invalid("`model.nearest` cannot be 0"));
        }
        if self.model.windowed && self.model.per_column {
            return Err(Error::invalid(
                "`model.windowed` has one width; `model.per_column` is false",
            ));
        }
        self.training.check()
    }
}

impl Config {
    /// What is wrong with a score that is the same wherever a query of so many columns is.
    pub(super) fn saturated(&self, columns: usize) -> Option<&'static str> {
        let m = &self.model;
        match m.score {
            _ if m.model != Kind::Kernel => None,
            ScoreKind::Cosine if columns == 1 => Some(
                "`model.score=cosine` compares directions, of which one column has two: nothing of how far \
                 points are is learned; `model.score=gaussian` compares distances",
            ),
            ScoreKind::Concat if m.score_hidden == 0 => Some(
                "`model.score=concat` with `model.score_hidden=0` is a sum of what the query gives and what a \
                 point gives, so that all queries weigh the points alike; a larger `model.score_hidden` puts \
                 tanh between",
            ),
            _ => None,
        }
    }

    /// The library's configuration for so many data of so many columns.
    pub(super) fn regression(&self, points: usize, features: usize) -> KernelRegressionConfig {
        let m = &self.model;
        let score = ScoreOptions {
            score: m.score,
            hidden: m.score_hidden,
            expression: &m.expression,
            numbers: &m.expression_numbers,
            scale: BilinearScale::None,
        };
        let gaussian = m.is_gaussian();
        KernelRegressionConfig {
            points,
            features,
            outputs: 1,
            inverse_width: 1.0 / self.model.bandwidth,
            // A window's width is not learned: what it leaves out has no gradient.
            learned: gaussian && (m.learn_bandwidth || m.per_column) && !m.windowed,
            per_feature: m.per_column,
            score: (!gaussian).then(|| score.config()),
            nearest: m.nearest,
            windowed: m.windowed,
        }
    }
}

//! The options of `graph`.

use crate::options::template::Checked;
use crate::options::training::TrainingConfig;
use regard::models::{GraphLayer, GraphNetworkConfig};
use regard_data::{Error, Result};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Config {
    pub(super) data: Data,
    pub(super) model: Model,
    pub(super) training: TrainingConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Embedded {
    Blocks,
    Karate,
    Misleading,
    Matching,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Data {
    pub(super) embedded: Embedded,
    pub(super) size: usize,
    pub(super) labeled: usize,
    pub(super) folder: Option<PathBuf>,
    pub(super) encoding: Option<String>,
    pub(super) normalize: bool,
}

/// What says which epoch is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BestBy {
    Accuracy,
    Loss,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Model {
    pub(super) layer: GraphLayer,
    layers: usize,
    hidden: usize,
    heads: usize,
    output_heads: usize,
    pub(super) self_loops: bool,
    dropout: f64,
    pub(super) best_by: BestBy,
}

impl Checked for Config {
    fn check(&self) -> Result<()> {
        if self.data.labeled == 0 {
            return Err(Error::invalid("`data.labeled` cannot be 0; something must be taught"));
        }
        self.training.check()
    }
}

impl Config {
    /// The library's configuration for features of this width and so many classes.
    pub(super) fn network(&self, features: usize, classes: usize) -> GraphNetworkConfig {
        let m = &self.model;
        GraphNetworkConfig {
            features,
            classes,
            layer: m.layer,
            layers: m.layers,
            hidden: m.hidden,
            heads: m.heads,
            output_heads: m.output_heads,
            dropout: m.dropout,
            self_loops: m.self_loops,
            ..GraphNetworkConfig::default()
        }
    }
}

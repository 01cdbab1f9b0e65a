//! The options of `graph`.

use crate::metric::scores::Scores;
use crate::options::requirement::Condition::{Absent, Given, Is, IsNot};
use crate::options::requirement::Requirement;
use crate::options::template::Checked;
use crate::options::template::Options;
use crate::options::training::TrainingConfig;
use crate::task::Task;
use crate::task::held_out::HeldOutOptions;
use crate::tasks::components::{MechanismOptions, needs};
use regard::attention::Weighting;
use regard::layers::PoolingConfig;
use regard::models::{GraphLayer, GraphNetworkConfig};
use regard::tensor::Better;
use regard_data::files::{EdgeColumns, LabeledGraphs};
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
    Touching,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Data {
    pub(super) embedded: Embedded,
    pub(super) size: usize,
    labeled: Option<usize>,
    pub(super) folder: Option<PathBuf>,
    pub(super) edge_columns: EdgeColumns,
    held_out: Option<f64>,
    held_out_seed: Option<u64>,
    pub(super) encoding: Option<String>,
    pub(super) normalize: bool,
}

impl Data {
    /// How many nodes of each class are taught, where no file says which.
    pub(super) fn labeled(&self) -> usize {
        self.labeled.unwrap_or(10)
    }

    /// Which graphs are held out, where no file says so.
    pub(super) fn held_out(&self) -> HeldOutOptions {
        HeldOutOptions {
            held_out: self.held_out.unwrap_or(0.1),
            held_out_seed: self.held_out_seed.unwrap_or(1),
            skip_bad_rows: false,
        }
    }

    /// Whether it is said which graphs are held out.
    pub(super) fn says_held_out(&self) -> bool {
        self.held_out.is_some() || self.held_out_seed.is_some()
    }

    /// Whether whole graphs have labels, and not nodes.
    pub(super) fn has_graphs(&self) -> bool {
        match &self.folder {
            Some(folder) => LabeledGraphs::are_in(folder),
            None => self.embedded == Embedded::Touching,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PoolingKind {
    Mean,
    Max,
    Gate,
    Attention,
}

/// What says which epoch is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BestBy {
    Accuracy,
    Loss,
}

impl BestBy {
    /// Scores of which the first decides.
    pub(super) fn of(self, scores: Scores) -> Scores {
        match self {
            Self::Accuracy => scores,
            Self::Loss => {
                let mut values = scores.values;
                values.sort_by_key(|(name, _)| name != "loss");
                Scores { values, better: Better::Lower }
            }
        }
    }
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
    head_weighting: Weighting,
    pub(super) best_by: BestBy,
    pooling: Option<PoolingKind>,
    queries: Option<usize>,
    #[serde(flatten)]
    mechanism: MechanismOptions,
}

/// What the options need of each other to have an effect; what the data decide is refused beside them.
pub(super) fn needs() -> Vec<Requirement> {
    let (layer, pooling, embedded) = ("model.layer", "model.pooling", "data.embedded");
    let folder = [vec![Given("data.folder")]];
    let attends = [vec![Absent(pooling)], vec![Is(pooling, &["attention"])]];
    let scored = [vec![IsNot(layer, "mean")]];
    // Of a folder its files decide.
    let whole = [vec![Is(embedded, &["touching"])], folder[0].clone()];
    let nodes = [vec![IsNot(embedded, "touching")], folder[0].clone()];
    let mut all = [needs::common(), needs::mechanism(&attends), needs::mechanism(&whole)].concat();
    all.retain(|need| !need.is_of("data.held_out") && !need.is_of("data.held_out_seed"));
    let of_folders = ["data.held_out", "data.held_out_seed", "data.edge_columns", "data.encoding"];
    all.extend(Requirement::each(&of_folders, &folder));
    all.extend(Requirement::each(&["data.labeled", "model.output_heads"], &nodes));
    all.extend(Requirement::each(&["model.head_weighting", "model.self_loops"], &scored));
    all.extend(Requirement::each(&["model.pooling", "model.queries"], &whole));
    // The only layer of nodes gives their classes.
    let inner = [vec![IsNot("model.layers", "1")], whole[0].clone(), whole[1].clone()];
    all.extend(Requirement::each(&["model.hidden", "model.heads"], &inner));
    all.extend([
        Requirement::new("data.embedded", &needs::embedded()),
        Requirement::new("data.size", &[IsNot(embedded, "karate")]),
        Requirement::any("model.queries", &attends),
    ]);
    all
}

impl Checked for Config {
    fn check(&self) -> Result<()> {
        if self.data.labeled() == 0 {
            return Err(Error::invalid("`data.labeled` cannot be 0; something must be taught"));
        }
        self.data.held_out().check()?;
        if self.queries() == 0 {
            return Err(Error::invalid("`model.queries` cannot be 0"));
        }
        self.training.check()
    }
}

/// Refuses an option that is given and would have no effect.
fn unused(given: bool, name: &str, why: &str) -> Result<()> {
    match given {
        false => Ok(()),
        true => Err(Error::invalid(format!("`{name}` has no effect here: {why}"))),
    }
}

impl Config {
    /// Options for nodes with labels, or for graphs. Refuses those that only the other has.
    pub(super) fn of_data(options: &Options) -> Result<Self> {
        let config = Self::of(options)?;
        let (data, model) = (&config.data, &config.model);
        let usual: Self = super::GraphTask.options()?.read()?;
        if let Some(folder) = data.folder.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(Error::file(folder, "there is no such folder"));
        }
        if data.has_graphs() {
            if data.folder.is_none() {
                let why = "the embedded graphs have parts of their own";
                unused(data.held_out.is_some(), "data.held_out", why)?;
                unused(data.held_out_seed.is_some(), "data.held_out_seed", why)?;
            }
            let why = "whole graphs are classified, and `data.held_out` says how many are held out";
            unused(data.labeled.is_some(), "data.labeled", why)?;
            let why = "the nodes of a graph are pooled, and its last layer has `model.heads`";
            unused(model.output_heads != usual.model.output_heads, "model.output_heads", why)?;
            let why = "edges of graphs have files of their own for what they carry";
            unused(data.edge_columns != EdgeColumns::Auto, "data.edge_columns", why)?;
            return Ok(config);
        }
        let why = "the edges of the embedded nodes carry nothing";
        let is_given = data.edge_columns != EdgeColumns::Auto;
        unused(is_given && data.folder.is_none(), "data.edge_columns", why)?;
        let why = "nodes are classified, and `data.labeled` of each class are taught";
        unused(data.held_out.is_some(), "data.held_out", why)?;
        unused(data.held_out_seed.is_some(), "data.held_out_seed", why)?;
        let why = "nodes are classified, and not pooled; edges have `model.layer` and \
                   `model.head_weighting`";
        unused(model.pooling.is_some(), "model.pooling", why)?;
        unused(model.queries.is_some(), "model.queries", why)?;
        let own = &model.mechanism;
        let usual = &usual.model.mechanism;
        unused(own.score != usual.score, "model.score", why)?;
        unused(own.weighting != usual.weighting, "model.weighting", why)?;
        unused(own != usual, "an option of the pooling's score", why)?;
        Ok(config)
    }

    /// How many queries pool the nodes.
    pub(super) fn queries(&self) -> usize {
        self.model.queries.unwrap_or(1)
    }

    /// Whether a learned query attends to the nodes of a graph.
    pub(super) fn attends_pooling(&self) -> bool {
        self.model.pooling.unwrap_or(PoolingKind::Attention) == PoolingKind::Attention
    }

    /// Whether nodes are gated, each by itself.
    pub(super) fn has_gate(&self) -> bool {
        self.model.pooling == Some(PoolingKind::Gate)
    }

    /// Whether nodes are chosen by chance during training, which REINFORCE trains.
    pub(super) fn samples(&self) -> bool {
        self.attends_pooling() && self.model.mechanism.weighting == Weighting::Sample
    }

    /// The library's configuration for whole graphs.
    pub(super) fn pooled_network(
        &self,
        features: usize,
        edge_width: usize,
        classes: usize,
    ) -> GraphNetworkConfig {
        let mechanism = self.model.mechanism.config();
        let pooling = match self.model.pooling.unwrap_or(PoolingKind::Attention) {
            PoolingKind::Mean => PoolingConfig::Mean,
            PoolingKind::Max => PoolingConfig::Max,
            PoolingKind::Gate => PoolingConfig::Gate,
            PoolingKind::Attention if self.queries() > 1 => {
                PoolingConfig::Queries { queries: self.queries(), mechanism }
            }
            PoolingKind::Attention => PoolingConfig::Attention(mechanism),
        };
        let network = self.network(features, edge_width, classes);
        GraphNetworkConfig { pooling: Some(pooling), ..network }
    }

    /// The library's configuration for features of these widths and so many classes.
    pub(super) fn network(
        &self,
        features: usize,
        edge_width: usize,
        classes: usize,
    ) -> GraphNetworkConfig {
        let m = &self.model;
        GraphNetworkConfig {
            features,
            classes,
            edge_width,
            weighting: m.head_weighting,
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

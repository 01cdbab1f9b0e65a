//! A classifier of a graph's nodes.

use super::config::Config;
use super::data::{joined, misleading, part, read};
use super::edges::{edge_maps, exported_edges, weighed_edges};
use crate::metric::judged::Judged;
use crate::metric::scores::Scores;
use crate::options::template::Options;
use crate::task::abilities::{Abilities, Explains, Exports};
use crate::task::input::{Asks, Input, InputForm};
use crate::task::looked_up::not_there;
use crate::task::model::Model;
use crate::task::named_rows::NamedRows;
use crate::task::network::{Exported, Network};
use crate::task::part::Part;
use crate::task::prediction::{Alternative, Prediction};
use crate::task::report::{Groups, Report};
use crate::task::saliency::{How, Probe, Saliency};
use crate::tasks::labels::probabilities::LabelProbabilities;
use crate::tasks::labels::weights::LabelWeights;
use regard::attention::Need;
use regard::layers::Graph;
use regard::models::GraphAttentionNetwork;
use regard::tensor::{CrossEntropy, Parameters, without_gradients};
use regard::{DType, Mode, Tensor};
use regard_data::files::LabeledGraph;
use regard_data::{Error, Result};
use regard_picture::scene::{GraphScene, Map, Scene};
use serde::{Deserialize, Serialize};

/// How many neighbors a picture shows; more cannot be told apart.
const NEIGHBORS: usize = 40;

/// What a classifier knows of its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Preprocessor {
    /// The classes.
    labels: Vec<String>,
    /// Width of the nodes' features.
    features: usize,
    /// Width of the edges' features.
    #[serde(default)]
    edge_features: usize,
}

impl Preprocessor {
    fn of(data: &LabeledGraph) -> Self {
        let edge_features = data.carried.width;
        Self { labels: data.label_names.clone(), features: data.width, edge_features }
    }
}

pub(super) struct Classifier {
    pub(super) config: Config,
    preprocessor: Preprocessor,
    parameters: Parameters,
    network: GraphAttentionNetwork,
    pub(super) data: LabeledGraph,
    graph: Graph,
    /// `[N, D]`
    features: Tensor,
    weights: Option<LabelWeights>,
}

impl Classifier {
    /// A new one, or one of a run that knew this of its data. It sees its graph in either case.
    pub(super) fn new(options: &Options, known: Option<Preprocessor>) -> Result<Self> {
        let config = Config::of_data(options)?;
        let data = read(&config)?;
        let preprocessor = Preprocessor::of(&data);
        if let Some(known) = known
            && known != preprocessor
        {
            return Err(Error::invalid(format!(
                "the graph has {} features, {} of an edge, and the classes {}; the run's had {}, {} and {}",
                preprocessor.features,
                preprocessor.edge_features,
                preprocessor.labels.join(", "),
                known.features,
                known.edge_features,
                known.labels.join(", ")
            )));
        }
        let parameters = Parameters::new(DType::F32, config.training.seed);
        let Preprocessor { labels, features, edge_features } = &preprocessor;
        let network = config.network(*features, *edge_features, labels.len());
        Parameters::check_fit(DType::F32, |p| GraphAttentionNetwork::new(p, &network))?;
        let network = GraphAttentionNetwork::new(&parameters, &network)?;
        let nodes = data.labels.len();
        let graph = joined(nodes, &data.edges, &data.carried)?;
        let features = Tensor::from_vec(data.features.clone(), &[nodes, data.width])?;
        let taught: Vec<usize> = data.train.iter().filter_map(|&node| data.labels[node]).collect();
        let option = &config.training.class_weights;
        let weights = LabelWeights::new(option, &preprocessor.labels, &taught)?;
        Ok(Self { config, preprocessor, parameters, network, data, graph, features, weights })
    }

    /// The loss of some nodes.
    pub(super) fn loss(&self, nodes: &[usize], mode: Mode) -> Result<Tensor> {
        let logits = self.network.forward(&self.features, &self.graph, mode)?;
        let rule = CrossEntropy {
            label_smoothing: self.config.training.label_smoothing,
            ..CrossEntropy::default()
        };
        let targets = self.truth(nodes).iter().map(|&label| label as i64).collect();
        let logits = logits.rows(&indices(nodes)?)?;
        LabelWeights::loss(self.weights.as_ref(), &logits, targets, rule)
    }

    /// What the mean over these nodes divides by.
    pub(super) fn weight(&self, nodes: &[usize]) -> f64 {
        LabelWeights::sum(self.weights.as_ref(), &self.truth(nodes))
    }

    /// The labels of nodes; those of a part all have one.
    fn truth(&self, nodes: &[usize]) -> Vec<usize> {
        nodes.iter().filter_map(|&node| self.data.labels[node]).collect()
    }

    fn label_probabilities(&self, nodes: &[usize]) -> Result<LabelProbabilities<'_>> {
        let logits = without_gradients(|| {
            let logits = self.network.forward(&self.features, &self.graph, Mode::Infer)?;
            logits.rows(&indices(nodes)?)
        })?;
        LabelProbabilities::new(&self.preprocessor.labels, logits)
    }

    pub(super) fn validate(&self) -> Result<Scores> {
        let nodes = &self.data.validation;
        let scores = self.label_probabilities(nodes)?.scores(&self.truth(nodes))?;
        Ok(self.config.model.best_by.of(scores))
    }

    /// The accuracy by how many neighbors mislead.
    fn groups(&self, nodes: &[usize], misleading: &[usize], report: &Report) -> Groups {
        let most = misleading.iter().copied().max().unwrap_or(0);
        let right = |at: usize| {
            let label = self.data.labels[nodes[at]];
            label.is_some_and(|label| self.preprocessor.labels[label] == report.outputs[at])
        };
        let group = |count: usize| {
            let members: Vec<usize> =
                (0..nodes.len()).filter(|&at| misleading[nodes[at]] == count).collect();
            let right = members.iter().filter(|&&at| right(at)).count();
            let name = format!("{count}");
            (!members.is_empty()).then(|| (name, right as f64 / members.len() as f64))
        };
        Groups {
            measure: "accuracy".into(),
            by: "neighbors that mislead".into(),
            values: (0..=most).filter_map(group).collect(),
        }
    }

    /// The node an input names.
    fn node(&self, input: &Input) -> Result<usize> {
        let count = self.data.labels.len();
        if let Input::Example { part: of, index, .. } = *input {
            let nodes = part(&self.data, of);
            let node = nodes.get(index).copied();
            return node.ok_or_else(|| not_there(input, nodes.len(), "nodes"));
        }
        self.data.node(input.text()?.trim()).ok_or_else(|| {
            let called = match &self.data.names {
                Some(names) => format!("called {}, …", names[..names.len().min(3)].join(", ")),
                None => "counted from 0".into(),
            };
            Error::invalid(format!("`{input}` is no node; there are {count}, {called}"))
        })
    }

    /// The nodes that inputs name.
    fn nodes(&self, inputs: &[Input]) -> Result<Vec<usize>> {
        inputs.iter().map(|input| self.node(input)).collect()
    }
}

/// Indices as a tensor `[n]`.
fn indices(of: &[usize]) -> regard::Result<Tensor> {
    Tensor::from_vec(of.iter().map(|&i| i as i64).collect(), &[of.len()])
}

impl Model for Classifier {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn named_rows(&self) -> Vec<NamedRows> {
        // Its last layer has the classes once for each head.
        let layer = |name: &str| name.strip_prefix("layers.")?.split('.').next()?.parse().ok();
        let all = self.parameters.all();
        let last: Option<usize> = all.iter().filter_map(|one| layer(one.name())).max();
        let of_last = all.iter().map(|one| one.name()).filter(|name| layer(name) == last);
        NamedRows::of(&of_last.collect::<Vec<&str>>(), &self.preprocessor.labels)
    }

    fn vocabulary(&self) -> Result<String> {
        serde_json::to_string(&self.preprocessor).map_err(|e| Error::invalid(e.to_string()))
    }

    fn evaluate(&self, of: Part) -> Result<Report> {
        let nodes = part(&self.data, of);
        let names: Vec<String> = nodes.iter().map(|&node| self.data.name(node)).collect();
        let report = self.label_probabilities(nodes)?.report(&names, &self.truth(nodes))?;
        let groups = misleading(&self.config)?.map(|counts| self.groups(nodes, &counts, &report));
        Ok(Report { groups, ..report })
    }

    fn asks(&self) -> Asks {
        let nodes = Some(self.data.labels.len());
        Asks { nodes, ..Asks::new(InputForm::Node, &self.preprocessor.labels) }
    }

    fn judge(&self, of: Part) -> Result<Vec<Judged>> {
        let nodes = part(&self.data, of);
        let names: Vec<String> = nodes.iter().map(|&node| self.data.name(node)).collect();
        let mut neighbors = vec![0; self.graph.nodes()];
        let edges = weighed_edges(&self.network, &self.graph);
        edges.iter().for_each(|&(_, target)| neighbors[target] += 1);
        let lengths: Vec<usize> = nodes.iter().map(|&node| neighbors[node]).collect();
        Ok(self.label_probabilities(nodes)?.judged(&names, &lengths, &self.truth(nodes)))
    }

    fn predict(&self, inputs: &[Input]) -> Result<Vec<Prediction>> {
        Ok(self.label_probabilities(&self.nodes(inputs)?)?.predictions(inputs))
    }

    fn typed(&self, input: &Input) -> Result<Option<String>> {
        Ok(Some(self.data.name(self.node(input)?)))
    }

    fn n_best(&self, inputs: &[Input], n: usize) -> Result<Vec<Vec<Alternative>>> {
        Ok(self.label_probabilities(&self.nodes(inputs)?)?.n_best(n))
    }

    fn show(&self, input: &Input) -> Result<Vec<(String, Scene)>> {
        let center = self.node(input)?;
        let edges = weighed_edges(&self.network, &self.graph);
        let seen = without_gradients(|| {
            self.network.classify(&self.features, &self.graph, Mode::Infer, Need::WEIGHTS)
        })?;
        let maps = edge_maps(&self.network, &self.graph, &seen)?;
        let weight = |edge: usize| maps.iter().map(|map| map.weights[edge]).sum::<f32>();
        let mut attended: Vec<(f32, usize)> = (0..edges.len())
            .filter(|&edge| edges[edge].1 == center && edges[edge].0 != center)
            .map(|edge| (weight(edge), edges[edge].0))
            .collect();
        attended.sort_by(|a, b| b.0.total_cmp(&a.0));
        let near = attended.into_iter().take(NEIGHBORS).map(|(_, node)| node);
        let nodes: Vec<usize> = std::iter::once(center).chain(near).collect();
        let index = |node: usize| nodes.iter().position(|&near| near == node);
        // Who attends comes first in a scene: an edge leads to him.
        let seen = |&(source, target): &(usize, usize)| Some((index(target)?, index(source)?));
        let kept: Vec<(usize, (usize, usize))> =
            edges.iter().enumerate().filter_map(|(at, edge)| Some((at, seen(edge)?))).collect();
        let map = |map: &Map| {
            let weights = kept.iter().map(|&(at, _)| map.weights[at]).collect();
            Map { place: map.place, ..Map::new(&map.name[..], weights) }
        };
        let scene = GraphScene {
            nodes: nodes.iter().map(|&node| self.data.name(node)).collect(),
            classes: nodes.iter().map(|&node| self.data.labels[node]).collect(),
            class_names: self.preprocessor.labels.clone(),
            center: Some(0),
            edges: kept.iter().map(|&(_, edge)| edge).collect(),
            maps: maps.iter().map(map).collect(),
        };
        Ok(vec![("neighborhood".into(), Scene::Graph(scene))])
    }

    /// The class of a node that has one.
    fn truth(&self, input: &Input) -> Option<String> {
        let class = self.data.labels[self.node(input).ok()?]?;
        self.preprocessor.labels.get(class).cloned()
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities { explains: Some(self), exports: Some(self), ..Abilities::default() }
    }
}

impl Explains for Classifier {
    /// How much the features of the node itself and of those near it change its class.
    fn saliency(&self, input: &Input, how: How) -> Result<Saliency> {
        let node = self.node(input)?;
        let label = self.label_probabilities(&[node])?.best()[0];
        let score = |x: &Tensor| {
            let logits = self.network.forward(x, &self.graph, Mode::Infer)?;
            Ok(logits.rows(&indices(&[node])?)?.log_softmax(1)?.narrow(1, label, 1)?)
        };
        let found = Probe::input(self.features.clone(), &score).explain(how)?;
        let all = &found.values;
        let mut order: Vec<usize> = (0..all.len()).filter(|&at| all[at] != 0.0).collect();
        order.sort_by(|&a, &b| all[b].abs().total_cmp(&all[a].abs()));
        order.truncate(NEIGHBORS);
        let name = &self.preprocessor.labels[label];
        let names = order.iter().map(|&at| self.data.name(at)).collect();
        let values = order.iter().map(|&at| all[at]).collect();
        let of = format!("the log-probability of {name} for node {}", self.data.name(node));
        Ok(Saliency { values, ..found.named(of, names, None) })
    }
}

impl Exports for Classifier {
    fn exported(&self) -> Result<Exported> {
        let output =
            without_gradients(|| self.network.forward(&self.features, &self.graph, Mode::Infer))?;
        let mut inputs = exported_edges(&self.data.edges, &self.data.carried)?;
        inputs.insert("x".into(), self.features.clone());
        let network = Network::Graph(self.network.config().clone());
        Ok(Exported { network, inputs, output })
    }
}

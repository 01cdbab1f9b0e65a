//! A classifier of whole graphs: their nodes, pooled.

use super::config::Config;
use super::data::joined;
use super::edges::{edge_maps, exported_edges, weighed_edges};
use crate::metric::judged::Judged;
use crate::metric::scores::Scores;
use crate::options::template::Options;
use crate::options::training::TrainingConfig;
use crate::task::abilities::{Abilities, Explains, Exports};
use crate::task::embedded;
use crate::task::held_out::{HeldOut, HeldOutOptions};
use crate::task::input::{Asks, Input, InputForm};
use crate::task::lesson::{Lengths, Lesson, Samples};
use crate::task::looked_up::not_there;
use crate::task::model::Model;
use crate::task::named_rows::NamedRows;
use crate::task::network::{Exported, Network};
use crate::task::part::Part;
use crate::task::prediction::{Alternative, Prediction};
use crate::task::report::{Report, ValuesRead};
use crate::task::saliency::{How, Probe, Saliency};
use crate::tasks::labels::probabilities::LabelProbabilities;
use crate::tasks::labels::truth::Truth;
use crate::tasks::labels::weights::LabelWeights;
use regard::attention::{Need, Reinforce, Site};
use regard::layers::Graph;
use regard::models::{Classified, GraphAttentionNetwork};
use regard::tensor::{CrossEntropy, Parameters, Random, without_gradients};
use regard::{DType, Mode, Tensor};
use regard_data::files::{BatchSize, Carried, LabeledGraphs, WholeGraph, batches};
use regard_data::text::Labels;
use regard_data::{Error, Result, remark, tick, toy};
use regard_picture::scene::{GraphScene, Map, Maps, Place, Scene};
use serde::{Deserialize, Serialize};

/// Graphs that are read at once where nothing is learned.
const EVALUATION_BATCH: usize = 64;

/// How many nodes a picture shows; more cannot be told apart.
const SHOWN: usize = 40;

/// All graphs, and which of them a part has.
pub(super) struct Graphs {
    pub(super) all: LabeledGraphs,
    parts: [Vec<usize>; 3],
}

impl Graphs {
    /// Of a folder, or embedded.
    pub(super) fn read(config: &Config) -> Result<Self> {
        let data = &config.data;
        let mut graphs = match &data.folder {
            Some(folder) => {
                let mut all = LabeledGraphs::read_folder(folder, data.encoding.as_deref())?;
                let parts = match all.parts.take() {
                    Some(_) if data.says_held_out() => {
                        return Err(Error::invalid(
                            "`data.held_out` and `data.held_out_seed` have no effect here: split.tsv \
                             says which graphs are held out",
                        ));
                    }
                    Some(parts) => parts,
                    None => held_out(config, &all.graphs),
                };
                Self { all, parts }
            }
            None => embedded(config)?,
        };
        if data.normalize {
            graphs.all.normalize_rows();
        }
        Ok(graphs)
    }

    /// The graphs of a part, by their places.
    pub(super) fn part(&self, part: Part) -> &[usize] {
        &self.parts[part as usize]
    }

    /// The labels of some graphs.
    pub(super) fn labels<'a>(&'a self, some: &'a [usize]) -> impl Iterator<Item = &'a str> {
        some.iter().map(|&at| &self.all.graphs[at].label[..])
    }

    /// How many features an edge has.
    pub(super) fn edge_width(&self) -> usize {
        self.all.graphs.first().map_or(0, |graph| graph.carried.width)
    }
}

/// Every part its share of every label.
fn held_out(config: &Config, graphs: &[WholeGraph]) -> [Vec<usize>; 3] {
    let HeldOutOptions { held_out: share, held_out_seed: seed, .. } = config.data.held_out();
    let held = HeldOut { share, seed, validation: true, test: true };
    let labels: Vec<String> = graphs.iter().map(|graph| graph.label.clone()).collect();
    let parts = [Part::Training, Part::Validation, Part::Test];
    let parts = parts.map(|part| held.stratified(part, &labels));
    remark(format!(
        "there is no split.tsv; {} graphs are learned, {} validate and {} test (`data.held_out` = \
         {share})",
        parts[0].len(),
        parts[1].len(),
        parts[2].len()
    ));
    parts
}

fn embedded(config: &Config) -> Result<Graphs> {
    let (mut graphs, mut parts) = (Vec::new(), [const { Vec::new() }; 3]);
    for part in [Part::Training, Part::Validation, Part::Test] {
        let own = embedded::part(part, (config.data.size, embedded::PICTURES), |count| {
            toy::touching(count, 1)
        })?;
        parts[part as usize] = (graphs.len()..graphs.len() + own.len()).collect();
        graphs.extend(own);
    }
    let node_labels: Vec<String> = toy::COLORS.map(str::to_string).into();
    let all = LabeledGraphs { graphs, width: node_labels.len(), node_labels, parts: None };
    Ok(Graphs { all, parts })
}

/// What a classifier knows of its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Preprocessor {
    labels: Labels,
    /// Width of the nodes' features.
    features: usize,
    /// The labels of nodes, which are features.
    node_labels: Vec<String>,
    /// Width of the edges' features.
    edge_features: usize,
}

impl Preprocessor {
    fn fit(graphs: &Graphs) -> Self {
        Self {
            labels: Labels::in_order(graphs.labels(graphs.part(Part::Training))),
            features: graphs.all.width,
            node_labels: graphs.all.node_labels.clone(),
            edge_features: graphs.edge_width(),
        }
    }
}

/// Graphs as the network reads them.
struct Batch {
    graph: Graph,
    /// `[N, D]`
    x: Tensor,
}

pub(super) struct GraphClassifier {
    pub(super) config: Config,
    preprocessor: Preprocessor,
    parameters: Parameters,
    network: GraphAttentionNetwork,
    graphs: Graphs,
    /// Each of the graphs, ready to be joined to others.
    ready: Vec<Batch>,
}

impl GraphClassifier {
    /// A new one, or one of a run that knew this of its data.
    pub(super) fn new(options: &Options, known: Option<Preprocessor>) -> Result<Self> {
        let config = Config::of_data(options)?;
        let graphs = Graphs::read(&config)?;
        let own = Preprocessor::fit(&graphs);
        if let Some(known) = known
            && known != own
        {
            let said = |p: &Preprocessor| {
                let labels = p.labels.names().join(", ");
                let kinds = match &p.node_labels[..] {
                    [] => String::new(),
                    names => format!(", labels of nodes {}", names.join(", ")),
                };
                let (own, edge) = (p.features, p.edge_features);
                format!("{own} features, {edge} of an edge, labels {labels}{kinds}")
            };
            return Err(Error::invalid(format!(
                "the graphs have {}; the run's had {}",
                said(&own),
                said(&known)
            )));
        }
        let parameters = Parameters::new(DType::F32, config.training.seed);
        let network = config.pooled_network(own.features, own.edge_features, own.labels.len());
        Parameters::check_fit(DType::F32, |p| GraphAttentionNetwork::new(p, &network))?;
        let network = GraphAttentionNetwork::new(&parameters, &network)?;
        let ready = |one: &WholeGraph| {
            let graph = joined(one.nodes, &one.edges, &one.carried)?;
            let x = Tensor::from_vec(one.features.clone(), &[one.nodes, own.features])?;
            Ok(Batch { graph, x })
        };
        let ready = graphs.all.graphs.iter().map(ready).collect::<Result<Vec<_>>>()?;
        Ok(Self { config, preprocessor: own, parameters, network, graphs, ready })
    }

    /// A batch of some graphs.
    fn batch(&self, some: &[usize]) -> Result<Batch> {
        let graphs: Vec<&Graph> = some.iter().map(|&at| &self.ready[at].graph).collect();
        let x: Vec<Tensor> = some.iter().map(|&at| self.ready[at].x.clone()).collect();
        Ok(Batch { graph: Graph::union(&graphs)?, x: Tensor::cat(&x, 0)? })
    }

    fn sizes(&self, some: &[usize]) -> Vec<usize> {
        some.iter().map(|&at| self.graphs.all.graphs[at].nodes).collect()
    }

    fn truth_of(&self, some: &[usize]) -> Truth {
        Truth::new(&self.preprocessor.labels, self.graphs.labels(some))
    }

    /// What a graph is called: its number, from 1.
    fn name(&self, at: usize) -> String {
        (at + 1).to_string()
    }

    fn names(&self, some: &[usize]) -> Vec<String> {
        some.iter().map(|&at| self.name(at)).collect()
    }

    fn label_probabilities(&self, some: &[usize]) -> Result<LabelProbabilities<'_>> {
        Ok(self.classified(some)?.0)
    }

    /// What it makes of each, in order, and how many nodes its pooling read where that attends.
    fn classified(&self, some: &[usize]) -> Result<(LabelProbabilities<'_>, Option<ValuesRead>)> {
        let (classes, queries) = (self.preprocessor.labels.len(), self.config.queries());
        let sizes = self.sizes(some);
        let mut all = vec![0f32; some.len() * classes];
        let (mut done, mut values_read) = (0, 0);
        for places in batches(&sizes, BatchSize::Sequences(EVALUATION_BATCH), None)? {
            let own: Vec<usize> = places.iter().map(|&place| some[place]).collect();
            let Batch { graph, x } = self.batch(&own)?;
            let Classified { logits, index, .. } =
                without_gradients(|| self.network.classify(&x, &graph, Mode::Infer, Need::OUTPUT))?;
            values_read += match &index {
                Some(chosen) => chosen.to_vec::<i64>()?.iter().filter(|at| **at >= 0).count(),
                None => queries * graph.nodes(),
            };
            done += places.len();
            for (row, place) in logits.to_vec::<f32>()?.chunks(classes).zip(places) {
                all[place * classes..][..classes].copy_from_slice(row);
            }
            tick("classifying", done, some.len())?;
        }
        let outputs = (some.len() * queries) as f64;
        let values_read = (self.config.attends_pooling() && !some.is_empty()).then(|| ValuesRead {
            per_output: values_read as f64 / outputs,
            of: (queries * sizes.iter().sum::<usize>()) as f64 / outputs,
        });
        let logits = Tensor::from_vec(all, &[some.len(), classes])?;
        Ok((LabelProbabilities::new(self.preprocessor.labels.names(), logits)?, values_read))
    }

    /// The graph an input names.
    fn find(&self, input: &Input) -> Result<usize> {
        if let Some((part, index)) = input.as_example() {
            let some = self.graphs.part(part);
            return some.get(index).copied().ok_or_else(|| not_there(input, some.len(), "graphs"));
        }
        let count = self.ready.len();
        let number = input.text()?.trim().parse::<usize>().ok();
        number.filter(|number| (1..=count).contains(number)).map(|number| number - 1).ok_or_else(|| {
            Error::invalid(format!(
                "`{input}` is no graph; there are {count}, counted from 1, and `test:0` is the first of \
                 the test part"
            ))
        })
    }

    fn find_all(&self, inputs: &[Input]) -> Result<Vec<usize>> {
        inputs.iter().map(|input| self.find(input)).collect()
    }

    /// What the nodes of a graph are called in a picture: their numbers in it, from 0.
    fn node_names(&self, at: usize) -> Vec<String> {
        (0..self.graphs.all.graphs[at].nodes).map(|node| node.to_string()).collect()
    }

    /// How much of each node is in the answer.
    fn pooled(&self, at: usize, label: &str, weights: &Tensor) -> Result<Scene> {
        let (queries, gate) = (self.config.queries(), self.config.has_gate());
        let what = if gate { "how far the gate is open" } else { "share in the answer" };
        let map = Map::new(what, weights.to_vec::<f32>()?);
        let map = match (self.config.attends_pooling(), gate) {
            (true, _) => map.at(Place::new(Site::Pooling, 0, 0)),
            (false, true) => map.fixed("A gate opens for each node by itself: it is no attention."),
            (false, false) => map.fixed(
                "This is what pooling took of each node, and no attention that could be changed.",
            ),
        };
        let one = &self.graphs.all.graphs[at];
        let called = |(node, name): (usize, String)| match one.kinds.get(node) {
            Some(&kind) => format!("{name} {}", self.preprocessor.node_labels[kind]),
            None => name,
        };
        Ok(Scene::Maps(Maps {
            row_axis: match queries {
                1 => "answer".into(),
                _ => format!("queries, for {label}"),
            },
            column_axis: "node".into(),
            rows: match queries {
                1 => vec![label.into()],
                _ => (1..=queries).map(|query| format!("query {query}")).collect(),
            },
            columns: self.node_names(at).into_iter().enumerate().map(called).collect(),
            maps: vec![map],
        }))
    }

    /// The graph with the weights of its edges; of a large one the nodes that pooling took most of.
    fn drawn(&self, at: usize, batch: &Batch, seen: &Classified) -> Result<Scene> {
        let one = &self.graphs.all.graphs[at];
        let mut nodes: Vec<usize> = (0..one.nodes).collect();
        if one.nodes > SHOWN {
            let shares = seen.pooling.as_ref().map(Tensor::to_vec::<f32>).transpose()?;
            let shares = shares.unwrap_or_default();
            // Of several queries, what all of them took.
            let share = |node: usize| shares.iter().skip(node).step_by(one.nodes).sum::<f32>();
            nodes.sort_by(|&a, &b| share(b).total_cmp(&share(a)));
            nodes.truncate(SHOWN);
            nodes.sort_unstable();
        }
        let place = |node: usize| nodes.binary_search(&node).ok();
        // Who attends comes first in a scene: an edge leads to him.
        let edges = weighed_edges(&self.network, &batch.graph).iter().enumerate();
        let kept: Vec<(usize, (usize, usize))> = edges
            .filter_map(|(at, &(source, target))| Some((at, (place(target)?, place(source)?))))
            .collect();
        let map = |map: &Map| {
            let weights = kept.iter().map(|&(at, _)| map.weights[at]).collect();
            Map { place: map.place, ..Map::new(&map.name[..], weights) }
        };
        let names = self.node_names(at);
        Ok(Scene::Graph(GraphScene {
            classes: nodes.iter().map(|&node| one.kinds.get(node).copied()).collect(),
            class_names: self.preprocessor.node_labels.clone(),
            center: None,
            edges: kept.iter().map(|&(_, edge)| edge).collect(),
            maps: edge_maps(&self.network, &batch.graph, seen)?.iter().map(map).collect(),
            nodes: nodes.into_iter().map(|node| names[node].clone()).collect(),
        }))
    }
}

impl Model for GraphClassifier {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn named_rows(&self) -> Vec<NamedRows> {
        NamedRows::of(&["out.weight", "out.bias"], self.preprocessor.labels.names())
    }

    fn vocabulary(&self) -> Result<String> {
        serde_json::to_string(&self.preprocessor).map_err(|e| Error::invalid(e.to_string()))
    }

    fn evaluate(&self, part: Part) -> Result<Report> {
        let some = self.graphs.part(part);
        let (truth, names) = (self.truth_of(some), self.names(some));
        let (probabilities, values_read) = self.classified(some)?;
        let report = probabilities.with_unseen(&truth.unseen).report(&names, &truth.ids)?;
        let notes = truth.note(part.name()).into_iter().collect();
        Ok(Report { notes, values_read, ..report })
    }

    fn asks(&self) -> Asks {
        Asks::new(InputForm::Graph, self.preprocessor.labels.names())
    }

    fn judge(&self, part: Part) -> Result<Vec<Judged>> {
        let some = self.graphs.part(part);
        let truth = self.truth_of(some);
        let probabilities = self.label_probabilities(some)?.with_unseen(&truth.unseen);
        Ok(probabilities.judged(&self.names(some), &self.sizes(some), &truth.ids))
    }

    fn predict(&self, inputs: &[Input]) -> Result<Vec<Prediction>> {
        Ok(self.label_probabilities(&self.find_all(inputs)?)?.predictions(inputs))
    }

    fn typed(&self, input: &Input) -> Result<Option<String>> {
        Ok(Some(self.name(self.find(input)?)))
    }

    fn n_best(&self, inputs: &[Input], n: usize) -> Result<Vec<Vec<Alternative>>> {
        Ok(self.label_probabilities(&self.find_all(inputs)?)?.n_best(n))
    }

    fn show(&self, input: &Input) -> Result<Vec<(String, Scene)>> {
        let at = self.find(input)?;
        let batch = self.batch(&[at])?;
        let seen = without_gradients(|| {
            self.network.classify(&batch.x, &batch.graph, Mode::Infer, Need::WEIGHTS)
        })?;
        let label = self.label_probabilities(&[at])?.best();
        let label = label.first().map_or("", |&label| self.preprocessor.labels.name(label));
        let mut scenes = Vec::new();
        if let Some(weights) = &seen.pooling {
            scenes.push(("pooling".into(), self.pooled(at, label, weights)?));
        }
        scenes.push(("graph".into(), self.drawn(at, &batch, &seen)?));
        Ok(scenes)
    }

    /// The label of a graph.
    fn truth(&self, input: &Input) -> Option<String> {
        Some(self.graphs.all.graphs[self.find(input).ok()?].label.clone())
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities { explains: Some(self), exports: Some(self), ..Abilities::default() }
    }
}

impl Explains for GraphClassifier {
    /// How much the features of each node change the graph's label.
    fn saliency(&self, input: &Input, how: How) -> Result<Saliency> {
        let at = self.find(input)?;
        let label = self.label_probabilities(&[at])?.best()[0];
        let Batch { graph, x } = self.batch(&[at])?;
        let score = |x: &Tensor| {
            let logits = self.network.forward(x, &graph, Mode::Infer)?;
            Ok(logits.log_softmax(1)?.narrow(1, label, 1)?)
        };
        let found = Probe::input(x, &score).explain(how)?;
        let of = format!("the log-probability of {}", self.preprocessor.labels.name(label));
        Ok(found.named(of, self.node_names(at), None))
    }
}

impl Exports for GraphClassifier {
    fn exported(&self) -> Result<Exported> {
        let some: Vec<usize> = self.graphs.part(Part::Training).iter().copied().take(4).collect();
        let Batch { graph, x } = self.batch(&some)?;
        let output = without_gradients(|| self.network.forward(&x, &graph, Mode::Infer))?;
        let mut carried = Carried { width: self.graphs.edge_width(), ..Carried::default() };
        for one in some.iter().map(|&at| &self.graphs.all.graphs[at].carried) {
            carried.features.extend(&one.features);
            carried.weights = match (carried.weights.take(), &one.weights) {
                (None, None) => None,
                (all, own) => {
                    Some(all.into_iter().flatten().chain(own.iter().flatten().copied()).collect())
                }
            };
        }
        let mut inputs = exported_edges(graph.edges(false), &carried)?;
        inputs.insert("x".into(), x);
        let sizes: Vec<i64> = graph.sizes().iter().map(|&size| size as i64).collect();
        inputs.insert("sizes".into(), Tensor::from_vec(sizes, &[some.len()])?);
        Ok(Exported { network: Network::Graph(self.network.config().clone()), inputs, output })
    }
}

/// A classifier that learns from the training part of its graphs.
pub(super) struct WholeLesson {
    pub(super) classifier: GraphClassifier,
    truth: Truth,
    weights: Option<LabelWeights>,
}

impl WholeLesson {
    pub(super) fn new(classifier: GraphClassifier) -> Result<Self> {
        let truth = classifier.truth_of(classifier.graphs.part(Part::Training));
        let option = &classifier.config.training.class_weights;
        let names = classifier.preprocessor.labels.names();
        let weights = LabelWeights::new(option, names, &truth.ids)?;
        Ok(Self { classifier, truth, weights })
    }

    /// The graphs of a part.
    pub(super) fn part(&self, part: Part) -> &[usize] {
        self.classifier.graphs.part(part)
    }

    /// The labels that are learned.
    pub(super) fn labels(&self) -> impl Iterator<Item = &str> {
        self.classifier.graphs.labels(self.part(Part::Training))
    }

    /// What to say of labels of the validation part that training does not have.
    pub(super) fn note(&self) -> Option<String> {
        self.classifier.truth_of(self.part(Part::Validation)).note("validation")
    }
}

impl Lesson for WholeLesson {
    fn model(&self) -> &dyn Model {
        &self.classifier
    }

    fn training(&self) -> &TrainingConfig {
        &self.classifier.config.training
    }

    fn lengths(&self) -> Lengths {
        // A batch is padded to its largest graph.
        let nodes = |&at: &usize| self.classifier.graphs.all.graphs[at].nodes;
        Lengths::Each(self.part(Part::Training).iter().map(nodes).collect())
    }

    fn loss(
        &self,
        batch: &[usize],
        reinforce: &mut Option<Reinforce>,
        random: &Random,
    ) -> Result<Tensor> {
        let training = self.part(Part::Training);
        let some: Vec<usize> = batch.iter().map(|&at| training[at]).collect();
        let ids: Vec<i64> = batch.iter().map(|&at| self.truth.ids[at] as i64).collect();
        let Batch { graph, x } = self.classifier.batch(&some)?;
        let network = &self.classifier.network;
        let attended = network.classify(&x, &graph, Mode::Train(random), Need::OUTPUT)?;
        let label_smoothing = self.training().label_smoothing;
        let rule = CrossEntropy { label_smoothing, ..CrossEntropy::default() };
        LabelWeights::attended_loss(self.weights.as_ref(), &attended, ids, rule, reinforce)
    }

    fn weight(&self, batch: &[usize]) -> f64 {
        LabelWeights::sum(self.weights.as_ref(), batch.iter().map(|&at| &self.truth.ids[at]))
    }

    fn measure(&self) -> Result<Scores> {
        let some = self.part(Part::Validation);
        let truth = self.classifier.truth_of(some);
        let probabilities = self.classifier.label_probabilities(some)?;
        let scores = probabilities.with_unseen(&truth.unseen).scores(&truth.ids)?;
        Ok(self.classifier.config.model.best_by.of(scores))
    }

    fn samples(&self) -> Samples {
        Samples::Typed(self.classifier.names(self.part(Part::Validation)))
    }
}

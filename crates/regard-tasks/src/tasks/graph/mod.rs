//! `graph`: what class a node of a graph, or a whole graph, belongs to.

mod config;
mod data;
mod edges;
mod model;
mod whole;

use crate::metric::scores::Scores;
use crate::options::requirement::Requirement;
use crate::options::template::Options;
use crate::options::training::{self, TrainingConfig};
use crate::task::json_file::JsonFile;
use crate::task::learner::Learner;
use crate::task::lengths::lengths;
use crate::task::lesson::{Lengths, Lesson, Samples, learner};
use crate::task::model::Model;
use crate::task::part::Part;
use crate::task::splits::check_some;
use crate::task::{Description, Task, Variant};
use crate::tasks::components;
use crate::tasks::labels::check::{LabelSource, check_labels, describe_labels};
use config::Config;
use data::{part, read};
use model::Classifier;
use regard::attention::{Reinforce, ReinforceConfig};
use regard::tensor::Random;
use regard::{Mode, Tensor};
use regard_data::files::LabeledGraph;
use regard_data::text::by_count;
use regard_data::{Error, Result};
use whole::{GraphClassifier, Graphs, WholeLesson};

/// Tells the classes of a graph's nodes, or of whole graphs, whose nodes are pooled: graph attention in
/// both versions, dot products, or the mean of the neighbors.
#[derive(Clone, Copy, Debug)]
pub struct GraphTask;

/// A classifier that learns from the training part of its graph.
struct GraphLesson {
    classifier: Classifier,
}

impl Task for GraphTask {
    fn name(&self) -> &'static str {
        "graph"
    }

    fn about(&self) -> &'static str {
        "what class a node of a graph, or a whole graph, belongs to"
    }

    fn template(&self) -> String {
        [
            include_str!("options.toml"),
            components::MECHANISM,
            "\n",
            training::TEMPLATE,
            training::CLASS_WEIGHTS,
        ]
        .concat()
    }

    fn defaults(&self) -> &'static [&'static str] {
        // A batch holds nodes, of which the whole graph is always seen: usually all at once.
        &[
            "score_hidden=32",
            "epochs=300",
            "batch_size=10000",
            "learning_rate=0.005",
            "weight_decay=0.0005",
            "clip_norm=0.0",
            "validate_every=5",
        ]
    }

    fn requirements(&self) -> Vec<Requirement> {
        config::needs()
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Learner>> {
        if Config::of_data(options)?.data.has_graphs() {
            return begin_whole(options);
        }
        let classifier = Classifier::new(options, None)?;
        if classifier.data.validation.is_empty() {
            return Err(Error::invalid("the graph has no validation nodes; split.tsv names them"));
        }
        check_labels(training_labels(&classifier.data), "nodes", LabelSource::Others)?;
        learner(GraphLesson { classifier }, Vec::new(), None)
    }

    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
        if Config::of_data(options)?.data.has_graphs() {
            return Ok(Box::new(GraphClassifier::new(options, Some(vocabulary.parse()?))?));
        }
        Ok(Box::new(Classifier::new(options, Some(vocabulary.parse()?))?))
    }

    fn describe(&self, options: &Options) -> Result<Description> {
        let config = Config::of_data(options)?;
        if config.data.has_graphs() {
            return describe_whole(&config);
        }
        let graph = read(&config)?;
        describe_labels(training_labels(&graph), "nodes", LabelSource::Others);
        let nodes = graph.labels.len();
        let mut degrees = vec![0; nodes];
        graph.edges.iter().for_each(|&(_, to)| degrees[to] += 1);
        let most = degrees.iter().max().copied().unwrap_or(0);
        let mean = graph.edges.len() as f64 / nodes.max(1) as f64;
        let count = |of| part(&graph, of).len().to_string();
        let facts = [
            ("nodes", nodes.to_string()),
            ("edges, both ways", graph.edges.len().to_string()),
            ("repeated edges", graph.repeated_edges.to_string()),
            ("neighbors", format!("{mean:.1} on average, {most} at most")),
            ("features", graph.width.to_string()),
            ("features of an edge", graph.carried.width.to_string()),
            ("training nodes", count(Part::Training)),
            ("validation nodes", count(Part::Validation)),
            ("test nodes", count(Part::Test)),
        ];
        let name = |node: usize| graph.labels[node].map_or("?", |label| &graph.label_names[label]);
        let known = graph.labels.iter().flatten().map(|&label| &graph.label_names[label][..]);
        let labels = by_count(known).into_iter();
        let example = |&node: &usize| {
            let near = graph.edges.iter().filter(|(_, to)| *to == node).take(8);
            let near: Vec<String> = near.map(|&(from, _)| graph.name(from)).collect();
            format!("{} ({}) beside {}", graph.name(node), name(node), near.join(", "))
        };
        Ok(Description {
            source: source(&config),
            facts: facts.map(|(name, text)| (name.to_string(), text)).into(),
            labels: labels.map(|(label, count)| (label.to_string(), count)).collect(),
            examples: graph.train.iter().take(5).map(example).collect(),
        })
    }

    fn comparison(&self) -> Vec<Variant> {
        vec![
            Variant::new("GAT", &["layer=gat"]),
            Variant::new("GATv2", &["layer=gatv2"]),
            Variant::new("mean", &["layer=mean"]),
        ]
    }
}

/// Where the data come from.
fn source(config: &Config) -> String {
    match &config.data.folder {
        Some(folder) => folder.display().to_string(),
        None => format!("embedded {:?}", config.data.embedded).to_lowercase(),
    }
}

/// More graphs than one step is usually taken with.
const MANY_GRAPHS: usize = 64;

/// As [`Task::begin`], where whole graphs have labels.
fn begin_whole(options: &Options) -> Result<Box<dyn Learner>> {
    let lesson = WholeLesson::new(GraphClassifier::new(options, None)?)?;
    check_labels(lesson.labels(), "graphs", LabelSource::Others)?;
    check_some(
        lesson.part(Part::Training).len(),
        lesson.part(Part::Validation).len(),
        "graphs",
        None,
    )?;
    let reinforce = lesson.classifier.config.samples();
    let reinforce = reinforce.then(|| Reinforce::new(ReinforceConfig::default())).transpose()?;
    let (graphs, batch) = (lesson.part(Part::Training).len(), lesson.training().batch_size);
    // The usual batch is one of nodes.
    let one_step = (graphs > MANY_GRAPHS && batch >= graphs).then(|| {
        format!("one batch holds all {graphs} graphs: `batch_size=32` takes more and smaller steps")
    });
    let notes = lesson.note().into_iter().chain(one_step).collect();
    learner(lesson, notes, reinforce)
}

/// As [`Task::describe`], where whole graphs have labels.
fn describe_whole(config: &Config) -> Result<Description> {
    let graphs = Graphs::read(config)?;
    let training = graphs.part(Part::Training);
    describe_labels(graphs.labels(training), "graphs", LabelSource::Others);
    let all = &graphs.all.graphs;
    let count = |of| graphs.part(of).len().to_string();
    let edges = all.iter().map(|graph| graph.edges.len()).collect();
    let weights = all.iter().any(|graph| graph.carried.weights.is_some());
    let facts = [
        ("graphs", all.len().to_string()),
        ("graphs have", lengths(all.iter().map(|graph| graph.nodes).collect(), "nodes")),
        ("and", lengths(edges, "edges, both ways")),
        ("features", graphs.all.width.to_string()),
        ("features of an edge", graphs.edge_width().to_string()),
        ("weights of edges", if weights { "yes" } else { "no" }.into()),
        ("training graphs", count(Part::Training)),
        ("validation graphs", count(Part::Validation)),
        ("test graphs", count(Part::Test)),
    ];
    let labels = by_count(all.iter().map(|graph| &graph.label[..])).into_iter();
    let example = |&at: &usize| {
        let graph = &all[at];
        format!("{} ({}): {} nodes, {} edges", at + 1, graph.label, graph.nodes, graph.edges.len())
    };
    Ok(Description {
        source: source(config),
        facts: facts.map(|(name, text)| (name.to_string(), text)).into(),
        labels: labels.map(|(label, count)| (label.to_string(), count)).collect(),
        examples: training.iter().take(5).map(example).collect(),
    })
}

/// The labels of the nodes that are learned.
fn training_labels(graph: &LabeledGraph) -> impl Iterator<Item = &str> {
    let known = graph.train.iter().filter_map(|&node| graph.labels[node]);
    known.map(|label| &graph.label_names[label][..])
}

impl Lesson for GraphLesson {
    fn model(&self) -> &dyn Model {
        &self.classifier
    }

    fn training(&self) -> &TrainingConfig {
        &self.classifier.config.training
    }

    fn lengths(&self) -> Lengths {
        Lengths::Alike(self.classifier.data.train.len())
    }

    fn loss(&self, batch: &[usize], _: &mut Option<Reinforce>, random: &Random) -> Result<Tensor> {
        let train = &self.classifier.data.train;
        let nodes: Vec<usize> = batch.iter().map(|&at| train[at]).collect();
        self.classifier.loss(&nodes, Mode::Train(random))
    }

    fn weight(&self, batch: &[usize]) -> f64 {
        let train = &self.classifier.data.train;
        self.classifier.weight(&batch.iter().map(|&at| train[at]).collect::<Vec<_>>())
    }

    fn measure(&self) -> Result<Scores> {
        self.classifier.validate()
    }

    fn samples(&self) -> Samples {
        let nodes = self.classifier.data.validation.iter();
        Samples::Typed(nodes.map(usize::to_string).collect())
    }
}

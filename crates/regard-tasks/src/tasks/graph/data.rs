//! The graph of `graph`: from a folder or embedded, its nodes in three parts.

use super::config::{Config, Data, Embedded};
use crate::task::embedded::check_size;
use crate::task::part::Part;
use regard::Tensor;
use regard::layers::Graph;
use regard::tensor::Random;
use regard_data::files::{Carried, LabeledGraph};
use regard_data::{Error, Result, remark, toy};

/// Classes of the embedded blocks, and how likely an edge is within one and between two.
const BLOCKS: (usize, f64, f64) = (4, 0.05, 0.005);

/// The most nodes of a block graph: every pair is drawn.
const MAX_NODES: usize = 20_000;

/// The graph. Its parts come with it: all nodes are seen, of some of them the labels are learned.
pub(super) fn read(config: &Config) -> Result<LabeledGraph> {
    let data = &config.data;
    let mut graph = match &data.folder {
        Some(folder) => {
            let mut graph =
                LabeledGraph::read_folder(folder, data.encoding.as_deref(), data.edge_columns)?;
            if graph.train.is_empty() {
                split(data, &mut graph)?;
                let parts = [&graph.train, &graph.validation, &graph.test].map(Vec::len);
                remark(format!(
                    "{}: there is no split.tsv; {} nodes are learned, `data.labeled` = {} of each \
                     class, {} validate and {} test",
                    folder.display(),
                    parts[0],
                    data.labeled(),
                    parts[1],
                    parts[2]
                ));
            }
            graph
        }
        None => embedded(data)?,
    };
    if data.normalize {
        graph.normalize_rows();
    }
    Ok(graph)
}

/// The library's graph of these edges, with what they carry.
pub(super) fn joined(nodes: usize, edges: &[(usize, usize)], carried: &Carried) -> Result<Graph> {
    let mut graph = Graph::new(nodes, edges)?;
    if let Some(weights) = &carried.weights {
        graph = graph.with_edge_weights(weights)?;
    }
    if carried.width > 0 {
        let features = Tensor::from_vec(carried.features.clone(), &[edges.len(), carried.width])?;
        graph = graph.with_edge_features(&features)?;
    }
    Ok(graph)
}

/// The nodes of a part.
pub(super) fn part(graph: &LabeledGraph, part: Part) -> &[usize] {
    match part {
        Part::Training => &graph.train,
        Part::Validation => &graph.validation,
        Part::Test => &graph.test,
    }
}

/// How many neighbors of each node mislead, where the embedded data know; the first so many ask.
pub(super) fn misleading(config: &Config) -> Result<Option<Vec<usize>>> {
    let data = &config.data;
    match data.folder {
        Some(_) => Ok(None),
        None => Ok(telling(data)?.map(|graph| graph.misleading)),
    }
}

/// The embedded graph, where it is one in which nodes ask and others tell.
fn telling(data: &Data) -> Result<Option<toy::Telling>> {
    match data.embedded {
        Embedded::Misleading => toy::misleading(data.size, 1).map(Some),
        Embedded::Matching => toy::matching(data.size, 1).map(Some),
        Embedded::Blocks | Embedded::Karate | Embedded::Touching => Ok(None),
    }
}

/// Nodes of each class to learn from, half of the others to validate and half to test with.
struct Split {
    train: Vec<usize>,
    validation: Vec<usize>,
    test: Vec<usize>,
}

impl Split {
    /// Of the first nodes, of which these are the classes.
    fn new(data: &Data, labels: &[usize], classes: usize) -> Result<Self> {
        let mut labeled = vec![0; classes];
        let (mut train, mut rest) = (Vec::new(), Vec::new());
        for node in Random::named(1, "parts").order(labels.len()) {
            let label = labels[node];
            if labeled[label] < data.labeled() {
                labeled[label] += 1;
                train.push(node);
            } else {
                rest.push(node);
            }
        }
        if rest.len() < 2 {
            return Err(Error::invalid(format!(
                "`data.labeled` = {} of each class leaves {} of {} nodes to validate and test with",
                data.labeled(),
                rest.len(),
                labels.len()
            )));
        }
        let test = rest.split_off(rest.len() / 2);
        Ok(Self { train, validation: rest, test })
    }
}

/// Puts the nodes of a graph whose label is known into parts.
fn split(data: &Data, graph: &mut LabeledGraph) -> Result<()> {
    let known: Vec<(usize, usize)> = graph
        .labels
        .iter()
        .enumerate()
        .filter_map(|(node, label)| Some((node, (*label)?)))
        .collect();
    let labels: Vec<usize> = known.iter().map(|&(_, label)| label).collect();
    let Split { train, validation, test } = Split::new(data, &labels, graph.label_names.len())?;
    let nodes = |places: Vec<usize>| places.into_iter().map(|at| known[at].0).collect();
    (graph.train, graph.validation, graph.test) = (nodes(train), nodes(validation), nodes(test));
    Ok(())
}

fn told(data: &Data, graph: toy::Telling) -> Result<LabeledGraph> {
    let Split { train, validation, test } = Split::new(data, &graph.answers, graph.names.len())?;
    let mut labels: Vec<Option<usize>> = graph.answers.into_iter().map(Some).collect();
    labels.resize(graph.features.len(), None);
    Ok(LabeledGraph {
        width: graph.features[0].len(),
        edges: graph.edges,
        repeated_edges: 0,
        carried: Carried::default(),
        names: None,
        labels,
        label_names: graph.names,
        features: graph.features.concat(),
        train,
        validation,
        test,
    })
}

fn embedded(data: &Data) -> Result<LabeledGraph> {
    if let Some(graph) = telling(data)? {
        return told(data, graph);
    }
    // The embedded data are the same for every seed of a training, so that runs can be compared.
    let graph = match data.embedded {
        Embedded::Karate => toy::karate(),
        _ => {
            check_size(data.size, MAX_NODES)?;
            let (classes, inside, outside) = BLOCKS;
            toy::blocks(data.size, classes, inside, outside, 1)?
        }
    };
    let Split { train, validation, test } = Split::new(data, &graph.labels, graph.names.len())?;
    let both = graph.edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
    Ok(LabeledGraph {
        width: graph.features[0].len(),
        edges: both.collect(),
        repeated_edges: 0,
        carried: Carried::default(),
        names: None,
        labels: graph.labels.into_iter().map(Some).collect(),
        label_names: graph.names,
        features: graph.features.concat(),
        train,
        validation,
        test,
    })
}

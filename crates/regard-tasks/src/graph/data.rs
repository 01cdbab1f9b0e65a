//! The graph of `graph`: from a folder or embedded, its nodes in three parts.

use super::config::{Config, Data, Embedded};
use crate::data::LabeledGraph;
use crate::{Error, Part, Result, parts, toy};
use regard::tensor::Random;

/// Classes of the embedded blocks, and how likely an edge is within one and between two.
const BLOCKS: (usize, f64, f64) = (4, 0.05, 0.005);

/// The most nodes of a block graph: every pair is drawn.
const MAX_NODES: usize = 20_000;

/// The graph. Its parts come with it: all nodes are seen, of some of them the labels are learned.
pub(super) fn read(config: &Config) -> Result<LabeledGraph> {
    let data = &config.data;
    let mut graph = match &data.folder {
        Some(folder) => LabeledGraph::read_folder(folder, data.encoding.as_deref())?,
        None => embedded(data)?,
    };
    if data.normalize {
        graph.normalize_rows();
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

fn embedded(data: &Data) -> Result<LabeledGraph> {
    // The embedded data are the same for every seed of a training, so that runs can be compared.
    let graph = match data.embedded {
        Embedded::Karate => toy::karate(),
        Embedded::Blocks => {
            parts::check_size(data.size, MAX_NODES)?;
            let (classes, inside, outside) = BLOCKS;
            toy::blocks(data.size, classes, inside, outside, 1)?
        }
    };
    let mut labeled = vec![0; graph.names.len()];
    let (mut train, mut rest) = (Vec::new(), Vec::new());
    for node in Random::named(1, "parts").order(graph.nodes) {
        let label = graph.labels[node];
        if labeled[label] < data.labeled {
            labeled[label] += 1;
            train.push(node);
        } else {
            rest.push(node);
        }
    }
    if rest.len() < 2 {
        return Err(Error::invalid(format!(
            "`data.labeled` = {} of each class leaves {} of {} nodes to validate and test with",
            data.labeled,
            rest.len(),
            graph.nodes
        )));
    }
    let test = rest.split_off(rest.len() / 2);
    let both = graph.edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
    Ok(LabeledGraph {
        width: graph.features[0].len(),
        edges: both.collect(),
        repeated_edges: 0,
        labels: graph.labels.into_iter().map(Some).collect(),
        label_names: graph.names,
        features: graph.features.concat(),
        train,
        validation: rest,
        test,
    })
}

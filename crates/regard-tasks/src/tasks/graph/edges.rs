//! The edges that a network weighs, for pictures and for other programs.

use regard::Tensor;
use regard::attention::Site;
use regard::layers::Graph;
use regard::models::{Classified, GraphAttentionNetwork, GraphLayer};
use regard_data::Result;
use regard_data::files::Carried;
use regard_picture::scene::{Map, Place};
use std::collections::BTreeMap;

/// Whether each node sees itself.
fn self_loops(network: &GraphAttentionNetwork) -> bool {
    let config = network.config();
    config.self_loops || config.layer == GraphLayer::Mean
}

/// The edges (source, target) that are weighed.
pub(super) fn weighed_edges<'a>(
    network: &GraphAttentionNetwork,
    graph: &'a Graph,
) -> &'a [(usize, usize)] {
    graph.edges(self_loops(network))
}

/// The weights of the edges under every head of every layer.
pub(super) fn edge_maps(
    network: &GraphAttentionNetwork,
    graph: &Graph,
    seen: &Classified,
) -> Result<Vec<Map>> {
    if network.config().layer == GraphLayer::Mean {
        let edges = weighed_edges(network, graph);
        let weights = graph.edge_weights(true).unwrap_or_else(|| vec![1.0; edges.len()]);
        let mut into = vec![0.0; graph.nodes()];
        edges.iter().zip(&weights).for_each(|(&(_, target), weight)| into[target] += weight);
        let shares = edges.iter().zip(&weights);
        let shares = shares.map(|(&(_, target), weight)| (weight / into[target]) as f32);
        return Ok(vec![Map::new("mean of the neighbors", shares.collect())]);
    }
    let mut maps = Vec::new();
    for (layer, weights) in seen.weights.iter().enumerate() {
        let heads = weights.shape()[1];
        let numbers = weights.to_vec::<f32>()?;
        for head in 0..heads {
            let own = numbers.iter().skip(head).step_by(heads).copied().collect();
            let map = Map::new(format!("layer {}, head {}", layer + 1, head + 1), own);
            maps.push(map.at(Place::new(Site::Graph, layer, head)));
        }
    }
    Ok(maps)
}

/// Edges and what they carry, by the names of the exported module's arguments.
pub(super) fn exported_edges(
    edges: &[(usize, usize)],
    carried: &Carried,
) -> Result<BTreeMap<String, Tensor>> {
    let count = edges.len();
    let ends = edges.iter().flat_map(|&(from, to)| [from as i64, to as i64]).collect();
    let mut inputs = BTreeMap::from([("edges".into(), Tensor::from_vec(ends, &[count, 2])?)]);
    if let Some(weights) = &carried.weights {
        let weights = weights.iter().map(|&weight| weight as f32).collect();
        inputs.insert("edge_weights".into(), Tensor::from_vec(weights, &[count])?);
    }
    if carried.width > 0 {
        let features = Tensor::from_vec(carried.features.clone(), &[count, carried.width])?;
        inputs.insert("edge_features".into(), features);
    }
    Ok(inputs)
}

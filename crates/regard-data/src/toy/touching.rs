//! Graphs that one edge decides about.

use super::balanced;
use crate::files::WholeGraph;
use crate::{Error, Result};
use regard::tensor::Random;

/// What the nodes of [`touching`] are called, in the order of their features.
pub const COLORS: [&str; 3] = ["gray", "red", "blue"];

const SIZES: (usize, usize) = (8, 24);
/// Red nodes, and blue ones.
const COLORED: usize = 3;
/// The most graphs.
const MOST: usize = 100_000;

/// `count` graphs of 8 to 24 nodes, three of them red and three blue. In a graph that is "touching" one
/// edge, and only one, joins a red node and a blue one; in one that is "apart" none does. Colors and sizes
/// are alike, so that a node must look at its neighbors, and of all nodes two have to be found.
///
/// ```
/// let graphs = regard_data::toy::touching(10, 1)?;
/// let touches = |graph: &regard_data::files::WholeGraph| {
///     let kind = |node: usize| graph.kinds[node];
///     graph.edges.iter().filter(|&&(a, b)| (kind(a), kind(b)) == (1, 2)).count()
/// };
/// assert!(graphs.iter().all(|graph| touches(graph) == usize::from(graph.label == "touching")));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn touching(count: usize, seed: u64) -> Result<Vec<WholeGraph>> {
    if count > MOST {
        return Err(Error::invalid(format!("{count} graphs; there are {MOST} at most")));
    }
    let random = Random::named(seed, "touching");
    let labels = balanced(&random, count, 2);
    Ok(labels.into_iter().map(|label| one(&random, label == 1)).collect())
}

fn one(random: &Random, touching: bool) -> WholeGraph {
    let nodes = SIZES.0 + random.below(SIZES.1 - SIZES.0 + 1);
    // A tree, and an edge more for every fourth node.
    let mut edges: Vec<(usize, usize)> =
        (1..nodes).map(|node| (random.below(node), node)).collect();
    for _ in 0..nodes / 4 {
        let (a, b) = (random.below(nodes), random.below(nodes));
        let edge = (a.min(b), a.max(b));
        if a != b && !edges.contains(&edge) {
            edges.push(edge);
        }
    }
    let kinds = loop {
        let mut kinds = vec![0; nodes];
        let order = random.order(nodes);
        order[..COLORED].iter().for_each(|&node| kinds[node] = 1);
        order[COLORED..2 * COLORED].iter().for_each(|&node| kinds[node] = 2);
        let joined = edges.iter().filter(|&&(a, b)| kinds[a] * kinds[b] == 2).count();
        if joined == usize::from(touching) {
            break kinds;
        }
    };
    let mut features = vec![0.0; nodes * COLORS.len()];
    kinds.iter().enumerate().for_each(|(node, kind)| features[node * COLORS.len() + kind] = 1.0);
    let edges = edges.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]).collect();
    let label = if touching { "touching" } else { "apart" }.into();
    WholeGraph { label, nodes, features, kinds, edges, ..WholeGraph::default() }
}

//! A graph in which like goes with like: the stochastic block model. Holland, Laskey, Leinhardt,
//! "Stochastic blockmodels: first steps" (1983).

use super::{Graph, balanced, chance, normal};
use crate::{Error, Result};
use regard::tensor::Random;

/// How far the noise of a feature goes beyond what the class says.
const NOISE: f64 = 1.5;

/// A graph of `nodes` in `classes` of the same size; two nodes of one class are joined with
/// probability `inside`, of two classes with `outside`. Features (one number for each class) are 1
/// at the class, 0 elsewhere, under normal noise of deviation 1.5: alone they tell little. Refuses
/// no classes, and what is no probability.
///
/// ```
/// let graph = regard_data::toy::blocks(60, 3, 0.3, 0.02, 1)?;
/// assert_eq!((graph.nodes, graph.names.len(), graph.features[0].len()), (60, 3, 3));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn blocks(nodes: usize, classes: usize, inside: f64, outside: f64, seed: u64) -> Result<Graph> {
    if classes == 0 {
        return Err(Error::invalid("a block graph of 0 classes was asked for"));
    }
    if let Some(wrong) = [inside, outside].into_iter().find(|p| !(0.0..=1.0).contains(p)) {
        return Err(Error::invalid(format!("{wrong} is no probability of an edge")));
    }
    let random = Random::named(seed, "blocks");
    let labels = balanced(&random, nodes, classes);
    let mut edges = vec![];
    for a in 0..nodes {
        for b in a + 1..nodes {
            let likelihood = if labels[a] == labels[b] { inside } else { outside };
            if chance(&random, likelihood) {
                edges.push((a, b));
            }
        }
    }
    let mut features: Vec<Vec<f32>> =
        normal(&random, nodes * classes, NOISE)?.chunks(classes).map(Vec::from).collect();
    for (feature, &label) in features.iter_mut().zip(&labels) {
        feature[label] += 1.0;
    }
    let names = (0..classes).map(|class| format!("block {}", class + 1)).collect();
    Ok(Graph { nodes, edges, features, labels, names })
}

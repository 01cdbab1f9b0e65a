//! A graph, made ready once for many layers and steps.

use regard_kernels::Edges;
use regard_tensor::{DType, Error, Result, Tensor, ensure};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// A directed graph: the node that an edge leads to attends to the node it comes from. Cloning
/// shares it.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::Graph;
/// let graph = Graph::new(3, &[(0, 1), (2, 2), (1, 2)])?;
/// assert_eq!(graph.edges(false), [(0, 1), (2, 2), (1, 2)]);
/// // Self-loops: those given are taken out, then one for each node comes last.
/// assert_eq!(graph.edges(true), [(0, 1), (1, 2), (0, 0), (1, 1), (2, 2)]);
/// let error = Graph::new(3, &[(0, 1), (1, 3)]).unwrap_err().to_string();
/// assert_eq!(error, "edge 1 leads from node 1 to node 3; there are 3 nodes");
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Graph {
    /// How many nodes each of the graphs has that it is the union of.
    sizes: Arc<[usize]>,
    nodes: usize,
    given: Arc<Joined>,
    looped: Arc<OnceLock<Joined>>,
    /// `[E]`, of the edges given.
    weights: Option<Arc<[f64]>>,
    /// `[E, D]`, of the edges given.
    features: Option<Tensor>,
}

/// Edges in their order, and as the kernels and the operations on rows read them.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) pairs: Vec<(usize, usize)>,
    pub(super) mask: Arc<Edges>,
    /// `[E]`: where each of the pairs stands in the mask.
    pub(super) order: Tensor,
    by_edge: OnceLock<ByEdge>,
}

/// The same edges where what a node attends to is an edge, with what it carries, and not the node that
/// the edge comes from.
#[derive(Debug)]
pub(super) struct ByEdge {
    /// From a node to each of the edges that lead to it.
    pub(super) mask: Arc<Edges>,
    /// `[E]`: where each edge stands in the mask.
    pub(super) order: Tensor,
    /// `[E]`: the nodes that edges come from.
    pub(super) sources: Tensor,
    /// The same as numbers: what each key stands for.
    pub(super) columns: Arc<[usize]>,
}

impl Joined {
    fn new(nodes: usize, pairs: Vec<(usize, usize)>) -> Result<Self> {
        let turned: Vec<(usize, usize)> = pairs.iter().map(|&(s, t)| (t, s)).collect();
        let mask = Edges::new(nodes, nodes, &turned)?;
        let order = pairs.iter().map(|&(source, target)| {
            let before = mask.of_query(target).partition_point(|&key| (key as usize) < source);
            (mask.starts()[target] + before) as i64
        });
        let order = Tensor::from_vec(order.collect(), &[pairs.len()])?;
        Ok(Self { mask: Arc::new(mask), order, pairs, by_edge: OnceLock::new() })
    }

    pub(super) fn by_edge(&self) -> Result<&ByEdge> {
        if let Some(known) = self.by_edge.get() {
            return Ok(known);
        }
        let (nodes, count) = (self.mask.queries(), self.pairs.len());
        let pairs: Vec<(usize, usize)> =
            self.pairs.iter().enumerate().map(|(edge, &(_, target))| (target, edge)).collect();
        let mask = Edges::new(nodes, count, &pairs)?;
        let order = pairs.iter().map(|&(target, edge)| {
            let before = mask.of_query(target).partition_point(|&key| (key as usize) < edge);
            (mask.starts()[target] + before) as i64
        });
        let order = Tensor::from_vec(order.collect(), &[count])?;
        let columns: Arc<[usize]> = self.pairs.iter().map(|&(source, _)| source).collect();
        let sources = columns.iter().map(|&source| source as i64).collect();
        let sources = Tensor::from_vec(sources, &[count])?;
        let known = ByEdge { mask: Arc::new(mask), order, sources, columns };
        Ok(self.by_edge.get_or_init(|| known))
    }
}

impl Graph {
    /// From (source, target) pairs. Refuses a node that is not there and an edge given twice,
    /// which would have two weights.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::Graph;
    /// let error = Graph::new(2, &[(0, 1), (0, 1)]).unwrap_err();
    /// assert_eq!(error.to_string(), "edge 1 leads from node 0 to node 1, as edge 0 does");
    /// ```
    pub fn new(nodes: usize, edges: &[(usize, usize)]) -> Result<Self> {
        let mut seen = HashMap::with_capacity(edges.len());
        for (at, &(source, target)) in edges.iter().enumerate() {
            ensure!(
                source < nodes && target < nodes,
                "edge {at} leads from node {source} to node {target}; there are {nodes} nodes"
            );
            if let Some(first) = seen.insert((source, target), at) {
                return Err(Error::new(format!(
                    "edge {at} leads from node {source} to node {target}, as edge {first} does"
                )));
            }
        }
        let given = Arc::new(Joined::new(nodes, edges.to_vec())?);
        let sizes = [nodes].into();
        Ok(Self { sizes, nodes, given, looped: Arc::default(), weights: None, features: None })
    }

    /// With a positive weight for each edge, in their order: its logarithm is added to the edge's score,
    /// so that softmax's weights are multiplied by it, and a mean becomes a weighted one. A self-loop
    /// that a layer adds weighs 1. Refuses another number of weights, and one that is not positive.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Graph, GraphMean};
    /// let graph = Graph::new(3, &[(0, 1), (2, 1)])?.with_edge_weights(&[2.0, 5.0])?;
    /// let layer = GraphMean::new(&Parameters::new(DType::F64, 1), 1, 1)?;
    /// layer.linear.weight.set(&Tensor::from_vec(vec![1.0], &[1, 1])?)?;
    /// let x = Tensor::from_vec(vec![3.0, 6.0, 9.0], &[3, 1])?;
    /// let y = layer.forward(&x, &graph, Mode::Infer)?.to_vec::<f64>()?;
    /// // (2 · 3 + 5 · 9 + 1 · 6) / 8
    /// assert!((y[1] - 57.0 / 8.0).abs() < 1e-12);
    /// let error = Graph::new(2, &[(0, 1)])?.with_edge_weights(&[0.0]).unwrap_err().to_string();
    /// assert_eq!(error, "edge 0 weighs 0; an edge's weight is a positive number");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn with_edge_weights(self, weights: &[f64]) -> Result<Self> {
        let edges = self.given.pairs.len();
        ensure!(weights.len() == edges, "{} weights for {edges} edges", weights.len());
        if let Some(at) = weights.iter().position(|w| !(w.is_finite() && *w > 0.0)) {
            let weight = weights[at];
            ensure!(false, "edge {at} weighs {weight}; an edge's weight is a positive number");
        }
        Ok(Self { weights: Some(weights.into()), ..self })
    }

    /// With features `[E, D]` of the edges, in their order, which a layer of that edge width scores. A
    /// self-loop that a layer adds has the mean of the features of the edges into its node. Refuses another
    /// shape.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Graph, GraphAttention, GraphAttentionConfig};
    /// let features = Tensor::from([[1f32, 0.0], [0.0, 1.0]]);
    /// let graph = Graph::new(3, &[(0, 1), (2, 1)])?.with_edge_features(&features)?;
    /// let config = GraphAttentionConfig { edge_width: 2, ..GraphAttentionConfig::new(5, 4, 2) };
    /// let layer = GraphAttention::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let x = Tensor::zeros(&[3, 5], DType::F32)?;
    /// assert_eq!(layer.forward(&x, &graph, Mode::Infer)?.shape(), [3, 8]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn with_edge_features(self, features: &Tensor) -> Result<Self> {
        let edges = self.given.pairs.len();
        ensure!(
            features.rank() == 2 && features.shape()[0] == edges && features.shape()[1] > 0,
            "edge features of shape {:?}; {edges} edges want [{edges}, D]",
            features.shape()
        );
        Ok(Self { features: Some(features.clone()), ..self })
    }

    /// Graphs side by side as one, with no edge from one to another: a batch. The nodes and the edges of
    /// each come after those of the one before. Refuses graphs of which some have weights or features of
    /// their edges and others have none.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::Graph;
    /// let graph = Graph::new(2, &[(0, 1)])?;
    /// let both = Graph::union(&[&graph, &graph])?;
    /// assert_eq!(both.edges(false), [(0, 1), (2, 3)]);
    /// assert_eq!(both.sizes(), [2, 2]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn union(graphs: &[&Graph]) -> Result<Self> {
        let (mut pairs, mut nodes) = (Vec::new(), 0);
        for graph in graphs {
            let moved = graph.given.pairs.iter().map(|&(s, t)| (s + nodes, t + nodes));
            pairs.extend(moved);
            nodes += graph.nodes;
        }
        let weights: Vec<&Arc<[f64]>> = graphs.iter().filter_map(|g| g.weights.as_ref()).collect();
        let features: Vec<Tensor> = graphs.iter().filter_map(|g| g.features.clone()).collect();
        for (name, have) in [("weights", weights.len()), ("features", features.len())] {
            let all = graphs.len();
            ensure!(have == 0 || have == all, "{have} of {all} graphs have {name} of their edges");
        }
        let weights: Option<Arc<[f64]>> =
            (!weights.is_empty()).then(|| weights.iter().flat_map(|w| w.iter().copied()).collect());
        let features = match features.is_empty() {
            true => None,
            false => Some(Tensor::cat(&features, 0)?),
        };
        let sizes = graphs.iter().flat_map(|graph| graph.sizes.iter().copied()).collect();
        // Each of them was checked when it was made.
        let given = Arc::new(Joined::new(nodes, pairs)?);
        Ok(Self { sizes, nodes, given, looped: Arc::default(), weights, features })
    }

    /// How many nodes each of the graphs has that it is the union of: one number, where it is none.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::Graph;
    /// assert_eq!(Graph::new(3, &[(0, 1)])?.sizes(), [3]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Width of the features of its edges; 0 where they have none.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::Graph;
    /// assert_eq!(Graph::new(3, &[(0, 1)])?.edge_width(), 0);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn edge_width(&self) -> usize {
        self.features.as_ref().map_or(0, |features| features.shape()[1])
    }

    /// Whether an edge carries anything, so that attention is to edges rather than to nodes.
    pub(super) fn weighs_edges(&self) -> bool {
        self.weights.is_some() || self.features.is_some()
    }

    /// The weights of its edges where they have any, in the order of [`Graph::edges`].
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::Graph;
    /// let graph = Graph::new(2, &[(0, 1)])?.with_edge_weights(&[3.0])?;
    /// assert_eq!(graph.edge_weights(false), Some(vec![3.0]));
    /// assert_eq!(graph.edge_weights(true), Some(vec![3.0, 1.0, 1.0]));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn edge_weights(&self, self_loops: bool) -> Option<Vec<f64>> {
        let weights = self.weights.as_ref()?;
        let (pairs, nodes) = (&self.given.pairs, if self_loops { self.nodes } else { 0 });
        let kept = pairs.iter().zip(weights.iter()).filter(|((s, t), _)| !self_loops || s != t);
        Some(kept.map(|(_, weight)| *weight).chain((0..nodes).map(|_| 1.0)).collect())
    }

    /// The logarithms `[E]` of the weights, where there are any, with those of self-loops or without.
    pub(super) fn log_weights(&self, self_loops: bool, dtype: DType) -> Result<Option<Tensor>> {
        let Some(weights) = self.edge_weights(self_loops) else { return Ok(None) };
        let all: Vec<f64> = weights.into_iter().map(f64::ln).collect();
        let count = all.len();
        Tensor::from_vec(all, &[count])?.to_dtype(dtype).map(Some)
    }

    /// The features `[E, D]` of the edges, where they have any, with those of self-loops or without.
    pub(super) fn edge_features(&self, self_loops: bool, dtype: DType) -> Result<Option<Tensor>> {
        let Some(features) = &self.features else { return Ok(None) };
        let features = features.to_dtype(dtype)?;
        if !self_loops {
            return Ok(Some(features));
        }
        let mut counts = vec![0f64; self.nodes];
        let (mut kept, mut targets) = (Vec::new(), Vec::new());
        for (edge, &(source, target)) in self.given.pairs.iter().enumerate() {
            if source != target {
                kept.push(edge as i64);
                targets.push(target as i64);
                counts[target] += 1.0;
            }
        }
        let (edges, nodes) = (kept.len(), self.nodes);
        let kept = features.rows(&Tensor::from_vec(kept, &[edges])?)?;
        let shares = counts.into_iter().map(|count| 1.0 / count.max(1.0)).collect();
        let shares = Tensor::from_vec(shares, &[nodes, 1])?.to_dtype(dtype)?;
        let sums = kept.segment_sum(&Tensor::from_vec(targets, &[edges])?, nodes)?;
        Tensor::cat(&[kept, sums.mul(&shares)?], 0).map(Some)
    }

    /// From (source, target) pairs alone: there are as many nodes as they name. Refuses an edge given
    /// twice.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::Graph;
    /// let graph = Graph::from_edges(&[(0, 1), (4, 1)])?;
    /// assert_eq!(graph.nodes(), 5);
    /// assert_eq!(Graph::from_edges(&[])?.nodes(), 0);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn from_edges(edges: &[(usize, usize)]) -> Result<Self> {
        let last = edges.iter().map(|&(source, target)| source.max(target)).max();
        let Some(last) = last else { return Self::new(0, edges) };
        let nodes = last.checked_add(1).ok_or_else(|| {
            Error::new(format!("a graph with node {last} has more nodes than can be counted"))
        })?;
        Self::new(nodes, edges)
    }

    /// How many nodes there are.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::Graph;
    /// assert_eq!(Graph::new(3, &[(0, 1)])?.nodes(), 3);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The (source, target) pairs in the order that weights are given in: as they were, or with
    /// self-loops.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::Graph;
    /// let graph = Graph::new(2, &[(1, 0)])?;
    /// assert_eq!(graph.edges(false), [(1, 0)]);
    /// assert_eq!(graph.edges(true), [(1, 0), (0, 0), (1, 1)]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn edges(&self, self_loops: bool) -> &[(usize, usize)] {
        match self.looped.get() {
            _ if !self_loops => &self.given.pairs,
            Some(looped) => &looped.pairs,
            None => self.joined(true).map_or(&[], |looped| &looped.pairs),
        }
    }

    pub(super) fn joined(&self, self_loops: bool) -> Result<&Joined> {
        if !self_loops {
            return Ok(&self.given);
        }
        if let Some(looped) = self.looped.get() {
            return Ok(looped);
        }
        let others = self.given.pairs.iter().filter(|(s, t)| s != t).copied();
        let all = others.chain((0..self.nodes).map(|n| (n, n))).collect();
        let looped = Joined::new(self.nodes, all)?;
        Ok(self.looped.get_or_init(|| looped))
    }
}

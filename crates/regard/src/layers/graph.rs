//! A graph, made ready once for many layers and steps.

use regard_kernels::Edges;
use regard_tensor::{Error, Result, Tensor, ensure};
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
    nodes: usize,
    given: Arc<Joined>,
    looped: Arc<OnceLock<Joined>>,
}

/// Edges in their order, and as the kernels and the operations on rows read them.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) pairs: Vec<(usize, usize)>,
    pub(super) mask: Arc<Edges>,
    /// `[E]`: where each of the pairs stands in the mask.
    pub(super) order: Tensor,
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
        Ok(Self { mask: Arc::new(mask), order, pairs })
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
        Ok(Self { nodes, given, looped: Arc::default() })
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
        Self::new(last.map_or(0, |last| last.saturating_add(1)), edges)
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

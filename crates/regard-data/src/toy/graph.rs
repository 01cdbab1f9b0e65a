//! A graph whose nodes have features and labels.

/// A graph whose nodes have features and labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// How many nodes.
    pub nodes: usize,
    /// Pairs of nodes, from 0; the smaller first, each pair once.
    pub edges: Vec<(usize, usize)>,
    /// nodes × D numbers.
    pub features: Vec<Vec<f32>>,
    /// The label of each node, as a place in `names`.
    pub labels: Vec<usize>,
    /// The labels' names.
    pub names: Vec<String>,
}

impl Graph {
    /// How many edges a node has.
    ///
    /// ```
    /// assert_eq!(regard_data::toy::karate().degree(0), 16);
    /// ```
    pub fn degree(&self, node: usize) -> usize {
        self.edges.iter().filter(|(a, b)| *a == node || *b == node).count()
    }
}

//! The mean of the neighbors: what graph attention is compared with.

use super::Graph;
use crate::{Attention, Bias, Linear, Mask, Mode, Score};
use regard_tensor::{Parameters, Result, Tensor, ensure};

/// y_i = mean of W x_j over the nodes j with an edge to i, and i itself, plus a bias: a graph
/// convolution, in which every neighbor weighs the same, or as much as its edge where edges have weights.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{Graph, GraphMean};
/// let layer = GraphMean::new(&Parameters::new(DType::F32, 1), 1, 1)?;
/// layer.linear.weight.set(&Tensor::from_vec(vec![1f32], &[1, 1])?)?;
/// let graph = Graph::new(3, &[(0, 1), (2, 1)])?;
/// let x = Tensor::from_vec(vec![3f32, 6.0, 9.0], &[3, 1])?;
/// assert_eq!(layer.forward(&x, &graph, Mode::Infer)?.to_vec::<f32>()?, [3.0, 6.0, 9.0]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GraphMean {
    /// W `[output, input]` and the bias.
    pub linear: Linear,
    /// The share of input features left out during training.
    pub dropout: f64,
}

impl GraphMean {
    /// New, with Glorot's weights and no dropout.
    /// Refuses sizes that no memory holds, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::GraphMean;
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let layer = GraphMean::new(&parameters, 5, 3)?;
    /// assert_eq!((parameters.numel(), layer.dropout), (5 * 3 + 3, 0.0));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, input: usize, output: usize) -> Result<Self> {
        ensure!(
            input > 0 && output > 0,
            "a graph layer with an input width of {input} and an output width of {output}"
        );
        Ok(Self { linear: Linear::new(&parameters.at("lin"), input, output, true)?, dropout: 0.0 })
    }

    /// x `[N, input]` → `[N, output]`.
    /// Refuses an input of another width or type, and a graph of another number of nodes.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Graph, GraphMean};
    /// let layer = GraphMean::new(&Parameters::new(DType::F64, 1), 1, 1)?;
    /// layer.linear.weight.set(&Tensor::from_vec(vec![1.0], &[1, 1])?)?;
    /// let x = Tensor::from_vec(vec![2.0, 4.0], &[2, 1])?;
    /// let y = layer.forward(&x, &Graph::new(2, &[(0, 1)])?, Mode::Infer)?.to_vec::<f64>()?;
    /// // node 0 has itself alone, node 1 both
    /// assert!((y[0] - 2.0).abs() < 1e-9 && (y[1] - 3.0).abs() < 1e-9);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor, graph: &Graph, mode: Mode) -> Result<Tensor> {
        ensure!(
            x.rank() == 2 && x.shape()[0] == graph.nodes(),
            "graph mean: x has shape {:?}; a graph of {} nodes wants [{}, input]",
            x.shape(),
            graph.nodes(),
            graph.nodes()
        );
        ensure!(graph.edge_width() == 0, "graph mean: it has no use for the features of edges");
        let v = self.linear.forward(&mode.dropout(x, self.dropout)?)?;
        // Attention whose scores are all 0: its weights are 1 over the number of neighbors.
        let nothing = |n| Tensor::zeros(&[n, 1], v.dtype())?.to_device(v.device());
        let (joined, nodes) = (graph.joined(true)?, nothing(graph.nodes())?);
        let attention = Attention::new(Score::dot());
        let Some(weights) = graph.log_weights(true, v.dtype())? else {
            return attention.forward(&nodes, &nodes, &v, &Mask::edges(joined.mask.clone()));
        };
        let by_edge = joined.by_edge()?;
        let attention = Attention { bias: Bias::key(weights), ..attention };
        let (k, v) = (nothing(joined.pairs.len())?, v.rows(&by_edge.sources)?);
        attention.forward(&nodes, &k, &v, &Mask::edges(by_edge.mask.clone()))
    }
}

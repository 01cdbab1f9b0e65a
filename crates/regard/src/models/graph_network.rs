//! A classifier of nodes, or of whole graphs.

use crate::attention::{Site, intervention};
use crate::layers::PoolingConfig;
use crate::mode::check_dropout;
use crate::{
    Activation, Classified, Graph, GraphAttention, GraphAttentionConfig, GraphMean, GraphVersion,
    Linear, Mode, Need, Pooling, Weighting,
};
use regard_tensor::{Parameters, Result, Tensor, ensure};

/// What the layers of a [`GraphAttentionNetwork`] are.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::GraphLayer;
/// assert_eq!(serde_json::from_str::<GraphLayer>("\"gatv2\"").unwrap(), GraphLayer::Gatv2);
/// assert!(serde_json::from_str::<GraphLayer>("\"gat3\"").is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum GraphLayer {
    /// Graph attention.
    #[default]
    Gat,
    /// Its second version.
    Gatv2,
    /// Attention by the dot product of a query and a key, as in a Transformer.
    Dot,
    /// The same over the root of the head's width.
    ScaledDot,
    /// The mean of the neighbors, to compare with.
    Mean,
}

/// What a [`GraphAttentionNetwork`] is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::{GraphLayer, GraphNetworkConfig};
/// let config: GraphNetworkConfig =
///     serde_json::from_str(r#"{ "features": 5, "layer": "mean" }"#).unwrap();
/// assert_eq!((config.layer, config.layers), (GraphLayer::Mean, 2));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct GraphNetworkConfig {
    /// Width of the nodes' features.
    pub features: usize,
    /// Classes.
    pub classes: usize,
    /// What the layers are.
    pub layer: GraphLayer,
    /// Layers, the last one included.
    pub layers: usize,
    /// Width of each head.
    pub hidden: usize,
    /// Heads of the inner layers, side by side.
    pub heads: usize,
    /// Heads of the last layer, of which the mean is taken; a network that pools has none.
    pub output_heads: usize,
    /// Between the layers.
    pub activation: Activation,
    /// The share left out during training: of each layer's input and of its weights.
    pub dropout: f64,
    /// Whether each node also attends to itself; the mean always includes it.
    pub self_loops: bool,
    /// Width of the edges' features, which enter the scores; 0 where edges have none.
    pub edge_width: usize,
    /// How the scores of edges become weights.
    pub weighting: Weighting,
    /// How the nodes of a graph become one vector, which is classified; none where each node is.
    pub pooling: Option<PoolingConfig>,
}

impl GraphNetworkConfig {
    /// For nodes with so many features and so many classes; all else as usual.
    ///
    /// ```
    /// use regard::models::GraphNetworkConfig;
    /// let config = GraphNetworkConfig { layers: 3, ..GraphNetworkConfig::new(5, 4) };
    /// assert_eq!((config.features, config.classes, config.layers), (5, 4, 3));
    /// ```
    pub fn new(features: usize, classes: usize) -> Self {
        Self { features, classes, ..Self::default() }
    }
}

impl Default for GraphNetworkConfig {
    fn default() -> Self {
        Self {
            features: 64,
            classes: 2,
            layer: GraphLayer::Gat,
            layers: 2,
            hidden: 8,
            heads: 8,
            output_heads: 1,
            activation: Activation::Elu { alpha: 1.0 },
            dropout: 0.6,
            self_loops: true,
            edge_width: 0,
            weighting: Weighting::Softmax,
            pooling: None,
        }
    }
}

/// Layers on a graph with a nonlinearity between, and logits for each node; or, where the nodes are
/// pooled, for each of the graphs that it is the [`Graph::union`] of.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{Graph, PoolingConfig};
/// use regard::models::{GraphAttentionNetwork, GraphNetworkConfig};
/// let config = GraphNetworkConfig { features: 5, classes: 3, ..GraphNetworkConfig::default() };
/// let network = GraphAttentionNetwork::new(&Parameters::new(DType::F32, 1), &config)?;
/// let graph = Graph::new(4, &[(0, 1), (1, 2), (2, 3)])?;
/// let logits = network.forward(&Tensor::zeros(&[4, 5], DType::F32)?, &graph, Mode::Infer)?;
/// assert_eq!(logits.shape(), [4, 3]);
/// // One label for each of two graphs.
/// let pooling = Some(PoolingConfig::Attention(MechanismConfig::default()));
/// let config = GraphNetworkConfig { pooling, ..config };
/// let network = GraphAttentionNetwork::new(&Parameters::new(DType::F32, 1), &config)?;
/// let both = Graph::union(&[&graph, &Graph::new(2, &[(0, 1)])?])?;
/// let x = Tensor::zeros(&[6, 5], DType::F32)?;
/// let classified = network.classify(&x, &both, Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(classified.logits.shape(), [2, 3]);
/// assert_eq!(classified.pooling.unwrap().shape(), [2, 4]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GraphAttentionNetwork {
    config: GraphNetworkConfig,
    layers: Vec<Layer>,
    head: Option<PooledHead>,
}

/// One vector of all nodes of a graph, and its classes.
#[derive(Clone, Debug)]
struct PooledHead {
    pooling: Pooling,
    out: Linear,
}

#[derive(Clone, Debug)]
enum Layer {
    Attention(GraphAttention),
    Mean(GraphMean),
}

impl GraphAttentionNetwork {
    /// New; its parameters are `layers.0.lin.weight`, ….
    /// Refuses a configuration that does not fit together, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::{GraphAttentionNetwork, GraphNetworkConfig};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let config = GraphNetworkConfig { layers: 0, ..GraphNetworkConfig::default() };
    /// let error = GraphAttentionNetwork::new(&parameters, &config).unwrap_err();
    /// assert_eq!(error.to_string(), "a graph network of 0 layers");
    /// ```
    pub fn new(parameters: &Parameters, config: &GraphNetworkConfig) -> Result<Self> {
        let c = config;
        ensure!(c.layers > 0, "a graph network of 0 layers");
        ensure!(c.classes > 0, "a graph network for 0 classes");
        ensure!(
            c.hidden > 0 && c.heads > 0 && c.output_heads > 0,
            "a graph network of {} heads of width {}, {} in the last layer",
            c.heads,
            c.hidden,
            c.output_heads
        );
        check_dropout(c.dropout)?;
        if c.layer == GraphLayer::Mean {
            let weighting = c.weighting;
            ensure!(
                weighting == Weighting::Softmax,
                "a mean weighs all alike, not by {weighting:?}"
            );
            ensure!(c.edge_width == 0, "a mean has no use for the features of edges");
        }
        let mut layers = Vec::new();
        let mut input = c.features;
        for at in 0..c.layers {
            let place = parameters.at("layers").at(at);
            let last = at + 1 == c.layers && c.pooling.is_none();
            let output = if last { c.classes } else { c.hidden };
            let heads = if last { c.output_heads } else { c.heads };
            let layer = if c.layer == GraphLayer::Mean {
                let output = if last { output } else { heads.saturating_mul(output) };
                let mean = GraphMean::new(&place, input, output)?;
                Layer::Mean(GraphMean { dropout: c.dropout, ..mean })
            } else {
                let config = GraphAttentionConfig {
                    input,
                    output,
                    heads,
                    version: match c.layer {
                        GraphLayer::Gatv2 => GraphVersion::V2,
                        GraphLayer::Dot => GraphVersion::Dot,
                        GraphLayer::ScaledDot => GraphVersion::ScaledDot,
                        GraphLayer::Gat | GraphLayer::Mean => GraphVersion::V1,
                    },
                    concat: !last,
                    self_loops: c.self_loops,
                    dropout: c.dropout,
                    input_dropout: c.dropout,
                    edge_width: c.edge_width,
                    weighting: c.weighting,
                    ..GraphAttentionConfig::default()
                };
                Layer::Attention(GraphAttention::new(&place, &config)?)
            };
            layers.push(layer);
            input = c.heads.saturating_mul(c.hidden);
        }
        let head = c.pooling.as_ref().map(|config| {
            let pooling = Pooling::new(&parameters.at("pooling"), config, input)?;
            let out = Linear::new(&parameters.at("out"), pooling.width(), c.classes, true)?;
            Result::Ok(PooledHead { pooling, out })
        });
        Ok(Self { config: config.clone(), layers, head: head.transpose()? })
    }

    /// How it was made.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{GraphAttentionNetwork, GraphNetworkConfig};
    /// # let config = GraphNetworkConfig { features: 5, classes: 3, ..GraphNetworkConfig::default() };
    /// # let network = GraphAttentionNetwork::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let x = Tensor::zeros(&[4, 5], DType::F32)?;
    /// assert_eq!(network.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &GraphNetworkConfig {
        &self.config
    }

    /// x `[N, features]` → logits `[N, classes]`, or `[B, classes]` of B graphs where nodes are pooled.
    /// Refuses features of another width or type, and a graph of another number of nodes.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::Graph;
    /// # use regard::models::{GraphAttentionNetwork, GraphNetworkConfig};
    /// # let config = GraphNetworkConfig { features: 5, classes: 3, ..GraphNetworkConfig::default() };
    /// # let network = GraphAttentionNetwork::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let x = Tensor::zeros(&[4, 5], DType::F32)?;
    /// let graph = Graph::new(4, &[(0, 1), (1, 2), (2, 3)])?;
    /// assert_eq!(network.forward(&x, &graph, Mode::Infer)?.shape(), [4, 3]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor, graph: &Graph, mode: Mode) -> Result<Tensor> {
        Ok(self.classify(x, graph, mode, Need::OUTPUT)?.logits)
    }

    /// As [`GraphAttentionNetwork::forward`], with the weights `[E, H]` of each attention layer
    /// where they are needed, in the order of [`Graph::edges`], and those of the pooling.
    /// Refuses features of another width or type, and a graph of another number of nodes.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::Graph;
    /// # use regard::models::{GraphAttentionNetwork, GraphNetworkConfig};
    /// # let config = GraphNetworkConfig { features: 5, classes: 3, ..GraphNetworkConfig::default() };
    /// # let network = GraphAttentionNetwork::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let x = Tensor::zeros(&[4, 5], DType::F32)?;
    /// let graph = Graph::new(4, &[(0, 1), (1, 2), (2, 3)])?;
    /// let weights = network.classify(&x, &graph, Mode::Infer, Need::WEIGHTS)?.weights;
    /// // three edges and four self-loops; eight heads, then one
    /// assert_eq!((weights[0].shape(), weights[1].shape()), (&[7, 8][..], &[7, 1][..]));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn classify(
        &self,
        x: &Tensor,
        graph: &Graph,
        mode: Mode,
        need: Need,
    ) -> Result<Classified> {
        let mut x = x.clone();
        let mut weights = Vec::new();
        for (at, layer) in self.layers.iter().enumerate() {
            x = match layer {
                Layer::Attention(layer) => {
                    let attend = || layer.attend(&x, graph, mode, need);
                    let attended = intervention::at(Site::Graph, at, 0, attend)?;
                    weights.extend(attended.weights);
                    attended.out
                }
                Layer::Mean(layer) => layer.forward(&x, graph, mode)?,
            };
            if at + 1 < self.layers.len() || self.head.is_some() {
                x = x.activate(self.config.activation)?;
            }
        }
        let Some(head) = &self.head else { return Ok(Classified::new(x, weights)) };
        let pooled = head.pooling.pool(&apart(&x, graph)?, Some(graph.sizes()), mode, need)?;
        let logits = head.out.forward(&mode.dropout(&pooled.out, self.config.dropout)?)?;
        let classified = Classified::new(logits, weights);
        let (pooling, index, log_prob) = (pooled.weights, pooled.index, pooled.log_prob);
        Ok(Classified { pooling, index, log_prob, ..classified })
    }
}

/// The nodes' vectors `[N, D]` graph by graph, filled up to the largest: `[B, most nodes, D]`.
fn apart(x: &Tensor, graph: &Graph) -> Result<Tensor> {
    let (sizes, width) = (graph.sizes(), x.shape()[1]);
    let most = sizes.iter().copied().max().unwrap_or(0);
    let mut rows = Vec::with_capacity(sizes.len() * most);
    let mut first = 0;
    for &size in sizes {
        // Beyond its nodes any row will do: pooling does not look there.
        rows.extend((0..most).map(|node| if node < size { first + node } else { 0 } as i64));
        first += size;
    }
    let count = rows.len();
    x.rows(&Tensor::from_vec(rows, &[count])?)?.reshape(&[sizes.len(), most, width])
}

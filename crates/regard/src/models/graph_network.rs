//! A classifier of nodes.

use crate::attention::{Site, intervention};
use crate::{
    Activation, Classified, Graph, GraphAttention, GraphAttentionConfig, GraphMean, GraphVersion,
    Mode, Need,
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
    /// Heads of the last layer, of which the mean is taken.
    pub output_heads: usize,
    /// Between the layers.
    pub activation: Activation,
    /// The share left out while learning: of each layer's input and of its weights.
    pub dropout: f64,
    /// Whether each node also attends to itself; the mean always includes it.
    pub self_loops: bool,
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
        }
    }
}

/// Layers on a graph with a nonlinearity between, and logits for each node.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::Graph;
/// use regard::models::{GraphAttentionNetwork, GraphNetworkConfig};
/// let config = GraphNetworkConfig { features: 5, classes: 3, ..GraphNetworkConfig::default() };
/// let network = GraphAttentionNetwork::new(&Parameters::new(DType::F32, 1), &config)?;
/// let graph = Graph::new(4, &[(0, 1), (1, 2), (2, 3)])?;
/// let logits = network.forward(&Tensor::zeros(&[4, 5], DType::F32)?, &graph, Mode::Infer)?;
/// assert_eq!(logits.shape(), [4, 3]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GraphAttentionNetwork {
    config: GraphNetworkConfig,
    layers: Vec<Layer>,
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
        ensure!((0.0..1.0).contains(&c.dropout), "a dropout of {} is not within 0..1", c.dropout);
        let mut layers = Vec::new();
        let mut input = c.features;
        for at in 0..c.layers {
            let place = parameters.at("layers").at(at);
            let last = at + 1 == c.layers;
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
                        _ => GraphVersion::V1,
                    },
                    concat: !last,
                    self_loops: c.self_loops,
                    dropout: c.dropout,
                    input_dropout: c.dropout,
                    ..GraphAttentionConfig::default()
                };
                Layer::Attention(GraphAttention::new(&place, &config)?)
            };
            layers.push(layer);
            input = c.heads.saturating_mul(c.hidden);
        }
        Ok(Self { config: config.clone(), layers })
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

    /// x `[N, features]` → logits `[N, classes]`.
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
    /// where they are needed, in the order of [`Graph::edges`].
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
            if at + 1 < self.layers.len() {
                x = x.activate(self.config.activation)?;
            }
        }
        Ok(Classified::new(x, weights))
    }
}

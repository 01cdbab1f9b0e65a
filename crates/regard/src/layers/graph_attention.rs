//! Graph attention, in both of its versions.

use super::Graph;
use crate::attention::intervention;
use crate::mode::check_dropout;
use crate::{Attended, Attention, Bias, Linear, Mask, Mode, Need, Score, Weighting};
use regard_kernels::Normalizer;
use regard_tensor::{Activation, Error, Init, Parameter, Parameters, Result, Tensor, ensure};

/// Which graph attention.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{GraphAttention, GraphAttentionConfig, GraphVersion};
/// let parameters = Parameters::new(DType::F32, 1);
/// let config = GraphAttentionConfig { version: GraphVersion::V2, bias: false, ..Default::default() };
/// GraphAttention::new(&parameters, &config)?;
/// let names: Vec<_> = parameters.all().iter().map(|p| p.name().to_string()).collect();
/// // two projections and one vector; version 1 has one projection and two vectors
/// assert_eq!(names, ["att", "lin_l.weight", "lin_r.weight"]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum GraphVersion {
    /// GAT: e_ij = leakyReLU(a_l · W h_i + a_r · W h_j) (Veličković and others 2018).
    #[default]
    V1,
    /// GATv2: e_ij = a · leakyReLU(W_l h_i + W_r h_j) (Brody, Alon, Yahav 2022).
    V2,
    /// e_ij = W_q h_i · W_k h_j, and values of their own, as in a Transformer.
    Dot,
    /// The same over the root of the head's width.
    ScaledDot,
}

/// What a [`GraphAttention`] is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{GraphAttentionConfig, GraphVersion};
/// let config: GraphAttentionConfig = serde_json::from_str(r#"{ "version": "v2" }"#).unwrap();
/// assert_eq!((config.version, config.heads), (GraphVersion::V2, 8));
/// let error = serde_json::from_str::<GraphAttentionConfig>(r#"{ "head": 2 }"#).unwrap_err();
/// assert!(error.to_string().contains("unknown field `head`"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct GraphAttentionConfig {
    /// Width of the nodes' features.
    pub input: usize,
    /// Width of each head.
    pub output: usize,
    /// Heads.
    pub heads: usize,
    /// Which graph attention.
    pub version: GraphVersion,
    /// Whether heads stand side by side (true) or their mean is taken.
    pub concat: bool,
    /// Whether each node also attends to itself.
    pub self_loops: bool,
    /// The slope of the leaky ReLU below 0.
    pub negative_slope: f64,
    /// Whether the output has a bias; in version 2, the two projections too.
    pub bias: bool,
    /// The share of weights left out during training.
    pub dropout: f64,
    /// The share of input features left out during training.
    pub input_dropout: f64,
    /// Width of the edges' features, which enter the score; 0 where edges have none. f_ij is added, by a
    /// matrix of its own, to what the score makes of the node that the edge comes from: inside GATv2's
    /// activation and GAT's, and to the key of a dot product.
    pub edge_width: usize,
    /// How scores become weights: softmax, sparsemax, entmax15, sigmoid, none or argmax.
    pub weighting: Weighting,
}

impl Default for GraphAttentionConfig {
    fn default() -> Self {
        Self {
            input: 64,
            output: 8,
            heads: 8,
            version: GraphVersion::V1,
            concat: true,
            self_loops: true,
            negative_slope: 0.2,
            bias: true,
            dropout: 0.0,
            input_dropout: 0.0,
            edge_width: 0,
            weighting: Weighting::Softmax,
        }
    }
}

impl GraphAttentionConfig {
    /// For features of a width, with heads of a width each; all else as usual.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::GraphAttentionConfig;
    /// let config = GraphAttentionConfig::new(32, 8, 4);
    /// assert_eq!((config.input, config.output, config.heads, config.width()), (32, 8, 4, 32));
    /// ```
    pub fn new(input: usize, output: usize, heads: usize) -> Self {
        Self { input, output, heads, ..Self::default() }
    }

    /// Refuses what cannot be built, by name.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::GraphAttentionConfig;
    /// let error = GraphAttentionConfig { heads: 0, ..Default::default() }.check().unwrap_err();
    /// let said = "graph attention with an input width of 64, 0 heads and a head width of 8";
    /// assert_eq!(error.to_string(), said);
    /// ```
    pub fn check(&self) -> Result<()> {
        let Self { input, output, heads, .. } = *self;
        ensure!(
            input > 0 && output > 0 && heads > 0,
            "graph attention with an input width of {input}, {heads} heads and a head width of {output}"
        );
        ensure!(self.negative_slope.is_finite(), "a negative slope of {}", self.negative_slope);
        check_dropout(self.dropout)?;
        check_dropout(self.input_dropout).map_err(|error| error.within("input_dropout"))?;
        self.normalizer().map(|_| ())
    }

    /// The operator's name for the weighting. Refuses what draws by chance.
    fn normalizer(&self) -> Result<Normalizer> {
        Ok(match self.weighting {
            Weighting::Softmax => Normalizer::Softmax,
            Weighting::Sparsemax => Normalizer::Sparsemax,
            Weighting::Entmax15 => Normalizer::Entmax15,
            Weighting::Sigmoid => Normalizer::Sigmoid,
            Weighting::None => Normalizer::None,
            Weighting::Argmax => Normalizer::Argmax,
            other => {
                return Err(Error::new(format!(
                    "graph attention weighs edges by softmax, sparsemax, entmax15, sigmoid, none or \
                     argmax, and not by {other:?}"
                )));
            }
        })
    }

    /// Width of what comes out.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::GraphAttentionConfig;
    /// let config = GraphAttentionConfig { output: 4, heads: 3, ..Default::default() };
    /// assert_eq!(config.width(), 12);
    /// assert_eq!(GraphAttentionConfig { concat: false, ..config }.width(), 4);
    /// ```
    pub fn width(&self) -> usize {
        if self.concat { self.heads.saturating_mul(self.output) } else { self.output }
    }
}

/// Each node attends to the nodes that have an edge to it. Parameters have the names of
/// torch_geometric's `GATConv` and `GATv2Conv`, so their weights load: there `lin_l` and `att_src`
/// are of the node an edge comes from, `lin_r` and `att_dst` of the node it leads to.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{Graph, GraphAttention, GraphAttentionConfig};
/// let config = GraphAttentionConfig { input: 5, output: 4, heads: 2, ..Default::default() };
/// let layer = GraphAttention::new(&Parameters::new(DType::F32, 1), &config)?;
/// let graph = Graph::new(3, &[(0, 1), (1, 2)])?;
/// let x = Random::new(1).normal(&[3, 5], 0.0, 1.0, DType::F32)?;
/// let attended = layer.attend(&x, &graph, Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(attended.out.shape(), [3, 8]);
/// // Two edges, then three self-loops, for each head.
/// assert_eq!(attended.weights.unwrap().shape(), [5, 2]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GraphAttention {
    config: GraphAttentionConfig,
    normalizer: Normalizer,
    projection: Projection,
    edge: Option<EdgeProjection>,
    bias: Option<Parameter>,
}

#[derive(Clone, Debug)]
enum Projection {
    V1 { lin: Linear, att_src: Parameter, att_dst: Parameter },
    V2 { lin_l: Linear, lin_r: Linear, att: Parameter },
    Dot { lin_query: Linear, lin_key: Linear, lin_value: Linear, scaled: bool },
}

/// What the features of an edge are multiplied by.
#[derive(Clone, Debug)]
struct EdgeProjection {
    lin: Linear,
    /// Version 1 has a vector for them, as for each end of an edge.
    att: Option<Parameter>,
}

/// Queries, keys and values of all heads, and what scores them.
struct Heads {
    /// `[N, H, 1]` or `[N, H, C]`
    q: Tensor,
    k: Tensor,
    /// `[N, H, C]`
    v: Tensor,
    score: Score,
}

impl GraphAttention {
    /// New, with Glorot's weights.
    /// Refuses a configuration that does not fit together, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{GraphAttention, GraphAttentionConfig};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let config = GraphAttentionConfig { input: 5, output: 4, heads: 2, ..Default::default() };
    /// GraphAttention::new(&parameters, &config)?;
    /// // a projection, a vector for each end of an edge, a bias
    /// assert_eq!(parameters.numel(), 5 * 8 + 2 * 8 + 8);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &GraphAttentionConfig) -> Result<Self> {
        config.check()?;
        let GraphAttentionConfig { input, output, heads, .. } = *config;
        let inner = heads.saturating_mul(output);
        // Glorot's bound for `[1, H, C]`, as torch_geometric takes it: from the last two axes.
        let bound = (6.0 / heads.saturating_add(output) as f64).sqrt();
        let vector =
            |name: &str| parameters.parameter(name, &[1, heads, output], Init::Uniform(bound));
        let linear = |name: &str, bias| Linear::new(&parameters.at(name), input, inner, bias);
        let projection = match config.version {
            GraphVersion::V1 => Projection::V1 {
                lin: linear("lin", false)?,
                att_src: vector("att_src")?,
                att_dst: vector("att_dst")?,
            },
            GraphVersion::V2 => Projection::V2 {
                lin_l: linear("lin_l", config.bias)?,
                lin_r: linear("lin_r", config.bias)?,
                att: vector("att")?,
            },
            GraphVersion::Dot | GraphVersion::ScaledDot => Projection::Dot {
                lin_query: linear("lin_query", config.bias)?,
                lin_key: linear("lin_key", config.bias)?,
                lin_value: linear("lin_value", config.bias)?,
                scaled: config.version == GraphVersion::ScaledDot,
            },
        };
        let first = config.version == GraphVersion::V1;
        let edge = (config.edge_width > 0).then(|| {
            let lin = Linear::new(&parameters.at("lin_edge"), config.edge_width, inner, false)?;
            Result::Ok(EdgeProjection { lin, att: first.then(|| vector("att_edge")).transpose()? })
        });
        let edge = edge.transpose()?;
        let bias =
            config.bias.then(|| parameters.parameter("bias", &[config.width()], Init::Zeros));
        let normalizer = config.normalizer()?;
        Ok(Self { config: config.clone(), normalizer, projection, edge, bias: bias.transpose()? })
    }

    /// How it was made.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{GraphAttention, GraphAttentionConfig};
    /// # let config = GraphAttentionConfig { input: 5, output: 4, heads: 1, ..Default::default() };
    /// # let layer = GraphAttention::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let x = Random::new(1).normal(&[3, 5], 0.0, 1.0, DType::F32)?;
    /// assert_eq!(layer.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &GraphAttentionConfig {
        &self.config
    }

    /// x `[N, input]` → `[N, H · output]`, or `[N, output]` where the mean of the heads is taken.
    /// Refuses an input of another width or type, and a graph of another number of nodes.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Graph, GraphAttention, GraphAttentionConfig};
    /// # let config = GraphAttentionConfig { input: 5, output: 4, heads: 1, ..Default::default() };
    /// # let layer = GraphAttention::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let x = Random::new(1).normal(&[3, 5], 0.0, 1.0, DType::F32)?;
    /// let graph = Graph::new(3, &[(0, 1), (1, 2)])?;
    /// assert_eq!(layer.forward(&x, &graph, Mode::Infer)?.shape(), [3, 4]);
    /// let error = layer.forward(&x.narrow(0, 0, 2)?, &graph, Mode::Infer).unwrap_err().to_string();
    /// assert_eq!(error, "graph attention: x has shape [2, 5]; a graph of 3 nodes wants [3, 5]");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor, graph: &Graph, mode: Mode) -> Result<Tensor> {
        Ok(self.attend(x, graph, mode, Need::OUTPUT)?.out)
    }

    /// As [`GraphAttention::forward`], with the weights of the edges `[E, H]` where they are needed,
    /// in the order of [`Graph::edges`]: what values were multiplied by, dropout included.
    /// Refuses an input of another width or type, and a graph of another number of nodes.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Graph, GraphAttention, GraphAttentionConfig};
    /// # let config = GraphAttentionConfig { input: 5, output: 4, heads: 1, ..Default::default() };
    /// # let layer = GraphAttention::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let x = Random::new(1).normal(&[3, 5], 0.0, 1.0, DType::F32)?;
    /// let graph = Graph::new(3, &[(0, 1), (1, 2)])?;
    /// let attended = layer.attend(&x, &graph, Mode::Infer, Need::WEIGHTS)?;
    /// let weights = attended.weights.unwrap().to_vec::<f32>()?;
    /// // (0, 1), (1, 2), (0, 0), (1, 1), (2, 2): what leads to node 1 sums to 1
    /// assert!((weights[0] + weights[3] - 1.0).abs() < 1e-5);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn attend(&self, x: &Tensor, graph: &Graph, mode: Mode, need: Need) -> Result<Attended> {
        let c = &self.config;
        ensure!(
            x.shape() == [graph.nodes(), c.input],
            "graph attention: x has shape {:?}; a graph of {} nodes wants [{}, {}]",
            x.shape(),
            graph.nodes(),
            graph.nodes(),
            c.input
        );
        ensure!(
            graph.edge_width() == c.edge_width,
            "graph attention: the graph's edges have {} features; the layer wants {}",
            graph.edge_width(),
            c.edge_width
        );
        let joined = graph.joined(c.self_loops)?;
        let heads = self.heads(&mode.dropout(x, c.input_dropout)?)?;
        let dropout = mode.weights_dropout(c.dropout);
        let normalizer = self.normalizer;
        let mut attention = Attention { dropout, normalizer, ..Attention::new(heads.score) };
        let Heads { q, mut k, mut v, .. } = heads;
        // `[N, H, C]` seen as `[1, H, N, C]`: the kernels read and write it where it lies.
        let batch = |x: &Tensor| x.transpose(0, 1)?.unsqueeze(0);
        let edges = Need { weights: false, edge_weights: need.weights, ..need };
        let (attended, order) = if graph.weighs_edges() {
            // What edges carry belongs to no node: the keys and values are those of edges then.
            let by_edge = joined.by_edge()?;
            (k, v) = (k.rows(&by_edge.sources)?, v.rows(&by_edge.sources)?);
            if let Some(term) = self.edge_term(graph)? {
                k = k.add(&term)?;
            }
            if let Some(weights) = graph.log_weights(c.self_loops, k.dtype())? {
                ensure!(
                    normalizer != Normalizer::None,
                    "graph attention: scores that are weights themselves (\"none\") are not multiplied \
                     by the weight of an edge"
                );
                attention.bias = Bias::key(weights);
            }
            let mask = Mask::edges(by_edge.mask.clone());
            let (q, k, v) = (batch(&q)?, batch(&k)?, batch(&v)?);
            let attend = || attention.attend(&q, &k, &v, &mask, edges);
            (intervention::with_columns(&by_edge.columns, attend)?, &by_edge.order)
        } else {
            let mask = Mask::edges(joined.mask.clone());
            let (q, k, v) = (batch(&q)?, batch(&k)?, batch(&v)?);
            (attention.attend(&q, &k, &v, &mask, edges)?, &joined.order)
        };
        let out = attended.out.squeeze(0)?.transpose(0, 1)?;
        let out = if c.concat { out.reshape(&[graph.nodes(), c.width()])? } else { out.mean(1)? };
        let out = match &self.bias {
            Some(bias) => out.add(&bias.tensor())?,
            None => out,
        };
        let as_given = |x: Tensor| x.squeeze(0)?.transpose(0, 1)?.rows(order);
        let weights = attended.edge_weights.map(as_given).transpose()?;
        let lse = attended.lse.map(|lse| lse.squeeze(0)?.transpose(0, 1)).transpose()?;
        Ok(Attended { weights, lse, ..out.into() })
    }

    /// What the features of edges add to their keys: `[E, H, 1]` or `[E, H, C]`.
    fn edge_term(&self, graph: &Graph) -> Result<Option<Tensor>> {
        let GraphAttentionConfig { output, heads, self_loops, .. } = self.config;
        let Some(edge) = &self.edge else { return Ok(None) };
        let dtype = edge.lin.weight.tensor().dtype();
        let Some(features) = graph.edge_features(self_loops, dtype)? else { return Ok(None) };
        let term = edge.lin.forward(&features)?;
        let term = term.reshape(&[term.shape()[0], heads, output])?;
        Ok(Some(match &edge.att {
            Some(att) => term.mul(&att.tensor())?.sum(2)?.unsqueeze(2)?,
            None => term,
        }))
    }

    fn heads(&self, x: &Tensor) -> Result<Heads> {
        let GraphAttentionConfig { output, heads, .. } = self.config;
        let split = |x: Tensor| x.reshape(&[x.shape()[0], heads, output]);
        let activation = Activation::LeakyRelu { slope: self.config.negative_slope };
        match &self.projection {
            Projection::V1 { lin, att_src, att_dst } => {
                let v = split(lin.forward(x)?)?;
                let half = |a: &Parameter| v.mul(&a.tensor())?.sum(2)?.unsqueeze(2);
                let w = Tensor::full(&[1], 1.0, v.dtype())?.to_device(v.device())?;
                let score = Score::Additive { activation, w };
                Ok(Heads { q: half(att_dst)?, k: half(att_src)?, v, score })
            }
            Projection::V2 { lin_l, lin_r, att } => {
                let source = split(lin_l.forward(x)?)?;
                let target = split(lin_r.forward(x)?)?;
                let score = Score::Additive { activation, w: att.tensor().squeeze(0)? };
                Ok(Heads { q: target, k: source.clone(), v: source, score })
            }
            Projection::Dot { lin_query, lin_key, lin_value, scaled } => Ok(Heads {
                q: split(lin_query.forward(x)?)?,
                k: split(lin_key.forward(x)?)?,
                v: split(lin_value.forward(x)?)?,
                score: if *scaled { Score::ScaledDot } else { Score::dot() },
            }),
        }
    }
}

//! Graph attention: against torch_geometric's numbers, and what it promises beside them.

use regard::layers::{
    Graph, GraphAttention, GraphAttentionConfig, GraphMean, GraphVersion, PoolingConfig,
};
use regard::models::{GraphAttentionNetwork, GraphLayer, GraphNetworkConfig};
use regard::prelude::*;
use regard::tensor::{finite_difference_error, load, parameter_difference_error};
use std::collections::BTreeMap;

fn normal(seed: u64, shape: &[usize]) -> Tensor {
    Random::new(seed).normal(shape, 0.0, 1.0, DType::F64).unwrap()
}

fn numbers(x: &Tensor) -> Vec<f64> {
    x.to_vec().unwrap()
}

#[track_caller]
fn near(a: &Tensor, b: &Tensor, what: &str) {
    assert_eq!(a.shape(), b.shape(), "{what}");
    for (a, b) in numbers(a).iter().zip(numbers(b)) {
        assert!((a - b).abs() < 1e-10 * b.abs().max(1.0), "{what}: {a}, known {b}");
    }
}

/// Every case of a file of known tensors: outputs, weights in their order, every gradient.
fn known(file: &str, version: GraphVersion) {
    let path = format!("{}/../../fixtures/{file}.safetensors", env!("CARGO_MANIFEST_DIR"));
    let (tensors, _) = load(path).unwrap();
    for (case, concat, self_loops) in
        [("concat", true, true), ("mean", false, true), ("concat-no-loops", true, false)]
    {
        let get = |name: &str| &tensors[&format!("{case}/{name}")];
        let pairs = |name: &str| {
            let edges = get(name).to_vec::<i64>().unwrap();
            let (source, target) = edges.split_at(edges.len() / 2);
            let pair = |(&s, &t): (&i64, &i64)| (s as usize, t as usize);
            source.iter().zip(target).map(pair).collect::<Vec<_>>()
        };
        let parameters = Parameters::new(DType::F64, 1);
        let config = GraphAttentionConfig {
            input: 6,
            output: 4,
            heads: 3,
            version,
            concat,
            self_loops,
            ..GraphAttentionConfig::default()
        };
        let layer = GraphAttention::new(&parameters, &config).unwrap();
        let prefix = format!("{case}/weight/");
        let weights: BTreeMap<String, Tensor> = tensors
            .iter()
            .filter_map(|(name, x)| Some((name.strip_prefix(&prefix)?.to_string(), x.clone())))
            .collect();
        parameters.set(&weights).unwrap();
        let graph = Graph::new(7, &pairs("input/edges")).unwrap();
        let x = Parameter::new("x", get("input/x").clone()).unwrap();
        let attended = layer.attend(&x.tensor(), &graph, Mode::Infer, Need::WEIGHTS).unwrap();
        near(&attended.out, get("output/out"), case);
        near(&attended.weights.unwrap(), get("output/weights"), case);
        assert_eq!(graph.edges(self_loops), pairs("output/edges"));
        let gradients = attended.out.backward_with(get("grad_out/out")).unwrap();
        near(gradients.get(&x).unwrap(), get("grad/x"), &format!("{case}: gradient of x"));
        for parameter in parameters.all() {
            let expected = get(&format!("grad/{}", parameter.name()));
            let what = format!("{case}: gradient of {}", parameter.name());
            near(gradients.get(&parameter).unwrap(), expected, &what);
        }
    }
}

#[test]
fn the_first_version_gives_the_numbers_of_the_fixture() {
    known("gat", GraphVersion::V1);
}

#[test]
fn the_second_version_gives_the_numbers_of_the_fixture() {
    known("gatv2", GraphVersion::V2);
}

fn layer(parameters: &Parameters, version: GraphVersion, dropout: f64) -> GraphAttention {
    let config = GraphAttentionConfig {
        input: 3,
        output: 2,
        heads: 2,
        version,
        dropout,
        input_dropout: dropout,
        ..GraphAttentionConfig::default()
    };
    GraphAttention::new(parameters, &config).unwrap()
}

fn path() -> Graph {
    Graph::new(5, &[(0, 1), (1, 0), (1, 2), (2, 1), (3, 2), (0, 2)]).unwrap()
}

#[test]
fn outputs_and_weights_have_gradients_with_dropout_too() {
    for version in [GraphVersion::V1, GraphVersion::V2] {
        let parameters = Parameters::new(DType::F64, 1);
        let layer = layer(&parameters, version, 0.3);
        let graph = path();
        let run = |x: &[Tensor]| {
            let random = Random::new(4);
            let seen = layer.attend(&x[0], &graph, Mode::Train(&random), Need::WEIGHTS)?;
            seen.out.sum_all()?.add(&seen.weights.unwrap().square()?.sum_all()?)
        };
        let x = [normal(2, &[5, 3])];
        let error = finite_difference_error(&x, run).unwrap();
        assert!(error < 1e-6, "{version:?}: inputs differ by {error}");
        let error = parameter_difference_error(&parameters.all(), || run(&x)).unwrap();
        assert!(error < 1e-6, "{version:?}: parameters differ by {error}");
    }
}

#[test]
fn weights_are_what_the_values_were_multiplied_by_dropout_included() {
    let random = Random::new(3);
    for (version, mode) in [
        (GraphVersion::V1, Mode::Infer),
        (GraphVersion::V2, Mode::Infer),
        (GraphVersion::V1, Mode::Train(&random)),
        (GraphVersion::V2, Mode::Train(&random)),
    ] {
        let parameters = Parameters::new(DType::F64, 1);
        let config = GraphAttentionConfig {
            input_dropout: 0.0,
            ..layer(&Parameters::new(DType::F64, 1), version, 0.5).config().clone()
        };
        let layer = GraphAttention::new(&parameters, &config).unwrap();
        let graph = path();
        let x = normal(2, &[5, 3]);
        let seen = layer.attend(&x, &graph, mode, Need::WEIGHTS).unwrap();
        let all = parameters.tensors();
        let v = match version {
            GraphVersion::V1 => x.linear(&all["lin.weight"], None).unwrap(),
            _ => x.linear(&all["lin_l.weight"], Some(&all["lin_l.bias"])).unwrap(),
        };
        let (v, weights) = (numbers(&v), numbers(&seen.weights.unwrap()));
        assert_eq!(weights.contains(&0.0), mode.is_training(), "what is dropped is 0");
        let mut out = vec![0.0; 5 * 4];
        for (edge, (source, target)) in graph.edges(true).iter().enumerate() {
            for d in 0..4 {
                out[target * 4 + d] += weights[edge * 2 + d / 2] * v[source * 4 + d];
            }
        }
        near(&seen.out, &Tensor::from_vec(out, &[5, 4]).unwrap(), "sum over the edges");
    }
}

#[test]
fn a_node_without_neighbors_gets_zeros_and_the_bias() {
    let parameters = Parameters::new(DType::F64, 1);
    let config = GraphAttentionConfig {
        input: 3,
        output: 2,
        heads: 2,
        self_loops: false,
        ..GraphAttentionConfig::default()
    };
    let layer = GraphAttention::new(&parameters, &config).unwrap();
    let out = layer.forward(&normal(2, &[5, 3]), &path(), Mode::Infer).unwrap();
    assert_eq!(numbers(&out.select(0, 4).unwrap()), [0.0; 4]);
}

#[test]
fn the_mean_layer_is_the_mean_of_the_neighbors_and_the_node() {
    let parameters = Parameters::new(DType::F64, 1);
    let layer = GraphMean::new(&parameters, 3, 2).unwrap();
    let (graph, x) = (path(), normal(2, &[5, 3]));
    let v = numbers(&layer.linear.forward(&x).unwrap());
    let mut expected = vec![0.0; 10];
    for target in 0..5 {
        let to = |e: &&(usize, usize)| e.1 == target;
        let sources: Vec<usize> = graph.edges(true).iter().filter(to).map(|e| e.0).collect();
        for d in 0..2 {
            let sum: f64 = sources.iter().map(|s| v[s * 2 + d]).sum();
            expected[target * 2 + d] = sum / sources.len() as f64;
        }
    }
    let out = layer.forward(&x, &graph, Mode::Infer).unwrap();
    near(&out, &Tensor::from_vec(expected, &[5, 2]).unwrap(), "mean");
    let error =
        parameter_difference_error(&parameters.all(), || layer.forward(&x, &graph, Mode::Infer))
            .unwrap();
    assert!(error < 1e-6);
}

#[test]
fn edges_and_shapes_that_do_not_fit_are_refused_by_name() {
    let error = |edges: &[(usize, usize)]| Graph::new(3, edges).unwrap_err().to_string();
    assert_eq!(error(&[(0, 1), (3, 1)]), "edge 1 leads from node 3 to node 1; there are 3 nodes");
    assert_eq!(
        error(&[(0, 1), (1, 2), (0, 1)]),
        "edge 2 leads from node 0 to node 1, as edge 0 does"
    );
    let layer = layer(&Parameters::new(DType::F64, 1), GraphVersion::V1, 0.0);
    let error = layer.forward(&normal(1, &[4, 3]), &path(), Mode::Infer).unwrap_err().to_string();
    assert_eq!(error, "graph attention: x has shape [4, 3]; a graph of 5 nodes wants [5, 3]");
    let config = GraphAttentionConfig { heads: 0, ..GraphAttentionConfig::default() };
    let error = GraphAttention::new(&Parameters::new(DType::F64, 1), &config).unwrap_err();
    assert_eq!(
        error.to_string(),
        "graph attention with an input width of 64, 0 heads and a head width of 8"
    );
}

const VERSIONS: [GraphVersion; 4] =
    [GraphVersion::V1, GraphVersion::V2, GraphVersion::Dot, GraphVersion::ScaledDot];
const WEIGHTINGS: [Weighting; 6] = [
    Weighting::Softmax,
    Weighting::Sparsemax,
    Weighting::Entmax15,
    Weighting::Sigmoid,
    Weighting::None,
    Weighting::Argmax,
];

/// The weights of some scores, by the definitions.
fn weighed(weighting: Weighting, scores: &[f64]) -> Vec<f64> {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let threshold = |power: i32| {
        let scores: Vec<f64> = scores.iter().map(|s| s / f64::from(power)).collect();
        let (mut low, mut high) = (most / f64::from(power) - 1.0, most / f64::from(power));
        for _ in 0..200 {
            let middle = (low + high) / 2.0;
            let sum: f64 = scores.iter().map(|s| (s - middle).max(0.0).powi(power)).sum();
            (low, high) = if sum >= 1.0 { (middle, high) } else { (low, middle) };
        }
        scores.iter().map(|s| (s - low).max(0.0).powi(power)).collect()
    };
    match weighting {
        Weighting::Softmax => {
            let sum: f64 = scores.iter().map(|s| (s - most).exp()).sum();
            scores.iter().map(|s| (s - most).exp() / sum).collect()
        }
        Weighting::Sparsemax => threshold(1),
        Weighting::Entmax15 => threshold(2),
        Weighting::Sigmoid => scores.iter().map(|s| 1.0 / (1.0 + (-s).exp())).collect(),
        Weighting::None => scores.to_vec(),
        _ => {
            let best = scores.iter().position(|s| *s == most);
            (0..scores.len()).map(|at| f64::from(Some(at) == best)).collect()
        }
    }
}

/// Edges with what they carry, of which one is a self-loop.
struct Carried {
    pairs: Vec<(usize, usize)>,
    weights: Option<Vec<f64>>,
    features: Option<Vec<f64>>,
}

impl Carried {
    fn new(weights: bool, features: bool) -> Self {
        let pairs = vec![(0, 1), (1, 0), (1, 2), (2, 2), (2, 1), (3, 2), (0, 2)];
        let weights = weights.then(|| vec![0.5, 2.0, 1.0, 3.0, 0.1, 7.0, 1.5]);
        Self { pairs, weights, features: features.then(|| numbers(&normal(9, &[7, 2]))) }
    }

    fn graph(&self) -> Graph {
        let graph = Graph::new(5, &self.pairs).unwrap();
        let graph = match &self.weights {
            Some(weights) => graph.with_edge_weights(weights).unwrap(),
            None => graph,
        };
        match &self.features {
            Some(all) => {
                let all = Tensor::from_vec(all.clone(), &[7, 2]).unwrap();
                graph.with_edge_features(&all).unwrap()
            }
            None => graph,
        }
    }

    /// (source, target, weight, features), with self-loops as torch_geometric fills them in.
    fn listed(&self, self_loops: bool) -> Vec<(usize, usize, f64, [f64; 2])> {
        let of = |at: usize| {
            let f = self.features.as_ref().map_or([0.0; 2], |f| [f[2 * at], f[2 * at + 1]]);
            (self.pairs[at].0, self.pairs[at].1, self.weights.as_ref().map_or(1.0, |w| w[at]), f)
        };
        let mut all: Vec<_> = (0..7).map(of).filter(|e| !self_loops || e.0 != e.1).collect();
        if self_loops {
            for node in 0..5 {
                let into: Vec<[f64; 2]> =
                    all.iter().filter(|e| e.0 != e.1 && e.1 == node).map(|e| e.3).collect();
                let mean =
                    |d: usize| into.iter().map(|f| f[d]).sum::<f64>() / into.len().max(1) as f64;
                all.push((node, node, 1.0, [mean(0), mean(1)]));
            }
        }
        all
    }
}

fn edge_layer(
    parameters: &Parameters,
    version: GraphVersion,
    weighting: Weighting,
    edge_width: usize,
    self_loops: bool,
) -> GraphAttention {
    let config = GraphAttentionConfig {
        version,
        weighting,
        edge_width,
        self_loops,
        ..GraphAttentionConfig::new(3, 2, 2)
    };
    GraphAttention::new(parameters, &config).unwrap()
}

/// Outputs `[5, 4]` and weights `[E, 2]` by plain loops.
fn by_loops(
    parameters: &Parameters,
    (version, weighting): (GraphVersion, Weighting),
    x: &[f64],
    edges: &[(usize, usize, f64, [f64; 2])],
) -> (Vec<f64>, Vec<f64>) {
    let all = parameters.tensors();
    let get = |name: &str| all.get(name).map(numbers);
    let project = |name: &str, from: &[f64], row: usize| {
        let weight = get(&format!("{name}.weight")).unwrap();
        let bias = get(&format!("{name}.bias")).map_or(0.0, |bias| bias[row]);
        let wide = from.len();
        bias + (0..wide).map(|i| weight[row * wide + i] * from[i]).sum::<f64>()
    };
    let leaky = |x: f64| if x > 0.0 { x } else { 0.2 * x };
    let node = |n: usize| &x[3 * n..3 * n + 3];
    let value = match version {
        GraphVersion::V1 => "lin",
        GraphVersion::V2 => "lin_l",
        _ => "lin_value",
    };
    let score = |&(s, t, weight, ref f): &(usize, usize, f64, [f64; 2]), h: usize| {
        let edge = |row| {
            if all.contains_key("lin_edge.weight") { project("lin_edge", f, row) } else { 0.0 }
        };
        let rows = 2 * h..2 * h + 2;
        let sum = match version {
            GraphVersion::V1 => {
                let (src, dst) = (get("att_src").unwrap(), get("att_dst").unwrap());
                let own = get("att_edge").unwrap_or_else(|| vec![0.0; 4]);
                leaky(
                    rows.map(|r| {
                        src[r] * project("lin", node(s), r)
                            + dst[r] * project("lin", node(t), r)
                            + own[r] * edge(r)
                    })
                    .sum(),
                )
            }
            GraphVersion::V2 => {
                let att = get("att").unwrap();
                rows.map(|r| {
                    att[r]
                        * leaky(
                            project("lin_l", node(s), r) + project("lin_r", node(t), r) + edge(r),
                        )
                })
                .sum::<f64>()
            }
            _ => {
                let dot: f64 = rows
                    .map(|r| {
                        project("lin_query", node(t), r)
                            * (project("lin_key", node(s), r) + edge(r))
                    })
                    .sum();
                if version == GraphVersion::ScaledDot { dot / 2f64.sqrt() } else { dot }
            }
        };
        sum + weight.ln()
    };
    let (mut out, mut weights) = (vec![0.0; 20], vec![0.0; edges.len() * 2]);
    let bias = get("bias").unwrap();
    for target in 0..5 {
        let into: Vec<usize> = (0..edges.len()).filter(|&e| edges[e].1 == target).collect();
        for h in 0..2 {
            let scores: Vec<f64> = into.iter().map(|&e| score(&edges[e], h)).collect();
            for (&e, weight) in into.iter().zip(weighed(weighting, &scores)) {
                weights[e * 2 + h] = weight;
                for d in 0..2 {
                    out[target * 4 + 2 * h + d] +=
                        weight * project(value, node(edges[e].0), 2 * h + d);
                }
            }
        }
    }
    out.iter_mut().enumerate().for_each(|(at, y)| *y += bias[at % 4]);
    (out, weights)
}

#[test]
fn every_score_and_weighting_takes_what_edges_carry_as_plain_loops_do() {
    let (mut done, mut refused) = (0, 0);
    for version in VERSIONS {
        for weighting in WEIGHTINGS {
            for case in 0..8 {
                let (weights, features, loops) = (case & 1 > 0, case & 2 > 0, case & 4 > 0);
                let what = format!("{version:?}, {weighting:?}, {weights}, {features}, {loops}");
                let carried = Carried::new(weights, features);
                let parameters = Parameters::new(DType::F64, 3);
                let wide = if features { 2 } else { 0 };
                let layer = edge_layer(&parameters, version, weighting, wide, loops);
                let x = normal(2, &[5, 3]);
                let seen = layer.attend(&x, &carried.graph(), Mode::Infer, Need::WEIGHTS);
                if weights && weighting == Weighting::None {
                    let said = seen.unwrap_err().to_string();
                    assert!(said.contains("not multiplied by the weight of an edge"), "{said}");
                    refused += 1;
                    continue;
                }
                let (seen, edges) = (seen.unwrap(), carried.listed(loops));
                let pairs: Vec<(usize, usize)> = edges.iter().map(|e| (e.0, e.1)).collect();
                assert_eq!(carried.graph().edges(loops), pairs, "{what}");
                let (out, shares) =
                    by_loops(&parameters, (version, weighting), &numbers(&x), &edges);
                near(&seen.out, &Tensor::from_vec(out, &[5, 4]).unwrap(), &what);
                let shares = Tensor::from_vec(shares, &[edges.len(), 2]).unwrap();
                near(&seen.weights.unwrap(), &shares, &what);
                done += 1;
            }
        }
    }
    assert_eq!((done, refused), (4 * 6 * 8 - 16, 16));
}

#[test]
fn what_edges_carry_has_gradients_under_every_score_and_weighting() {
    let mut checked = 0;
    for version in VERSIONS {
        for weighting in WEIGHTINGS {
            for loops in [false, true] {
                let soft = weighting != Weighting::None;
                let carried = Carried::new(soft, true);
                let parameters = Parameters::new(DType::F64, 3);
                let layer = edge_layer(&parameters, version, weighting, 2, loops);
                let run = |x: &[Tensor]| {
                    let graph = carried.graph().with_edge_features(&x[1])?;
                    let seen = layer.attend(&x[0], &graph, Mode::Infer, Need::WEIGHTS)?;
                    seen.out.square()?.sum_all()?.add(&seen.weights.unwrap().square()?.sum_all()?)
                };
                let x = [normal(2, &[5, 3]), normal(4, &[7, 2])];
                let error = finite_difference_error(&x, run).unwrap();
                assert!(error < 1e-6, "{version:?}, {weighting:?}: inputs differ by {error}");
                let error = parameter_difference_error(&parameters.all(), || run(&x)).unwrap();
                assert!(error < 1e-6, "{version:?}, {weighting:?}: parameters differ by {error}");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 48);
}

#[test]
fn graphs_side_by_side_answer_as_each_alone_whatever_pools_them() {
    let mechanism = MechanismConfig::default();
    let poolings = [
        PoolingConfig::Mean,
        PoolingConfig::Max,
        PoolingConfig::Gate,
        PoolingConfig::Attention(mechanism.clone()),
        PoolingConfig::Queries { queries: 2, mechanism },
    ];
    let layers = [GraphLayer::Gat, GraphLayer::Gatv2, GraphLayer::Dot, GraphLayer::ScaledDot];
    let mut done = 0;
    for pooling in &poolings {
        for layer in layers.into_iter().chain([GraphLayer::Mean]) {
            for carries in 0..3 {
                let features = carries == 2 && layer != GraphLayer::Mean;
                let first = Carried::new(carries > 0, features).graph();
                let second = Graph::new(2, &[(0, 1)]).unwrap();
                let second = match carries {
                    0 => second,
                    _ => second.with_edge_weights(&[2.0]).unwrap(),
                };
                let second = match features {
                    true => second.with_edge_features(&normal(7, &[1, 2])).unwrap(),
                    false => second,
                };
                let config = GraphNetworkConfig {
                    features: 3,
                    classes: 3,
                    layer,
                    hidden: 2,
                    heads: 2,
                    edge_width: if features { 2 } else { 0 },
                    pooling: Some(pooling.clone()),
                    ..GraphNetworkConfig::default()
                };
                let parameters = Parameters::new(DType::F64, 3);
                let network = GraphAttentionNetwork::new(&parameters, &config).unwrap();
                let x = [normal(2, &[5, 3]), normal(3, &[2, 3])];
                let both = Graph::union(&[&first, &second]).unwrap();
                let at_once = Tensor::cat(&x, 0).unwrap();
                let at_once = network.forward(&at_once, &both, Mode::Infer).unwrap();
                let alone = |x, graph| network.forward(x, graph, Mode::Infer).unwrap();
                let each = [alone(&x[0], &first), alone(&x[1], &second)];
                let each = Tensor::cat(&each, 0).unwrap();
                near(&at_once, &each, &format!("{pooling:?}, {layer:?}, {carries}"));
                let run = || {
                    let x = Tensor::cat(&x, 0)?;
                    network.forward(&x, &both, Mode::Infer)?.square()?.sum_all()
                };
                let error = parameter_difference_error(&parameters.all(), run).unwrap();
                assert!(error < 1e-6, "{pooling:?}, {layer:?}: parameters differ by {error}");
                done += 1;
            }
        }
    }
    assert_eq!(done, 5 * 5 * 3);
}

#[test]
fn a_node_is_hidden_from_another_by_its_own_number_where_edges_carry_something() {
    use regard::attention::{CellChange, Intervention, Site};
    let config = GraphNetworkConfig { features: 3, layers: 1, ..GraphNetworkConfig::default() };
    let network = GraphAttentionNetwork::new(&Parameters::new(DType::F64, 3), &config).unwrap();
    let cell = |column| CellChange {
        site: Site::Graph,
        layer: Some(0),
        head: None,
        row: Some(2),
        column,
        bias: None,
    };
    let change = Intervention { cells: vec![cell(3)], ..Intervention::default() };
    for weights in [false, true] {
        let graph = Carried::new(weights, false).graph();
        let x = normal(2, &[5, 3]);
        let seen =
            change.during(|| network.classify(&x, &graph, Mode::Infer, Need::WEIGHTS)).unwrap();
        for (edge, pair) in graph.edges(true).iter().enumerate() {
            let weight =
                seen.weights[0].select(0, edge).unwrap().sum_all().unwrap().item().unwrap();
            assert_eq!(weight == 0.0, *pair == (3, 2), "{pair:?}: {weight}");
        }
    }
}

#[test]
fn what_edges_cannot_carry_is_refused_by_name() {
    let graph = || Graph::new(2, &[(0, 1), (1, 0)]).unwrap();
    let said = |result: regard::Result<Graph>| result.unwrap_err().to_string();
    for (weights, why) in [
        (vec![1.0], "1 weights for 2 edges"),
        (vec![1.0, -2.0], "edge 1 weighs -2; an edge's weight is a positive number"),
        (vec![f64::NAN, 1.0], "edge 0 weighs NaN; an edge's weight is a positive number"),
    ] {
        assert_eq!(said(graph().with_edge_weights(&weights)), why);
    }
    let three = said(graph().with_edge_features(&normal(1, &[3, 2])));
    assert_eq!(three, "edge features of shape [3, 2]; 2 edges want [2, D]");
    let weighted = graph().with_edge_weights(&[1.0, 2.0]).unwrap();
    let mixed = said(Graph::union(&[&graph(), &weighted]));
    assert_eq!(mixed, "1 of 2 graphs have weights of their edges");
    let featured = graph().with_edge_features(&normal(1, &[2, 2])).unwrap();
    let layer =
        edge_layer(&Parameters::new(DType::F64, 1), GraphVersion::V1, Weighting::Softmax, 0, true);
    let error = layer.forward(&normal(1, &[2, 3]), &featured, Mode::Infer).unwrap_err().to_string();
    assert_eq!(error, "graph attention: the graph's edges have 2 features; the layer wants 0");
    let network = |config| GraphAttentionNetwork::new(&Parameters::new(DType::F64, 1), &config);
    for weighting in
        [Weighting::Sample, Weighting::StraightThrough, Weighting::Gumbel, Weighting::GumbelHard]
    {
        let error = network(GraphNetworkConfig { weighting, ..Default::default() }).unwrap_err();
        assert!(error.to_string().contains(&format!("not by {weighting:?}")), "{error}");
    }
    let mean = GraphNetworkConfig { layer: GraphLayer::Mean, edge_width: 2, ..Default::default() };
    let error = network(mean).unwrap_err().to_string();
    assert_eq!(error, "a mean has no use for the features of edges");
}

#[test]
fn a_node_too_large_to_be_counted_is_named() {
    let error = Graph::from_edges(&[(0, 1), (usize::MAX, 0)]).unwrap_err().to_string();
    let wanted = format!("a graph with node {} has more nodes than can be counted", usize::MAX);
    assert_eq!(error, wanted);
}

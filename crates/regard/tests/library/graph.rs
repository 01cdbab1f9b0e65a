//! Graph attention: against torch_geometric's numbers, and what it promises beside them.

use regard::layers::{Graph, GraphAttention, GraphAttentionConfig, GraphMean, GraphVersion};
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
            GraphVersion::V2 => x.linear(&all["lin_l.weight"], Some(&all["lin_l.bias"])).unwrap(),
            other => unreachable!("{other:?} is none of the versions that are swept"),
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

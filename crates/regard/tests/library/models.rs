//! Models of graphs, images and functions: each learns a tiny batch by heart, is rebuilt from its
//! configuration and its file, and refuses what cannot be built.

use regard::Result;
use regard::attention::BilinearScale;
use regard::layers::{Graph, WindowedConfig, WindowedSelfAttention};
use regard::models::{
    Classified, ConvolutionalClassifier, ConvolutionalConfig, GraphAttentionNetwork, GraphLayer,
    GraphNetworkConfig, ImagePooling, KernelRegression, KernelRegressionConfig, VisionTransformer,
    VisionTransformerConfig,
};
use regard::prelude::*;
use regard::tensor::{SlidingWindow, parameter_difference_error};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn normal(seed: u64, shape: &[usize], dtype: DType) -> Tensor {
    Random::new(seed).normal(shape, 0.0, 1.0, dtype).unwrap()
}

fn numbers(x: &Tensor) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

/// The loss after some steps on one batch.
fn overfit(
    parameters: &Parameters,
    targets: &Tensor,
    steps: usize,
    rate: f64,
    logits: impl Fn() -> Result<Tensor>,
) -> f64 {
    let mut optimizer = Optimizer::new(parameters, UpdateRule::adam()).unwrap();
    let loss = || logits().unwrap().cross_entropy(targets, CrossEntropy::default()).unwrap();
    for _ in 0..steps {
        optimizer.step(&loss().backward().unwrap(), rate).unwrap();
    }
    loss().item().unwrap()
}

fn targets(n: usize, classes: i64) -> Tensor {
    Tensor::from_vec((0..n as i64).map(|i| i * 7 % classes).collect(), &[n]).unwrap()
}

/// Builds a model, writes its configuration as JSON and its parameters to a file, builds another of
/// these two alone, and holds their outputs against each other.
fn rebuilt<C: Serialize + DeserializeOwned, M>(
    config: &C,
    build: impl Fn(&Parameters, &C) -> Result<M>,
    run: impl Fn(&M) -> Result<Tensor>,
) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.safetensors");
    let parameters = Parameters::new(DType::F32, 1);
    let model = build(&parameters, config).unwrap();
    let expected = numbers(&run(&model).unwrap());
    parameters.save(&file).unwrap();
    let text = serde_json::to_string(config).unwrap();
    // Drawn from another seed, so that only the file can make them equal.
    let parameters = Parameters::new(DType::F32, 2);
    let model = build(&parameters, &serde_json::from_str(&text).unwrap()).unwrap();
    parameters.load(&file).unwrap();
    assert_eq!(numbers(&run(&model).unwrap()), expected);
}

fn ring() -> Graph {
    let edges: Vec<(usize, usize)> =
        (0..8).flat_map(|i| [(i, (i + 1) % 8), ((i + 3) % 8, i)]).collect();
    Graph::new(8, &edges).unwrap()
}

fn graph_config(layer: GraphLayer) -> GraphNetworkConfig {
    GraphNetworkConfig {
        features: 6,
        classes: 3,
        layer,
        hidden: 4,
        heads: 2,
        output_heads: 2,
        dropout: 0.0,
        ..GraphNetworkConfig::default()
    }
}

#[test]
fn a_graph_network_learns_its_nodes_by_heart_and_is_rebuilt() {
    let (graph, x) = (ring(), normal(1, &[8, 6], DType::F32));
    for layer in [GraphLayer::Gat, GraphLayer::Gatv2, GraphLayer::Mean] {
        let config = graph_config(layer);
        let parameters = Parameters::new(DType::F32, 1);
        let network = GraphAttentionNetwork::new(&parameters, &config).unwrap();
        let loss = overfit(&parameters, &targets(8, 3), 300, 0.03, || {
            network.forward(&x, &graph, Mode::Infer)
        });
        assert!(loss < 0.01, "{layer:?}: {loss}");
        rebuilt(&config, GraphAttentionNetwork::new, |m| m.forward(&x, &graph, Mode::Infer));
    }
}

#[test]
fn a_graph_network_gives_the_weights_of_each_layer() {
    let network =
        GraphAttentionNetwork::new(&Parameters::new(DType::F32, 1), &graph_config(GraphLayer::Gat))
            .unwrap();
    let (graph, x) = (ring(), normal(1, &[8, 6], DType::F32));
    let weights = network.classify(&x, &graph, Mode::Infer, Need::WEIGHTS).unwrap().weights;
    assert_eq!(weights.len(), 2);
    for weights in weights {
        assert_eq!(weights.shape(), [16 + 8, 2]);
        let sums = weights.sum_all().unwrap().item().unwrap();
        assert!((sums - 16.0).abs() < 1e-5, "each node and head sums to 1: {sums}");
    }
}

fn image_config(patch: usize, pooling: ImagePooling) -> VisionTransformerConfig {
    VisionTransformerConfig {
        image: [4, 6],
        channels: 2,
        patch,
        classes: 3,
        width: 8,
        depth: 2,
        heads: 2,
        feed_forward: 16,
        pooling,
        dropout: 0.0,
        ..Default::default()
    }
}

#[test]
fn a_vision_transformer_learns_a_batch_by_heart_from_patches_and_from_pixels() {
    let images = normal(1, &[6, 2, 4, 6], DType::F32);
    for (patch, pooling) in [(2, ImagePooling::ClassToken), (1, ImagePooling::Mean)] {
        let config = image_config(patch, pooling);
        let parameters = Parameters::new(DType::F32, 1);
        let model = VisionTransformer::new(&parameters, &config).unwrap();
        let loss =
            overfit(&parameters, &targets(6, 3), 150, 0.01, || model.forward(&images, Mode::Infer));
        assert!(loss < 0.01, "patches of {patch}: {loss}");
        rebuilt(&config, VisionTransformer::new, |m| m.forward(&images, Mode::Infer));
    }
}

#[test]
fn asking_for_weights_gives_one_set_per_block_and_the_same_logits() {
    let images = normal(1, &[3, 2, 4, 6], DType::F64);
    for (pooling, places) in [(ImagePooling::ClassToken, 7), (ImagePooling::Mean, 6)] {
        let parameters = Parameters::new(DType::F64, 1);
        let model = VisionTransformer::new(&parameters, &image_config(2, pooling)).unwrap();
        let Classified { logits, weights, .. } =
            model.classify(&images, Mode::Infer, Need::WEIGHTS).unwrap();
        assert_eq!(numbers(&logits), numbers(&model.forward(&images, Mode::Infer).unwrap()));
        assert_eq!(weights.len(), 2);
        for weights in weights {
            assert_eq!(weights.shape(), [3, 2, places, places]);
            assert!(numbers(&weights.sum(3).unwrap()).iter().all(|s| (s - 1.0).abs() < 1e-12));
        }
    }
}

/// Whether two of 4 × 6 pixels, cut into patches of 1, lie within a window; a class token is first.
fn within(a: usize, b: usize, window: usize, token: usize) -> bool {
    if a < token || b < token {
        return true;
    }
    let [a, b] = [a - token, b - token].map(|at| (at / 6, at % 6));
    a.0.abs_diff(b.0).max(a.1.abs_diff(b.1)) <= window
}

#[test]
fn a_window_over_patches_is_a_square_and_the_class_token_sees_and_is_seen_by_all() {
    let images = normal(1, &[2, 2, 4, 6], DType::F64);
    for (pooling, token) in [(ImagePooling::ClassToken, 1), (ImagePooling::Mean, 0)] {
        for window in [1, 2, 5] {
            let config =
                VisionTransformerConfig { window: Some(window), ..image_config(1, pooling) };
            let model = VisionTransformer::new(&Parameters::new(DType::F64, 1), &config).unwrap();
            let weights = model.classify(&images, Mode::Infer, Need::WEIGHTS).unwrap().weights;
            let n = 24 + token;
            for (at, weight) in weights.iter().flat_map(numbers).enumerate() {
                let (i, j) = (at / n % n, at % n);
                let seen = within(i, j, window, token);
                assert_eq!(weight > 0.0, seen, "{pooling:?}, window {window}: {i} and {j}");
            }
        }
    }
    let none = VisionTransformerConfig { window: Some(0), ..image_config(1, ImagePooling::Mean) };
    let said = "a window of 0 sees no neighbor; it wants at least 1";
    assert_eq!(none.check().unwrap_err().to_string(), said);
}

#[test]
fn a_vision_transformer_without_positions_sees_a_set_of_patches_and_with_them_an_order() {
    let image = normal(1, &[1, 2, 4, 6], DType::F64);
    // The same patches of 2 × 2, the two rows of them exchanged.
    let rows = [2, 0].map(|row| image.narrow(2, row, 2).unwrap());
    let turned = Tensor::cat(&rows, 2).unwrap();
    for position in [
        Position::None,
        Position::Learned,
        Position::Sinusoidal,
        Position::Rotary,
        Position::Alibi,
        Position::Relative,
    ] {
        let config = VisionTransformerConfig { position, ..image_config(2, ImagePooling::Mean) };
        let parameters = Parameters::new(DType::F64, 1);
        let model = VisionTransformer::new(&parameters, &config).unwrap();
        for (at, parameter) in parameters.all().iter().enumerate() {
            let shape = parameter.tensor().shape().to_vec();
            parameter.set(&normal(9 + at as u64, &shape, DType::F64)).unwrap();
        }
        let [a, b] = [&image, &turned].map(|x| model.forward(x, Mode::Infer).unwrap());
        let difference = a.squared_error(&b).unwrap().item().unwrap();
        assert_eq!(difference < 1e-20, position == Position::None, "{position:?}: {difference}");
        let learned = parameters.tensors().contains_key("position");
        assert_eq!(learned, position == Position::Learned);
    }
}

#[test]
fn every_parameter_of_the_image_models_gets_its_gradient() {
    let images = normal(1, &[2, 2, 4, 6], DType::F64);
    let small = |pooling| VisionTransformerConfig {
        width: 4,
        depth: 1,
        feed_forward: 5,
        ..image_config(2, pooling)
    };
    for pooling in [ImagePooling::ClassToken, ImagePooling::Mean] {
        let parameters = Parameters::new(DType::F64, 1);
        let model = VisionTransformer::new(&parameters, &small(pooling)).unwrap();
        let error =
            parameter_difference_error(&parameters.all(), || model.forward(&images, Mode::Infer))
                .unwrap();
        assert!(error < 1e-6, "{pooling:?}: {error}");
    }
    let config = ConvolutionalConfig {
        image: [4, 6],
        channels: 2,
        widths: vec![3, 2],
        classes: 3,
        ..ConvolutionalConfig::default()
    };
    let parameters = Parameters::new(DType::F64, 1);
    let model = ConvolutionalClassifier::new(&parameters, &config).unwrap();
    let error =
        parameter_difference_error(&parameters.all(), || model.forward(&images, Mode::Infer))
            .unwrap();
    assert!(error < 1e-6, "{error}");
}

#[test]
fn patches_are_flattened_in_the_order_of_a_convolution() {
    // One block whose attention and feed-forward add nothing leaves the mean of the projected
    // patches: the same as a convolution that moves by whole patches.
    let config = VisionTransformerConfig { depth: 1, ..image_config(2, ImagePooling::Mean) };
    let parameters = Parameters::new(DType::F64, 1);
    let model = VisionTransformer::new(&parameters, &config).unwrap();
    for p in parameters.all() {
        if p.name().contains("out_proj") || p.name().contains("linear2") || p.name() == "position" {
            p.set(&Tensor::zeros(p.tensor().shape(), DType::F64).unwrap()).unwrap();
        }
    }
    let all = parameters.tensors();
    let images = normal(1, &[2, 2, 4, 6], DType::F64);
    let kernel = all["patch.weight"].reshape(&[8, 2, 2, 2]).unwrap();
    let window = SlidingWindow { stride: [2, 2], ..SlidingWindow::new([2, 2]) };
    let x = images.conv2d(&kernel, Some(&all["patch.bias"]), &window).unwrap();
    let x = x.reshape(&[2, 8, 6]).unwrap().transpose(1, 2).unwrap();
    let x = x.layer_norm(&all["norm.weight"], &all["norm.bias"], 1e-5).unwrap().mean(1).unwrap();
    let expected = x.linear(&all["head.weight"], Some(&all["head.bias"])).unwrap();
    let logits = model.forward(&images, Mode::Infer).unwrap();
    for (a, b) in numbers(&logits).iter().zip(numbers(&expected)) {
        assert!((a - b).abs() < 1e-12, "{a} and {b}");
    }
}

#[test]
fn a_convolutional_classifier_learns_a_batch_by_heart_and_is_rebuilt() {
    let config = ConvolutionalConfig {
        image: [8, 9],
        channels: 2,
        widths: vec![4, 6],
        classes: 3,
        dropout: 0.0,
        ..ConvolutionalConfig::default()
    };
    let images = normal(1, &[6, 2, 8, 9], DType::F32);
    let parameters = Parameters::new(DType::F32, 1);
    let model = ConvolutionalClassifier::new(&parameters, &config).unwrap();
    let loss =
        overfit(&parameters, &targets(6, 3), 150, 0.01, || model.forward(&images, Mode::Infer));
    assert!(loss < 0.01, "{loss}");
    rebuilt(&config, ConvolutionalClassifier::new, |m| m.forward(&images, Mode::Infer));
}

/// y = sin 2x + 0.8x with noise, and a second feature that says nothing.
fn curve(n: usize, features: usize) -> (Tensor, Tensor) {
    let random = Random::new(4);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let first = 5.0 * random.number();
        x.push(first);
        x.extend((1..features).map(|_| 5.0 * random.number()));
        y.push((2.0 * first).sin() + 0.8 * first + 0.2 * (random.number() - 0.5));
    }
    (Tensor::from_vec(x, &[n, features]).unwrap(), Tensor::from_vec(y, &[n, 1]).unwrap())
}

fn regression(config: &KernelRegressionConfig) -> (Parameters, KernelRegression) {
    let parameters = Parameters::new(DType::F64, 1);
    let model = KernelRegression::new(&parameters, config).unwrap();
    let (x, y) = curve(config.points, config.features);
    model.set_data(&x, &y).unwrap();
    (parameters, model)
}

#[test]
fn kernel_regression_is_its_formula_and_leaves_a_point_out_of_its_own_keys() {
    let config = KernelRegressionConfig {
        points: 20,
        features: 2,
        inverse_width: 1.7,
        ..KernelRegressionConfig::default()
    };
    let (_, model) = regression(&config);
    let (x, y) = curve(20, 2);
    let (x, y) = (numbers(&x), numbers(&y));
    let expected = |q: &[f64], left_out: Option<usize>| {
        let weight = |i: usize| {
            let square: f64 = (0..2).map(|d| (1.7 * (q[d] - x[i * 2 + d])).powi(2)).sum();
            if left_out == Some(i) { 0.0 } else { (-0.5 * square).exp() }
        };
        let sum: f64 = (0..20).map(weight).sum();
        (0..20).map(|i| weight(i) / sum * y[i]).sum::<f64>()
    };
    let at = Tensor::from_vec(vec![1.0, 2.0, 3.5, 0.5], &[2, 2]).unwrap();
    let seen = model.attend(&at, Need::WEIGHTS).unwrap();
    for (row, out) in numbers(&seen.out).iter().enumerate() {
        let q = &numbers(&at)[row * 2..][..2];
        assert!((out - expected(q, None)).abs() < 1e-10);
    }
    assert!(
        numbers(&seen.weights.unwrap().sum(1).unwrap()).iter().all(|s| (s - 1.0).abs() < 1e-12)
    );
    let alone = model.leave_one_out(Need::WEIGHTS).unwrap();
    for (i, out) in numbers(&alone.out).iter().enumerate() {
        assert!((out - expected(&x[i * 2..][..2], Some(i))).abs() < 1e-10);
        let own = alone.weights.as_ref().unwrap().select(0, i).unwrap().select(0, i).unwrap();
        assert_eq!(own.item().unwrap(), 0.0);
    }
}

#[test]
fn a_learned_width_beats_a_fixed_one_and_the_mean_and_finds_the_feature_that_matters() {
    let learned = KernelRegressionConfig {
        points: 60,
        features: 2,
        learned: true,
        per_feature: true,
        ..KernelRegressionConfig::default()
    };
    let (parameters, model) = regression(&learned);
    let w: Vec<_> = parameters.all().into_iter().filter(|p| p.name() == "w").collect();
    let error = parameter_difference_error(&w, || Ok(model.leave_one_out(Need::OUTPUT)?.out));
    assert!(error.unwrap() < 1e-6);
    let before = model.loss().unwrap().item().unwrap();
    let y = curve(60, 2).1;
    let mean = model.mean().unwrap().broadcast_to(&[60, 1]).unwrap();
    let baseline = mean.squared_error(&y).unwrap().item().unwrap();
    let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam()).unwrap();
    for _ in 0..200 {
        optimizer.step(&model.loss().unwrap().backward().unwrap(), 0.1).unwrap();
    }
    let after = model.loss().unwrap().item().unwrap();
    assert!(after < 0.5 * before && before < baseline, "{after}, fixed {before}, mean {baseline}");
    let w = numbers(&parameters.tensors()["w"]);
    assert!(w[0].abs() > 5.0 * w[1].abs(), "the second feature says nothing: {w:?}");
    assert_eq!(numbers(&parameters.tensors()["values"]), numbers(&y), "the data stay as they are");
}

#[test]
fn regression_by_another_score_is_the_mechanism_over_the_data_without_the_point_itself() {
    let scores = [
        ScoreConfig::Dot,
        ScoreConfig::ScaledDot,
        ScoreConfig::Additive { hidden: 4 },
        ScoreConfig::Concat { hidden: Some(4) },
        ScoreConfig::Bilinear { scale: BilinearScale::None },
        ScoreConfig::LowRank { rank: 1 },
        ScoreConfig::Cosine { temperature: 3.0, learned: true },
        ScoreConfig::Expression {
            score: "-tau * sum(abs(q - k))".into(),
            numbers: vec!["tau".into()],
        },
    ];
    for score in scores {
        let config = KernelRegressionConfig {
            points: 20,
            features: 2,
            score: Some(score.clone()),
            ..KernelRegressionConfig::default()
        };
        let (parameters, model) = regression(&config);
        let (x, y) = curve(20, 2);
        let own = Parameters::new(DType::F64, 1);
        let alone = Mechanism::new(&own, &MechanismConfig::new(score.clone()), 2, 2).unwrap();
        let all = parameters.tensors();
        let taken = own.tensors().into_keys().map(|name| (name.clone(), all[&name].clone()));
        own.set(&taken.collect()).unwrap();
        assert_eq!(all.len(), own.tensors().len() + 2);
        let known = alone.attend(&x, &x, &y, &Mask::none(), Mode::Infer, Need::WEIGHTS).unwrap();
        let seen = model.attend(&x, Need::WEIGHTS).unwrap();
        assert_eq!(numbers(&seen.out), numbers(&known.out), "{score:?}");
        // Without the point itself, the rest of its row weighs 1.
        let others = model.leave_one_out(Need::WEIGHTS).unwrap().weights.unwrap();
        let weights = numbers(&known.weights.unwrap());
        for (at, weight) in numbers(&others).iter().enumerate() {
            let (i, j) = (at / 20, at % 20);
            let expected = weights[at] / (1.0 - weights[i * 21]);
            let expected = if i == j { 0.0 } else { expected };
            assert!((weight - expected).abs() < 1e-9, "{score:?}: {weight} {expected}");
        }
    }
    let both = KernelRegressionConfig {
        score: Some(ScoreConfig::Dot),
        windowed: true,
        ..KernelRegressionConfig::default()
    };
    let refused = KernelRegression::new(&Parameters::new(DType::F64, 1), &both).unwrap_err();
    assert!(refused.to_string().starts_with("a window and a learned width are the Gaussian's"));
}

#[test]
fn kernel_regression_is_rebuilt_with_its_data() {
    let config = KernelRegressionConfig { points: 9, ..KernelRegressionConfig::default() };
    let at = Tensor::from_vec(vec![0.5f32, 2.5], &[2, 1]).unwrap();
    let (x, y) = curve(9, 1);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.safetensors");
    let parameters = Parameters::new(DType::F32, 1);
    let model = KernelRegression::new(&parameters, &config).unwrap();
    model.set_data(&x, &y).unwrap();
    parameters.save(&file).unwrap();
    let parameters = Parameters::new(DType::F32, 2);
    let config = serde_json::from_str(&serde_json::to_string(&config).unwrap()).unwrap();
    let again = KernelRegression::new(&parameters, &config).unwrap();
    parameters.load(&file).unwrap();
    assert_eq!(numbers(&again.predict(&at).unwrap()), numbers(&model.predict(&at).unwrap()));
}

#[test]
fn windowed_attention_sees_no_further_than_its_window() {
    let config = WindowedConfig { width: 8, heads: 2, window: 2, dropout: 0.0 };
    let parameters = Parameters::new(DType::F64, 1);
    let windowed = WindowedSelfAttention::new(&parameters, &config).unwrap();
    let x = normal(1, &[2, 7, 8], DType::F64);
    let mask = Mask::lengths(&[7, 4]);
    let seen = windowed.attend(&x, &mask, Mode::Infer, Need::WEIGHTS).unwrap();
    let weights = numbers(&seen.weights.unwrap());
    for (at, &w) in weights.iter().enumerate() {
        let (i, j, item) = (at / 7 % 7, at % 7, at / (2 * 7 * 7));
        let visible = i.abs_diff(j) <= 2 && j < [7, 4][item];
        assert_eq!(w > 0.0, visible, "item {item}, query {i}, key {j}");
    }
    let causal = Mask { causal: true, ..mask };
    let seen = windowed.attend(&x, &causal, Mode::Infer, Need::WEIGHTS).unwrap();
    assert_eq!(
        seen.weights
            .unwrap()
            .select(0, 0)
            .unwrap()
            .select(0, 0)
            .unwrap()
            .select(0, 0)
            .unwrap()
            .to_vec::<f64>()
            .unwrap(),
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    );
}

#[test]
fn what_cannot_be_built_is_refused_by_name() {
    let parameters = || Parameters::new(DType::F32, 1);
    let image = |config: VisionTransformerConfig| {
        VisionTransformer::new(&parameters(), &config).unwrap_err().to_string()
    };
    let usual = VisionTransformerConfig::default;
    assert_eq!(
        image(VisionTransformerConfig { patch: 5, ..usual() }),
        "a patch of 5 does not divide an image of 28 × 28"
    );
    assert_eq!(
        image(VisionTransformerConfig { heads: 5, ..usual() }),
        "5 heads do not divide a width of 64"
    );
    assert_eq!(
        image(VisionTransformerConfig { depth: 0, ..usual() }),
        "a vision transformer of depth 0"
    );
    let model = VisionTransformer::new(&parameters(), &usual()).unwrap();
    let small = Tensor::zeros(&[1, 1, 8, 8], DType::F32).unwrap();
    assert_eq!(
        model.forward(&small, Mode::Infer).unwrap_err().to_string(),
        "images of shape [1, 1, 8, 8]; this model wants [B, 1, 28, 28]"
    );
    let deep = ConvolutionalConfig { widths: vec![2; 5], ..ConvolutionalConfig::default() };
    assert_eq!(
        ConvolutionalClassifier::new(&parameters(), &deep).unwrap_err().to_string(),
        "layer 4 would halve 1 × 1; an image of 28 × 28 is too small for 5 layers"
    );
    let window = WindowedConfig { window: 0, ..WindowedConfig::default() };
    assert_eq!(
        WindowedSelfAttention::new(&parameters(), &window).unwrap_err().to_string(),
        "a window of 0: each vector would see itself alone"
    );
    let graph = GraphNetworkConfig { layers: 0, ..GraphNetworkConfig::default() };
    assert_eq!(
        GraphAttentionNetwork::new(&parameters(), &graph).unwrap_err().to_string(),
        "a graph network of 0 layers"
    );
    let one = KernelRegression::new(&parameters(), &KernelRegressionConfig::default()).unwrap();
    assert_eq!(one.loss().unwrap_err().to_string(), "with 1 point, leaving it out leaves nothing");
    let unknown = |error: serde_json::Error, name: &str| {
        assert!(error.to_string().contains(name), "{error}");
    };
    unknown(
        serde_json::from_str::<GraphNetworkConfig>(r#"{"layer": "gat3"}"#).unwrap_err(),
        "unknown variant `gat3`",
    );
    unknown(
        serde_json::from_str::<VisionTransformerConfig>(r#"{"pach": 4}"#).unwrap_err(),
        "unknown field `pach`",
    );
    unknown(
        serde_json::from_str::<KernelRegressionConfig>(r#"{"width": 4}"#).unwrap_err(),
        "unknown field `width`",
    );
}

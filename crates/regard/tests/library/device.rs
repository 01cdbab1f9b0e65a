//! Attention and models on a GPU give what they give in main memory. `REGARD_TEST_DEVICE` names the device.

use crate::seq2seq::{attention, config, decoders, encoders, pairs, scores, weightings};
use regard::layers::{Cell, EncoderConfig, Graph, RecurrentConfig};
use regard::models::{
    ContextConfig, DecoderConfig, GraphAttentionNetwork, GraphLayer, GraphNetworkConfig, Seq2Seq,
    Seq2SeqConfig,
};
use regard::prelude::*;
use regard::tensor::Device;
use regard_tensor::fallbacks;
use std::collections::BTreeMap;

fn device() -> Device {
    std::env::var("REGARD_TEST_DEVICE").expect("it names the GPU").parse().unwrap()
}

/// The losses of a few steps of Adam, and what a greedy search writes after them.
fn trained(config: &Seq2SeqConfig, device: Device) -> regard::Result<(Vec<f64>, Vec<Vec<usize>>)> {
    let parameters = Parameters::new(DType::F32, 7);
    let model = Seq2Seq::new(&parameters, config)?;
    parameters.to_device(device)?;
    let (source, target) = pairs();
    let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam())?.clipped(1.0)?;
    let random = Random::new(1);
    let mut losses = Vec::new();
    for _ in 0..4 {
        let loss = model.teach(&source, &target, Mode::Train(&random))?.loss(0.1)?;
        losses.push(loss.item()?);
        optimizer.step(&loss.backward()?, 1e-2)?;
    }
    let written = model.greedy(&source, 4)?.into_iter().map(|h| h.tokens).collect();
    Ok((losses, written))
}

/// How far apart the losses are, relative to them.
fn apart(config: &Seq2SeqConfig) -> f64 {
    let (there, written) = trained(config, device()).unwrap_or_else(|e| panic!("{config:?}: {e}"));
    let (here, expected) = trained(config, Device::Cpu).unwrap();
    assert_eq!(written, expected, "{config:?}");
    there.iter().zip(&here).map(|(a, b)| (a - b).abs() / b.abs()).fold(0.0, f64::max)
}

#[test]
#[ignore = "needs a GPU"]
fn on_the_gpu_every_encoder_decoder_and_context_learns_as_on_the_cpu() {
    let mut count = 0;
    for encoder in encoders() {
        for decoder in decoders() {
            let mut contexts =
                vec![ContextConfig::Fixed, attention(ScoreConfig::Additive { hidden: 8 })];
            if matches!(decoder, DecoderConfig::Transformer(_)) {
                contexts.push(ContextConfig::MultiHead);
            }
            for context in contexts {
                let config = config(encoder.clone(), decoder.clone(), context);
                let apart = apart(&config);
                assert!(apart < 1e-4, "{config:?}: losses differ by {apart}");
                count += 1;
            }
        }
    }
    println!("{count} models; computed by the CPU: {:?}", fallbacks());
    assert_eq!(count, 88);
    assert!(fallbacks().is_empty());
}

#[test]
#[ignore = "needs a GPU"]
fn on_the_gpu_every_score_and_weighting_learns_as_on_the_cpu_or_is_refused() {
    let encoder = EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 16));
    let (mut count, mut refused) = (0, 0);
    for decoder in [&decoders()[1], &decoders()[3]] {
        for score in scores() {
            for weighting in weightings() {
                let mechanism =
                    MechanismConfig { weighting, ..MechanismConfig::new(score.clone()) };
                let context = ContextConfig::Attention(mechanism);
                let config = config(encoder.clone(), decoder.clone(), context);
                if matches!(score, ScoreConfig::Own { .. }) {
                    let error = trained(&config, device()).unwrap_err().to_string();
                    assert!(error.contains("own"), "{error}");
                    refused += 1;
                    continue;
                }
                if trained(&config, Device::Cpu).is_err() {
                    continue;
                }
                let apart = apart(&config);
                assert!(apart < 1e-4, "{config:?}: losses differ by {apart}");
                count += 1;
            }
        }
    }
    println!("{count} models learned, {refused} were refused; by the CPU: {:?}", fallbacks());
    assert!(count >= 150 && refused == 20, "{count}, {refused}");
}

/// The gradients of a graph network's parameters on a device, by name.
fn graph_gradients(
    config: &GraphNetworkConfig,
    dtype: DType,
    device: Device,
) -> regard::Result<BTreeMap<String, Vec<f64>>> {
    let parameters = Parameters::new(dtype, 7);
    let network = GraphAttentionNetwork::new(&parameters, config)?;
    parameters.to_device(device)?;
    let random = Random::new(3);
    let nodes = 40;
    let mut edges: Vec<_> = (0..160).map(|_| (random.below(nodes), random.below(nodes))).collect();
    edges.sort_unstable();
    edges.dedup();
    let graph = Graph::new(nodes, &edges)?;
    let x = random.normal(&[nodes, config.features], 0.0, 1.0, DType::F64)?.to_dtype(dtype)?;
    let classes = (0..nodes).map(|n| (n % config.classes) as i64).collect();
    let classes = Tensor::from_vec(classes, &[nodes])?.to_device(device)?;
    let random = Random::new(5);
    let logits = network.forward(&x.to_device(device)?, &graph, Mode::Train(&random))?;
    let gradients = logits.cross_entropy(&classes, CrossEntropy::default())?.backward()?;
    let mut all = BTreeMap::new();
    for parameter in parameters.all() {
        if let Some(gradient) = gradients.get(&parameter) {
            let numbers = gradient.to_device(Device::Cpu)?.to_dtype(DType::F64)?.to_vec()?;
            all.insert(parameter.name().to_owned(), numbers);
        }
    }
    Ok(all)
}

#[test]
#[ignore = "needs a GPU"]
fn on_the_gpu_graph_networks_have_the_gradients_of_the_formula() {
    let layers = [
        GraphLayer::Gat,
        GraphLayer::Gatv2,
        GraphLayer::Dot,
        GraphLayer::ScaledDot,
        GraphLayer::Mean,
    ];
    let mut count = 0;
    for layer in layers {
        for (hidden, heads) in [(4, 2), (8, 8), (5, 3), (64, 1)] {
            for dropout in [0.0, 0.6] {
                let config = GraphNetworkConfig {
                    features: 11,
                    classes: 3,
                    layer,
                    hidden,
                    heads,
                    dropout,
                    ..GraphNetworkConfig::default()
                };
                let known = graph_gradients(&config, DType::F64, Device::Cpu).unwrap();
                let there = graph_gradients(&config, DType::F32, device())
                    .unwrap_or_else(|e| panic!("{config:?}: {e}"));
                assert!(known.keys().eq(there.keys()), "{config:?}");
                let largest = known.values().flatten().fold(0.0f64, |most, x| most.max(x.abs()));
                for (name, known) in &known {
                    for (x, y) in known.iter().zip(&there[name]) {
                        let apart = (x - y).abs() / largest;
                        assert!(apart < 1e-5, "{config:?} {name}: {y} in place of {x}");
                    }
                }
                count += 1;
            }
        }
    }
    println!("{count} networks; computed by the CPU: {:?}", fallbacks());
    assert_eq!(count, 40);
    assert!(fallbacks().is_empty());
}

/// What attention of additive scores gives for `[batch, queries, 6]` and keys of some width, values of another: the output and every gradient.
fn additive(
    [batch, nq, nk, hidden, dv]: [usize; 5],
    dtype: DType,
    device: Device,
) -> regard::Result<Vec<Vec<f64>>> {
    let parameters = Parameters::new(dtype, 7);
    let config = MechanismConfig::new(ScoreConfig::Additive { hidden });
    let mechanism = Mechanism::new(&parameters, &config, 6, 5)?;
    parameters.to_device(device)?;
    let random = Random::new(3);
    let draw = |shape: &[usize]| {
        let x = random.normal(shape, 0.0, 1.0, DType::F64)?.to_dtype(dtype)?;
        x.to_device(device)?.requires_grad()
    };
    let (q, k) = (draw(&[batch, nq, 6])?, draw(&[batch, nk, 5])?);
    let (v, seed) = (draw(&[batch, nk, dv])?, draw(&[batch, nq, dv])?);
    let lengths: Vec<usize> = (0..batch).map(|b| nk - b % nk).collect();
    let mask = Mask::lengths(&lengths);
    let out = mechanism.attend(&q, &k, &v, &mask, Mode::Infer, Need::default())?.out;
    let gradients = out.backward_with(&seed.detach())?;
    let mut all = vec![out.detach()];
    all.extend([&q, &k, &v].into_iter().filter_map(|x| gradients.get(x)).cloned());
    all.extend(parameters.all().iter().filter_map(|x| gradients.get(x)).cloned());
    all.iter().map(|x| x.to_device(Device::Cpu)?.to_dtype(DType::F64)?.to_vec()).collect()
}

/// Rows of queries that fill a GPU and few, keys and values that a warp has registers for and wide ones.
#[test]
#[ignore = "needs a GPU, or an emulated one"]
fn on_the_gpu_wide_and_narrow_additive_scores_give_what_the_cpu_gives() {
    let mut count = 0;
    for [batch, nq, nk] in [[3, 1, 1], [3, 1, 30], [2, 3, 70], [4, 300, 5]] {
        for [hidden, dv] in [[8, 4], [40, 700], [300, 33], [513, 512], [1000, 2003]] {
            let sizes = [batch, nq, nk, hidden, dv];
            let known = additive(sizes, DType::F64, Device::Cpu).unwrap();
            for (dtype, most) in [(DType::F32, 2e-5), (DType::F64, 1e-12)] {
                let there = additive(sizes, dtype, device()).unwrap();
                assert_eq!((known.len(), there.len()), (7, 7));
                for (at, (known, there)) in known.iter().zip(&there).enumerate() {
                    // A gradient that is 0 is the difference of two sums of hundreds of terms.
                    let scale = known.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
                    for (x, y) in known.iter().zip(there) {
                        let apart = (x - y).abs() / scale;
                        assert!(apart < most, "{sizes:?} {dtype} {at}: {y} in place of {x}");
                    }
                }
                count += 1;
            }
        }
    }
    assert_eq!(count, 40);
    assert!(fallbacks().is_empty());
}

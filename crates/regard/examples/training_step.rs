//! How long a whole training step takes: forward, loss, backward, clipping, AdamW. The loss is read after the last.
//!
//!     cargo run --release -p regard --example training_step -- DEVICE [CASE] [STEPS] [f32 | bf16]
//!
//! `bench/compare_training.py` takes the same steps in PyTorch.

use regard::Result;
use regard::layers::Graph;
use regard::models::{
    ContextConfig, DecoderConfig, GraphAttentionNetwork, GraphLayer, GraphNetworkConfig,
    InputConfig, LabelerConfig, Sentences, Seq2Seq, Seq2SeqConfig, SequenceLabeler, Sequences,
    Tied, VisionTransformer, VisionTransformerConfig,
};
use regard::prelude::*;
use regard::tensor::{Precision, with_precision};
use std::time::Instant;

type Loss = Box<dyn Fn(&Random) -> Result<Tensor>>;

/// What is timed: a name, and what makes a model's loss on a device.
type Case = (&'static str, fn(&Parameters, Device) -> Result<Loss>);

const CASES: [Case; 9] = [
    ("transformer-b128t16d128", |p, _| transformer(p, [128, 16, 8000], [128, 4, 4, 256], 0.2)),
    ("transformer-b128t32d512", |p, _| transformer(p, [128, 32, 10000], [512, 6, 8, 2048], 0.1)),
    ("gru-additive-b64t16h256", |p, _| additive(p, [64, 16, 6000], [256, 256], 0.4)),
    ("gru-additive-b80t30h1000", |p, _| additive(p, [80, 30, 30000], [620, 1000], 0.0)),
    ("lstm-tagger-b64t32h256", tagger),
    ("vit-b64d64", |p, d| vit(p, d, [64, 1, 28], [64, 6, 4, 128])),
    ("vit-b256d384", |p, d| vit(p, d, [256, 3, 32], [384, 12, 6, 1536])),
    ("gat-cora", |p, d| graph(p, d, GraphLayer::Gat, [2708, 10556, 1433, 8, 8, 7, 2])),
    ("gatv2-169k", |p, d| graph(p, d, GraphLayer::Gatv2, [169_343, 2_315_598, 128, 64, 4, 40, 3])),
];

fn sentences(random: &Random, [count, length, vocabulary]: [usize; 3]) -> Result<Sentences> {
    let one = |_| (0..length).map(|_| 4 + random.below(vocabulary - 4)).collect();
    Sentences::new(&(0..count).map(one).collect::<Vec<Vec<usize>>>(), 0)
}

fn teach(parameters: &Parameters, config: &Seq2SeqConfig, sizes: [usize; 3]) -> Result<Loss> {
    let model = Seq2Seq::new(parameters, config)?;
    let random = Random::new(3);
    let (source, target) = (sentences(&random, sizes)?, sentences(&random, sizes)?);
    Ok(Box::new(move |random| model.teach(&source, &target, Mode::Train(random))?.loss(0.1)))
}

fn transformer(
    parameters: &Parameters,
    sizes: [usize; 3],
    [width, layers, heads, feed_forward]: [usize; 4],
    dropout: f64,
) -> Result<Loss> {
    let side = TransformerConfig::new(width, heads, layers);
    let side = TransformerConfig { feed_forward, dropout, ..side };
    let encoder = EncoderConfig::Transformer(side.clone());
    let decoder = DecoderConfig::Transformer(side);
    let config = Seq2SeqConfig::new(sizes[2], sizes[2], encoder, decoder, ContextConfig::MultiHead);
    teach(parameters, &Seq2SeqConfig { embedding: width, tied: Tied::All, ..config }, sizes)
}

fn additive(
    parameters: &Parameters,
    sizes: [usize; 3],
    [embedding, hidden]: [usize; 2],
    dropout: f64,
) -> Result<Loss> {
    let gru = RecurrentConfig::new(Cell::Gru, hidden);
    let both = RecurrentConfig { both_directions: true, ..gru };
    let config = Seq2SeqConfig::new(
        sizes[2],
        sizes[2],
        EncoderConfig::Recurrent(both),
        DecoderConfig::Recurrent(gru),
        ContextConfig::Attention(MechanismConfig::new(ScoreConfig::Additive { hidden })),
    );
    teach(parameters, &Seq2SeqConfig { embedding, dropout, tied: Tied::Output, ..config }, sizes)
}

fn ids(random: &Random, shape: &[usize], classes: usize, device: Device) -> Result<Tensor> {
    let ids = (0..shape.iter().product()).map(|_| random.below(classes) as i64).collect();
    Tensor::from_vec(ids, shape)?.to_device(device)
}

fn tagger(parameters: &Parameters, device: Device) -> Result<Loss> {
    let lstm = RecurrentConfig {
        layers: 2,
        both_directions: true,
        dropout: 0.3,
        ..RecurrentConfig::new(Cell::Lstm, 256)
    };
    let input = InputConfig::tokens(20000, 128);
    let model = SequenceLabeler::new(
        parameters,
        &LabelerConfig::new(input, EncoderConfig::Recurrent(lstm), 17),
    )?;
    let random = Random::new(3);
    let x = ids(&random, &[64, 32], 20000, device)?;
    let y = ids(&random, &[64, 32], 17, device)?;
    Ok(Box::new(move |random| model.loss(&Sequences::new(&x), &y, Mode::Train(random))))
}

fn vit(
    parameters: &Parameters,
    device: Device,
    [batch, channels, side]: [usize; 3],
    [width, depth, heads, feed_forward]: [usize; 4],
) -> Result<Loss> {
    let config = VisionTransformerConfig {
        image: [side, side],
        channels,
        width,
        depth,
        heads,
        feed_forward,
        dropout: 0.0,
        ..VisionTransformerConfig::default()
    };
    let model = VisionTransformer::new(parameters, &config)?;
    let random = Random::new(3);
    let images = random.normal(&[batch, channels, side, side], 0.0, 1.0, DType::F32)?;
    let images = images.to_device(device)?;
    let classes = ids(&random, &[batch], 10, device)?;
    Ok(Box::new(move |random| {
        let logits = model.forward(&images, Mode::Train(random))?;
        logits.cross_entropy(&classes, CrossEntropy::default())
    }))
}

fn graph(
    parameters: &Parameters,
    device: Device,
    layer: GraphLayer,
    [nodes, edges, features, hidden, heads, classes, layers]: [usize; 7],
) -> Result<Loss> {
    let config = GraphNetworkConfig {
        features,
        classes,
        layer,
        layers,
        hidden,
        heads,
        dropout: 0.6,
        ..GraphNetworkConfig::default()
    };
    let model = GraphAttentionNetwork::new(parameters, &config)?;
    let random = Random::new(3);
    let mut edges: Vec<_> =
        (0..edges).map(|_| (random.below(nodes), random.below(nodes))).collect();
    edges.sort_unstable();
    edges.dedup();
    let graph = Graph::new(nodes, &edges)?;
    let x = random.normal(&[nodes, features], 0.0, 1.0, DType::F32)?.to_device(device)?;
    let classes = ids(&random, &[nodes], classes, device)?;
    Ok(Box::new(move |random| {
        let logits = model.forward(&x, &graph, Mode::Train(random))?;
        logits.cross_entropy(&classes, CrossEntropy::default())
    }))
}

/// Milliseconds of a step, those until all was asked of the device, and the loss of the last.
fn time((_, make): &Case, device: Device, steps: usize, precision: Precision) -> Result<[f64; 3]> {
    let parameters = Parameters::new(DType::F32, 1);
    let loss = make(&parameters, device)?;
    parameters.to_device(device)?;
    let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam_w())?.clipped(1.0)?;
    let random = Random::new(5);
    let mut run = |steps: usize| -> Result<[f64; 3]> {
        let (mut last, start) = (None, Instant::now());
        for _ in 0..steps {
            let loss = with_precision(precision, || loss(&random))?;
            optimizer.step(&loss.backward()?, 1e-4)?;
            last = Some(loss);
        }
        let asked = start.elapsed();
        let loss = last.map_or(Ok(f64::NAN), |loss| loss.item())?;
        let [done, asked] =
            [start.elapsed(), asked].map(|time| time.as_secs_f64() * 1e3 / steps as f64);
        Ok([done, asked, loss])
    };
    run(steps.div_ceil(4))?;
    run(steps)
}

fn main() -> Result<()> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let device = given.first().map_or(Ok(Device::Cpu), |name| name.parse())?;
    let only = given.get(1).map_or("", String::as_str);
    let steps = given.get(2).and_then(|steps| steps.parse().ok()).unwrap_or(20);
    let precision = given.get(3).map_or(Ok(Precision::F32), |name| name.parse())?;
    for case in CASES.iter().filter(|(name, _)| name.contains(only)) {
        match time(case, device, steps, precision) {
            Ok([done, asked, loss]) => {
                println!("{:28} {done:9.3} ms a step, asked in {asked:.3}, loss {loss:.4}", case.0)
            }
            Err(error) => println!("{:28} {error}", case.0),
        }
    }
    Ok(())
}

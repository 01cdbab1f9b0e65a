//! Sizes near the end of what can be counted, in every number of every configuration: what is built
//! is built, and what is not is refused by a sentence. No sum or product of sizes wraps or panics.

use regard::Result;
use regard::layers::{
    BlockConfig, ConvolutionConfig, CrossAttention, CrossAttentionConfig, DecoderBlock,
    EncoderBlock, FullyConnectedConfig, GraphAttention, GraphAttentionConfig, SelfAttention,
    SelfAttentionConfig, TransformerDecoder, WindowedConfig, WindowedSelfAttention, rotate,
    sinusoids,
};
use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
use regard::models::{
    ClassifierConfig, ContextConfig, ConvolutionalClassifier, ConvolutionalConfig, DecoderConfig,
    GraphAttentionNetwork, GraphNetworkConfig, InputConfig, KernelRegression,
    KernelRegressionConfig, LabelerConfig, MemoryNetwork, MemoryNetworkConfig, Seq2Seq,
    Seq2SeqConfig, SequenceClassifier, SequenceLabeler, SpanReader, SpanReaderConfig,
    VisionTransformer, VisionTransformerConfig,
};
use regard::prelude::*;
use regard_tensor::limit_parameters;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Products of two of them wrap to 0 or to something small; most are multiples of the usual heads.
const SIZES: [u64; 3] = [u64::MAX, 1 << 63, (1 << 33) + 32];

/// The ways to every whole number, and to whatever may be one.
fn numbers(value: &Value, at: String, to: &mut Vec<String>) {
    match value {
        Value::Number(n) if n.is_u64() => to.push(at),
        Value::Null => to.push(at),
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(n, x)| numbers(x, format!("{at}/{n}"), to))
        }
        Value::Object(all) => {
            all.iter().for_each(|(name, x)| numbers(x, format!("{at}/{name}"), to))
        }
        _ => {}
    }
}

/// Builds with each number huge, and with each two of them; gives how many were refused, how many there
/// were, and which panicked.
fn sweep<C: Serialize + DeserializeOwned>(
    name: &str,
    config: &C,
    build: impl Fn(&Parameters, &C) -> Result<()>,
) -> ([usize; 2], Vec<String>) {
    let usual = serde_json::to_value(config).unwrap();
    let mut ways = Vec::new();
    numbers(&usual, String::new(), &mut ways);
    let (mut refused, mut all) = (0, 0);
    let mut panics = Vec::new();
    for (n, first) in ways.iter().enumerate() {
        for second in &ways[n..] {
            for size in SIZES {
                let mut changed = usual.clone();
                for way in [first, second] {
                    *changed.pointer_mut(way).unwrap() = size.into();
                }
                // What may be none need not be a number.
                let Ok(config) = serde_json::from_value::<C>(changed) else { continue };
                let built = catch_unwind(AssertUnwindSafe(|| {
                    Parameters::check_fit(DType::F32, |parameters| build(parameters, &config))
                }));
                all += 1;
                match built {
                    Ok(built) => refused += usize::from(built.is_err()),
                    Err(_) => panics.push(format!("{name}: {first} and {second} of {size}")),
                }
            }
        }
    }
    assert!(refused > 0, "{name}: nothing was refused of {all}");
    ([refused, all], panics)
}

#[test]
fn every_size_of_every_configuration_is_built_or_refused() {
    // Beyond it a model is not built any further: a billion layers end after some thousand numbers.
    limit_parameters(1 << 20);
    let mut found = Vec::new();
    macro_rules! sweep {
        ($($config:expr => |$parameters:ident, $c:ident| $build:expr;)*) => {
            $(found.push(sweep(stringify!($config), &$config, |$parameters, $c| $build.map(drop)));)*
        };
    }
    let additive = || MechanismConfig::new(ScoreConfig::Additive { hidden: 8 });
    let low_rank = || ScoreConfig::LowRank { rank: 3 };
    let gru = || RecurrentConfig { both_directions: true, ..RecurrentConfig::new(Cell::Gru, 8) };
    let lstm = || RecurrentConfig::new(Cell::Lstm, 8);
    let small = || TransformerConfig::new(16, 2, 2);
    let relative = MultiHeadConfig { position: Position::Relative, ..MultiHeadConfig::new(32, 4) };
    let encoders = [
        EncoderConfig::None,
        EncoderConfig::Recurrent(gru()),
        EncoderConfig::Cnn(ConvolutionConfig::default()),
        EncoderConfig::FullyConnected(FullyConnectedConfig::default()),
        EncoderConfig::Transformer(small()),
    ];
    sweep! {
        relative => |p, c| MultiHeadAttention::new(p, c);
        MultiHeadConfig { score: low_rank(), ..MultiHeadConfig::new(32, 4) } =>
            |p, c| MultiHeadAttention::new(p, c);
        additive() => |p, c| Mechanism::new(p, c, 8, 8);
        WindowedConfig::default() => |p, c| WindowedSelfAttention::new(p, c);
        CrossAttentionConfig::default() => |p, c| CrossAttention::new(p, c);
        SelfAttentionConfig::default() => |p, c| SelfAttention::new(p, c);
        GraphAttentionConfig::default() => |p, c| GraphAttention::new(p, c);
        BlockConfig::default() => |p, c| EncoderBlock::new(p, c);
        BlockConfig::default() => |p, c| DecoderBlock::new(p, c);
        small() => |p, c| TransformerDecoder::new(p, c, None, 16, 16);
        VisionTransformerConfig::default() => |p, c| VisionTransformer::new(p, c);
        ConvolutionalConfig::default() => |p, c| ConvolutionalClassifier::new(p, c);
        GraphNetworkConfig::default() => |p, c| GraphAttentionNetwork::new(p, c);
        KernelRegressionConfig::default() => |p, c| KernelRegression::new(p, c);
        MemoryNetworkConfig::new(10, 10, 2) => |p, c| MemoryNetwork::new(p, c);
        SpanReaderConfig::new(10, encoders[1].clone()) => |p, c| SpanReader::new(p, c);
        Seq2SeqConfig::new(
            10,
            10,
            encoders[1].clone(),
            DecoderConfig::Recurrent(lstm()),
            ContextConfig::Attention(additive()),
        ) => |p, c| Seq2Seq::new(p, c);
        Seq2SeqConfig::new(
            10,
            10,
            encoders[4].clone(),
            DecoderConfig::Transformer(small()),
            ContextConfig::MultiHead,
        ) => |p, c| Seq2Seq::new(p, c);
    }
    for encoder in encoders {
        let labeler = LabelerConfig {
            neighbors: Some(2),
            ..LabelerConfig::new(InputConfig::tokens(10, 8), encoder.clone(), 5)
        };
        let classifier = ClassifierConfig::new(InputConfig::tokens(10, 8), encoder, 5);
        sweep! {
            labeler => |p, c| SequenceLabeler::new(p, c);
            classifier => |p, c| SequenceClassifier::new(p, c);
        }
    }
    let panics: Vec<&String> = found.iter().flat_map(|(_, panics)| panics).collect();
    assert!(panics.is_empty(), "{} panic: {panics:#?}", panics.len());
    let [refused, all] = found.iter().fold([0, 0], |a, (b, _)| [a[0] + b[0], a[1] + b[1]]);
    println!("{refused} of {all} were refused, in {} configurations", found.len());
    assert_eq!(found.len(), 28);
}

#[test]
fn positions_that_cannot_be_counted_are_refused() {
    let far = usize::MAX - 1;
    for (start, length, width) in [(far, 2, 4), (0, usize::MAX, 2), (0, 1 << 62, 4), (1, far, 0)] {
        let error = sinusoids(start, length, width, DType::F32).unwrap_err().to_string();
        let said = ["than can be counted", "than memory can address"];
        assert!(said.iter().any(|said| error.contains(said)), "{error}");
    }
    assert_eq!(sinusoids(far, 1, 4, DType::F64).unwrap().shape(), [1, 4]);
    assert_eq!(sinusoids(3, 2, 0, DType::F64).unwrap().shape(), [2, 0]);
    let x = Tensor::zeros(&[1, 1, 3, 4], DType::F32).unwrap();
    let error = rotate(&x, far).unwrap_err().to_string();
    assert!(error.contains("3 places from 18446744073709551614 on"), "{error}");
}

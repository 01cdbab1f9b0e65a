//! Attention and models on a GPU give what they give in main memory. `REGARD_TEST_DEVICE` names the device.

use crate::seq2seq::{attention, config, decoders, encoders, pairs, scores, weightings};
use regard::models::{ContextConfig, DecoderConfig, Seq2Seq, Seq2SeqConfig};
use regard::prelude::*;
use regard_tensor::fallbacks;

fn device() -> Device {
    std::env::var("REGARD_TEST_DEVICE").map_or(Device::Cpu, |name| name.parse().unwrap())
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

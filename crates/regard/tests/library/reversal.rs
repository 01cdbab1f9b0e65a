//! Why attention: one fixed vector holds less of a sequence the longer it is.

use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
use regard::models::{ContextConfig, DecoderConfig, Sentences, Seq2Seq, Seq2SeqConfig};
use regard::prelude::*;

const LENGTH: usize = 40;
const SYMBOLS: usize = 6;

fn batch(random: &Random, count: usize) -> (Sentences, Sentences) {
    let source: Vec<Vec<usize>> =
        (0..count).map(|_| (0..LENGTH).map(|_| 3 + random.below(SYMBOLS)).collect()).collect();
    let target: Vec<Vec<usize>> =
        source.iter().map(|s| s.iter().rev().copied().collect()).collect();
    (Sentences::new(&source, 0).unwrap(), Sentences::new(&target, 0).unwrap())
}

/// The loss per token on sequences it has not seen, after some steps of learning to reverse.
fn learn(context: ContextConfig) -> f64 {
    let both = RecurrentConfig { both_directions: true, ..RecurrentConfig::new(Cell::Gru, 16) };
    let config = Seq2SeqConfig {
        embedding: 16,
        ..Seq2SeqConfig::new(
            3 + SYMBOLS,
            3 + SYMBOLS,
            EncoderConfig::Recurrent(both),
            DecoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 32)),
            context,
        )
    };
    let parameters = Parameters::new(DType::F32, 1);
    let model = Seq2Seq::new(&parameters, &config).unwrap();
    let mut optimizer =
        Optimizer::new(&parameters, UpdateRule::adam()).unwrap().clipped(1.0).unwrap();
    let random = Random::new(2);
    for _ in 0..300 {
        let (source, target) = batch(&random, 8);
        let taught = model.teach(&source, &target, Mode::Train(&random)).unwrap();
        optimizer.step(&taught.loss(0.0).unwrap().backward().unwrap(), 1e-2).unwrap();
    }
    let (source, target) = batch(&Random::new(3), 32);
    model.teach(&source, &target, Mode::Infer).unwrap().loss(0.0).unwrap().item().unwrap()
}

#[test]
fn a_fixed_vector_loses_to_attention_on_reversing_forty_tokens() {
    let additive = MechanismConfig::new(ScoreConfig::Additive { hidden: 32 });
    let attention = learn(ContextConfig::Attention(additive));
    let fixed = learn(ContextConfig::Fixed);
    // Guessing has a loss of ln 6 = 1.79.
    assert!(attention < 0.6 * fixed, "attention {attention}, fixed vector {fixed}");
}

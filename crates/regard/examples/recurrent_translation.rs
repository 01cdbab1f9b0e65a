//! A GRU encoder–decoder with additive attention learns to reverse sequences, and shows where it
//! looked: the alignment of the output with the source runs from corner to corner.
//!
//!     cargo run --release -p regard --example recurrent_translation

use regard::Result;
use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
use regard::models::{ContextConfig, DecoderConfig, Sentences, Seq2Seq, Seq2SeqConfig};
use regard::prelude::*;

/// Random sequences of the tokens 3 to 9, and the same backwards.
fn batch(random: &Random, count: usize) -> Result<(Sentences, Sentences)> {
    let sequence = |_| (0..4 + random.below(5)).map(|_| 3 + random.below(7)).collect();
    let source: Vec<Vec<usize>> = (0..count).map(sequence).collect();
    let target: Vec<Vec<usize>> =
        source.iter().map(|s| s.iter().rev().copied().collect()).collect();
    Ok((Sentences::new(&source, 0)?, Sentences::new(&target, 0)?))
}

fn main() -> Result<()> {
    let both = RecurrentConfig { both_directions: true, ..RecurrentConfig::new(Cell::Gru, 32) };
    let additive = MechanismConfig::new(ScoreConfig::Additive { hidden: 32 });
    let config = Seq2SeqConfig::new(
        10,
        10,
        EncoderConfig::Recurrent(both),
        DecoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 64)),
        ContextConfig::Attention(additive),
    );
    let parameters = Parameters::new(DType::F32, 1);
    let model = Seq2Seq::new(&parameters, &config)?;
    println!("{} numbers to learn", parameters.numel());

    let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam())?.clipped(1.0)?;
    let random = Random::new(2);
    for step in 0..=400 {
        let (source, target) = batch(&random, 32)?;
        let loss = model.teach(&source, &target, Mode::Train(&random))?.loss(0.0)?;
        optimizer.step(&loss.backward()?, 5e-3)?;
        if step % 100 == 0 {
            println!("step {step}: loss {:.4}", loss.item()?);
        }
    }

    let (source, _) = batch(&Random::new(3), 1)?;
    let output = model.greedy_with(&source, 12, Need::WEIGHTS)?.swap_remove(0);
    println!("source {:?}", source.sequences()?[0]);
    println!("output {:?}", output.tokens);
    if let Some(alignment) = output.alignment {
        println!("weights over the source, a row for each token and the end:");
        for row in alignment.to_vec::<f32>()?.chunks(alignment.size(1)?) {
            println!("  {}", row.iter().map(|w| format!("{w:.2} ")).collect::<String>());
        }
    }
    Ok(())
}

//! A Transformer learns a small language of numbers: digits become words, tens and ones swap
//! places. It is saved, rebuilt from its configuration and its file, and translates.
//!
//!     cargo run --release -p regard --example transformer_translation

use regard::layers::EncoderConfig;
use regard::models::{
    ContextConfig, DecoderConfig, SearchConfig, Sentences, Seq2Seq, Seq2SeqConfig, Tied,
};
use regard::prelude::*;
use regard::{Error, Result};

/// The target's words; the first three are padding, start and end.
const WORDS: [&str; 13] = [
    "_", "<", ">", "null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht",
    "neun",
];

/// A number's digits as tokens, and its words: the ones before the tens.
fn pair(number: usize) -> (Vec<usize>, Vec<usize>) {
    let digits: Vec<usize> =
        number.to_string().bytes().map(|digit| 3 + usize::from(digit - b'0')).collect();
    let words = digits.chunks(2).flat_map(|pair| pair.iter().rev().copied()).collect();
    (digits, words)
}

fn batch(random: &Random, count: usize) -> Result<(Sentences, Sentences)> {
    let (source, target): (Vec<_>, Vec<_>) =
        (0..count).map(|_| pair(random.below(1_000_000))).unzip();
    Ok((Sentences::new(&source, 0)?, Sentences::new(&target, 0)?))
}

fn main() -> Result<()> {
    let side = TransformerConfig { dropout: 0.0, ..TransformerConfig::new(64, 4, 2) };
    let config = Seq2SeqConfig {
        tied: Tied::All,
        ..Seq2SeqConfig::new(
            WORDS.len(),
            WORDS.len(),
            EncoderConfig::Transformer(side.clone()),
            DecoderConfig::Transformer(side),
            ContextConfig::MultiHead,
        )
    };
    let parameters = Parameters::new(DType::F32, 1);
    let model = Seq2Seq::new(&parameters, &config)?;
    let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam_w())?.clipped(1.0)?;
    let random = Random::new(2);
    for step in 0..=300 {
        let (source, target) = batch(&random, 64)?;
        let loss = model.teach(&source, &target, Mode::Train(&random))?.loss(0.1)?;
        optimizer.step(&loss.backward()?, 2e-3)?;
        if step % 50 == 0 {
            println!("step {step}: loss {:.4}", loss.item()?);
        }
    }

    let file = std::env::temp_dir().join("regard-transformer-translation.safetensors");
    parameters.save(&file)?;
    let text = serde_json::to_string(&config).map_err(|error| Error::new(error.to_string()))?;

    let config = serde_json::from_str(&text).map_err(|error| Error::new(error.to_string()))?;
    let parameters = Parameters::new(DType::F32, 0);
    let model = Seq2Seq::new(&parameters, &config)?;
    parameters.load(&file)?;
    for number in [42, 1984, 271_828] {
        let (digits, _) = pair(number);
        let source = Sentences::new(&[digits], config.padding)?;
        let best = model.search(&source, &SearchConfig::default())?.swap_remove(0).swap_remove(0);
        let words: Vec<&str> = best.tokens.iter().map(|&token| WORDS[token]).collect();
        println!("{number}: {} (score {:.3})", words.join(" "), best.score);
    }
    Ok(())
}

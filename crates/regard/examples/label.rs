//! One label per token: who needs to see whom?
//!
//! A token's label says whether it is larger than its left neighbor; the first is. A token alone
//! can only guess; a window of one neighbor, a GRU and self-attention learn it.
//!
//!     cargo run --release -p regard --example label

use regard::Result;
use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
use regard::models::{InputConfig, LabelerConfig, SequenceLabeler, Sequences};
use regard::prelude::*;

const TOKENS: usize = 10;

/// 32 sequences of 8 tokens, and the label of each.
fn batch(random: &Random) -> Result<(Tensor, Tensor)> {
    let ids: Vec<i64> = (0..32 * 8).map(|_| random.below(TOKENS) as i64).collect();
    let label = |at: usize| i64::from(at.is_multiple_of(8) || ids[at - 1] < ids[at]);
    let labels = (0..ids.len()).map(label).collect();
    Ok((Tensor::from_slice(&ids, &[32, 8])?, Tensor::from_vec(labels, &[32, 8])?))
}

/// The share of right labels after 150 steps.
fn learn(config: &LabelerConfig) -> Result<f64> {
    let parameters = Parameters::new(DType::F32, 1);
    let labeler = SequenceLabeler::new(&parameters, config)?;
    let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam())?;
    let random = Random::new(1);
    for _ in 0..150 {
        let (ids, labels) = batch(&random)?;
        let loss = labeler.loss(&Sequences::new(&ids), &labels, Mode::Train(&random))?;
        optimizer.step(&loss.backward()?, 0.01)?;
    }
    let (ids, labels) = batch(&random)?;
    let found = labeler.predict(&Sequences::new(&ids))?.concat();
    let labels = labels.to_vec::<i64>()?;
    let right = found.iter().zip(&labels).filter(|(found, label)| **found as i64 == **label);
    Ok(right.count() as f64 / labels.len() as f64)
}

fn main() -> Result<()> {
    let config = |encoder| LabelerConfig::new(InputConfig::tokens(TOKENS, 16), encoder, 2);
    let alone = LabelerConfig { hidden: Some(32), ..config(EncoderConfig::None) };
    let window = LabelerConfig { neighbors: Some(1), ..alone.clone() };
    let gru = config(EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 32)));
    let attention = |window| {
        // Who is left of whom is a matter of distance, so positions are relative.
        let position = Position::Relative;
        let blocks = TransformerConfig::new(32, 4, 2);
        let blocks = TransformerConfig { window, position, dropout: 0.0, ..blocks };
        config(EncoderConfig::Transformer(blocks))
    };
    let all = [
        ("each token alone", alone),
        ("a window of one neighbor", window),
        ("a GRU", gru),
        ("self-attention", attention(None)),
        ("truncated self-attention", attention(Some(1))),
    ];
    for (name, config) in all {
        println!("{name:<26} {:5.1} % right", 100.0 * learn(&config)?);
    }
    Ok(())
}

//! Hard attention: one vector is chosen and the others are not seen at all. No gradient goes
//! through a choice, so choosing is learned from rewards (REINFORCE).
//!
//!     cargo run -p regard --example hard_attention

use regard::Result;
use regard::attention::{Reinforce, ReinforceConfig};
use regard::layers::{Pooling, PoolingConfig};
use regard::prelude::*;

/// Six vectors; one of them carries a mark in its first number, and its second is the treasure.
fn batch(random: &Random, size: usize) -> Result<Tensor> {
    let mut x = Vec::new();
    for _ in 0..size {
        let marked = random.below(6);
        for place in 0..6 {
            let here = place == marked;
            x.extend([f64::from(u8::from(here)), f64::from(u8::from(here)), random.number()]);
        }
    }
    Tensor::from_vec(x, &[size, 6, 3])
}

fn main() -> Result<()> {
    let parameters = Parameters::new(DType::F64, 2);
    let config = MechanismConfig {
        score: ScoreConfig::Additive { hidden: 8 },
        weighting: Weighting::Sample,
        ..MechanismConfig::default()
    };
    let choose = Pooling::new(&parameters, &PoolingConfig::Attention(config), 3)?;
    let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam())?;
    let mut reinforce = Reinforce::new(ReinforceConfig::default())?;
    let random = Random::new(2);
    for step in 0..=200 {
        if step % 40 == 0 {
            // In use the best place is taken: argmax.
            let best = choose.forward(&batch(&random, 500)?, None, Mode::Infer)?;
            let found = best.select(1, 1)?.contiguous()?.mean_all()?.item()?;
            println!(
                "step {step:3}: treasure while drawing {:.2}, with argmax {found:.2}",
                reinforce.baseline()?
            );
        }
        let x = batch(&random, 32)?;
        // While learning a place is drawn; the reward is the treasure found there.
        let pooled = choose.pool(&x, None, Mode::Train(&random), Need::OUTPUT)?;
        let Some(log_prob) = pooled.log_prob else { break };
        let reward = pooled.out.select(1, 1)?.contiguous()?;
        let p = choose.probabilities(&x, None)?;
        let loss = reinforce.loss(&reward, &log_prob, Some(&p))?;
        optimizer.step(&loss.backward()?, 0.02)?;
    }
    Ok(())
}

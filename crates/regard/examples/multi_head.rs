//! Multi-head self-attention, and decoding with a cache: a step computes only what is new.
//!
//!     cargo run --release -p regard --example multi_head

use regard::Result;
use regard::layers::KeyValueCache;
use regard::prelude::*;
use std::time::Instant;

fn main() -> Result<()> {
    let config = MultiHeadConfig { key_heads: Some(2), ..MultiHeadConfig::new(64, 8) };
    let attention = MultiHeadAttention::new(&Parameters::new(DType::F32, 1), &config)?;
    let x = Random::new(1).normal(&[1, 256, 64], 0.0, 1.0, DType::F32)?;

    let seen = attention.attend(&x, &x, &x, &Mask::causal(), Mode::Infer, Need::WEIGHTS)?;
    if let Some(weights) = &seen.weights {
        println!("weights of 8 heads, keys and values of 2: {:?}", weights.shape());
    }

    without_gradients(|| {
        let start = Instant::now();
        let mut cache = KeyValueCache::default();
        let mut worst = 0f32;
        for place in 0..256 {
            let new = x.narrow(1, place, 1)?;
            let step = attention.extend(&new, &mut cache, &Mask::causal(), Need::OUTPUT)?;
            let whole = seen.out.narrow(1, place, 1)?;
            for (a, b) in step.out.to_vec::<f32>()?.iter().zip(whole.to_vec::<f32>()?) {
                worst = worst.max((a - b).abs());
            }
        }
        println!("256 steps with a cache of {} keys: {:.1?}", cache.len(), start.elapsed());
        println!("the largest difference to all at once: {worst:.1e}");
        Ok(())
    })
}

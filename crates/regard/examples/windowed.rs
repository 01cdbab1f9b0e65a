//! Truncated self-attention: each vector sees its neighbors alone, and the work follows.
//!
//!     cargo run --release -p regard --example windowed

use regard::Result;
use regard::layers::{WindowedConfig, WindowedSelfAttention};
use regard::prelude::*;
use std::time::Instant;

fn main() -> Result<()> {
    let build = |window| {
        let config = WindowedConfig { width: 32, heads: 2, window, dropout: 0.0 };
        WindowedSelfAttention::new(&Parameters::new(DType::F32, 1), &config)
    };
    let x = Random::new(1).normal(&[1, 8, 32], 0.0, 1.0, DType::F32)?;
    let seen = build(2)?.attend(&x, &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
    if let Some(weights) = seen.weights {
        for row in weights.select(1, 0)?.squeeze(0)?.to_vec::<f32>()?.chunks(8) {
            let marks = row.iter().map(|&w| if w > 0.0 { "■ " } else { "· " });
            println!("  {}", marks.collect::<String>());
        }
    }
    let long = Random::new(2).normal(&[1, 4096, 32], 0.0, 1.0, DType::F32)?;
    for window in [16, 256, 4096] {
        let windowed = build(window)?;
        let start = Instant::now();
        without_gradients(|| windowed.forward(&long, &Mask::none(), Mode::Infer))?;
        println!("4096 vectors, window {window:4}: {:.1?}", start.elapsed());
    }
    Ok(())
}

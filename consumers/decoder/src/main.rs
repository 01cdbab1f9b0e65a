//! Decoding step by step with a cache gives what the whole sequence at once gives, for every way
//! to know positions and in both precisions.

use regard::Result;
use regard::prelude::*;
use regard::layers::KeyValueCache;

fn main() -> Result<()> {
    let positions = [Position::None, Position::Rotary, Position::Alibi, Position::Relative];
    for dtype in [DType::F32, DType::F64] {
        for position in positions {
            let config =
                MultiHeadConfig { position, key_heads: Some(2), ..MultiHeadConfig::new(32, 4) };
            let attention = MultiHeadAttention::new(&Parameters::new(dtype, 1), &config)?;
            let x = Random::new(2).normal(&[2, 9, 32], 0.0, 1.0, dtype)?;
            let whole = attention.forward(&x, &x, &x, &Mask::causal(), Mode::Infer)?;
            let mut cache = KeyValueCache::default();
            let mut steps = Vec::new();
            for at in 0..9 {
                let new = x.narrow(1, at, 1)?;
                let seen = attention.extend(&new, &mut cache, &Mask::causal(), Need::OUTPUT)?;
                steps.push(seen.out);
            }
            let error = Tensor::cat(&steps, 1)?.squared_error(&whole)?.item()?;
            assert!(error < 1e-10, "{dtype} {position:?}: {error}");
        }
    }
    println!("step by step as at once: {} ways to know positions", positions.len());
    Ok(())
}

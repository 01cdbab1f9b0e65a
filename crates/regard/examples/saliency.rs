//! Saliency: what stands out by itself, without a query. Max pooling lets the largest win, a gate
//! weighs each number by the vector it stands in.
//!
//!     cargo run -p regard --example saliency

use regard::Result;
use regard::layers::{Pooling, PoolingConfig};
use regard::prelude::*;

fn main() -> Result<()> {
    // Frames of a sound: quiet, quiet, loud in one band, quiet, and padding.
    let frames = vec![
        0.1, 0.2, 0.1, //
        0.2, 0.1, 0.1, //
        0.3, 3.0, 2.0, //
        0.4, 0.1, 0.2, //
        9.0, 9.0, 9.0, //
    ];
    let x = Tensor::from_vec(frames, &[1, 5, 3])?;
    for (name, config) in [
        ("mean", PoolingConfig::Mean),
        ("max", PoolingConfig::Max),
        ("last", PoolingConfig::Last),
        ("gate", PoolingConfig::Gate),
    ] {
        let pooling = Pooling::new(&Parameters::new(DType::F64, 1), &config, 3)?;
        let pooled = pooling.pool(&x, Some(&[4]), Mode::Infer, Need::WEIGHTS)?;
        print!("{name:5} {:.2?}", pooled.out.to_vec::<f64>()?);
        match pooled.weights {
            Some(weights) => println!("  share of each frame {:.2?}", weights.to_vec::<f64>()?),
            None => println!("  each number has its own gate"),
        }
    }
    Ok(())
}

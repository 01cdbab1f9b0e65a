//! Weights that need not sum to one: how each normalizer turns the same scores into weights.
//!
//!     cargo run -p regard --example unnormalized

use regard::Result;
use regard::prelude::*;

fn main() -> Result<()> {
    let q = Tensor::from_vec(vec![1.0], &[1, 1, 1])?;
    let k = Tensor::from_vec(vec![3.0, 2.5, 0.0, -2.0], &[1, 4, 1])?;
    let v = Tensor::from_vec(vec![1.0; 4], &[1, 4, 1])?;
    println!("scores      {:?}", k.to_vec::<f64>()?);
    for (name, normalizer) in [
        ("softmax", Normalizer::Softmax),
        ("entmax 1.5", Normalizer::Entmax15),
        ("sparsemax", Normalizer::Sparsemax),
        ("argmax", Normalizer::Argmax),
        ("sigmoid", Normalizer::Sigmoid),
        ("none", Normalizer::None),
    ] {
        let attention = Attention { normalizer, ..Attention::new(Score::dot()) };
        let seen = attention.attend(&q, &k, &v, &Mask::none(), Need::WEIGHTS)?;
        let weights = seen.weights.map_or(Ok(Vec::new()), |w| w.to_vec::<f64>())?;
        // The values are ones, so the output is the sum of the weights.
        println!("{name:11} {weights:.3?}  sum {:.3}", seen.out.item()?);
    }
    Ok(())
}

//! Soft attention over a set: each vector by its weight, and the weights look at all of it.
//!
//!     cargo run -p regard --example soft_attention

use regard::Result;
use regard::prelude::*;

fn main() -> Result<()> {
    // Four things with two properties each, and a query that asks for the first property.
    let names = ["lemon", "grape", "chili", "water"];
    let sour_and_hot = vec![2.0, 0.1, 0.8, 0.0, 0.2, 2.0, 0.0, 0.0];
    let set = Tensor::from_vec(sour_and_hot, &[1, 4, 2])?;
    let sour = Tensor::from_vec(vec![2.0, 0.0], &[1, 1, 2])?;

    let attention = Attention::new(Score::ScaledDot);
    let attended = attention.attend(&sour, &set, &set, &Mask::none(), Need::WEIGHTS)?;
    let Some(weights) = attended.weights else { return Ok(()) };
    println!("what is sour?");
    for (name, weight) in names.iter().zip(weights.to_vec::<f64>()?) {
        println!("  {name} {weight:.3} {}", "█".repeat((40.0 * weight) as usize));
    }
    println!("the answer: {:.3?}", attended.out.to_vec::<f64>()?);

    // Padding: with a length of 2 the last two are not there.
    let short = attention.forward(&sour, &set, &set, &Mask::lengths(&[2]))?;
    println!("of the first two alone: {:.3?}", short.to_vec::<f64>()?);
    Ok(())
}

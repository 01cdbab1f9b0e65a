//! Attention does not see order; positions bring it in. Two words change places: does the last one
//! notice?
//!
//!     cargo run -p regard --example positions

use regard::Result;
use regard::layers::sinusoids;
use regard::prelude::*;

fn main() -> Result<()> {
    let words = Random::new(1).normal(&[1, 6, 16], 0.0, 1.0, DType::F64)?;
    // The first and the fourth word change places.
    let order = Tensor::from_vec(vec![3i64, 1, 2, 0, 4, 5], &[6])?;
    let swapped = words.squeeze(0)?.rows(&order)?.unsqueeze(0)?;
    for position in [
        Position::None,
        Position::Sinusoidal,
        Position::Rotary,
        Position::Alibi,
        Position::Relative,
    ] {
        let config = MultiHeadConfig { position, max_distance: 4, ..MultiHeadConfig::new(16, 2) };
        let parameters = Parameters::new(DType::F64, 1);
        let attention = MultiHeadAttention::new(&parameters, &config)?;
        // A relative bias begins at zero; give it some numbers, as learning would.
        for p in parameters.all().iter().filter(|p| p.name() == "relative") {
            p.set(&Random::new(3).normal(p.tensor().shape(), 0.0, 1.0, DType::F64)?)?;
        }
        let last_word = |x: &Tensor| {
            let x = match position {
                Position::Sinusoidal => x.add(&sinusoids(0, 6, 16, DType::F64)?)?,
                _ => x.clone(),
            };
            let out = attention.forward(&x, &x, &x, &Mask::none(), Mode::Infer)?;
            out.select(1, 5)?.to_vec::<f64>()
        };
        let (before, after) = (last_word(&words)?, last_word(&swapped)?);
        let moved: f64 = before.iter().zip(&after).map(|(a, b)| (a - b).powi(2)).sum();
        let name = format!("{position:?}");
        println!("{name:12} what the last word sees changes by {:.3}", moved.sqrt());
    }
    Ok(())
}

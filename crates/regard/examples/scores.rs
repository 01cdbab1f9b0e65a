//! Every score on the same query and keys, with its parameters and weights.
//!
//!     cargo run -p regard --example scores

use regard::Result;
use regard::attention::BilinearScale;
use regard::prelude::*;

fn main() -> Result<()> {
    let random = Random::new(7);
    let q = random.normal(&[1, 1, 8], 0.0, 1.0, DType::F64)?;
    let k = random.normal(&[1, 5, 8], 0.0, 1.0, DType::F64)?;
    let scores = [
        ("k·q", ScoreConfig::Dot),
        ("k·q / √D", ScoreConfig::ScaledDot),
        ("w · tanh(W_k k + W_q q)", ScoreConfig::Additive { hidden: 16 }),
        ("w · [q; k]", ScoreConfig::Concat { hidden: None }),
        ("w · tanh(W [q; k])", ScoreConfig::Concat { hidden: Some(16) }),
        ("kᵀ W q / √D", ScoreConfig::Bilinear { scale: BilinearScale::Root }),
        ("(U k) · (V q)", ScoreConfig::LowRank { rank: 2 }),
        (
            "−½ ‖w ∘ (q − k)‖²",
            ScoreConfig::Gaussian { inverse_width: 0.5, learned: true, per_feature: true },
        ),
        ("τ cos(k, q)", ScoreConfig::Cosine { temperature: 5.0, learned: true }),
    ];
    println!("{:26} parameters  weights of five keys", "score");
    for (formula, score) in scores {
        let parameters = Parameters::new(DType::F64, 1);
        let mechanism = Mechanism::new(&parameters, &MechanismConfig::new(score), 8, 8)?;
        let seen = mechanism.attend(&q, &k, &k, &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
        let weights = seen.weights.map_or(Ok(Vec::new()), |w| w.to_vec::<f64>())?;
        println!("{formula:26} {:10}  {weights:.2?}", parameters.numel());
    }
    Ok(())
}

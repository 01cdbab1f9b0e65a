//! Keys and values apart: what is compared need not be what is read. Then several queries over one
//! memory, their answers side by side.
//!
//!     cargo run -p regard --example key_value

use regard::Result;
use regard::attention::LearnedQueries;
use regard::prelude::*;

fn main() -> Result<()> {
    // A dictionary: directions as keys, prices as values.
    let k = Tensor::from_vec(vec![1.0, 0.0, 0.0, 1.0, -1.0, 0.0], &[1, 3, 2])?;
    let v = Tensor::from_vec(vec![10.0, 20.0, 40.0], &[1, 3, 1])?;
    let score = ScoreConfig::Cosine { temperature: 20.0, learned: false };
    let lookup =
        Mechanism::new(&Parameters::new(DType::F64, 1), &MechanismConfig::new(score), 2, 2)?;
    let q = Tensor::from_vec(vec![5.0, 0.1, 1.0, 1.0], &[1, 2, 2])?;
    let each = lookup.attend(&q, &k, &v, &Mask::none(), Mode::Infer, Need::OUTPUT)?;
    println!("near the first key, then between two: {:.1?}", each.out.to_vec::<f64>()?);
    let both = lookup.concatenated(&q, &k, &v, &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
    println!("side by side, one row of {:?}", both.out.shape());

    // Learned queries ask the same memory about different things.
    let parameters = Parameters::new(DType::F64, 1);
    let additive = MechanismConfig::new(ScoreConfig::Additive { hidden: 8 });
    let four = LearnedQueries::new(&parameters, &additive, 4, 3, 5)?;
    let memory = Random::new(1).normal(&[2, 7, 5], 0.0, 1.0, DType::F64)?;
    let seen =
        four.attend(&memory, &memory, &Mask::lengths(&[7, 3]), Mode::Infer, Need::WEIGHTS)?;
    println!("four learned queries over two memories: {:?}", seen.out.shape());
    if let Some(weights) = seen.weights {
        let first = weights.select(0, 1)?.select(0, 0)?.to_vec::<f64>()?;
        println!("the first query's weights on the short memory: {first:.2?}");
    }
    Ok(())
}

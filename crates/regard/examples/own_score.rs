//! A score of one's own: how near two points are along the streets of a grid, with a learned rate.
//! Its gradients are held against finite differences.
//!
//!     cargo run -p regard --example own_score

use regard::Result;
use regard::attention::{OwnGrads, OwnScore, Real};
use regard::prelude::*;
use regard::tensor::finite_difference_error;

/// −rate · Σ |q − k|
struct Manhattan;

impl<T: Real> OwnScore<T> for Manhattan {
    fn parameters(&self) -> usize {
        1
    }

    fn score(&self, rate: &[T], q: &[T], k: &[T]) -> T {
        -rate[0] * q.iter().zip(k).map(|(&q, &k)| (q - k).abs()).sum::<T>()
    }

    fn backward(&self, rate: &[T], q: &[T], k: &[T], grad: T, to: OwnGrads<T>) {
        for d in 0..q.len() {
            let step = if q[d] > k[d] { grad * rate[0] } else { -grad * rate[0] };
            to.q[d] -= step;
            to.k[d] += step;
            to.parameters[0] -= grad * (q[d] - k[d]).abs();
        }
    }
}

fn main() -> Result<()> {
    let shops = Tensor::from_vec(vec![0.0, 0.0, 2.0, 1.0, 5.0, 5.0], &[3, 2])?;
    let home = Tensor::from_vec(vec![1.0, 1.0], &[1, 2])?;
    let rate = Tensor::from_vec(vec![1.0], &[1])?;
    let attention = Attention::new(Score::own(Manhattan, rate.clone()));
    let seen = attention.attend(&home, &shops, &shops, &Mask::none(), Need::WEIGHTS)?;
    let weights = seen.weights.map_or(Ok(Vec::new()), |w| w.to_vec::<f64>())?;
    println!("weights of the shops: {weights:.3?}");

    let random = Random::new(1);
    let q = random.normal(&[4, 3], 0.0, 1.0, DType::F64)?;
    let k = random.normal(&[5, 3], 0.0, 1.0, DType::F64)?;
    let error = finite_difference_error(&[q, k.clone(), rate], |x| {
        Attention::new(Score::own(Manhattan, x[2].clone())).forward(&x[0], &x[1], &k, &Mask::none())
    })?;
    println!("gradients and finite differences differ by {error:.1e}");

    // The same score in a configuration: here in each of four heads, with a rate of its own.
    let parameters = Parameters::new(DType::F64, 1);
    let score = ScoreConfig::own(Manhattan, &[1.0]);
    let config = MultiHeadConfig { score, ..MultiHeadConfig::new(16, 4) };
    let heads = MultiHeadAttention::new(&parameters, &config)?;
    let x = random.normal(&[1, 6, 16], 0.0, 1.0, DType::F64)?;
    let loss = heads.forward(&x, &x, &x, &Mask::none(), Mode::Infer)?.square()?.mean_all()?;
    let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam_w())?;
    optimizer.step(&loss.backward()?, 1e-2)?;
    println!("rates after a step: {:.3?}", parameters.tensors()["score.own"].to_vec::<f64>()?);
    Ok(())
}

//! A score of one's own: how near two points are along the streets of a grid, with a learned rate.
//! Its gradients are held against finite differences.
//!
//!     cargo run -p regard --example own_score

use regard::Result;
use regard::prelude::*;
use regard::tensor::finite_difference_error;

/// −rate · Σ |q − k|
struct Manhattan;

impl OwnScore for Manhattan {
    fn score<T: Real>(&self, rate: &[T], q: &[T], k: &[T]) -> T {
        let mut sum = T::ZERO;
        for (&q, &k) in q.iter().zip(k) {
            sum += (q - k).abs();
        }
        -rate[0] * sum
    }

    fn backward<T: Real>(
        &self,
        rate: &[T],
        q: &[T],
        k: &[T],
        grad: T,
        grad_rate: &mut [T],
        grad_q: &mut [T],
        grad_k: &mut [T],
    ) {
        for d in 0..q.len() {
            let step = if q[d] > k[d] { grad * rate[0] } else { -grad * rate[0] };
            grad_q[d] -= step;
            grad_k[d] += step;
            grad_rate[0] -= grad * (q[d] - k[d]).abs();
        }
    }
}

fn main() -> Result<()> {
    let shops = Tensor::from_vec(vec![0.0, 0.0, 2.0, 1.0, 5.0, 5.0], &[3, 2])?;
    let home = Tensor::from_vec(vec![1.0, 1.0], &[1, 2])?;
    let rate = Tensor::from_vec(vec![1.0], &[1])?;
    let attention = Attention::new(Score::own(Manhattan, rate.clone()));
    let seen = attention.attend(&home, &shops, &shops, true)?;
    let weights = seen.weights.map_or(Ok(Vec::new()), |w| w.to_vec::<f64>())?;
    println!("weights of the shops: {weights:.3?}");

    let random = Random::new(1);
    let q = random.normal(&[4, 3], 0.0, 1.0, DType::F64)?;
    let k = random.normal(&[5, 3], 0.0, 1.0, DType::F64)?;
    let error = finite_difference_error(&[q, k.clone(), rate], |x| {
        Attention::new(Score::own(Manhattan, x[2].clone())).forward(&x[0], &x[1], &k)
    })?;
    println!("gradients and finite differences differ by {error:.1e}");
    Ok(())
}

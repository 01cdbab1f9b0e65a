//! Kernel regression: the oldest attention. Keys and values are the data, the score is a Gaussian
//! kernel, and its width may be learned.
//!
//!     cargo run -p regard --example kernel_regression

use regard::Result;
use regard::models::{KernelRegression, KernelRegressionConfig};
use regard::prelude::*;

fn curve(x: f64) -> f64 {
    2.0 * x.sin() + x.powf(0.8)
}

fn main() -> Result<()> {
    let random = Random::new(1);
    let mut xs: Vec<f64> = (0..50).map(|_| 5.0 * random.number()).collect();
    xs.sort_by(f64::total_cmp);
    let ys: Vec<f64> = xs.iter().map(|&x| curve(x) + 0.5 * (random.number() - 0.5)).collect();
    let (x, y) = (Tensor::from_vec(xs, &[50, 1])?, Tensor::from_vec(ys, &[50, 1])?);
    let at: Vec<f64> = (0..50).map(|i| i as f64 / 10.0).collect();
    let truth = Tensor::from_vec(at.iter().map(|&x| curve(x)).collect::<Vec<f64>>(), &[50, 1])?;
    let at = Tensor::from_vec(at, &[50, 1])?;

    for learned in [false, true] {
        let config = KernelRegressionConfig { points: 50, learned, ..Default::default() };
        let parameters = Parameters::new(DType::F64, 1);
        let regression = KernelRegression::new(&parameters, &config)?;
        regression.set_data(&x, &y)?;
        if learned {
            let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam())?;
            for _ in 0..200 {
                optimizer.step(&regression.loss()?.backward()?, 0.1)?;
            }
            println!("learned w: {:.2?}", parameters.tensors()["w"].to_vec::<f64>()?);
        } else {
            let mean = regression.mean()?.broadcast_to(&[50, 1])?;
            println!("the mean alone: squared error {:.3}", mean.squared_error(&truth)?.item()?);
        }
        let name = if learned { "learned width" } else { "width of 1" };
        let error = regression.predict(&at)?.squared_error(&truth)?.item()?;
        println!("{name}: squared error {error:.3}");
    }
    Ok(())
}

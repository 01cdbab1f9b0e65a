//! The library without any feature: a classifier learns on one thread.

use regard::prelude::*;
use regard::tensor::Device;

fn main() -> Result<(), regard::Error> {
    let parameters = Parameters::new(DType::F32, 1);
    let config = TransformerConfig { dropout: 0.0, ..TransformerConfig::new(16, 2, 1) };
    let encoder = TransformerEncoder::new(&parameters.at("encoder"), &config, 4)?;
    let head = Linear::new(&parameters.at("head"), 16, 2, true)?;
    // Whether the first vector's first number is above 0.
    let x = Random::new(2).normal(&[32, 6, 4], 0.0, 1.0, DType::F32)?;
    let first = x.i((.., 0, 0))?.to_vec::<f32>()?;
    let classes =
        Tensor::from_ids(&first.iter().map(|&x| u8::from(x > 0.0)).collect::<Vec<_>>(), &[32])?;
    let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam())?;
    let mut losses = Vec::new();
    for _ in 0..30 {
        let seen = encoder.forward(&x, None, Mode::Infer)?.select(1, 0)?;
        let loss = head.forward(&seen)?.cross_entropy(&classes, CrossEntropy::default())?;
        losses.push(loss.item()?);
        optimizer.step(&loss.backward()?, 0.01)?;
    }
    let (before, after) = (losses[0], losses[losses.len() - 1]);
    assert!(after < 0.3 * before, "the loss went from {before} to {after}");
    // What is not compiled in is refused in words.
    let error = x.to_device(Device::Cuda(0)).unwrap_err().to_string();
    assert_eq!(error, "regard-tensor was compiled without its feature `cuda`");
    if let Ok(threads) = std::fs::read_dir("/proc/self/task") {
        assert_eq!(threads.count(), 1);
    }
    println!("the loss went from {before:.3} to {after:.3}, on one thread");
    Ok(())
}

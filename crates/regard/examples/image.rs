//! Attention over an image: which of four corners holds the bright spot? With patches, and with
//! single pixels.
//!
//!     cargo run --release -p regard --example image

use regard::Result;
use regard::models::{Classified, ImagePooling, VisionTransformer, VisionTransformerConfig};
use regard::prelude::*;

fn batch(random: &Random, size: usize, side: usize) -> Result<(Tensor, Tensor)> {
    let mut pixels = Vec::with_capacity(size * side * side);
    let mut corners = Vec::with_capacity(size);
    for _ in 0..size {
        let (corner, half) = (random.below(4), side / 2);
        let (y, x) =
            (corner / 2 * half + random.below(half), corner % 2 * half + random.below(half));
        let noise = |_| 0.3 * random.number() as f32;
        let mut image: Vec<f32> = (0..side * side).map(noise).collect();
        image[y * side + x] = 4.0;
        pixels.extend(image);
        corners.push(corner as i64);
    }
    Ok((Tensor::from_vec(pixels, &[size, 1, side, side])?, Tensor::from_vec(corners, &[size])?))
}

fn main() -> Result<()> {
    for (side, patch, pooling) in [(8, 2, ImagePooling::ClassToken), (4, 1, ImagePooling::Mean)] {
        let config = VisionTransformerConfig {
            image: [side, side],
            patch,
            classes: 4,
            width: 16,
            depth: 1,
            heads: 2,
            feed_forward: 32,
            pooling,
            dropout: 0.0,
            ..VisionTransformerConfig::default()
        };
        let parameters = Parameters::new(DType::F32, 1);
        let model = VisionTransformer::new(&parameters, &config)?;
        let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam())?;
        let random = Random::new(2);
        for _ in 0..300 {
            let (images, corners) = batch(&random, 32, side)?;
            let logits = model.forward(&images, Mode::Train(&random))?;
            let loss = logits.cross_entropy(&corners, CrossEntropy::default())?;
            optimizer.step(&loss.backward()?, 0.005)?;
        }
        let (images, corners) = batch(&random, 200, side)?;
        let Classified { logits, weights, .. } =
            model.classify(&images, Mode::Infer, Need::WEIGHTS)?;
        let found = logits.max(1)?.1.to_vec::<i64>()?;
        let right = found.iter().zip(corners.to_vec::<i64>()?).filter(|(a, b)| **a == *b).count();
        println!("{side} × {side} pixels in patches of {patch}: {right} of 200 right");
        if pooling == ImagePooling::ClassToken {
            // Where the class token looks in the first image, one number per patch.
            let looks = weights[0].select(0, 0)?.mean(0)?.select(0, 0)?.to_vec::<f32>()?;
            println!("the class token's weights on the patches:");
            for row in looks[1..].chunks(side / patch) {
                println!("  {row:.2?}");
            }
        }
    }
    Ok(())
}

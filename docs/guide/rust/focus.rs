use regard::prelude::*;

fn main() -> Result<(), regard::Error> {
    let sour = Tensor::from_vec(vec![1.0f32, 0.0], &[1, 2])?;
    let things = Tensor::from_vec(vec![2.0f32, 0.0, 1.0, 1.0, 0.0, 2.0, 0.0, 0.0], &[4, 2])?;

    let attention = Attention::new(Score::dot());
    let seen = attention.attend(&sour, &things, &things, &Mask::none(), Need::WEIGHTS)?;
    let weights = seen.weights.expect("they were asked for").to_vec::<f32>()?;
    assert!((weights[0] - 0.610).abs() < 0.001);
    println!("weights {weights:.3?}, answer {:.3?}", seen.out.to_vec::<f32>()?);
    Ok(())
}

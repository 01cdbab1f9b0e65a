use regard::prelude::*;

/// Attention by a distance that is learned: which features of a key matter?
struct Lookup {
    w: Parameter,
}

impl Lookup {
    fn new(parameters: &Parameters, width: usize) -> Result<Self, regard::Error> {
        Ok(Self { w: parameters.parameter("w", &[width], Init::Ones)? })
    }

    fn forward(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor, regard::Error> {
        let score = Score::expression("-sum(square(w * (q - k)))", &[("w", &self.w.tensor())])?;
        Attention::new(score).forward(q, k, v, &Mask::none())
    }
}

/// 16 queries, 12 keys and values for each, and the value that is meant: that of the key with
/// which the query agrees in its fourth number. All other numbers are noise.
fn batch(random: &Random) -> Result<[Tensor; 4], regard::Error> {
    let keys = random.normal(&[16, 12, 8], 0.0, 1.0, DType::F32)?;
    let values = random.normal(&[16, 12, 4], 0.0, 1.0, DType::F32)?;
    let mut queries = random.normal(&[16, 1, 8], 0.0, 1.0, DType::F32)?.to_vec::<f32>()?;
    let mut wanted = Vec::new();
    for row in 0..16 {
        let meant = random.below(12);
        queries[row * 8 + 3] = keys.select(0, row)?.select(0, meant)?.to_vec::<f32>()?[3];
        wanted.extend(values.select(0, row)?.select(0, meant)?.to_vec::<f32>()?);
    }
    let queries = Tensor::from_vec(queries, &[16, 1, 8])?;
    Ok([queries, keys, values, Tensor::from_vec(wanted, &[16, 1, 4])?])
}

fn main() -> Result<(), regard::Error> {
    let parameters = Parameters::new(DType::F32, 1);
    let model = Lookup::new(&parameters, 8)?;
    let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam())?;
    let random = Random::new(1);
    for step in 1..=100 {
        let [queries, keys, values, wanted] = batch(&random)?;
        let loss = model.forward(&queries, &keys, &values)?.squared_error(&wanted)?;
        optimizer.step(&loss.backward()?, 0.1)?;
        if step % 25 == 0 {
            println!("step {step}: loss {:.3}", loss.item()?);
        }
    }
    let w = model.w.tensor().to_vec::<f32>()?;
    println!("w {w:.2?}");
    let others = w.iter().enumerate().filter(|&(at, _)| at != 3);
    assert!(others.map(|(_, x)| x.abs()).fold(0.0, f32::max) < w[3].abs() / 4.0);
    Ok(())
}

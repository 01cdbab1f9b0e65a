//! One class per sequence, and where the model looked.
//!
//! Among tokens that mean nothing stands one that names the class. Attention with a learned query
//! finds it: nearly all of its weight lies there.
//!
//!     cargo run --release -p regard --example classify

use regard::layers::EncoderConfig;
use regard::models::{
    ClassifierConfig, ClassifierPooling, InputConfig, SequenceClassifier, Sequences,
};
use regard::prelude::*;
use regard::{Error, Result};

const CLASSES: usize = 4;
const TOKENS: usize = 20;

/// Sequences of 8 tokens, of which one below 4 names the class; the classes; where they stand.
fn batch(random: &Random, count: usize) -> Result<(Tensor, Tensor, Vec<usize>)> {
    let mut ids = Vec::new();
    let (mut classes, mut places) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (class, place) = (random.below(CLASSES), random.below(8));
        let other = || CLASSES + random.below(TOKENS - CLASSES);
        ids.extend((0..8).map(|at| if at == place { class } else { other() } as i64));
        classes.push(class as i64);
        places.push(place);
    }
    Ok((Tensor::from_vec(ids, &[count, 8])?, Tensor::from_vec(classes, &[count])?, places))
}

fn main() -> Result<()> {
    let additive = MechanismConfig::new(ScoreConfig::Additive { hidden: 16 });
    let config = ClassifierConfig {
        pooling: ClassifierPooling::Attention(additive),
        ..ClassifierConfig::new(InputConfig::tokens(TOKENS, 16), EncoderConfig::None, CLASSES)
    };
    let parameters = Parameters::new(DType::F32, 1);
    let classifier = SequenceClassifier::new(&parameters, &config)?;
    let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam())?;
    let random = Random::new(1);
    for step in 1..=200 {
        let (ids, classes, _) = batch(&random, 32)?;
        let loss = classifier.loss(&Sequences::new(&ids), &classes, Mode::Train(&random))?;
        optimizer.step(&loss.backward()?, 0.01)?;
        if step % 50 == 0 {
            println!("step {step}: loss {:.4}", loss.item()?);
        }
    }
    let (ids, _, places) = batch(&random, 4)?;
    let seen = classifier.classify(&Sequences::new(&ids), Mode::Infer, Need::WEIGHTS)?;
    let weights = seen.pooling.ok_or_else(|| Error::new("the pooling gave no weights"))?;
    println!("\nweight of each token, and where the class stands");
    for (row, place) in weights.to_vec::<f32>()?.chunks(8).zip(places) {
        let row: Vec<String> = row.iter().map(|w| format!("{w:.2}")).collect();
        println!("{}   {place}", row.join(" "));
    }
    Ok(())
}

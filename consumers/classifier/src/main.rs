//! Learns to tell sequences apart, is saved, loaded by a second model, and answers the same.

use regard::Result;
use regard::prelude::*;
use regard::layers::EncoderConfig;
use regard::models::{ClassifierConfig, ClassifierPooling, InputConfig, SequenceClassifier, Sequences};

const CLASSES: usize = 3;
const TOKENS: usize = 12;

/// Sequences of 6 tokens, of which one below 3 names the class.
fn batch(random: &Random, count: usize) -> Result<(Tensor, Tensor)> {
    let (mut ids, mut classes) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (class, place) = (random.below(CLASSES), random.below(6));
        let other = || CLASSES + random.below(TOKENS - CLASSES);
        ids.extend((0..6).map(|at| if at == place { class } else { other() } as i64));
        classes.push(class as i64);
    }
    Ok((Tensor::from_vec(ids, &[count, 6])?, Tensor::from_vec(classes, &[count])?))
}

fn main() -> Result<()> {
    let config = ClassifierConfig {
        pooling: ClassifierPooling::Attention(MechanismConfig::new(ScoreConfig::Additive {
            hidden: 8,
        })),
        ..ClassifierConfig::new(InputConfig::tokens(TOKENS, 8), EncoderConfig::None, CLASSES)
    };
    let parameters = Parameters::new(DType::F32, 1);
    let classifier = SequenceClassifier::new(&parameters, &config)?;
    let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam())?;
    let random = Random::new(1);
    let mut last = f64::INFINITY;
    for _ in 0..80 {
        let (ids, classes) = batch(&random, 32)?;
        let loss = classifier.loss(&Sequences::new(&ids), &classes, Mode::Train(&random))?;
        optimizer.step(&loss.backward()?, 0.03)?;
        last = loss.item()?;
    }
    assert!(last < 0.1, "a loss of {last} after learning");

    let file = std::env::temp_dir().join(format!("consumer-{}.safetensors", std::process::id()));
    parameters.save(&file)?;
    let other = Parameters::new(DType::F32, 2);
    let copy = SequenceClassifier::new(&other, &config)?;
    let loaded = other.load(&file);
    std::fs::remove_file(&file).expect("the file that was just written");
    loaded?;
    let (ids, _) = batch(&random, 5)?;
    let logits = |model: &SequenceClassifier| {
        let seen = model.classify(&Sequences::new(&ids), Mode::Infer, Need::OUTPUT)?;
        seen.logits.to_vec::<f32>()
    };
    assert_eq!(logits(&classifier)?, logits(&copy)?);
    println!("loss {last:.4}; a model loaded from the file answers the same");
    Ok(())
}

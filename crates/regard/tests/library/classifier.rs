//! The classifier: every encoder with every pooling learns, padding does not matter, bad
//! configurations are refused.

use regard::layers::{Cell, ConvolutionConfig, EncoderConfig, RecurrentConfig};
use regard::models::{
    ClassifierConfig, ClassifierPooling, InputConfig, SequenceClassifier, Sequences,
};
use regard::prelude::*;

const TOKENS: usize = 30;
const CLASSES: usize = 3;
const LENGTHS: [usize; 4] = [6, 4, 5, 1];
const N: usize = 6;

fn recurrent(both_directions: bool) -> RecurrentConfig {
    RecurrentConfig { both_directions, ..RecurrentConfig::new(Cell::Gru, 16) }
}

fn transformer(window: Option<usize>) -> EncoderConfig {
    EncoderConfig::Transformer(TransformerConfig {
        window,
        dropout: 0.0,
        ..TransformerConfig::new(16, 2, 2)
    })
}

fn attention(score: ScoreConfig) -> ClassifierPooling {
    ClassifierPooling::Attention(MechanismConfig::new(score))
}

/// Every encoder with every pooling that it allows.
fn kinds() -> Vec<(String, ClassifierConfig)> {
    let encoders = [
        EncoderConfig::None,
        EncoderConfig::Recurrent(RecurrentConfig { cell: Cell::Rnn, ..recurrent(false) }),
        EncoderConfig::Recurrent(recurrent(true)),
        EncoderConfig::Recurrent(RecurrentConfig { cell: Cell::Lstm, ..recurrent(true) }),
        EncoderConfig::Cnn(ConvolutionConfig::new(16)),
        transformer(None),
        transformer(Some(1)),
    ];
    let poolings = [
        ClassifierPooling::Mean,
        ClassifierPooling::Max,
        ClassifierPooling::Last,
        ClassifierPooling::Gate,
        ClassifierPooling::ClassToken,
        attention(ScoreConfig::ScaledDot),
        attention(ScoreConfig::Additive { hidden: 8 }),
    ];
    let mut all = Vec::new();
    for encoder in &encoders {
        for pooling in &poolings {
            let input = InputConfig::tokens(TOKENS, 16);
            let plain = ClassifierConfig::new(input, encoder.clone(), CLASSES);
            let config = ClassifierConfig { pooling: pooling.clone(), ..plain };
            if config.check().is_ok() {
                all.push((format!("{encoder:?} pooled by {pooling:?}"), config));
            }
        }
    }
    let input = InputConfig::tokens(TOKENS, 16);
    let window = ClassifierConfig::new(input, EncoderConfig::None, CLASSES);
    let window = ClassifierConfig { neighbors: Some(2), hidden: Some(32), ..window };
    all.push(("a window".into(), window));
    assert_eq!(all.len(), 7 * 7 - 2 + 1, "only a class token that sees nothing is refused");
    all
}

/// Ids that are all different, so that no two sequences are alike in any place.
fn ids() -> Tensor {
    let order = Random::new(1).order(TOKENS).into_iter().map(|id| id as i64);
    Tensor::from_vec(order.take(4 * N).collect(), &[4, N]).unwrap()
}

fn targets() -> Tensor {
    Tensor::from_vec(vec![0i64, 1, 2, 1], &[4]).unwrap()
}

fn overfit(
    classifier: &SequenceClassifier,
    parameters: &Parameters,
    x: &Sequences,
    y: &Tensor,
) -> f64 {
    let mut optimizer = Optimizer::new(parameters, UpdateRule::adam()).unwrap();
    let random = Random::new(1);
    let mut last = f64::INFINITY;
    for _ in 0..300 {
        let loss = classifier.loss(x, y, Mode::Train(&random)).unwrap();
        last = loss.item().unwrap();
        if last < 0.01 {
            break;
        }
        optimizer.step(&loss.backward().unwrap(), 0.01).unwrap();
    }
    last
}

#[test]
fn every_encoder_with_every_pooling_overfits_a_tiny_batch() {
    for (name, config) in kinds() {
        let parameters = Parameters::new(DType::F32, 1);
        let classifier = SequenceClassifier::new(&parameters, &config).unwrap();
        let (x, y) = (ids(), targets());
        let sequences = Sequences { lengths: Some(&LENGTHS), ..Sequences::new(&x) };
        let loss = overfit(&classifier, &parameters, &sequences, &y);
        assert!(loss < 0.01, "{name}: a loss of {loss}");
        assert_eq!(classifier.predict(&sequences).unwrap(), [0, 1, 2, 1], "{name}");
    }
}

#[test]
fn given_vectors_do_instead_of_tokens() {
    let x = Random::new(1).normal(&[4, N, 8], 0.0, 1.0, DType::F32).unwrap();
    let config = ClassifierConfig::new(InputConfig::vectors(8), transformer(None), CLASSES);
    let parameters = Parameters::new(DType::F32, 1);
    let classifier = SequenceClassifier::new(&parameters, &config).unwrap();
    assert!(overfit(&classifier, &parameters, &Sequences::new(&x), &targets()) < 0.01);
}

#[track_caller]
fn close(a: &Tensor, b: &Tensor, name: &str) {
    assert_eq!(a.shape(), b.shape());
    let (a, b) = (a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() < 1e-5, "{name}: {a} and {b}");
    }
}

#[test]
fn padding_has_no_influence() {
    for (name, config) in kinds() {
        let parameters = Parameters::new(DType::F32, 1);
        let classifier = SequenceClassifier::new(&parameters, &config).unwrap();
        let (x, y) = (ids(), targets());
        let mut numbers = x.to_vec::<i64>().unwrap();
        for (at, id) in numbers.iter_mut().enumerate() {
            if at % N >= LENGTHS[at / N] {
                *id = 7;
            }
        }
        let other = Tensor::from_vec(numbers, &[4, N]).unwrap();
        let of = |x| Sequences { lengths: Some(&LENGTHS), ..Sequences::new(x) };
        let logits = classifier.forward(&of(&x), Mode::Infer).unwrap();
        close(&logits, &classifier.forward(&of(&other), Mode::Infer).unwrap(), &name);
        for (item, &n) in LENGTHS.iter().enumerate() {
            let one = x.narrow(0, item, 1).unwrap().narrow(1, 0, n).unwrap();
            let one = classifier.forward(&Sequences::new(&one), Mode::Infer).unwrap();
            close(&logits.narrow(0, item, 1).unwrap(), &one, &name);
        }
        let a = classifier.loss(&of(&x), &y, Mode::Infer).unwrap().backward().unwrap();
        let b = classifier.loss(&of(&other), &y, Mode::Infer).unwrap().backward().unwrap();
        for parameter in parameters.all() {
            let name = format!("{name}: {}", parameter.name());
            match (a.get(&parameter), b.get(&parameter)) {
                (Some(a), Some(b)) => close(a, b, &name),
                (None, None) => {}
                _ => panic!("{name}: one gradient"),
            }
        }
    }
}

#[test]
fn the_weights_of_every_block_and_of_the_pooling_are_given_on_request() {
    let plain = ClassifierConfig::new(InputConfig::tokens(TOKENS, 16), transformer(None), CLASSES);
    let x = ids();
    let sequences = Sequences { lengths: Some(&LENGTHS), ..Sequences::new(&x) };
    let build = |pooling| {
        let config = ClassifierConfig { pooling, ..plain.clone() };
        SequenceClassifier::new(&Parameters::new(DType::F32, 1), &config).unwrap()
    };
    let poolings = [
        ClassifierPooling::Mean,
        ClassifierPooling::Max,
        ClassifierPooling::Last,
        attention(ScoreConfig::Additive { hidden: 8 }),
    ];
    for pooling in poolings {
        let classified =
            build(pooling.clone()).classify(&sequences, Mode::Infer, Need::WEIGHTS).unwrap();
        assert_eq!(classified.weights.len(), 2);
        assert_eq!(classified.weights[0].shape(), [4, 2, N, N]);
        let weights = classified.pooling.unwrap();
        assert_eq!(weights.shape(), [4, N]);
        for (item, row) in weights.to_vec::<f32>().unwrap().chunks(N).enumerate() {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{pooling:?}: {row:?}");
            assert!(row[LENGTHS[item]..].iter().all(|&w| w == 0.0), "{pooling:?}: {row:?}");
        }
    }
    let classified =
        build(ClassifierPooling::ClassToken).classify(&sequences, Mode::Infer, Need::WEIGHTS);
    let classified = classified.unwrap();
    assert_eq!(classified.weights[1].shape(), [4, 2, N + 1, N + 1]);
    assert!(classified.pooling.is_none());
}

#[test]
fn a_hard_pooling_gives_its_choice_and_what_trains_it() {
    let hard = MechanismConfig { weighting: Weighting::Sample, ..MechanismConfig::default() };
    let input = InputConfig::tokens(TOKENS, 16);
    let plain = ClassifierConfig::new(input, EncoderConfig::None, CLASSES);
    let config = ClassifierConfig { pooling: ClassifierPooling::Attention(hard), ..plain };
    let parameters = Parameters::new(DType::F32, 1);
    let classifier = SequenceClassifier::new(&parameters, &config).unwrap();
    let x = ids();
    let sequences = Sequences { lengths: Some(&LENGTHS), ..Sequences::new(&x) };
    let random = Random::new(1);
    let classified = classifier.classify(&sequences, Mode::Train(&random), Need::OUTPUT).unwrap();
    let chosen = classified.index.unwrap().to_vec::<i64>().unwrap();
    assert!(chosen.iter().zip(LENGTHS).all(|(&at, n)| at >= 0 && (at as usize) < n), "{chosen:?}");
    let gradients = classified.log_prob.unwrap().sum_all().unwrap().backward().unwrap();
    let all = parameters.all();
    let query = all.iter().find(|p| p.name() == "pooling.query").unwrap();
    assert!(gradients.get(query).is_some());
}

#[test]
fn a_classifier_is_rebuilt_from_its_configuration_and_its_file_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    for (name, config) in kinds() {
        let parameters = Parameters::new(DType::F32, 1);
        let classifier = SequenceClassifier::new(&parameters, &config).unwrap();
        parameters.save(&path).unwrap();
        let text = serde_json::to_string(classifier.config()).unwrap();
        let again: ClassifierConfig = serde_json::from_str(&text).unwrap();
        assert_eq!(again, config);
        let others = Parameters::new(DType::F32, 99);
        let rebuilt = SequenceClassifier::new(&others, &again).unwrap();
        others.load(&path).unwrap();
        let x = ids();
        let all = Sequences { lengths: Some(&LENGTHS), ..Sequences::new(&x) };
        let numbers =
            |c: &SequenceClassifier| c.forward(&all, Mode::Infer).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(numbers(&classifier), numbers(&rebuilt), "{name}");
    }
}

#[test]
fn bad_configurations_are_refused_by_name() {
    let good = ClassifierConfig::new(InputConfig::tokens(TOKENS, 16), transformer(None), CLASSES);
    let heads = EncoderConfig::Transformer(TransformerConfig::new(16, 3, 1));
    let class_token = ClassifierPooling::ClassToken;
    let cases = [
        (ClassifierConfig { neighbors: Some(0), ..good.clone() }, "window of 0"),
        (ClassifierConfig { encoder: transformer(Some(0)), ..good.clone() }, "window of 0"),
        (
            ClassifierConfig { encoder: heads, ..good.clone() },
            "3 heads do not divide a width of 16",
        ),
        (ClassifierConfig { classes: 0, ..good.clone() }, "0 classes"),
        (ClassifierConfig { dropout: 1.5, ..good.clone() }, "dropout of 1.5"),
        (
            ClassifierConfig {
                pooling: attention(ScoreConfig::Additive { hidden: 0 }),
                ..good.clone()
            },
            "hidden size 0",
        ),
        (
            ClassifierConfig {
                encoder: EncoderConfig::Recurrent(recurrent(false)),
                pooling: class_token,
                ..good.clone()
            },
            "a class token before an encoder that runs forward only",
        ),
    ];
    for (config, sentence) in cases {
        let error = SequenceClassifier::new(&Parameters::new(DType::F32, 1), &config).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(sentence), "{error:?} does not say {sentence:?}");
    }
    let json = serde_json::to_string(&good).unwrap();
    let unknown = json.replace("\"mean\"", "\"median\"");
    assert_ne!(json, unknown);
    let error = serde_json::from_str::<ClassifierConfig>(&unknown).unwrap_err().to_string();
    assert!(error.contains("unknown variant `median`"), "{error}");
}

#[test]
fn bad_batches_are_refused_with_what_was_wrong() {
    let good = ClassifierConfig::new(InputConfig::vectors(8), transformer(None), CLASSES);
    let classifier = SequenceClassifier::new(&Parameters::new(DType::F32, 1), &good).unwrap();
    let x = Tensor::zeros(&[2, 5, 8], DType::F32).unwrap();
    let refusal = |s: Sequences| classifier.forward(&s, Mode::Infer).unwrap_err().to_string();
    let error = refusal(Sequences { lengths: Some(&[5, 6]), ..Sequences::new(&x) });
    assert!(error.contains("sequence 1 has length 6") && error.contains('5'), "{error}");
    let narrow = Tensor::zeros(&[2, 5, 7], DType::F32).unwrap();
    let error = refusal(Sequences::new(&narrow));
    assert!(error.contains("[B, N, 8]") && error.contains("[2, 5, 7]"), "{error}");
    let letters = Tensor::zeros(&[2, 5, 3], DType::I64).unwrap();
    let error = refusal(Sequences { characters: Some(&letters), ..Sequences::new(&x) });
    assert!(error.contains("reads no characters"), "{error}");
    let targets = Tensor::zeros(&[3], DType::I64).unwrap();
    let error =
        classifier.loss(&Sequences::new(&x), &targets, Mode::Infer).unwrap_err().to_string();
    assert!(error.contains("[3]") && error.contains("2 sequences"), "{error}");
}

#[test]
fn empty_batches_and_empty_sequences_are_legal() {
    for (name, config) in kinds() {
        let classifier = SequenceClassifier::new(&Parameters::new(DType::F32, 1), &config).unwrap();
        for shape in [[0, 4], [2, 0]] {
            let x = Tensor::zeros(&shape, DType::I64).unwrap();
            let logits = classifier.forward(&Sequences::new(&x), Mode::Infer);
            let logits = logits.unwrap_or_else(|error| panic!("{name} {shape:?}: {error}"));
            assert_eq!(logits.shape(), [shape[0], CLASSES], "{name}");
        }
        let x = ids();
        let some = Sequences { lengths: Some(&[0, 6, 1, 0]), ..Sequences::new(&x) };
        let logits = classifier.forward(&some, Mode::Infer).unwrap().to_vec::<f32>().unwrap();
        assert!(logits.iter().all(|x| x.is_finite()), "{name}");
    }
}

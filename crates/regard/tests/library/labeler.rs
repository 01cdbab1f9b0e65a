//! The labeler: every encoder learns, padding does not matter, bad configurations are refused.

use regard::layers::{Cell, ConvolutionConfig, EncoderConfig, RecurrentConfig};
use regard::models::{CharactersConfig, InputConfig, LabelerConfig, SequenceLabeler, Sequences};
use regard::prelude::*;

const TOKENS: usize = 30;
const LABELS: usize = 4;
const LENGTHS: [usize; 3] = [6, 4, 5];
const N: usize = 6;

fn both(hidden: usize) -> RecurrentConfig {
    RecurrentConfig { both_directions: true, ..RecurrentConfig::new(Cell::Gru, hidden) }
}

fn transformer(window: Option<usize>) -> EncoderConfig {
    EncoderConfig::Transformer(TransformerConfig {
        window,
        dropout: 0.0,
        ..TransformerConfig::new(16, 2, 2)
    })
}

/// Every kind of encoder, by name, with a window of neighbors where it is one.
fn kinds() -> Vec<(&'static str, LabelerConfig)> {
    let config = |encoder| LabelerConfig::new(InputConfig::tokens(TOKENS, 16), encoder, LABELS);
    let alone = config(EncoderConfig::None);
    let window = LabelerConfig { neighbors: Some(1), hidden: Some(32), ..alone.clone() };
    vec![
        ("alone", alone),
        ("window", window),
        ("rnn", config(EncoderConfig::Recurrent(RecurrentConfig { cell: Cell::Rnn, ..both(16) }))),
        ("gru", config(EncoderConfig::Recurrent(both(16)))),
        (
            "lstm",
            config(EncoderConfig::Recurrent(RecurrentConfig { cell: Cell::Lstm, ..both(16) })),
        ),
        ("forward gru", config(EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 32)))),
        ("cnn", config(EncoderConfig::Cnn(ConvolutionConfig::new(32)))),
        ("self-attention", config(transformer(None))),
        ("truncated self-attention", config(transformer(Some(1)))),
    ]
}

/// Random ids `[3, 6]` below `n`.
fn ids(seed: u64, n: usize) -> Tensor {
    let random = Random::new(seed);
    let ids = (0..3 * N).map(|_| random.below(n) as i64).collect();
    Tensor::from_vec(ids, &[3, N]).unwrap()
}

fn overfit(labeler: &SequenceLabeler, parameters: &Parameters, x: &Sequences, y: &Tensor) -> f64 {
    let mut optimizer = Optimizer::new(parameters, UpdateRule::adam()).unwrap();
    let random = Random::new(1);
    let mut last = f64::INFINITY;
    for _ in 0..300 {
        let loss = labeler.loss(x, y, Mode::Train(&random)).unwrap();
        last = loss.item().unwrap();
        if last < 0.01 {
            break;
        }
        optimizer.step(&loss.backward().unwrap(), 0.01).unwrap();
    }
    last
}

/// The predictions and the targets of all places that are there.
fn agree(labeler: &SequenceLabeler, x: &Sequences, y: &Tensor) -> bool {
    let y = y.to_vec::<i64>().unwrap();
    let predicted = labeler.predict(x).unwrap();
    predicted.iter().enumerate().all(|(item, labels)| {
        labels.iter().zip(&y[item * N..]).all(|(&label, &target)| label as i64 == target)
    })
}

#[test]
fn every_encoder_overfits_a_tiny_batch() {
    for (name, config) in kinds() {
        let x = ids(1, TOKENS);
        // Alone, a token knows nothing but itself; with the others it can learn any labels.
        let y = if name == "alone" {
            let labels = x.to_vec::<i64>().unwrap().into_iter().map(|id| id % LABELS as i64);
            Tensor::from_vec(labels.collect(), &[3, N]).unwrap()
        } else {
            ids(2, LABELS)
        };
        let parameters = Parameters::new(DType::F32, 1);
        let labeler = SequenceLabeler::new(&parameters, &config).unwrap();
        let sequences = Sequences { lengths: Some(&LENGTHS), ..Sequences::new(&x) };
        let loss = overfit(&labeler, &parameters, &sequences, &y);
        assert!(loss < 0.01, "{name}: a loss of {loss}");
        assert!(agree(&labeler, &sequences, &y), "{name}");
    }
}

#[test]
fn given_vectors_do_instead_of_tokens() {
    let x = Random::new(1).normal(&[3, N, 8], 0.0, 1.0, DType::F32).unwrap();
    let config =
        LabelerConfig::new(InputConfig::vectors(8), EncoderConfig::Recurrent(both(16)), LABELS);
    let parameters = Parameters::new(DType::F32, 1);
    let labeler = SequenceLabeler::new(&parameters, &config).unwrap();
    let sequences = Sequences { lengths: Some(&LENGTHS), ..Sequences::new(&x) };
    let y = ids(2, LABELS);
    assert!(overfit(&labeler, &parameters, &sequences, &y) < 0.01);
}

#[test]
fn characters_tell_words_apart_that_are_one_token() {
    let x = Tensor::zeros(&[3, N], DType::I64).unwrap();
    let random = Random::new(3);
    // Words of one to five characters, filled up with 0.
    let word = |_| {
        let length = 1 + random.below(5);
        (0..5).map(|at| if at < length { 1 + random.below(19) as i64 } else { 0 }).collect()
    };
    let words: Vec<Vec<i64>> = (0..3 * N).map(word).collect();
    let letters = Tensor::from_vec(words.concat(), &[3, N, 5]).unwrap();
    let labels = words.iter().map(|word| word[0] % LABELS as i64).collect();
    let y = Tensor::from_vec(labels, &[3, N]).unwrap();
    let cnn = CharactersConfig::new(20);
    let gru = CharactersConfig { encoder: EncoderConfig::Recurrent(both(16)), ..cnn.clone() };
    for characters in [cnn, gru] {
        let plain = LabelerConfig::new(InputConfig::tokens(1, 4), EncoderConfig::None, LABELS);
        let config = LabelerConfig { characters: Some(characters), ..plain };
        let parameters = Parameters::new(DType::F32, 1);
        let labeler = SequenceLabeler::new(&parameters, &config).unwrap();
        let all = Sequences { x: &x, lengths: Some(&LENGTHS), characters: Some(&letters) };
        let loss = overfit(&labeler, &parameters, &all, &y);
        assert!(loss < 0.01, "a loss of {loss}");
        // More room for characters changes nothing.
        let room = Tensor::zeros(&[3, N, 4], DType::I64).unwrap();
        let wide = Tensor::cat(&[letters.clone(), room], 2).unwrap();
        let wide = Sequences { characters: Some(&wide), ..all };
        close(
            &labeler.forward(&all, Mode::Infer).unwrap(),
            &labeler.forward(&wide, Mode::Infer).unwrap(),
        );
        let error =
            labeler.forward(&Sequences { characters: None, ..all }, Mode::Infer).unwrap_err();
        assert!(error.to_string().contains("reads characters, was given none"), "{error}");
    }
}

#[track_caller]
fn close(a: &Tensor, b: &Tensor) {
    assert_eq!(a.shape(), b.shape());
    let largest =
        a.sub(b).unwrap().square().unwrap().reshape(&[a.numel()]).unwrap().max(0).unwrap().0;
    let largest = largest.item().unwrap().sqrt();
    assert!(largest < 1e-5, "they differ by {largest}");
}

#[test]
fn padding_has_no_influence() {
    for (name, config) in kinds() {
        let parameters = Parameters::new(DType::F32, 1);
        let labeler = SequenceLabeler::new(&parameters, &config).unwrap();
        let (x, other, y) = (ids(1, TOKENS), ids(5, TOKENS), ids(2, LABELS));
        // The same sequences with other tokens past their lengths, and each sequence alone.
        let there = LENGTHS.iter().flat_map(|&n| (0..N).map(move |t| t < n)).collect::<Vec<_>>();
        let mixed =
            there.iter().zip(x.to_vec::<i64>().unwrap()).zip(other.to_vec::<i64>().unwrap());
        let mixed = mixed.map(|((&there, x), other)| if there { x } else { other }).collect();
        let mixed = Tensor::from_vec(mixed, &[3, N]).unwrap();
        let of = |x| Sequences { lengths: Some(&LENGTHS), ..Sequences::new(x) };
        let logits = labeler.forward(&of(&x), Mode::Infer).unwrap();
        let again = labeler.forward(&of(&mixed), Mode::Infer).unwrap();
        for (item, &n) in LENGTHS.iter().enumerate() {
            let part = |x: &Tensor| x.select(0, item).unwrap().narrow(0, 0, n).unwrap();
            close(&part(&logits), &part(&again));
            let one = x.narrow(0, item, 1).unwrap().narrow(1, 0, n).unwrap();
            let one = labeler.forward(&Sequences::new(&one), Mode::Infer).unwrap();
            close(&part(&logits), &one.select(0, 0).unwrap());
        }
        // Neither loss nor gradients see the padding, nor the targets there.
        let odd = there.iter().zip(y.to_vec::<i64>().unwrap());
        let odd = odd.map(|(&there, y)| if there { y } else { 99 }).collect();
        let odd = Tensor::from_vec(odd, &[3, N]).unwrap();
        let a = labeler.loss(&of(&x), &y, Mode::Infer).unwrap();
        let b = labeler.loss(&of(&mixed), &odd, Mode::Infer).unwrap();
        assert!((a.item().unwrap() - b.item().unwrap()).abs() < 1e-6, "{name}");
        let (a, b) = (a.backward().unwrap(), b.backward().unwrap());
        for parameter in parameters.all() {
            close(a.get(&parameter).unwrap(), b.get(&parameter).unwrap());
        }
    }
}

#[test]
fn vectors_may_hold_anything_past_a_sequences_length() {
    for (name, config) in kinds() {
        let config = LabelerConfig { input: InputConfig::vectors(8), ..config };
        let parameters = Parameters::new(DType::F32, 1);
        let labeler = SequenceLabeler::new(&parameters, &config).unwrap();
        let x = Random::new(1).normal(&[3, N, 8], 0.0, 1.0, DType::F32).unwrap();
        let mut odd = x.to_vec::<f32>().unwrap();
        for (at, number) in odd.iter_mut().enumerate() {
            if at / 8 % N >= LENGTHS[at / 8 / N] {
                *number = f32::NAN;
            }
        }
        let odd = Tensor::from_vec(odd, &[3, N, 8]).unwrap();
        let of = |x| Sequences { lengths: Some(&LENGTHS), ..Sequences::new(x) };
        let y = ids(2, LABELS);
        let a = labeler.loss(&of(&x), &y, Mode::Infer).unwrap();
        let b = labeler.loss(&of(&odd), &y, Mode::Infer).unwrap();
        assert_eq!(a.item().unwrap(), b.item().unwrap(), "{name}");
        let (a, b) = (a.backward().unwrap(), b.backward().unwrap());
        for parameter in parameters.all() {
            close(a.get(&parameter).unwrap(), b.get(&parameter).unwrap());
        }
    }
}

#[test]
fn a_target_below_0_has_no_loss() {
    let (_, config) = kinds().remove(0);
    let labeler = SequenceLabeler::new(&Parameters::new(DType::F64, 1), &config).unwrap();
    let x = Tensor::from_vec(vec![1i64, 2, 3], &[1, 3]).unwrap();
    let loss = |labels: Vec<i64>| {
        let y = Tensor::from_vec(labels, &[1, 3]).unwrap();
        labeler.loss(&Sequences::new(&x), &y, Mode::Infer).unwrap().item().unwrap()
    };
    let one = |at: usize| loss((0..3).map(|i| if i == at { 2 } else { -100 }).collect());
    assert!((loss(vec![2, 2, 2]) - (one(0) + one(1) + one(2)) / 3.0).abs() < 1e-12);
    assert_eq!(loss(vec![-1, -1, -1]), 0.0);
}

#[test]
fn the_weights_of_every_block_and_head_are_given_on_request() {
    let config = |encoder| LabelerConfig::new(InputConfig::tokens(TOKENS, 16), encoder, LABELS);
    let x = ids(1, TOKENS);
    let sequences = Sequences { lengths: Some(&LENGTHS), ..Sequences::new(&x) };
    for (window, reach) in [(None, N), (Some(1), 1)] {
        let parameters = Parameters::new(DType::F32, 1);
        let labeler = SequenceLabeler::new(&parameters, &config(transformer(window))).unwrap();
        let labeled = labeler.label(&sequences, Mode::Infer, Need::WEIGHTS).unwrap();
        assert_eq!(labeled.weights.len(), 2);
        for weights in &labeled.weights {
            assert_eq!(weights.shape(), [3, 2, N, N]);
            for (at, &w) in weights.to_vec::<f32>().unwrap().iter().enumerate() {
                let (item, i, j) = (at / (2 * N * N), at / N % N, at % N);
                let seen = j < LENGTHS[item] && i.abs_diff(j) <= reach;
                assert!(seen || w == 0.0, "query {i} of sequence {item} sees key {j}");
            }
        }
        assert!(labeler.label(&sequences, Mode::Infer, Need::OUTPUT).unwrap().weights.is_empty());
    }
}

#[test]
fn a_labeler_is_rebuilt_from_its_configuration_and_its_file_alone() {
    let folder = tempfile::tempdir().unwrap();
    for (name, config) in kinds() {
        let config = LabelerConfig { characters: Some(CharactersConfig::new(20)), ..config };
        let parameters = Parameters::new(DType::F32, 1);
        let labeler = SequenceLabeler::new(&parameters, &config).unwrap();
        let path = folder.path().join("model.safetensors");
        parameters.save(&path).unwrap();
        let text = serde_json::to_string(labeler.config()).unwrap();
        let again: LabelerConfig = serde_json::from_str(&text).unwrap();
        assert_eq!(again, config, "{name}");
        let others = Parameters::new(DType::F32, 99);
        let rebuilt = SequenceLabeler::new(&others, &again).unwrap();
        others.load(&path).unwrap();
        let x = ids(1, TOKENS);
        let letters = Tensor::zeros(&[3, N, 4], DType::I64).unwrap();
        let all = Sequences { x: &x, lengths: Some(&LENGTHS), characters: Some(&letters) };
        let numbers =
            |l: &SequenceLabeler| l.forward(&all, Mode::Infer).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(numbers(&labeler), numbers(&rebuilt), "{name}");
    }
}

#[test]
fn bad_configurations_are_refused_by_name() {
    let good = LabelerConfig::new(InputConfig::tokens(TOKENS, 16), transformer(None), LABELS);
    let refusal = |config: LabelerConfig| {
        let error = SequenceLabeler::new(&Parameters::new(DType::F32, 1), &config).unwrap_err();
        error.to_string()
    };
    let heads = EncoderConfig::Transformer(TransformerConfig::new(16, 3, 1));
    let letters = CharactersConfig { padding: 50, ..CharactersConfig::new(20) };
    let cases = [
        (LabelerConfig { neighbors: Some(0), ..good.clone() }, "window of 0"),
        (LabelerConfig { encoder: transformer(Some(0)), ..good.clone() }, "window of 0"),
        (LabelerConfig { encoder: heads, ..good.clone() }, "3 heads do not divide a width of 16"),
        (LabelerConfig { labels: 0, ..good.clone() }, "0 labels"),
        (LabelerConfig { hidden: Some(0), ..good.clone() }, "hidden layer of width 0"),
        (LabelerConfig { dropout: 1.0, ..good.clone() }, "dropout of 1"),
        (LabelerConfig { label_smoothing: -0.1, ..good.clone() }, "label smoothing of -0.1"),
        (LabelerConfig { input: InputConfig::vectors(0), ..good.clone() }, "vectors of width 0"),
        (LabelerConfig { input: InputConfig::tokens(0, 8), ..good.clone() }, "0 tokens"),
        (
            LabelerConfig { characters: Some(letters), ..good.clone() },
            "characters: padding token 50 of 20",
        ),
    ];
    for (config, sentence) in cases {
        let refusal = refusal(config);
        assert!(refusal.contains(sentence), "{refusal:?} does not say {sentence:?}");
    }
    let unknown = r#"{ "input": { "kind": "vectors", "width": 4 }, "encoder": { "kind": "transfomer" }, "labels": 2 }"#;
    let error = serde_json::from_str::<LabelerConfig>(unknown).unwrap_err().to_string();
    assert!(error.contains("transfomer"), "{error}");
}

#[test]
fn bad_batches_are_refused_with_both_shapes() {
    let (_, config) = kinds().remove(3);
    let labeler = SequenceLabeler::new(&Parameters::new(DType::F32, 1), &config).unwrap();
    let x = ids(1, TOKENS);
    let refusal =
        |sequences: Sequences| labeler.forward(&sequences, Mode::Infer).unwrap_err().to_string();
    let of = |lengths| Sequences { lengths: Some(lengths), ..Sequences::new(&x) };
    let error = refusal(of(&[6, 9, 5]));
    assert!(error.contains("sequence 1 has length 9") && error.contains('6'), "{error}");
    let error = refusal(of(&[6, 4]));
    assert!(error.contains("2 lengths for 3 sequences"), "{error}");
    let vectors = Tensor::zeros(&[3, N, 8], DType::F32).unwrap();
    let error = refusal(Sequences::new(&vectors));
    assert!(error.contains("token ids [B, N]") && error.contains("[3, 6, 8]"), "{error}");
    let unknown = Tensor::from_vec(vec![0i64, 30], &[1, 2]).unwrap();
    let error = refusal(Sequences::new(&unknown));
    assert!(error.contains("index 30") && error.contains("0..30"), "{error}");
    let targets = Tensor::zeros(&[3, 5], DType::I64).unwrap();
    let error = labeler.loss(&Sequences::new(&x), &targets, Mode::Infer).unwrap_err().to_string();
    assert!(error.contains("[3, 5]") && error.contains("[3, 6]"), "{error}");
    let targets = Tensor::full(&[3, N], 7.0, DType::I64).unwrap();
    let error = labeler.loss(&Sequences::new(&x), &targets, Mode::Infer).unwrap_err().to_string();
    assert!(error.contains('7') && error.contains('4'), "{error}");
}

#[test]
fn empty_batches_and_empty_sequences_are_legal() {
    for (name, config) in kinds() {
        let labeler = SequenceLabeler::new(&Parameters::new(DType::F32, 1), &config).unwrap();
        for shape in [[0, 4], [2, 0]] {
            let x = Tensor::zeros(&shape, DType::I64).unwrap();
            let logits = labeler.forward(&Sequences::new(&x), Mode::Infer);
            let logits = logits.unwrap_or_else(|error| panic!("{name} {shape:?}: {error}"));
            assert_eq!(logits.shape(), [shape[0], shape[1], LABELS], "{name}");
        }
        let x = ids(1, TOKENS);
        let some = Sequences { lengths: Some(&[0, 6, 1]), ..Sequences::new(&x) };
        let logits = labeler.forward(&some, Mode::Infer).unwrap().to_vec::<f32>().unwrap();
        assert!(logits.iter().all(|x| x.is_finite()), "{name}");
        assert_eq!(labeler.predict(&some).unwrap()[0], Vec::<usize>::new());
    }
}

//! One sequence-to-sequence model over tokens, vectors and images; copying; fixed vectors of every
//! kind.

use regard::layers::{Cell, ConvolutionConfig, EncoderConfig, PoolingConfig, RecurrentConfig};
use regard::models::{
    ContextConfig, Copies, DecoderConfig, SearchConfig, Sentences, Seq2Seq, Seq2SeqConfig, Source,
    SourceConfig, Tied,
};
use regard::prelude::*;
use std::collections::BTreeMap;

const VOCABULARY: usize = 10;

fn gru() -> RecurrentConfig {
    RecurrentConfig::new(Cell::Gru, 16)
}

fn additive() -> ContextConfig {
    ContextConfig::Attention(MechanismConfig::new(ScoreConfig::Additive { hidden: 8 }))
}

fn transformer() -> TransformerConfig {
    TransformerConfig { dropout: 0.0, ..TransformerConfig::new(16, 2, 2) }
}

fn encoders() -> Vec<EncoderConfig> {
    vec![
        EncoderConfig::None,
        EncoderConfig::Recurrent(RecurrentConfig { both_directions: true, ..gru() }),
        EncoderConfig::Cnn(ConvolutionConfig::new(16)),
        EncoderConfig::Transformer(transformer()),
    ]
}

fn decoders() -> Vec<DecoderConfig> {
    vec![
        DecoderConfig::Recurrent(gru()),
        DecoderConfig::Cnn(ConvolutionConfig::new(16)),
        DecoderConfig::Cnn(ConvolutionConfig { kernel: 1, ..ConvolutionConfig::new(16) }),
        DecoderConfig::Transformer(transformer()),
    ]
}

fn config(source: SourceConfig, encoder: EncoderConfig, decoder: DecoderConfig) -> Seq2SeqConfig {
    let new = Seq2SeqConfig::new(source, VOCABULARY, encoder, decoder, additive());
    Seq2SeqConfig { embedding: 16, ..new }
}

fn targets() -> Sentences {
    Sentences::new(&[vec![4, 5, 6], vec![7], vec![8, 9]], 0).unwrap()
}

fn random(shape: &[usize], dtype: DType) -> Tensor {
    Random::new(3).normal(shape, 0.0, 1.0, dtype).unwrap()
}

/// Each kind of source, three in a batch.
fn sources(dtype: DType) -> Vec<(SourceConfig, Source)> {
    let sentences = Sentences::new(&[vec![3, 4, 5], vec![6, 7, 8, 3], vec![4]], 0).unwrap();
    let patches = SourceConfig::Patches { image: [6, 4], channels: 3, patch: 2 };
    vec![
        (SourceConfig::Tokens { vocabulary: 9 }, Source::from(&sentences)),
        (
            SourceConfig::Vectors { width: 5 },
            Source::vectors(random(&[3, 7, 5], dtype), vec![7, 2, 4]),
        ),
        (patches, Source::images(random(&[3, 3, 6, 4], dtype), 2).unwrap()),
    ]
}

#[test]
fn every_source_is_read_by_every_encoder_and_written_by_every_decoder() {
    for (kind, source) in sources(DType::F64) {
        for encoder in encoders() {
            for decoder in decoders() {
                let config = config(kind, encoder.clone(), decoder);
                let parameters = Parameters::new(DType::F64, 1);
                let model = Seq2Seq::new(&parameters, &config).unwrap();
                let taught = model.teach(&source, &targets(), Mode::Infer).unwrap();
                assert_eq!(taught.logits.shape(), [3, 4, VOCABULARY]);
                let gradients = taught.loss(0.1).unwrap().backward().unwrap();
                for parameter in parameters.all() {
                    assert!(gradients.get(&parameter).is_some(), "{config:?}: {parameter:?}");
                }
                let search =
                    SearchConfig { width: 2, longest: 4, weights: true, ..Default::default() };
                let found = model.search(&source, &search).unwrap();
                for (best, &length) in found.iter().zip(&source.lengths) {
                    let alignment = best[0].alignment.as_ref().unwrap();
                    assert_eq!(alignment.shape()[1], length, "{config:?}");
                }
            }
        }
    }
}

#[test]
fn vectors_past_their_number_change_nothing_even_where_they_are_no_numbers() {
    let mut numbers = random(&[1, 7, 5], DType::F64).to_vec::<f64>().unwrap();
    let short = Tensor::from_vec(numbers[..20].to_vec(), &[1, 4, 5]).unwrap();
    numbers[20..].fill(f64::NAN);
    let padded = Tensor::from_vec(numbers, &[1, 7, 5]).unwrap();
    let target = Sentences::new(&[vec![4, 5]], 0).unwrap();
    for encoder in encoders() {
        let config =
            config(SourceConfig::Vectors { width: 5 }, encoder, DecoderConfig::Recurrent(gru()));
        let model = Seq2Seq::new(&Parameters::new(DType::F64, 1), &config).unwrap();
        let loss = |x: &Tensor| {
            let source = Source::vectors(x.clone(), vec![4]);
            model.teach(&source, &target, Mode::Infer).unwrap().loss(0.0).unwrap().item().unwrap()
        };
        assert!((loss(&short) - loss(&padded)).abs() < 1e-12, "{config:?}");
    }
}

#[test]
fn a_patch_is_its_pixels_times_a_matrix_and_its_place() {
    let kind = SourceConfig::Patches { image: [4, 4], channels: 1, patch: 2 };
    let config = config(kind, EncoderConfig::None, DecoderConfig::Recurrent(gru()));
    let parameters = Parameters::new(DType::F64, 1);
    let model = Seq2Seq::new(&parameters, &config).unwrap();
    let image = Tensor::from_vec((0..16).map(f64::from).collect(), &[1, 1, 4, 4]).unwrap();
    let source = Source::images(image, 2).unwrap();
    let read = model.encode(&source, Mode::Infer, Need::OUTPUT).unwrap().out;
    let named = parameters.tensors();
    let number = |name: &str| named[name].to_vec::<f64>().unwrap();
    let [weight, bias, row, column] =
        ["source.patch.weight", "source.patch.bias", "source.row", "source.column"].map(number);
    let read = read.to_vec::<f64>().unwrap();
    for patch in 0..4 {
        let (down, across) = (patch / 2, patch % 2);
        let corner = (8 * down + 2 * across) as f64;
        let pixels = [corner, corner + 1.0, corner + 4.0, corner + 5.0];
        for feature in 0..16 {
            let product: f64 = (0..4).map(|i| weight[feature * 4 + i] * pixels[i]).sum();
            let place = row[down * 16 + feature] + column[across * 16 + feature];
            let expected = product + bias[feature] + place;
            assert!((read[patch * 16 + feature] - expected).abs() < 1e-12);
        }
    }
}

/// Sources with words that the target's vocabulary lacks, the ids 10 to 12.
fn copied() -> Source {
    let sentences = Sentences::new(&[vec![3, 4, 3, 3], vec![3, 5]], 0).unwrap();
    Source::copied(&sentences, Copies { ids: vec![vec![10, 4, 11, 10], vec![12, 5]] })
}

fn copying(decoder: DecoderConfig, context: ContextConfig) -> Seq2SeqConfig {
    let encoder = EncoderConfig::Recurrent(gru());
    let base = config(SourceConfig::Tokens { vocabulary: 9 }, encoder, decoder);
    Seq2SeqConfig { copying: true, context, ..base }
}

fn kinds() -> Vec<Seq2SeqConfig> {
    vec![
        copying(DecoderConfig::Recurrent(gru()), additive()),
        copying(DecoderConfig::Cnn(ConvolutionConfig::new(16)), additive()),
        copying(DecoderConfig::Transformer(transformer()), additive()),
        copying(DecoderConfig::Transformer(transformer()), ContextConfig::MultiHead),
    ]
}

/// The gate that mixes, set to σ(bias) everywhere.
fn open_gate(parameters: &Parameters, bias: f64) {
    let mut changed = BTreeMap::new();
    for (name, x) in parameters.tensors() {
        if name.starts_with("copying") {
            let value = if name.ends_with("bias") { bias } else { 0.0 };
            changed.insert(name, Tensor::full(x.shape(), value, DType::F64).unwrap());
        } else {
            changed.insert(name, x);
        }
    }
    parameters.set(&changed).unwrap();
}

#[test]
fn what_is_written_is_a_mixture_of_the_vocabulary_and_of_the_words_attended_to() {
    let target = Sentences::new(&[vec![10, 4], vec![12]], 0).unwrap();
    for config in kinds() {
        let parameters = Parameters::new(DType::F64, 1);
        let model = Seq2Seq::new(&parameters, &config).unwrap();
        let source = copied();
        let probabilities = |bias: f64| {
            open_gate(&parameters, bias);
            let aligned = model.align(&source, &target).unwrap();
            let p = aligned.logits.to_vec::<f64>().unwrap().iter().map(|x| x.exp()).collect();
            (p, aligned.weights.last().unwrap().mean(1).unwrap())
        };
        let ((vocabulary, _), (words, weights), (both, _)): ((Vec<f64>, _), (Vec<f64>, Tensor), _) =
            (probabilities(100.0), probabilities(-100.0), probabilities(0.0));
        let (t, n, all) = (3, weights.shape()[2], VOCABULARY + 3);
        assert_eq!(words.len(), 2 * t * all);
        let weights = weights.to_vec::<f64>().unwrap();
        for (row, ids) in source.copies.as_ref().unwrap().ids.iter().enumerate() {
            for place in 0..t {
                let at = |word: usize| (row * t + place) * all + word;
                let sum: f64 = (0..all).map(|word| both[at(word)]).sum();
                assert!((sum - 1.0).abs() < 1e-6, "{config:?}: {sum}");
                for word in 0..all {
                    let attended: f64 = (0..ids.len())
                        .filter(|&i| ids[i] == word)
                        .map(|i| weights[(row * t + place) * n + i])
                        .sum();
                    assert!((words[at(word)] - attended).abs() < 1e-8, "{config:?}");
                    let half = 0.5 * vocabulary[at(word)] + 0.5 * words[at(word)];
                    assert!((both[at(word)] - half).abs() < 1e-8, "{config:?}");
                    let unseen = word >= VOCABULARY;
                    assert!(!unseen || vocabulary[at(word)] < 1e-8);
                }
            }
        }
    }
}

#[test]
fn a_model_that_copies_learns_words_that_no_vocabulary_has() {
    let target = Sentences::new(&[vec![11, 4, 10], vec![5, 12]], 0).unwrap();
    for config in kinds() {
        let parameters = Parameters::new(DType::F32, 1);
        let model = Seq2Seq::new(&parameters, &config).unwrap();
        let rule = UpdateRule::adam();
        let mut optimizer = Optimizer::new(&parameters, rule).unwrap().clipped(1.0).unwrap();
        let random = Random::new(1);
        for _ in 0..150 {
            let taught = model.teach(copied(), &target, Mode::Train(&random)).unwrap();
            let gradients = taught.loss(0.0).unwrap().backward().unwrap();
            for parameter in parameters.all() {
                assert!(gradients.get(&parameter).is_some(), "{parameter:?}");
            }
            optimizer.step(&gradients, 0.01).unwrap();
        }
        let search = SearchConfig { width: 3, longest: 6, ..SearchConfig::default() };
        let found = model.search(copied(), &search).unwrap();
        assert_eq!(found[0][0].tokens, [11, 4, 10], "{config:?}");
        assert_eq!(found[1][0].tokens, [5, 12], "{config:?}");
        // Alone, in another order, or beside others: the words of a source are its own.
        let sentences = Sentences::new(&[vec![3, 5]], 0).unwrap();
        let alone = Source::copied(&sentences, Copies { ids: vec![vec![10, 5]] });
        assert_eq!(model.greedy(&alone, 6).unwrap()[0].tokens, [5, 10], "{config:?}");
    }
}

#[test]
fn the_steps_of_a_search_that_copies_give_the_numbers_of_the_whole_sequence() {
    for config in kinds() {
        let model = Seq2Seq::new(&Parameters::new(DType::F64, 5), &config).unwrap();
        let search = SearchConfig { width: 3, best: 3, longest: 5, ..SearchConfig::default() };
        let found = model.search(copied(), &search).unwrap();
        for rank in 0..3 {
            let tokens: Vec<_> = found.iter().map(|all| all[rank].tokens.clone()).collect();
            let target = Sentences::new(&tokens, 0).unwrap();
            let losses = model.teach(copied(), &target, Mode::Infer).unwrap().losses().unwrap();
            for (row, all) in found.iter().enumerate() {
                let losses = losses.select(0, row).unwrap().to_vec::<f64>().unwrap();
                for (score, loss) in all[rank].token_scores.iter().zip(&losses) {
                    assert!((score + loss).abs() < 1e-9, "{config:?}: {score} and {loss}");
                }
            }
        }
    }
}

#[test]
fn the_fixed_vector_is_what_its_name_says() {
    let x = Tensor::from_vec(vec![1f64, 8.0, 3.0, 2.0, 9.0, 9.0], &[1, 3, 2]).unwrap();
    let source = Source::vectors(x, vec![2]);
    let summary = |context: ContextConfig| {
        let base = config(
            SourceConfig::Vectors { width: 2 },
            EncoderConfig::None,
            DecoderConfig::Recurrent(gru()),
        );
        let config = Seq2SeqConfig { context, ..base };
        let model = Seq2Seq::new(&Parameters::new(DType::F64, 1), &config).unwrap();
        assert_eq!(model.greedy(&source, 3).unwrap().len(), 1);
        let encoded = model.encode(&source, Mode::Infer, Need::OUTPUT).unwrap();
        encoded.summary.to_vec::<f64>().unwrap()
    };
    let pooled = |pooling| summary(ContextConfig::Pooled { pooling });
    assert_eq!(summary(ContextConfig::Fixed), [2.0, 5.0]);
    assert_eq!(pooled(PoolingConfig::Mean), [2.0, 5.0]);
    assert_eq!(pooled(PoolingConfig::Max), [3.0, 8.0]);
    assert_eq!(pooled(PoolingConfig::Last), [3.0, 2.0]);
    let learned = pooled(PoolingConfig::Attention(MechanismConfig::default()));
    // Between the two vectors, on the line that joins them.
    let share = (learned[0] - 1.0) / 2.0;
    assert!(share > 0.0 && share < 1.0 && (learned[1] - (8.0 - 6.0 * share)).abs() < 1e-12);
}

#[test]
fn every_fixed_vector_serves_every_decoder_and_learns() {
    let attention = PoolingConfig::Attention(MechanismConfig::new(ScoreConfig::ScaledDot));
    for pooling in [PoolingConfig::Mean, PoolingConfig::Max, PoolingConfig::Last, attention] {
        for decoder in decoders() {
            let encoder = EncoderConfig::Recurrent(gru());
            let base = config(SourceConfig::Tokens { vocabulary: 9 }, encoder, decoder);
            let context = ContextConfig::Pooled { pooling: pooling.clone() };
            let config = Seq2SeqConfig { context, ..base };
            let parameters = Parameters::new(DType::F32, 1);
            let model = Seq2Seq::new(&parameters, &config).unwrap();
            let (_, source) = sources(DType::F32).swap_remove(0);
            let taught = model.teach(&source, &targets(), Mode::Infer).unwrap();
            let gradients = taught.loss(0.0).unwrap().backward().unwrap();
            for parameter in parameters.all() {
                assert!(gradients.get(&parameter).is_some(), "{config:?}: {parameter:?}");
            }
            let output = &model.greedy_with(&source, 3, Need::WEIGHTS).unwrap()[0];
            assert!(output.alignment.is_none(), "{config:?}");
        }
    }
}

#[test]
fn a_convolutional_decoder_sees_nothing_of_what_comes_later() {
    let decoder = DecoderConfig::Cnn(ConvolutionConfig { layers: 3, ..ConvolutionConfig::new(16) });
    let config =
        config(SourceConfig::Tokens { vocabulary: 9 }, EncoderConfig::Recurrent(gru()), decoder);
    let model = Seq2Seq::new(&Parameters::new(DType::F64, 1), &config).unwrap();
    let source = Sentences::new(&[vec![3, 4, 5]], 0).unwrap();
    let logits = |target: Vec<usize>| {
        let target = Sentences::new(&[target], 0).unwrap();
        model.teach(&source, &target, Mode::Infer).unwrap().logits.to_vec::<f64>().unwrap()
    };
    let (a, b) = (logits(vec![4, 5, 6, 7, 8, 9]), logits(vec![4, 5, 6, 9, 4, 4]));
    // The start and three tokens are the same; the fifth place has read another one.
    assert_eq!(a[..4 * VOCABULARY], b[..4 * VOCABULARY]);
    assert_ne!(a[4 * VOCABULARY..5 * VOCABULARY], b[4 * VOCABULARY..5 * VOCABULARY]);
    let weights = model.align(&source, &targets_of_one()).unwrap().weights;
    assert_eq!((weights.len(), weights[0].shape()), (3, &[1, 1, 3, 3][..]));
}

fn targets_of_one() -> Sentences {
    Sentences::new(&[vec![4, 5]], 0).unwrap()
}

#[test]
fn what_does_not_go_together_is_refused_by_name() {
    let refusal = |config: Seq2SeqConfig| config.check().unwrap_err().to_string();
    let tokens = SourceConfig::Tokens { vocabulary: 9 };
    let recurrent = || DecoderConfig::Recurrent(gru());
    let base = |source| config(source, EncoderConfig::Recurrent(gru()), recurrent());
    let vectors = SourceConfig::Vectors { width: 5 };
    assert_eq!(
        refusal(Seq2SeqConfig { copying: true, ..base(vectors) }),
        "only tokens can be copied; the source has none"
    );
    assert_eq!(
        refusal(Seq2SeqConfig { copying: true, context: ContextConfig::Fixed, ..base(tokens) }),
        "copying wants attention; the context is a fixed vector"
    );
    let loose = MechanismConfig { weighting: Weighting::Sigmoid, ..MechanismConfig::default() };
    assert_eq!(
        refusal(Seq2SeqConfig {
            copying: true,
            context: ContextConfig::Attention(loose),
            ..base(tokens)
        }),
        "copying wants weights that sum to 1; those of Sigmoid do not"
    );
    assert_eq!(
        refusal(Seq2SeqConfig { tied: Tied::All, ..base(vectors) }),
        "a source without tokens has no vectors to be tied to the target's"
    );
    let patches = SourceConfig::Patches { image: [8, 8], channels: 3, patch: 3 };
    assert_eq!(refusal(base(patches)), "a patch of 3 does not divide an image of 8 × 8");
    assert_eq!(refusal(base(SourceConfig::Vectors { width: 0 })), "source vectors of width 0");
    let new = |config: &Seq2SeqConfig| Seq2Seq::new(&Parameters::new(DType::F32, 1), config);
    let heads = Seq2SeqConfig {
        context: ContextConfig::MultiHead,
        decoder: DecoderConfig::Cnn(ConvolutionConfig::new(16)),
        ..base(tokens)
    };
    assert_eq!(
        new(&heads).unwrap_err().to_string(),
        "decoder: a convolutional decoder attends by one mechanism at each layer; heads are a \
         Transformer's"
    );
    let model = new(&base(vectors)).unwrap();
    let sentences = Sentences::new(&[vec![3]], 0).unwrap();
    let error = model.greedy(&sentences, 3).unwrap_err().to_string();
    assert_eq!(error, "sources are i64 [1, 1]; the model reads vectors [B, N, 5]");
    let model = new(&Seq2SeqConfig { copying: true, ..base(tokens) }).unwrap();
    let error = model.greedy(&sentences, 3).unwrap_err().to_string();
    assert_eq!(error, "the model copies, and was not told what the source's tokens are called");
    let other = Source::copied(&sentences, Copies { ids: vec![vec![4, 4]] });
    let error = model.greedy(&other, 3).unwrap_err().to_string();
    assert_eq!(error, "sources of [1] tokens, and copies of [2]");
}

//! Any encoder with any context and any decoder: learning, searching, and being rebuilt.

use crate::squash;

use regard::layers::{Cell, ConvolutionConfig, EncoderConfig, RecurrentConfig};
use regard::models::{
    ContextConfig, DecoderConfig, Hypothesis, SearchConfig, Sentences, Seq2Seq, Seq2SeqConfig,
    SourceConfig, TeacherForced, Tied,
};
use regard::prelude::*;
use squash::Squash;

fn transformer(layers: usize) -> TransformerConfig {
    TransformerConfig { dropout: 0.0, ..TransformerConfig::new(16, 2, layers) }
}

pub(crate) fn encoders() -> Vec<EncoderConfig> {
    let one = RecurrentConfig::new(Cell::Gru, 16);
    let both = RecurrentConfig { both_directions: true, ..RecurrentConfig::new(Cell::Gru, 8) };
    vec![
        EncoderConfig::Recurrent(RecurrentConfig { cell: Cell::Rnn, ..one }),
        EncoderConfig::Recurrent(one),
        EncoderConfig::Recurrent(RecurrentConfig { cell: Cell::Lstm, ..one }),
        EncoderConfig::Recurrent(RecurrentConfig { cell: Cell::Rnn, ..both }),
        EncoderConfig::Recurrent(both),
        EncoderConfig::Recurrent(RecurrentConfig { cell: Cell::Lstm, ..both }),
        EncoderConfig::Cnn(ConvolutionConfig::new(16)),
        EncoderConfig::Transformer(transformer(1)),
    ]
}

pub(crate) fn decoders() -> Vec<DecoderConfig> {
    let two = RecurrentConfig { layers: 2, ..RecurrentConfig::new(Cell::Gru, 16) };
    vec![
        DecoderConfig::Recurrent(RecurrentConfig::new(Cell::Rnn, 16)),
        DecoderConfig::Recurrent(two),
        DecoderConfig::Recurrent(RecurrentConfig { cell: Cell::Lstm, ..two }),
        DecoderConfig::Transformer(transformer(2)),
        DecoderConfig::Cnn(ConvolutionConfig::new(16)),
    ]
}

pub(crate) fn scores() -> Vec<ScoreConfig> {
    vec![
        ScoreConfig::Dot,
        ScoreConfig::ScaledDot,
        ScoreConfig::Additive { hidden: 8 },
        ScoreConfig::Concat { hidden: None },
        ScoreConfig::Concat { hidden: Some(8) },
        ScoreConfig::Bilinear { scale: Default::default() },
        ScoreConfig::LowRank { rank: 4 },
        ScoreConfig::Gaussian { inverse_width: 1.0, learned: true, per_feature: true },
        ScoreConfig::Cosine { temperature: 2.0, learned: true },
        ScoreConfig::own(Squash, &[1.0, 0.1]),
        ScoreConfig::Expression { score: "w @ tanh(q * k)".into(), numbers: Vec::new() },
    ]
}

pub(crate) fn weightings() -> Vec<Weighting> {
    vec![
        Weighting::Softmax,
        Weighting::Sparsemax,
        Weighting::Entmax15,
        Weighting::Sigmoid,
        Weighting::None,
        Weighting::Argmax,
        Weighting::Sample,
        Weighting::StraightThrough,
        Weighting::Gumbel,
        Weighting::GumbelHard,
    ]
}

pub(crate) fn attention(score: ScoreConfig) -> ContextConfig {
    ContextConfig::Attention(MechanismConfig::new(score))
}

pub(crate) fn config(
    encoder: EncoderConfig,
    decoder: DecoderConfig,
    context: ContextConfig,
) -> Seq2SeqConfig {
    Seq2SeqConfig { embedding: 16, ..Seq2SeqConfig::new(9, 10, encoder, decoder, context) }
}

fn build(config: &Seq2SeqConfig, dtype: DType) -> (Parameters, Seq2Seq) {
    let parameters = Parameters::new(dtype, 7);
    let model = Seq2Seq::new(&parameters, config).unwrap();
    (parameters, model)
}

pub(crate) fn pairs() -> (Sentences, Sentences) {
    let source = Sentences::new(&[vec![3, 4, 5, 6], vec![7, 8], vec![5], vec![6, 3, 3]], 0);
    let target = Sentences::new(&[vec![9, 8, 7], vec![3], vec![], vec![4, 5, 6, 7]], 0);
    (source.unwrap(), target.unwrap())
}

/// Steps of Adam on one batch; the last loss.
fn fit(config: &Seq2SeqConfig, steps: usize, rate: f64) -> f64 {
    let (parameters, model) = build(config, DType::F32);
    let (source, target) = pairs();
    let mut optimizer =
        Optimizer::new(&parameters, UpdateRule::adam()).unwrap().clipped(1.0).unwrap();
    let random = Random::new(1);
    let mut last = f64::NAN;
    for _ in 0..steps {
        let loss = model.teach(&source, &target, Mode::Train(&random)).unwrap().loss(0.0).unwrap();
        last = loss.item().unwrap();
        assert!(last.is_finite(), "{config:?}");
        optimizer.step(&loss.backward().unwrap(), rate).unwrap();
    }
    last
}

fn search_config(width: usize, longest: usize) -> SearchConfig {
    SearchConfig { width, longest, best: width, ..SearchConfig::default() }
}

fn weighed(config: SearchConfig) -> SearchConfig {
    SearchConfig { weights: true, ..config }
}

fn both_searches_run(config: &Seq2SeqConfig) {
    let (_, model) = build(config, DType::F32);
    let (source, _) = pairs();
    let greedy = model.greedy(&source, 4).unwrap();
    let beam = model.search(&source, &weighed(search_config(3, 4))).unwrap();
    assert!(greedy.len() == 4 && beam.len() == 4, "{config:?}");
    for (sentence, hypotheses) in beam.iter().enumerate() {
        assert_eq!(hypotheses.len(), 3);
        for hypothesis in hypotheses {
            let n = hypothesis.token_scores.len();
            assert_eq!(n, hypothesis.tokens.len() + usize::from(hypothesis.ended));
            let shape = [n, source.lengths[sentence]];
            assert_eq!(
                hypothesis.alignment.as_ref().map(|x| x.shape().to_vec()),
                (config.context != ContextConfig::Fixed).then(|| shape.to_vec()),
                "{config:?}"
            );
        }
    }
}

#[test]
fn every_encoder_decoder_and_context_runs_and_learns_with_all_its_parameters() {
    let (source, target) = pairs();
    for encoder in encoders() {
        for decoder in decoders() {
            let mut contexts =
                vec![ContextConfig::Fixed, attention(ScoreConfig::Additive { hidden: 8 })];
            if matches!(decoder, DecoderConfig::Transformer(_)) {
                contexts.push(ContextConfig::MultiHead);
            }
            for context in contexts {
                let config = config(encoder.clone(), decoder.clone(), context);
                let (parameters, model) = build(&config, DType::F32);
                let random = Random::new(1);
                let taught = model.teach(&source, &target, Mode::Train(&random)).unwrap();
                assert_eq!(taught.logits.shape(), [4, 5, 10]);
                let gradients = taught.loss(0.1).unwrap().backward().unwrap();
                for parameter in parameters.all() {
                    assert!(gradients.get(&parameter).is_some(), "{config:?}: {parameter:?}");
                }
                both_searches_run(&config);
                fit(&config, 2, 1e-3);
            }
        }
    }
}

#[test]
fn a_scaled_dot_with_a_gain_starts_where_the_plain_dot_does_and_learns_the_gain() {
    let (source, target) = pairs();
    for cell in [Cell::Rnn, Cell::Gru, Cell::Lstm] {
        let recurrent = RecurrentConfig::new(cell, 16);
        let taught = |score, query_gain| {
            let (encoder, decoder) =
                (EncoderConfig::Recurrent(recurrent), DecoderConfig::Recurrent(recurrent));
            let config = Seq2SeqConfig { query_gain, ..config(encoder, decoder, attention(score)) };
            let (parameters, model) = build(&config, DType::F64);
            let loss = model.teach(&source, &target, Mode::Infer).unwrap().loss(0.0).unwrap();
            let gain = parameters.all().into_iter().find(|p| p.name().ends_with("query_gain"));
            (loss, gain)
        };
        let (plain, none) = taught(ScoreConfig::Dot, false);
        let (scaled, gain) = taught(ScoreConfig::ScaledDot, true);
        assert!(none.is_none());
        let (a, b) = (plain.item().unwrap(), scaled.item().unwrap());
        assert!((a - b).abs() < 1e-12, "{cell:?}: {a} and {b}");
        let gain = gain.unwrap();
        assert_eq!(gain.tensor().to_vec::<f64>().unwrap(), [4.0]);
        assert!(scaled.backward().unwrap().get(&gain).is_some());
        let (without, _) = taught(ScoreConfig::ScaledDot, false);
        assert!((without.item().unwrap() - a).abs() > 1e-9, "{cell:?}");
    }
}

#[test]
fn every_score_and_every_weighting_serves_as_a_context() {
    let encoder = EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 16));
    for decoder in [&decoders()[1], &decoders()[3]] {
        for score in scores() {
            let config = config(encoder.clone(), decoder.clone(), attention(score));
            fit(&config, 2, 1e-3);
            both_searches_run(&config);
        }
        for weighting in weightings() {
            let mechanism = MechanismConfig {
                weighting,
                ..MechanismConfig::new(ScoreConfig::Additive { hidden: 8 })
            };
            let context = ContextConfig::Attention(mechanism);
            let config = config(encoder.clone(), decoder.clone(), context);
            fit(&config, 2, 1e-3);
            both_searches_run(&config);
            let (_, model) = build(&config, DType::F32);
            let (source, target) = pairs();
            let random = Random::new(3);
            let taught = model.teach(&source, &target, Mode::Train(&random)).unwrap();
            let hard = matches!(weighting, Weighting::Sample | Weighting::Argmax);
            assert_eq!(taught.log_prob.is_some(), hard, "{weighting:?}");
            if let Some(log_prob) = taught.log_prob {
                assert_eq!(log_prob.shape(), [4, 5]);
                let padded = log_prob.select(0, 2).unwrap().narrow(0, 1, 4).unwrap();
                assert_eq!(padded.to_vec::<f32>().unwrap(), [0.0; 4]);
                assert!(log_prob.has_gradient());
            }
        }
    }
}

#[test]
fn a_tiny_batch_is_learned_by_heart() {
    let gru = RecurrentConfig::new(Cell::Gru, 32);
    let both = RecurrentConfig { both_directions: true, ..RecurrentConfig::new(Cell::Gru, 16) };
    let lstm = RecurrentConfig { layers: 2, ..RecurrentConfig::new(Cell::Gru, 32) };
    let multi = || ContextConfig::MultiHead;
    let additive = || attention(ScoreConfig::Additive { hidden: 16 });
    let cases = [
        (EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed),
        (EncoderConfig::Recurrent(both), DecoderConfig::Recurrent(gru), additive()),
        (
            EncoderConfig::Recurrent(RecurrentConfig { cell: Cell::Lstm, ..both }),
            DecoderConfig::Recurrent(RecurrentConfig { cell: Cell::Lstm, ..lstm }),
            attention(ScoreConfig::ScaledDot),
        ),
        (
            EncoderConfig::Recurrent(RecurrentConfig { cell: Cell::Rnn, ..both }),
            DecoderConfig::Recurrent(RecurrentConfig { cell: Cell::Rnn, ..gru }),
            additive(),
        ),
        (EncoderConfig::Cnn(ConvolutionConfig::new(32)), DecoderConfig::Recurrent(gru), additive()),
        (
            EncoderConfig::Transformer(transformer(1)),
            DecoderConfig::Recurrent(RecurrentConfig { cell: Cell::Lstm, ..gru }),
            additive(),
        ),
        (EncoderConfig::Recurrent(both), DecoderConfig::Transformer(transformer(1)), multi()),
        (
            EncoderConfig::Transformer(transformer(1)),
            DecoderConfig::Transformer(transformer(1)),
            multi(),
        ),
        (
            EncoderConfig::Transformer(transformer(1)),
            DecoderConfig::Transformer(transformer(1)),
            additive(),
        ),
        (
            EncoderConfig::Recurrent(RecurrentConfig { cell: Cell::Lstm, ..gru }),
            DecoderConfig::Transformer(transformer(1)),
            ContextConfig::Fixed,
        ),
    ];
    for (encoder, decoder, context) in cases {
        let config = config(encoder, decoder, context);
        let loss = fit(&config, 150, 1e-2);
        assert!(loss < 0.05, "{config:?}: {loss}");
    }
}

#[test]
fn the_steps_of_a_search_give_the_numbers_of_the_whole_sequence() {
    let position =
        |position| DecoderConfig::Transformer(TransformerConfig { position, ..transformer(2) });
    let mut all = decoders();
    all.extend(
        [Position::Learned, Position::Rotary, Position::Alibi, Position::Relative].map(position),
    );
    let (source, _) = pairs();
    for decoder in all {
        let mut contexts =
            vec![ContextConfig::Fixed, attention(ScoreConfig::Additive { hidden: 8 })];
        if matches!(decoder, DecoderConfig::Transformer(_)) {
            contexts.push(ContextConfig::MultiHead);
        }
        for context in contexts {
            let config = config(
                EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 16)),
                decoder.clone(),
                context,
            );
            let (_, model) = build(&config, DType::F64);
            for search in [search_config(1, 6), search_config(3, 6)].map(weighed) {
                let found = model.search(&source, &search).unwrap();
                for rank in 0..search.width {
                    let outputs: Vec<_> = found.iter().map(|all| &all[rank]).collect();
                    let tokens: Vec<_> = outputs.iter().map(|x| x.tokens.clone()).collect();
                    let target = Sentences::new(&tokens, 0).unwrap();
                    let aligned = model.align(&source, &target).unwrap();
                    let losses = aligned.losses().unwrap();
                    for (row, output) in outputs.iter().enumerate() {
                        let losses = losses.select(0, row).unwrap().to_vec::<f64>().unwrap();
                        for (score, loss) in output.token_scores.iter().zip(&losses) {
                            assert!((score + loss).abs() < 1e-10, "{config:?}: {score} and {loss}");
                        }
                        let (Some(heads), Some(whole)) = (&output.heads, aligned.weights.last())
                        else {
                            assert_eq!(config.context, ContextConfig::Fixed);
                            continue;
                        };
                        let (n, length) = (output.token_scores.len(), source.lengths[row]);
                        let last = heads.select(0, aligned.weights.len() - 1).unwrap();
                        let whole = whole.select(0, row).unwrap();
                        let whole = whole.narrow(1, 0, n).unwrap().narrow(2, 0, length).unwrap();
                        let (a, b) =
                            (last.to_vec::<f64>().unwrap(), whole.to_vec::<f64>().unwrap());
                        assert_eq!(a.len(), b.len());
                        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-10), "{config:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_hypothesis_carries_weights_only_where_they_are_asked_for() {
    let (source, _) = pairs();
    for decoder in decoders() {
        let additive = attention(ScoreConfig::Additive { hidden: 8 });
        let config = config(
            EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 16)),
            decoder,
            additive,
        );
        let (_, model) = build(&config, DType::F64);
        let search = search_config(3, 6);
        let found = |weights: bool| {
            let mut all = model.greedy_with(&source, 6, Need { weights, ..Need::OUTPUT }).unwrap();
            let search = SearchConfig { weights, ..search };
            all.extend(model.search(&source, &search).unwrap().into_iter().flatten());
            all
        };
        let (with, without) = (found(true), found(false));
        let carrying = |all: &[Hypothesis]| {
            let carries = |one: &&Hypothesis| one.alignment.is_some() && one.heads.is_some();
            let lacks = |one: &&Hypothesis| one.alignment.is_none() && one.heads.is_none();
            [all.iter().filter(carries).count(), all.iter().filter(lacks).count()]
        };
        assert_eq!(carrying(&with), [4 + 4 * 3, 0], "{config:?}");
        assert_eq!(carrying(&without), [0, 4 + 4 * 3], "{config:?}");
        for (with, without) in with.iter().zip(&without) {
            assert_eq!(with.tokens, without.tokens);
            assert!((with.log_prob - without.log_prob).abs() < 1e-10);
        }
    }
}

#[test]
fn a_padded_batch_of_sources_gives_each_the_output_it_has_alone() {
    let config = config(
        EncoderConfig::Transformer(transformer(1)),
        decoders()[3].clone(),
        ContextConfig::MultiHead,
    );
    let (_, model) = build(&config, DType::F64);
    let (source, _) = pairs();
    let together = model.search(&source, &search_config(3, 5)).unwrap();
    for (sentence, together) in source.sequences().unwrap().iter().zip(&together) {
        let alone = Sentences::new(&[sentence], 0).unwrap();
        let alone = &model.search(&alone, &search_config(3, 5)).unwrap()[0];
        for (a, b) in together.iter().zip(alone) {
            assert_eq!(a.tokens, b.tokens);
            assert!((a.score - b.score).abs() < 1e-12);
        }
    }
}

#[test]
fn a_beam_of_width_one_is_greedy() {
    for decoder in decoders() {
        for seed in 0..4 {
            let config = config(
                EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 16)),
                decoder.clone(),
                attention(ScoreConfig::Additive { hidden: 8 }),
            );
            let model = Seq2Seq::new(&Parameters::new(DType::F64, seed), &config).unwrap();
            let (source, _) = pairs();
            let greedy = model.greedy(&source, 8).unwrap();
            let beam = model.search(&source, &search_config(1, 8)).unwrap();
            for (greedy, beam) in greedy.iter().zip(&beam) {
                assert_eq!(greedy.tokens, beam[0].tokens);
                assert_eq!(greedy.ended, beam[0].ended);
                assert!((greedy.log_prob - beam[0].log_prob).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn a_wide_beam_finds_the_best_of_all_sequences() {
    // Tokens 3 and 4, and the end: all sequences of at most four tokens.
    for alpha in [0.0, 0.6, 2.0] {
        for decoder in [&decoders()[1], &decoders()[3]] {
            let config = Seq2SeqConfig {
                target_vocabulary: 5,
                ..config(
                    EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 16)),
                    decoder.clone(),
                    attention(ScoreConfig::Additive { hidden: 8 }),
                )
            };
            let model = Seq2Seq::new(&Parameters::new(DType::F64, 3), &config).unwrap();
            let source = Sentences::new(&[vec![3, 4, 5]], 0).unwrap();
            let search = SearchConfig { length_penalty: alpha, ..search_config(64, 4) };
            let found = model.search(&source, &search).unwrap().swap_remove(0);
            let mut all: Vec<Vec<usize>> = vec![vec![]];
            let mut last = all.clone();
            for _ in 0..4 {
                last = last.iter().flat_map(|x| [3, 4].map(|t| [&x[..], &[t]].concat())).collect();
                all.extend(last.clone());
            }
            let mut best = Vec::new();
            for tokens in all {
                let target = Sentences::new(&[&tokens], 0).unwrap();
                let losses = model.align(&source, &target).unwrap().losses().unwrap();
                let losses = losses.to_vec::<f64>().unwrap();
                // Cut at the longest length, a sequence of four has no end.
                let n = losses.len().min(4);
                let score = -losses[..n].iter().sum::<f64>() / search.penalty(n);
                best.push((score, tokens));
            }
            best.sort_by(|a, b| b.0.total_cmp(&a.0));
            assert_eq!(found.len(), best.len());
            for (found, (score, tokens)) in found.iter().zip(&best) {
                assert_eq!(&found.tokens, tokens);
                assert!((found.score - score).abs() < 1e-10);
            }
        }
    }
}

#[test]
fn scheduled_sampling_is_seeded_and_at_zero_the_same_as_teaching() {
    let (source, target) = pairs();
    for decoder in decoders() {
        let context = attention(ScoreConfig::Additive { hidden: 8 });
        let config =
            config(EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 16)), decoder, context);
        let (parameters, model) = build(&config, DType::F64);
        let loss = |probability, seed| {
            let random = Random::new(seed);
            let taught = model.teach_sampled(&source, &target, probability, Mode::Train(&random));
            taught.unwrap().loss(0.0).unwrap()
        };
        let taught = model.teach(&source, &target, Mode::Infer).unwrap().loss(0.0).unwrap();
        assert!((loss(0.0, 1).item().unwrap() - taught.item().unwrap()).abs() < 1e-12);
        assert_eq!(loss(0.5, 1).item().unwrap(), loss(0.5, 1).item().unwrap());
        assert_ne!(loss(1.0, 1).item().unwrap(), taught.item().unwrap());
        let gradients = loss(0.5, 1).backward().unwrap();
        assert!(parameters.all().iter().all(|p| gradients.get(p).is_some()));
        let error = model.teach_sampled(&source, &target, 1.5, Mode::Infer).unwrap_err();
        assert_eq!(error.to_string(), "scheduled sampling with a probability of 1.5");
    }
}

#[test]
fn all_steps_together_have_the_gradients_of_each_step_alone() {
    let (source, target) = pairs();
    let one = RecurrentConfig::new(Cell::Gru, 16);
    let mut contexts: Vec<_> = scores().into_iter().map(attention).collect();
    contexts.extend(weightings()[..5].iter().map(|&weighting| {
        let additive = MechanismConfig::new(ScoreConfig::Additive { hidden: 8 });
        ContextConfig::Attention(MechanismConfig { weighting, ..additive })
    }));
    contexts.push(ContextConfig::Fixed);
    for decoder in [DecoderConfig::Recurrent(one), decoders()[2].clone()] {
        for context in &contexts {
            let config = config(EncoderConfig::Recurrent(one), decoder.clone(), context.clone());
            let (parameters, model) = build(&config, DType::F64);
            let random = Random::new(1);
            let mode = Mode::Train(&random);
            let together = model.teach(&source, &target, mode).unwrap();
            // Own tokens at next to no probability: step by step, with the right ones.
            let alone = model.teach_sampled(&source, &target, 1e-300, mode).unwrap();
            let gradients = |taught: TeacherForced| taught.loss(0.1).unwrap().backward().unwrap();
            let (together, alone) = (gradients(together), gradients(alone));
            for parameter in parameters.all() {
                let [a, b] = [&together, &alone]
                    .map(|all| all.get(&parameter).unwrap().to_vec::<f64>().unwrap());
                let worst = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(worst < 1e-12, "{config:?}: {parameter:?} by {worst}");
            }
        }
    }
}

#[test]
fn a_model_is_rebuilt_from_its_configuration_and_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = pairs();
    for decoder in decoders() {
        for tied in [Tied::None, Tied::Output, Tied::All] {
            let config = Seq2SeqConfig {
                tied,
                source: SourceConfig::Tokens { vocabulary: 10 },
                ..config(
                    EncoderConfig::Transformer(transformer(1)),
                    decoder.clone(),
                    attention(ScoreConfig::Additive { hidden: 8 }),
                )
            };
            let (parameters, model) = build(&config, DType::F32);
            let file = folder.path().join("model.safetensors");
            parameters.save(&file).unwrap();
            let text = serde_json::to_string(&config).unwrap();

            let config: Seq2SeqConfig = serde_json::from_str(&text).unwrap();
            let parameters = Parameters::new(DType::F32, 99);
            let again = Seq2Seq::new(&parameters, &config).unwrap();
            parameters.load(&file).unwrap();
            let logits = |model: &Seq2Seq| {
                let taught = model.teach(&source, &target, Mode::Infer).unwrap();
                taught.logits.to_vec::<f32>().unwrap()
            };
            assert_eq!(logits(&model), logits(&again));
        }
    }
}

#[test]
fn tied_tables_are_one_parameter() {
    let gru = RecurrentConfig::new(Cell::Gru, 16);
    let count = |tied| {
        let config = Seq2SeqConfig {
            tied,
            source: SourceConfig::Tokens { vocabulary: 10 },
            ..config(
                EncoderConfig::Recurrent(gru),
                DecoderConfig::Recurrent(gru),
                ContextConfig::Fixed,
            )
        };
        build(&config, DType::F32).0.numel()
    };
    assert_eq!(count(Tied::None) - count(Tied::Output), 160);
    assert_eq!(count(Tied::Output) - count(Tied::All), 160);
}

#[test]
fn bad_configurations_are_refused_by_name() {
    let gru = RecurrentConfig::new(Cell::Gru, 16);
    let base = || {
        config(EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed)
    };
    let refusal = |config: Seq2SeqConfig| {
        Seq2Seq::new(&Parameters::new(DType::F32, 1), &config).unwrap_err().to_string()
    };
    assert_eq!(
        refusal(Seq2SeqConfig { end: 10, ..base() }),
        "the end token 10 is not within a target vocabulary of 10"
    );
    assert_eq!(
        refusal(Seq2SeqConfig { end: 1, ..base() }),
        "padding, start and end are the tokens 0, 1 and 1; they want to be three"
    );
    assert_eq!(
        refusal(Seq2SeqConfig { tied: Tied::All, ..base() }),
        "tied source and target have vocabularies of 9 and 10; they want one"
    );
    assert_eq!(
        refusal(Seq2SeqConfig { context: ContextConfig::MultiHead, ..base() }),
        "decoder: a recurrent decoder attends by one mechanism; heads are a Transformer's"
    );
    let both = RecurrentConfig { both_directions: true, ..gru };
    assert_eq!(
        refusal(Seq2SeqConfig { decoder: DecoderConfig::Recurrent(both), ..base() }),
        "decoder: a decoder writes in one direction; both were asked for"
    );
    let window = TransformerConfig { window: Some(3), ..transformer(1) };
    assert_eq!(
        refusal(Seq2SeqConfig { decoder: DecoderConfig::Transformer(window), ..base() }),
        "decoder: a window of 3 is for an encoder; a decoder sees all that came before"
    );
    assert_eq!(
        refusal(Seq2SeqConfig {
            encoder: EncoderConfig::Recurrent(both),
            context: attention(ScoreConfig::Dot),
            ..base()
        }),
        "decoder: the dot score needs equal widths; queries have 16, keys 32"
    );
    let (_, model) = build(&base(), DType::F32);
    let (source, target) = pairs();
    for (search, says) in [
        (SearchConfig { width: 0, ..SearchConfig::default() }, "a beam of width 0"),
        (SearchConfig { best: 9, ..SearchConfig::default() }, "the 9 best of a beam of width 4"),
        (SearchConfig { longest: 0, ..SearchConfig::default() }, "outputs of at most 0 tokens"),
    ] {
        assert_eq!(model.search(&source, &search).unwrap_err().to_string(), says);
    }
    let one = Sentences::new(&[vec![3]], 0).unwrap();
    let error = model.teach(&source, &one, Mode::Infer).unwrap_err().to_string();
    assert_eq!(error, "4 sources and 1 targets");
    let long = Sentences { ids: source.ids.clone(), lengths: vec![4, 2, 9, 3] };
    let error = model.teach(&long, &target, Mode::Infer).unwrap_err().to_string();
    assert_eq!(error, "encoder: sequence 2 has length 9, longer than the batch, which has 4");
    let far = Sentences::new(&[vec![9]], 0).unwrap();
    let error = model.greedy(&far, 4).unwrap_err().to_string();
    assert_eq!(error, "embed: index 9 at place 0 is not within 0..9");
}

#[test]
fn an_empty_source_and_an_empty_batch_are_legal() {
    for decoder in decoders() {
        let context = attention(ScoreConfig::Additive { hidden: 8 });
        let config =
            config(EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 16)), decoder, context);
        let (_, model) = build(&config, DType::F32);
        let nothing = Sentences::new(&[vec![], vec![]], 0).unwrap();
        let target = Sentences::new(&[vec![3], vec![4, 5]], 0).unwrap();
        let loss = model.teach(&nothing, &target, Mode::Infer).unwrap().loss(0.0).unwrap();
        assert!(loss.item().unwrap().is_finite());
        assert_eq!(model.search(&nothing, &search_config(2, 3)).unwrap().len(), 2);
        let none = Sentences::new::<Vec<usize>>(&[], 0).unwrap();
        assert!(model.greedy(&none, 3).unwrap().is_empty());
        assert!(model.search(&none, &search_config(2, 3)).unwrap().is_empty());
    }
}

//! What an intervention changes, against the plain formula.

use regard::attention::{CellChange, HeadRef, Intervention, Site};
use regard::layers::{Cell, EncoderConfig, Pooling, PoolingConfig, RecurrentConfig};
use regard::layers::{ConvolutionConfig, Graph, TransformerDecoder};
use regard::models::{
    ContextConfig, DecoderConfig, GraphAttentionNetwork, GraphNetworkConfig, Passages,
    SearchConfig, Sentences, Seq2Seq, Seq2SeqConfig, SpanReader, SpanReaderConfig,
};
use regard::prelude::*;

const N: usize = 5;
const HEADS: usize = 2;
const WIDTH: usize = 8;

fn encoder(layers: usize) -> (TransformerEncoder, Tensor) {
    let config = TransformerConfig::new(WIDTH, HEADS, layers);
    let encoder = TransformerEncoder::new(&Parameters::new(DType::F64, 3), &config, WIDTH).unwrap();
    let x = Random::new(5).normal(&[1, N, WIDTH], 0.0, 1.0, DType::F64).unwrap();
    (encoder, x)
}

/// The weights of every layer, `[H][N][N]` each, under a change.
fn weights(change: &Intervention, layers: usize) -> Vec<Vec<Vec<Vec<f64>>>> {
    let (encoder, x) = encoder(layers);
    let encoded = change.during(|| encoder.encode(&x, None, Mode::Infer, Need::WEIGHTS)).unwrap();
    let layer = |weights: &Tensor| {
        let numbers = weights.to_vec::<f64>().unwrap();
        let row = |row: &[f64]| row.to_vec();
        let head = |head: &[f64]| head.chunks(N).map(row).collect();
        numbers.chunks(N * N).map(head).collect()
    };
    encoded.weights.iter().map(layer).collect()
}

/// The scores of the first layer, up to a number for each row: the logs of softmax weights.
fn scores() -> Vec<Vec<Vec<f64>>> {
    let mut all = weights(&Intervention::default(), 1).remove(0);
    all.iter_mut().flatten().flatten().for_each(|w| *w = w.ln());
    all
}

fn softmax(scores: &[f64]) -> Vec<f64> {
    let sum: f64 = scores.iter().map(|s| s.exp()).sum();
    scores.iter().map(|s| s.exp() / sum).collect()
}

/// Sparsemax by its definition: the threshold that the positive parts sum to 1 with, by bisection.
fn thresholded(scores: &[f64], weight: impl Fn(f64) -> f64) -> Vec<f64> {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (mut low, mut high) = (most - 2.0, most);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        let sum: f64 = scores.iter().map(|s| weight((s - middle).max(0.0))).sum();
        if sum > 1.0 { low = middle } else { high = middle }
    }
    scores.iter().map(|s| weight((s - low).max(0.0))).collect()
}

fn near(ours: &[f64], known: &[f64]) {
    assert_eq!(ours.len(), known.len());
    for (a, b) in ours.iter().zip(known) {
        assert!((a - b).abs() < 1e-9, "{ours:?} beside {known:?}");
    }
}

#[test]
fn a_temperature_divides_the_scores() {
    for temperature in [0.25, 1.0, 3.0] {
        let change = Intervention { temperature: Some(temperature), ..Intervention::default() };
        let ours = weights(&change, 1).remove(0);
        for (head, rows) in scores().iter().enumerate() {
            for (row, scores) in rows.iter().enumerate() {
                let divided: Vec<f64> = scores.iter().map(|s| s / temperature).collect();
                near(&ours[head][row], &softmax(&divided));
            }
        }
    }
}

#[test]
fn a_normalizer_is_the_plain_formula_of_the_same_scores() {
    let of = |normalizer| Intervention { normalizer: Some(normalizer), ..Intervention::default() };
    let sparse = weights(&of(Normalizer::Sparsemax), 1).remove(0);
    let entmax = weights(&of(Normalizer::Entmax15), 1).remove(0);
    let hard = weights(&of(Normalizer::Argmax), 1).remove(0);
    for (head, rows) in scores().iter().enumerate() {
        for (row, scores) in rows.iter().enumerate() {
            near(&sparse[head][row], &thresholded(scores, |x| x));
            // 1.5-entmax: the square of half the score above the threshold.
            let halves: Vec<f64> = scores.iter().map(|s| s / 2.0).collect();
            near(&entmax[head][row], &thresholded(&halves, |x| x * x));
            let best = (0..N).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
            let one: Vec<f64> = (0..N).map(|at| f64::from(u8::from(at == best))).collect();
            near(&hard[head][row], &one);
        }
    }
}

#[test]
fn a_window_hides_what_is_farther_and_the_rest_is_normalized_anew() {
    let change = Intervention { window: Some(1), ..Intervention::default() };
    let ours = weights(&change, 1).remove(0);
    for (head, rows) in scores().iter().enumerate() {
        for (row, scores) in rows.iter().enumerate() {
            let seen = |&at: &usize| at.abs_diff(row) <= 1;
            let known = softmax(&(0..N).filter(seen).map(|at| scores[at]).collect::<Vec<_>>());
            let there: Vec<f64> = (0..N).filter(seen).map(|at| ours[head][row][at]).collect();
            near(&there, &known);
            assert!((0..N).filter(|at| !seen(at)).all(|at| ours[head][row][at] == 0.0));
        }
    }
}

#[test]
fn a_forbidden_pair_weighs_nothing_and_its_row_is_normalized_anew() {
    let cell = CellChange {
        site: Site::Encoder,
        layer: Some(0),
        head: Some(1),
        row: Some(2),
        column: 3,
        bias: None,
    };
    let ours = weights(&Intervention { cells: vec![cell], ..Intervention::default() }, 1).remove(0);
    let plain = weights(&Intervention::default(), 1).remove(0);
    assert_eq!(ours[1][2][3], 0.0);
    let others: Vec<usize> = (0..N).filter(|&at| at != 3).collect();
    let known = softmax(&others.iter().map(|&at| scores()[1][2][at]).collect::<Vec<_>>());
    near(&others.iter().map(|&at| ours[1][2][at]).collect::<Vec<_>>(), &known);
    // The other head and the other rows are as they were.
    near(&ours[0].concat(), &plain[0].concat());
    near(&ours[1][1], &plain[1][1]);
}

#[test]
fn a_bias_strengthens_a_key_for_every_row_and_every_head_where_none_is_named() {
    let cell = CellChange {
        site: Site::Encoder,
        layer: None,
        head: None,
        row: None,
        column: 4,
        bias: Some(1.5),
    };
    let ours = weights(&Intervention { cells: vec![cell], ..Intervention::default() }, 1).remove(0);
    for (head, rows) in scores().iter().enumerate() {
        for (row, scores) in rows.iter().enumerate() {
            let mut stronger = scores.clone();
            stronger[4] += 1.5;
            near(&ours[head][row], &softmax(&stronger));
        }
    }
}

#[test]
fn a_head_that_is_off_gives_exactly_nothing() {
    let attention = MultiHeadAttention::new(
        &Parameters::new(DType::F64, 3),
        &MultiHeadConfig { bias: false, ..MultiHeadConfig::new(WIDTH, HEADS) },
    )
    .unwrap();
    let config = TransformerConfig::new(WIDTH, HEADS, 2);
    let parameters = Parameters::new(DType::F64, 3);
    let encoder = TransformerEncoder::new(&parameters, &config, WIDTH).unwrap();
    let x = Random::new(5).normal(&[1, N, WIDTH], 0.0, 1.0, DType::F64).unwrap();
    let off = |heads: Vec<HeadRef>| Intervention { heads, ..Intervention::default() };
    let all = |layer| HeadRef { site: Site::Encoder, layer, head: None };
    let encode = |change: &Intervention| {
        change.during(|| encoder.encode(&x, None, Mode::Infer, Need::WEIGHTS)).unwrap()
    };
    let one = encode(&off(vec![HeadRef { head: Some(1), ..all(Some(0)) }]));
    let heads = one.weights[0].to_vec::<f64>().unwrap();
    assert!(heads[..N * N].iter().all(|&w| w > 0.0));
    assert!(heads[N * N..].iter().all(|&w| w == 0.0));
    // Without any head a block is its feed-forward layer alone: every output is that of its own
    // input, whatever stands around it.
    let silent = off(vec![all(None)]);
    let alone = |at: usize| {
        let one = x.narrow(1, at, 1).unwrap();
        let encoded = silent.during(|| encoder.forward(&one, None, Mode::Infer)).unwrap();
        encoded.to_vec::<f64>().unwrap()
    };
    // Places are told apart before the blocks, so that only the first is the same alone.
    near(&encode(&silent).out.narrow(1, 0, 1).unwrap().to_vec::<f64>().unwrap(), &alone(0));
    // What no model names is never changed.
    let plain = attention.forward(&x, &x, &x, &Mask::none(), Mode::Infer).unwrap();
    let same = silent.during(|| attention.forward(&x, &x, &x, &Mask::none(), Mode::Infer)).unwrap();
    assert_eq!(plain.to_vec::<f64>().unwrap(), same.to_vec::<f64>().unwrap());
}

#[test]
fn a_layer_is_changed_alone_and_nothing_is_left_behind() {
    let hot = |layer| {
        let head = HeadRef { site: Site::Encoder, layer: Some(layer), head: Some(0) };
        Intervention { heads: vec![head], ..Intervention::default() }
    };
    let (plain, changed) = (weights(&Intervention::default(), 2), weights(&hot(1), 2));
    assert_eq!(plain[0], changed[0]);
    assert!(changed[1][0].concat().iter().all(|&w| w == 0.0));
    assert_ne!(changed[1][1], vec![vec![0.0; N]; N]);
    // Also where what ran inside went wrong.
    let broken = std::panic::catch_unwind(|| hot(0).during(|| panic!("inside")));
    assert!(broken.is_err());
    assert_eq!(weights(&Intervention::default(), 2), plain);
}

/// A small model that writes, of any kind.
fn writer(decoder: DecoderConfig, context: ContextConfig) -> Seq2Seq {
    let gru = EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 8));
    let config = Seq2SeqConfig::new(10, 12, gru, decoder, context);
    Seq2Seq::new(&Parameters::new(DType::F64, 7), &config).unwrap()
}

#[test]
fn a_row_of_what_is_written_is_the_same_row_step_by_step() {
    let additive = MechanismConfig::new(ScoreConfig::Additive { hidden: 6 });
    let one = ContextConfig::Attention(additive);
    let writers = [
        writer(DecoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 8)), one.clone()),
        writer(DecoderConfig::Cnn(ConvolutionConfig { width: 8, ..Default::default() }), one),
        writer(
            DecoderConfig::Transformer(TransformerConfig::new(8, 2, 2)),
            ContextConfig::MultiHead,
        ),
    ];
    let source = Sentences::new(&[vec![3, 4, 5, 6]], 0).unwrap();
    let cell = CellChange {
        site: Site::Cross,
        layer: None,
        head: None,
        row: Some(2),
        column: 1,
        bias: None,
    };
    let change = Intervention { cells: vec![cell], ..Intervention::default() };
    for (at, model) in writers.iter().enumerate() {
        for width in [1, 3] {
            let search = SearchConfig {
                width,
                shortest: 5,
                longest: 5,
                weights: true,
                ..SearchConfig::default()
            };
            let found = change.during(|| model.search(&source, &search)).unwrap();
            let heads = found[0][0].heads.as_ref().unwrap();
            let shape = heads.shape().to_vec();
            let numbers = heads.contiguous().unwrap().to_vec::<f64>().unwrap();
            for (place, row) in numbers.chunks(shape[3]).enumerate() {
                let step = place % shape[2];
                assert_eq!(row[1] == 0.0, step == 2, "writer {at}, beam {width}, step {step}");
                assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            }
        }
        // Shown its own output, it attends in the same way.
        let tokens = change.during(|| model.greedy_within(&source, 5..=5, Need::OUTPUT)).unwrap();
        let target = Sentences::new(&[tokens[0].tokens.clone()], 0).unwrap();
        let taught = change.during(|| model.align(&source, &target)).unwrap();
        let weights = taught.weights[0].to_vec::<f64>().unwrap();
        let n = taught.weights[0].shape()[2];
        for (place, row) in weights.chunks(4).enumerate() {
            assert_eq!(row[1] == 0.0, place % n == 2, "writer {at} taught, row {place}");
        }
    }
}

#[test]
fn a_decoder_attends_to_what_it_wrote_by_the_plain_formula() {
    let config =
        TransformerConfig { position: Position::None, ..TransformerConfig::new(WIDTH, HEADS, 2) };
    let parameters = Parameters::new(DType::F64, 3);
    let decoder = TransformerDecoder::new(&parameters, &config, None, WIDTH, WIDTH).unwrap();
    let random = Random::new(5);
    let x = random.normal(&[1, N, WIDTH], 0.0, 1.0, DType::F64).unwrap();
    let memory = random.normal(&[1, 3, WIDTH], 0.0, 1.0, DType::F64).unwrap();
    let own = decoder.self_attention_weights(&x, &memory, &Mask::none()).unwrap();
    assert_eq!(own.len(), 2);
    // The first block sees x itself, normalized first where the configuration says so.
    let all = parameters.tensors();
    let numbers = |name: &str| all[name].to_vec::<f64>().unwrap();
    let (w, b) =
        (numbers("layers.0.self_attn.in_proj_weight"), numbers("layers.0.self_attn.in_proj_bias"));
    let rows: Vec<Vec<f64>> = x
        .to_vec::<f64>()
        .unwrap()
        .chunks(WIDTH)
        .map(|row| {
            let mean = row.iter().sum::<f64>() / WIDTH as f64;
            let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / WIDTH as f64;
            match config.norm_first {
                true => row.iter().map(|v| (v - mean) / (variance + config.eps).sqrt()).collect(),
                false => row.to_vec(),
            }
        })
        .collect();
    let project = |row: &[f64], at: usize| {
        b[at] + (0..WIDTH).map(|i| w[at * WIDTH + i] * row[i]).sum::<f64>()
    };
    let wide = WIDTH / HEADS;
    let told = own[0].to_vec::<f64>().unwrap();
    for head in 0..HEADS {
        for query in 0..N {
            let score = |key: usize| {
                (0..wide)
                    .map(|i| head * wide + i)
                    .map(|i| project(&rows[query], i) * project(&rows[key], WIDTH + i))
                    .sum::<f64>()
                    / (wide as f64).sqrt()
            };
            let scores: Vec<f64> = (0..=query).map(score).collect();
            let mut known = softmax(&scores);
            known.resize(N, 0.0);
            near(&told[(head * N + query) * N..][..N], &known);
        }
    }
}

#[test]
fn a_pair_of_what_was_written_is_forbidden_in_its_head_and_the_output_follows() {
    let model = writer(
        DecoderConfig::Transformer(TransformerConfig::new(8, 2, 2)),
        ContextConfig::MultiHead,
    );
    let source = Sentences::new(&[vec![3, 4, 5, 6]], 0).unwrap();
    let target = Sentences::new(&[vec![7, 8, 9, 10]], 0).unwrap();
    let own = |change: &Intervention, target: &Sentences| -> Vec<Vec<f64>> {
        let all = change.during(|| model.self_attention_weights(&source, target)).unwrap();
        all.iter().map(|layer| layer.to_vec::<f64>().unwrap()).collect()
    };
    let plain = own(&Intervention::default(), &target);
    let cell = CellChange {
        site: Site::Decoder,
        layer: Some(1),
        head: Some(0),
        row: Some(3),
        column: 1,
        bias: None,
    };
    let change = Intervention { cells: vec![cell], ..Intervention::default() };
    let changed = own(&change, &target);
    assert_eq!(changed[0], plain[0]);
    let differ: Vec<usize> =
        (0..50).filter(|&at| changed[1][at] != plain[1][at]).map(|at| at / 5).collect();
    assert!(changed[1][3 * 5 + 1] == 0.0 && differ.iter().all(|&row| row == 3), "{differ:?}");
    let logits = |change: &Intervention| {
        let taught = change.during(|| model.teach(&source, &target, Mode::Infer)).unwrap();
        taught.logits.to_vec::<f64>().unwrap()
    };
    let (before, after) = (logits(&Intervention::default()), logits(&change));
    let same = |row: usize| before[row * 12..][..12] == after[row * 12..][..12];
    assert_eq!([0, 1, 2, 3].map(same), [true, true, true, false]);
    // What was written of a shorter text saw the same.
    let short = own(&Intervention::default(), &Sentences::new(&[vec![7, 8]], 0).unwrap());
    for (layer, all) in short.iter().enumerate() {
        for (at, row) in all.chunks(3).enumerate() {
            near(row, &plain[layer][(at / 3 * 5 + at % 3) * 5..][..3]);
        }
    }
    // A decoder of another kind has none.
    let gru = DecoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 8));
    let other = writer(gru, ContextConfig::Fixed);
    assert!(other.self_attention_weights(&source, &target).unwrap().is_empty());
}

#[test]
fn an_edge_of_a_graph_is_forbidden_by_its_nodes() {
    let config =
        GraphNetworkConfig { features: 3, hidden: 4, heads: 2, dropout: 0.0, ..Default::default() };
    let network = GraphAttentionNetwork::new(&Parameters::new(DType::F64, 1), &config).unwrap();
    let edges = [(0, 1), (2, 1), (1, 0), (1, 2)];
    let graph = Graph::new(3, &edges).unwrap();
    let x = Random::new(2).normal(&[3, 3], 0.0, 1.0, DType::F64).unwrap();
    let cell = CellChange {
        site: Site::Graph,
        layer: None,
        head: None,
        row: Some(1),
        column: 2,
        bias: None,
    };
    let change = Intervention { cells: vec![cell], ..Intervention::default() };
    let seen = change.during(|| network.classify(&x, &graph, Mode::Infer, Need::WEIGHTS)).unwrap();
    let all = graph.edges(true);
    let weights = seen.weights[0].to_vec::<f64>().unwrap();
    for (edge, &(source, target)) in all.iter().enumerate() {
        let forbidden = (source, target) == (2, 1);
        assert!(weights[2 * edge..][..2].iter().all(|&w| (w == 0.0) == forbidden));
    }
}

#[test]
fn scores_of_any_kind_are_divided_by_a_temperature() {
    let x = Random::new(4).normal(&[1, 4, 6], 0.0, 1.0, DType::F64).unwrap();
    let kinds = [
        ScoreConfig::ScaledDot,
        ScoreConfig::Additive { hidden: 5 },
        ScoreConfig::Gaussian { inverse_width: 0.7, learned: true, per_feature: false },
    ];
    for score in kinds {
        let pooling = PoolingConfig::Attention(MechanismConfig::new(score.clone()));
        let pooling = Pooling::new(&Parameters::new(DType::F64, 2), &pooling, 6).unwrap();
        let of = |temperature: f64| {
            let change = Intervention { temperature: Some(temperature), ..Default::default() };
            let pooled = change.during(|| pooling.pool(&x, None, Mode::Infer, Need::WEIGHTS));
            pooled.unwrap().weights.unwrap().to_vec::<f64>().unwrap()
        };
        let plain: Vec<f64> = of(1.0).iter().map(|w| w.ln() / 2.0).collect();
        near(&of(2.0), &softmax(&plain));
    }
}

/// A text of one word looks at itself alone whatever the window; the question does not.
#[test]
fn a_change_of_a_readers_encoder_is_of_the_text_and_not_of_the_question() -> regard::Result<()> {
    let transformer = EncoderConfig::Transformer(TransformerConfig::new(WIDTH, HEADS, 1));
    let config = SpanReaderConfig { width: WIDTH, ..SpanReaderConfig::new(20, transformer) };
    let reader = SpanReader::new(&Parameters::new(DType::F64, 3), &config)?;
    let window = Intervention { window: Some(0), ..Intervention::default() };
    let questions = Tensor::from_vec(vec![7i64, 3, 9, 11], &[1, 4])?;
    for (ids, touched) in [(vec![5i64], false), (vec![5, 8, 13], true)] {
        let lengths = [ids.len()];
        let text = Tensor::from_vec(ids, &[1, lengths[0]])?;
        let passages = Passages {
            text: &text,
            lengths: &lengths,
            features: None,
            questions: &questions,
            question_lengths: &[4],
        };
        let point = || {
            let pointed = reader.point(&passages, Mode::Infer, Need::WEIGHTS)?;
            assert_eq!(pointed.encoder[0].shape(), [1, HEADS, lengths[0], lengths[0]]);
            pointed.start.to_vec::<f64>()
        };
        assert_eq!(point()? != window.during(point)?, touched);
    }
    Ok(())
}

//! Every encoder behind the one entrance.

use regard::attention::Segments;
use regard::layers::{
    Cell, ConvolutionConfig, Encoder, EncoderConfig, RecurrentConfig, SelfAttentionConfig,
};
use regard::prelude::*;

fn every_kind() -> Vec<EncoderConfig> {
    let both =
        RecurrentConfig { layers: 2, both_directions: true, ..RecurrentConfig::new(Cell::Gru, 6) };
    let transformer = |position, window| {
        EncoderConfig::Transformer(TransformerConfig {
            position,
            window,
            ..TransformerConfig::new(8, 2, 2)
        })
    };
    let self_attention = |score, window| {
        EncoderConfig::SelfAttention(SelfAttentionConfig {
            heads: 2,
            key_width: 3,
            value_width: 4,
            score,
            window,
            ..SelfAttentionConfig::default()
        })
    };
    vec![
        EncoderConfig::None,
        EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Rnn, 6)),
        EncoderConfig::Recurrent(RecurrentConfig::new(Cell::RnnRelu, 6)),
        EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 6)),
        EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Lstm, 6)),
        EncoderConfig::Recurrent(RecurrentConfig { cell: Cell::Rnn, ..both }),
        EncoderConfig::Recurrent(both),
        EncoderConfig::Recurrent(RecurrentConfig { cell: Cell::Lstm, ..both }),
        EncoderConfig::Cnn(ConvolutionConfig { kernel: 5, ..ConvolutionConfig::new(6) }),
        EncoderConfig::Cnn(ConvolutionConfig {
            position: Position::Learned,
            ..ConvolutionConfig::new(6)
        }),
        self_attention(ScoreConfig::ScaledDot, None),
        self_attention(ScoreConfig::Additive { hidden: 3 }, Some(2)),
        transformer(Position::None, None),
        transformer(Position::Sinusoidal, Some(2)),
        transformer(Position::Learned, None),
        transformer(Position::Rotary, None),
        transformer(Position::Alibi, Some(1)),
        transformer(Position::Relative, None),
    ]
}

fn build(config: &EncoderConfig) -> Encoder {
    Encoder::new(&Parameters::new(DType::F64, 1), config, 5).unwrap()
}

fn refusal(config: &EncoderConfig) -> String {
    Encoder::new(&Parameters::new(DType::F64, 1), config, 5).unwrap_err().to_string()
}

#[test]
fn a_padded_batch_gives_the_same_numbers_as_each_sequence_alone() {
    let lengths = [7, 1, 4, 0];
    // What stands in the padding is as bad as can be.
    let mut x =
        Random::new(2).normal(&[4, 7, 5], 0.0, 1.0, DType::F64).unwrap().to_vec::<f64>().unwrap();
    for (b, &length) in lengths.iter().enumerate() {
        x[(b * 7 + length) * 5..(b + 1) * 7 * 5].fill(f64::NAN);
    }
    let x = Tensor::from_vec(x, &[4, 7, 5]).unwrap();
    for config in every_kind() {
        let encoder = build(&config);
        let batch = encoder.encode(&x, Some(&lengths), Mode::Infer, Need::OUTPUT).unwrap();
        for (b, &length) in lengths.iter().enumerate() {
            let one = x.narrow(0, b, 1).unwrap().narrow(1, 0, length).unwrap();
            let alone = encoder.encode(&one, None, Mode::Infer, Need::OUTPUT).unwrap();
            let pairs = [
                (batch.out.select(0, b).unwrap().narrow(0, 0, length).unwrap(), alone.out),
                (batch.summary.select(0, b).unwrap(), alone.summary),
            ];
            for (a, b) in pairs {
                let (a, b) = (a.to_vec::<f64>().unwrap(), b.to_vec::<f64>().unwrap());
                assert_eq!(a.len(), b.len());
                for (a, b) in a.iter().zip(&b) {
                    assert!((a - b).abs() < 1e-12, "{config:?}: {a} and {b}");
                }
            }
            let rest = batch.out.select(0, b).unwrap().narrow(0, length, 7 - length).unwrap();
            assert!(rest.to_vec::<f64>().unwrap().iter().all(|&x| x == 0.0), "{config:?}");
        }
    }
}

#[test]
fn every_kind_learns_from_all_its_parameters() {
    let x = Random::new(3).normal(&[2, 6, 5], 0.0, 1.0, DType::F64).unwrap();
    for config in every_kind() {
        let parameters = Parameters::new(DType::F64, 1);
        let encoder = Encoder::new(&parameters, &config, 5).unwrap();
        if config == EncoderConfig::None {
            continue;
        }
        let random = Random::new(4);
        let encoded =
            encoder.encode(&x, Some(&[6, 4]), Mode::Train(&random), Need::OUTPUT).unwrap();
        let both = encoded.out.square().unwrap().sum_all().unwrap();
        let gradients = both.add(&encoded.summary.sum_all().unwrap()).unwrap().backward().unwrap();
        for parameter in parameters.all() {
            assert!(gradients.get(&parameter).is_some(), "{config:?}: {parameter:?}");
        }
    }
}

#[test]
fn configurations_survive_being_written_and_read() {
    for config in every_kind() {
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<EncoderConfig>(&text).unwrap(), config, "{text}");
    }
}

#[test]
fn a_window_hides_what_is_further_away() {
    let window = Some(2);
    let transformer = TransformerConfig { window, ..TransformerConfig::new(8, 2, 1) };
    let bare = SelfAttentionConfig { window, ..SelfAttentionConfig::default() };
    for config in [EncoderConfig::Transformer(transformer), EncoderConfig::SelfAttention(bare)] {
        let encoder = build(&config);
        let x = Random::new(5).normal(&[1, 6, 5], 0.0, 1.0, DType::F64).unwrap();
        let weights = encoder.encode(&x, None, Mode::Infer, Need::WEIGHTS).unwrap().weights;
        let weights = weights[0].to_vec::<f64>().unwrap();
        for (at, weight) in weights.iter().enumerate() {
            let (i, j) = (at / 6 % 6, at % 6);
            assert_eq!(*weight > 0.0, i.abs_diff(j) <= 2, "{config:?}: query {i}, key {j}");
        }
    }
}

#[test]
fn bare_self_attention_is_its_formula_and_has_nothing_else() {
    let config = SelfAttentionConfig { key_width: 3, value_width: 4, ..Default::default() };
    let parameters = Parameters::new(DType::F64, 1);
    let encoder = Encoder::new(&parameters, &EncoderConfig::SelfAttention(config), 5).unwrap();
    let all = parameters.tensors();
    let shapes: Vec<_> = all.iter().map(|(name, x)| (&name[..], x.shape().to_vec())).collect();
    let known =
        [("W_k.weight", vec![3, 5]), ("W_q.weight", vec![3, 5]), ("W_v.weight", vec![4, 5])];
    assert_eq!(shapes, known);
    let x = Random::new(5).normal(&[1, 6, 5], 0.0, 1.0, DType::F64).unwrap();
    let [q, k, v] = ["q", "k", "v"].map(|name| {
        let weight = &all[&format!("W_{name}.weight")];
        x.linear(weight, None).unwrap()
    });
    let scores = q.matmul(&k.transpose(1, 2).unwrap()).unwrap().scale(3f64.powf(-0.5)).unwrap();
    let known = scores.softmax(2).unwrap().matmul(&v).unwrap();
    let out = encoder.forward(&x, None, Mode::Infer).unwrap();
    assert_eq!(out.shape(), [1, 6, 4]);
    assert!(out.squared_error(&known).unwrap().item().unwrap() < 1e-20);
}

#[test]
fn bad_configurations_are_refused_by_name() {
    let transformer = |c| refusal(&EncoderConfig::Transformer(c));
    let base = || TransformerConfig::new(8, 2, 1);
    assert_eq!(
        transformer(TransformerConfig { window: Some(0), ..base() }),
        "encoder: a window of 0 sees no neighbor; it wants at least 1"
    );
    let bare = |c| refusal(&EncoderConfig::SelfAttention(c));
    let zero = SelfAttentionConfig { window: Some(0), ..SelfAttentionConfig::default() };
    assert_eq!(bare(zero), "encoder: a window of 0 sees no neighbor; it wants at least 1");
    let sampled =
        SelfAttentionConfig { weighting: Weighting::Sample, ..SelfAttentionConfig::default() };
    assert!(bare(sampled).starts_with("encoder: sampling within an encoder"));
    assert_eq!(
        transformer(TransformerConfig { heads: 3, ..base() }),
        "encoder: 3 heads do not divide a width of 8"
    );
    assert_eq!(
        transformer(TransformerConfig { layers: 0, ..base() }),
        "encoder: a Transformer of 0 layers"
    );
    assert_eq!(
        refusal(&EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 0))),
        "encoder: a recurrent network of hidden size 0"
    );
    let rotary = ConvolutionConfig { position: Position::Rotary, ..ConvolutionConfig::new(4) };
    assert_eq!(
        refusal(&EncoderConfig::Cnn(rotary)),
        "encoder: Rotary positions act within attention; a convolution has none"
    );
    let unknown = serde_json::from_str::<EncoderConfig>(r#"{ "kind": "gro" }"#).unwrap_err();
    assert!(unknown.to_string().contains("unknown variant `gro`"), "{unknown}");
    let unknown = serde_json::from_str::<EncoderConfig>(r#"{ "kind": "recurrent", "hiden": 3 }"#)
        .unwrap_err();
    assert!(unknown.to_string().contains("unknown field `hiden`"), "{unknown}");
}

#[test]
fn lengths_that_do_not_fit_are_refused_by_name() {
    let x = Tensor::zeros(&[2, 7, 5], DType::F64).unwrap();
    for config in every_kind() {
        let encoder = build(&config);
        let refusal = |lengths: &[usize]| {
            encoder.forward(&x, Some(lengths), Mode::Infer).unwrap_err().to_string()
        };
        assert_eq!(
            refusal(&[7, 8]),
            "encoder: sequence 1 has length 8, longer than the batch, which has 7"
        );
        assert_eq!(refusal(&[7]), "encoder: 1 lengths for 2 sequences");
    }
    let learned = EncoderConfig::Cnn(ConvolutionConfig {
        position: Position::Learned,
        longest: 6,
        ..ConvolutionConfig::new(4)
    });
    let error = build(&learned).forward(&x, None, Mode::Infer).unwrap_err().to_string();
    assert_eq!(error, "a sequence of 7 vectors; there are learned positions for 6");
}

#[test]
fn a_mask_hides_in_every_encoder_that_attends_and_is_refused_by_all_others() {
    let x = Random::new(4).normal(&[2, 4, 5], 0.0, 1.0, DType::F64).unwrap();
    // The second half of the first sequence is another document; the other sequence is one.
    let documents = |last| Segments { q: last, k: vec![0, 0, 1, 1, 0, 0, 0, 0] };
    let mask = Mask { segments: Some(documents(vec![0, 0, 1, 1, 0, 0, 0, 0])), ..Mask::default() };
    let (mut attending, mut others) = (0, 0);
    for config in every_kind() {
        let encoder = build(&config);
        let encode = |x: &Tensor, lengths: Option<&[usize]>, mask: &Mask| {
            encoder.encode_masked(x, lengths, mask, Mode::Infer, Need::WEIGHTS)
        };
        // A mask that says nothing changes nothing, whoever is asked.
        let plain = encoder.encode(&x, Some(&[4, 3]), Mode::Infer, Need::WEIGHTS).unwrap();
        let nothing = encode(&x, Some(&[4, 3]), &Mask::none()).unwrap();
        assert_eq!(nothing.out.to_vec::<f64>().unwrap(), plain.out.to_vec::<f64>().unwrap());
        match encode(&x, Some(&[4, 3]), &mask) {
            Ok(masked) => {
                attending += 1;
                // What another document holds has no influence, and the lengths still count.
                let mut other = x.to_vec::<f64>().unwrap();
                other[2 * 5..4 * 5].fill(7.0);
                other[(4 + 3) * 5..].fill(f64::NAN);
                let other = Tensor::from_vec(other, &[2, 4, 5]).unwrap();
                let moved = encode(&other, Some(&[4, 3]), &mask).unwrap();
                for (item, kept) in [(0, 2), (1, 4)] {
                    let part = |x: &Tensor| x.select(0, item).unwrap().narrow(0, 0, kept).unwrap();
                    let (a, b) = (part(&masked.out), part(&moved.out));
                    assert_eq!(
                        a.to_vec::<f64>().unwrap(),
                        b.to_vec::<f64>().unwrap(),
                        "{config:?}"
                    );
                }
                let free = plain.out.select(0, 0).unwrap().to_vec::<f64>().unwrap();
                let hidden = masked.out.select(0, 0).unwrap().to_vec::<f64>().unwrap();
                assert_ne!(free, hidden, "{config:?} does not see the mask");
            }
            Err(error) => {
                others += 1;
                let said = error.to_string();
                assert!(said.ends_with("does not attend, so it takes no mask"), "{said}");
            }
        }
    }
    assert_eq!((attending, others), (8, 10));
}

//! A causal encoder, place by place and all at once.

use regard::layers::{BlockConfig, EncoderBlock, KeyValueCache};
use regard::prelude::*;

const N: usize = 7;
const COSINE: ScoreConfig = ScoreConfig::Cosine { temperature: 3.0, learned: true };

fn close(a: &Tensor, b: &Tensor, what: &str) {
    assert_eq!(a.shape(), b.shape(), "{what}");
    let (a, b) = (a.to_vec::<f64>().unwrap(), b.to_vec::<f64>().unwrap());
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() < 1e-11, "{what}: {a} and {b}");
    }
}

/// Parameters that are not what they start as: positions and biases among them begin with zeros.
fn shaken(parameters: &Parameters) {
    for (at, parameter) in parameters.all().iter().enumerate() {
        let value = parameter.tensor().detach();
        let noise = Random::new(at as u64).normal(value.shape(), 0.0, 0.3, DType::F64).unwrap();
        parameter.set(&value.add(&noise).unwrap()).unwrap();
    }
}

/// The whole pass, and the same in steps of these many places, with every weight.
fn compare(config: &TransformerConfig, input: usize, steps: &[usize]) {
    let what = format!("{config:?} over {input} in {steps:?}");
    let parameters = Parameters::new(DType::F64, 1);
    let encoder = TransformerEncoder::new(&parameters, config, input).unwrap();
    shaken(&parameters);
    let x = Random::new(5).normal(&[2, N, input], 0.0, 1.0, DType::F64).unwrap();
    let whole = encoder.encode(&x, None, Mode::Infer, Need::WEIGHTS).unwrap();
    let mut cache = encoder.start().unwrap();
    let mut start = 0;
    for &places in steps {
        let part = x.narrow(1, start, places).unwrap();
        let next = encoder.extend(&part, &mut cache, Need::WEIGHTS).unwrap();
        close(&next.out, &whole.out.narrow(1, start, places).unwrap(), &what);
        assert_eq!(next.weights.len(), config.layers);
        for (next, whole) in next.weights.iter().zip(&whole.weights) {
            // What comes later has no weight in the whole pass and no place in the step.
            let rows = whole.narrow(2, start, places).unwrap();
            close(next, &rows.narrow(3, 0, start + places).unwrap(), &what);
            let later = rows.narrow(3, start + places, N - start - places).unwrap();
            assert!(later.to_vec::<f64>().unwrap().iter().all(|&w| w == 0.0), "{what}");
        }
        start += places;
        assert_eq!(cache.len(), start);
    }
    assert_eq!(start, N);
}

fn causal() -> TransformerConfig {
    TransformerConfig { causal: true, dropout: 0.3, longest: N, ..TransformerConfig::new(8, 4, 2) }
}

#[test]
fn place_by_place_equals_the_whole_causal_pass_in_every_configuration() {
    let positions = [
        Position::None,
        Position::Sinusoidal,
        Position::Learned,
        Position::Rotary,
        Position::Alibi,
        Position::Relative,
    ];
    let mut count = 0;
    for position in positions {
        for key_heads in [None, Some(2), Some(1)] {
            for norm_first in [true, false] {
                for window in [None, Some(2)] {
                    let config =
                        TransformerConfig { position, key_heads, norm_first, window, ..causal() };
                    for steps in [&[1; N][..], &[3, 1, 1, 2], &[N]] {
                        compare(&config, 8, steps);
                        count += 1;
                    }
                }
            }
        }
    }
    assert_eq!(count, 6 * 3 * 2 * 2 * 3);
    let others = [
        TransformerConfig { norm_input: true, ..causal() },
        TransformerConfig { max_distance: 2, position: Position::Relative, ..causal() },
        TransformerConfig { weighting: Weighting::Sparsemax, ..causal() },
        TransformerConfig { score: ScoreConfig::Additive { hidden: 3 }, ..causal() },
        TransformerConfig { score: COSINE, position: Position::Rotary, ..causal() },
        TransformerConfig { activation: Activation::Silu, eps: 1e-3, layers: 1, ..causal() },
    ];
    for config in others {
        // Vectors that are brought to another width first.
        compare(&config, 5, &[2, 1, 4]);
    }
}

#[test]
fn a_block_alone_goes_on_where_its_cache_ends() {
    for position in [Position::None, Position::Rotary, Position::Alibi, Position::Relative] {
        for key_heads in [None, Some(2)] {
            let config = BlockConfig { position, key_heads, ..BlockConfig::new(8, 4) };
            let parameters = Parameters::new(DType::F64, 1);
            let block = EncoderBlock::new(&parameters, &config).unwrap();
            shaken(&parameters);
            let x = Random::new(5).normal(&[2, N, 8], 0.0, 1.0, DType::F64).unwrap();
            for mask in [Mask::none(), Mask::within(2)] {
                let all = mask.and(&Mask::causal()).unwrap();
                let whole = block.forward(&x, &all, Mode::Infer).unwrap();
                let mut cache = KeyValueCache::default();
                for start in 0..N {
                    let part = x.narrow(1, start, 1).unwrap();
                    let next = block.extend(&part, &mut cache, &mask, Need::OUTPUT).unwrap().out;
                    close(&next, &whole.narrow(1, start, 1).unwrap(), &format!("{position:?}"));
                }
            }
        }
    }
}

#[test]
fn sequences_of_different_lengths_agree_as_long_as_each_of_them_is() {
    for position in [Position::Sinusoidal, Position::Rotary, Position::Relative] {
        let parameters = Parameters::new(DType::F64, 1);
        let config = TransformerConfig { position, ..causal() };
        let encoder = TransformerEncoder::new(&parameters, &config, 8).unwrap();
        shaken(&parameters);
        let x = Random::new(5).normal(&[3, N, 8], 0.0, 1.0, DType::F64).unwrap();
        let lengths = [N, 3, 1];
        let whole = encoder.forward(&x, Some(&lengths), Mode::Infer).unwrap();
        let mut cache = encoder.start().unwrap();
        for place in 0..N {
            let part = x.narrow(1, place, 1).unwrap();
            let next = encoder.extend(&part, &mut cache, Need::OUTPUT).unwrap().out;
            for (item, &length) in lengths.iter().enumerate() {
                let whole = whole.i((item, place)).unwrap();
                if place < length {
                    close(&next.i((item, 0)).unwrap(), &whole, &format!("{position:?}"));
                } else {
                    assert_eq!(whole.to_vec::<f64>().unwrap(), [0.0; 8]);
                }
            }
        }
    }
}

#[test]
fn a_beam_changes_places_in_every_block() {
    let config = TransformerConfig { position: Position::Rotary, ..causal() };
    let encoder = TransformerEncoder::new(&Parameters::new(DType::F64, 1), &config, 8).unwrap();
    let x = Random::new(5).normal(&[2, N, 8], 0.0, 1.0, DType::F64).unwrap();
    let order = [1, 1, 0];
    let whole = encoder.forward(&x.pick(&order).unwrap(), None, Mode::Infer).unwrap();
    let mut cache = encoder.start().unwrap();
    encoder.extend(&x.narrow(1, 0, 4).unwrap(), &mut cache, Need::OUTPUT).unwrap();
    cache.reorder(&order).unwrap();
    let rest = x.pick(&order).unwrap().narrow(1, 4, 3).unwrap();
    let next = encoder.extend(&rest, &mut cache, Need::OUTPUT).unwrap().out;
    close(&next, &whole.narrow(1, 4, 3).unwrap(), "reordered");
}

#[test]
fn what_cannot_be_decoded_is_refused_and_leaves_the_cache_as_it_was() {
    let new = |config: &TransformerConfig| {
        TransformerEncoder::new(&Parameters::new(DType::F64, 1), config, 8).unwrap()
    };
    let said = new(&TransformerConfig::new(8, 4, 2)).start().unwrap_err().to_string();
    assert_eq!(said, "an encoder that is not causal is not decoded place by place");

    let encoder = new(&TransformerConfig { position: Position::Learned, ..causal() });
    let mut cache = encoder.start().unwrap();
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F64).unwrap();
    encoder.extend(&zeros(&[2, 5, 8]), &mut cache, Need::OUTPUT).unwrap();
    for (wrong, wanted) in [
        (zeros(&[2, 3, 8]), "a sequence of 8 vectors; there are learned positions for 7"),
        (zeros(&[2, 1, 6]), "a Transformer over [2, 1, 6]; it wants [B, N, 8]"),
        (zeros(&[3, 1, 8]), "a cache of keys f64 [2, "),
    ] {
        let said = encoder.extend(&wrong, &mut cache, Need::OUTPUT).unwrap_err().to_string();
        assert!(said.starts_with(wanted), "{said}");
        assert_eq!(cache.len(), 5);
    }
    let fewer = new(&TransformerConfig { layers: 1, ..causal() });
    let said = fewer.extend(&zeros(&[2, 1, 8]), &mut cache, Need::OUTPUT).unwrap_err().to_string();
    assert_eq!(said, "a cache of 2 blocks for an encoder of 1");
}

#[test]
fn a_cache_says_itself_what_does_not_fit_it() {
    let mut cache = KeyValueCache::default();
    let zeros = |shape: &[usize], dtype| Tensor::zeros(shape, dtype).unwrap();
    let one = zeros(&[2, 3, 1, 4], DType::F32);
    cache.extend(&one, &one).unwrap();
    for (shape, dtype) in [
        ([1, 3, 1, 4], DType::F32),
        ([2, 2, 1, 4], DType::F32),
        ([2, 3, 1, 5], DType::F32),
        ([2, 3, 1, 4], DType::F64),
    ] {
        let other = zeros(&shape, dtype);
        let said = cache.extend(&other, &other).unwrap_err().to_string();
        assert_eq!(said, format!("a cache of keys f32 [2, 3, N, 4] was given {dtype} {shape:?}"));
        assert_eq!(cache.len(), 1);
    }
    let values = zeros(&[2, 3, 1, 5], DType::F32);
    let said = cache.extend(&one, &values).unwrap_err().to_string();
    assert_eq!(said, "a cache of values f32 [2, 3, N, 4] was given f32 [2, 3, 1, 5]");
}

#[test]
fn decoding_place_by_place_records_no_tape() {
    let parameters = Parameters::new(DType::F64, 1);
    let attention = MultiHeadAttention::new(&parameters, &MultiHeadConfig::new(8, 2)).unwrap();
    let x = Random::new(1).normal(&[1, 3, 8], 0.0, 1.0, DType::F64).unwrap();
    let x = x.requires_grad().unwrap();
    let mask = Mask::none();
    let whole = attention.forward(&x, &x, &x, &mask, Mode::Infer).unwrap();
    assert!(whole.has_gradient());
    let mut cache = KeyValueCache::default();
    let next = attention.extend(&x, &mut cache, &mask, Need::WEIGHTS).unwrap();
    assert!(!next.out.has_gradient() && !next.weights.unwrap().has_gradient());
    assert!(next.out.squared_error(&whole.detach()).unwrap().item().unwrap() < 1e-24);
    let memory = attention.remember(&x).unwrap();
    let recalled = attention.recall(&x, &memory, &mask, Need::OUTPUT).unwrap().out;
    assert!(!recalled.has_gradient());
    assert!(recalled.squared_error(&whole.detach()).unwrap().item().unwrap() < 1e-24);
}

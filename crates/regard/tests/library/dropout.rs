//! A dropout that is no share is refused wherever one is given, in use as in training.

use regard::layers::*;
use regard::models::*;
use regard::prelude::*;

type Made = fn(&Parameters, f64) -> regard::Result<()>;

const PLACES: [(&str, Made); 15] = [
    ("FeedForward", |p, d| FeedForward::new(p, 4, 4, Activation::Relu, d).map(drop)),
    ("SwiGlu", |p, d| SwiGlu::new(p, 4, 4, d).map(drop)),
    ("MultiHeadConfig", |p, d| {
        MultiHeadAttention::new(p, &MultiHeadConfig { dropout: d, ..MultiHeadConfig::new(4, 2) })
            .map(drop)
    }),
    ("BlockConfig, encoder", |p, d| {
        EncoderBlock::new(p, &BlockConfig { dropout: d, ..BlockConfig::new(4, 2) }).map(drop)
    }),
    ("BlockConfig, decoder", |p, d| {
        DecoderBlock::new(p, &BlockConfig { dropout: d, ..BlockConfig::new(4, 2) }).map(drop)
    }),
    ("TransformerConfig", |p, d| {
        let config = TransformerConfig { dropout: d, ..TransformerConfig::new(4, 2, 1) };
        TransformerEncoder::new(p, &config, 4).map(drop)
    }),
    ("CrossAttentionConfig", |p, d| {
        let config = CrossAttentionConfig { dropout: d, ..CrossAttentionConfig::new(4, 4) };
        CrossAttention::new(p, &config).map(drop)
    }),
    ("SelfAttentionConfig", |p, d| {
        let config = SelfAttentionConfig { dropout: d, ..SelfAttentionConfig::new(4) };
        SelfAttention::new(p, &config).map(drop)
    }),
    ("MechanismConfig", |p, d| {
        let config = MechanismConfig { dropout: d, ..MechanismConfig::new(ScoreConfig::Dot) };
        Mechanism::new(p, &config, 4, 4).map(drop)
    }),
    ("RecurrentConfig", |p, d| {
        let config = RecurrentConfig { dropout: d, ..RecurrentConfig::new(Cell::Gru, 4) };
        Recurrent::new(p, &config, 4).map(drop)
    }),
    ("ConvolutionConfig", |p, d| {
        Convolution::new(p, &ConvolutionConfig { dropout: d, ..ConvolutionConfig::new(4) }, 4)
            .map(drop)
    }),
    ("FullyConnectedConfig", |p, d| {
        let config = FullyConnectedConfig { dropout: d, ..FullyConnectedConfig::default() };
        FullyConnected::new(p, &config, 4).map(drop)
    }),
    ("GraphAttentionConfig", |p, d| {
        let config = GraphAttentionConfig { dropout: d, ..GraphAttentionConfig::new(4, 2, 2) };
        GraphAttention::new(p, &config).map(drop)
    }),
    ("GraphAttentionConfig, input", |p, d| {
        let config =
            GraphAttentionConfig { input_dropout: d, ..GraphAttentionConfig::new(4, 2, 2) };
        GraphAttention::new(p, &config).map(drop)
    }),
    ("GraphNetworkConfig", |p, d| {
        let config = GraphNetworkConfig { dropout: d, ..GraphNetworkConfig::new(4, 2) };
        GraphAttentionNetwork::new(p, &config).map(drop)
    }),
];

const NONE: [f64; 5] = [-0.5, 1.0, 1.5, f64::NAN, f64::INFINITY];

#[test]
fn a_dropout_that_is_no_share_is_refused_by_every_layer() {
    let mut count = 0;
    for (name, made) in PLACES {
        for share in [0.0, 0.5, 0.99] {
            made(&Parameters::new(DType::F32, 1), share).unwrap();
        }
        for share in NONE {
            let said = made(&Parameters::new(DType::F32, 1), share).unwrap_err().to_string();
            assert!(
                said.ends_with(&format!("a dropout of {share} is not within 0..1")),
                "{name}: {said}"
            );
            count += 1;
        }
    }
    assert_eq!(count, PLACES.len() * NONE.len());
}

#[test]
fn a_field_that_was_set_later_is_refused_when_it_is_used() {
    let random = Random::new(1);
    let x = random.normal(&[1, 3, 4], 0.0, 1.0, DType::F32).unwrap();
    let parameters = Parameters::new(DType::F32, 1);
    let mut feed = FeedForward::new(&parameters, 4, 4, Activation::Relu, 0.1).unwrap();
    for share in NONE {
        feed.dropout = share;
        for mode in [Mode::Infer, Mode::Train(&random)] {
            assert!(feed.forward(&x, mode).is_err(), "{share} {mode:?}");
            assert!(mode.dropout(&x, share).is_err(), "{share} {mode:?}");
        }
        // The operator refuses what a mode gives it.
        let dropout = Mode::Train(&random).weights_dropout(share);
        let attention = Attention { dropout, ..Attention::new(Score::ScaledDot) };
        assert!(attention.forward(&x, &x, &x, &Mask::none()).is_err(), "{share}");
        assert!(Mode::Infer.weights_dropout(share).is_none());
    }
}

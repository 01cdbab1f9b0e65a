//! A network as a PyTorch module: the parts it is made of, one after the other in a file.

use crate::task::network::Network;
use regard::layers::EncoderConfig;
use regard::models::DecoderConfig;
use regard_data::{Error, Result};

/// The file.
pub(super) fn module(network: &Network, about: &str) -> Result<String> {
    let mut out = format!("\"\"\"{about}\"\"\"\n\n");
    out += &include_str!("pytorch/header.py").replace("{config}", &network.json()?);
    let encoders = network.encoders();
    let has = |is: fn(&EncoderConfig) -> bool| encoders.iter().any(|config| is(config));
    let writes = match network {
        Network::Seq2Seq(config) => Some(&config.decoder),
        _ => None,
    };
    let vision = matches!(network, Network::Vision(_));
    let transformer = has(|c| matches!(c, EncoderConfig::Transformer(_)));
    let of_heads = transformer || vision || matches!(writes, Some(DecoderConfig::Transformer(_)));
    let labels = matches!(network, Network::Labeler(_));
    let bare = has(|c| matches!(c, EncoderConfig::SelfAttention(_)));
    let regresses = matches!(network, Network::Regression(_));
    let graph = matches!(network, Network::Graph(_));
    if of_heads || bare || regresses || graph || !(encoders.is_empty() || labels) {
        out += include_str!("pytorch/mechanism.py");
    }
    if of_heads {
        out += include_str!("pytorch/transformer.py");
    }
    let mut named = Vec::new();
    let mut add = |is: bool, part: &str, name: &'static str| {
        if is {
            out += part;
            named.push(name);
        }
    };
    add(
        transformer,
        include_str!("pytorch/encoder_transformer.py"),
        "\"transformer\": TransformerEncoder",
    );
    add(
        bare,
        include_str!("pytorch/encoder_self_attention.py"),
        "\"self-attention\": SelfAttention",
    );
    add(
        has(|c| matches!(c, EncoderConfig::Recurrent(_))),
        include_str!("pytorch/encoder_recurrent.py"),
        "\"recurrent\": recurrent",
    );
    add(
        has(|c| matches!(c, EncoderConfig::Cnn(_))),
        include_str!("pytorch/encoder_cnn.py"),
        "\"cnn\": Convolution",
    );
    add(
        has(|c| matches!(c, EncoderConfig::FullyConnected(_))),
        include_str!("pytorch/encoder_fully_connected.py"),
        "\"fully-connected\": FullyConnected",
    );
    if !encoders.is_empty() {
        let named = format!("{{{}}}", named.join(", "));
        out += &include_str!("pytorch/encoder.py").replace("{encoders}", &named);
    }
    if labels || matches!(network, Network::Classifier(_)) {
        out += include_str!("pytorch/reader.py");
    }
    out += &model(network)?;
    Ok(out + include_str!("pytorch/footer.py"))
}

/// The module itself.
fn model(network: &Network) -> Result<String> {
    Ok(match network {
        Network::Labeler(_) => include_str!("pytorch/labeler.py").into(),
        Network::Classifier(_) => {
            [include_str!("pytorch/pooling.py"), include_str!("pytorch/classifier.py")].concat()
        }
        Network::Vision(_) => include_str!("pytorch/vision.py").into(),
        Network::Convolutional(_) => include_str!("pytorch/convolutional.py").into(),
        Network::Graph(config) => {
            let pooling =
                if config.pooling.is_some() { include_str!("pytorch/pooling.py") } else { "" };
            [pooling, include_str!("pytorch/graph.py")].concat()
        }
        Network::Regression(_) => include_str!("pytorch/regression.py").into(),
        Network::Memory(_) => include_str!("pytorch/memory_network.py").into(),
        Network::SpanReader(_) => include_str!("pytorch/span_reader.py").into(),
        Network::Seq2Seq(config) => {
            let (decoder, named) = match config.decoder {
                DecoderConfig::Recurrent(_) => {
                    (include_str!("pytorch/decoder_recurrent.py"), "recurrent\": RecurrentDecoder")
                }
                DecoderConfig::Cnn(_) => {
                    (include_str!("pytorch/decoder_cnn.py"), "cnn\": ConvolutionalDecoder")
                }
                DecoderConfig::Transformer(_) => (
                    include_str!("pytorch/decoder_transformer.py"),
                    "transformer\": TransformerDecoder",
                ),
                ref other => {
                    return Err(Error::invalid(format!("{other:?} does not become PyTorch")));
                }
            };
            let whole = include_str!("pytorch/seq2seq.py");
            let whole = whole.replace("{decoders}", &format!("{{\"{named}}}"));
            [include_str!("pytorch/pooling.py"), decoder, &whole].concat()
        }
    })
}

//! A network as a PyTorch module: the parts it is made of, one after the other in a file.

use super::Network;
use crate::{Error, Result};
use regard::layers::EncoderConfig;

/// The file.
pub(super) fn module(network: &Network, about: &str) -> Result<String> {
    let mut out = format!("\"\"\"{about}\"\"\"\n\n");
    out += &include_str!("pytorch/header.py").replace("{config}", &network.json()?);
    let encoders = network.encoders();
    let has = |is: fn(&EncoderConfig) -> bool| encoders.iter().any(|config| is(config));
    if has(|c| matches!(c, EncoderConfig::FullyConnected(_))) {
        return Err(Error::invalid("a fully connected encoder has no form in PyTorch here"));
    }
    let transformer = has(|c| matches!(c, EncoderConfig::Transformer(_)));
    if transformer || matches!(network, Network::Vision(_)) {
        out += include_str!("pytorch/transformer.py");
    }
    let mut named = Vec::new();
    if transformer {
        out += include_str!("pytorch/encoder_transformer.py");
        named.push("\"transformer\": TransformerEncoder");
    }
    if has(|c| matches!(c, EncoderConfig::Recurrent(_))) {
        out += include_str!("pytorch/encoder_recurrent.py");
        named.push("\"recurrent\": recurrent");
    }
    if has(|c| matches!(c, EncoderConfig::Cnn(_))) {
        out += include_str!("pytorch/encoder_cnn.py");
        named.push("\"cnn\": Convolution");
    }
    if !encoders.is_empty() {
        let named = format!("{{{}}}", named.join(", "));
        out += &include_str!("pytorch/encoder.py").replace("{encoders}", &named);
        out += include_str!("pytorch/reader.py");
    }
    out += match network {
        Network::Labeler(_) => include_str!("pytorch/labeler.py"),
        Network::Classifier(_) => include_str!("pytorch/classifier.py"),
        Network::Vision(_) => include_str!("pytorch/vision.py"),
        Network::Convolutional(_) => include_str!("pytorch/convolutional.py"),
        Network::Graph(_) => include_str!("pytorch/graph.py"),
        Network::Regression(_) => include_str!("pytorch/regression.py"),
    };
    Ok(out + include_str!("pytorch/footer.py"))
}

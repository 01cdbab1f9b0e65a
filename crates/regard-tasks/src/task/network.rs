//! What a model's network is, in the words of its configuration, and what it answers.

use regard::Tensor;
use regard::layers::EncoderConfig;
use regard::models::{
    ClassifierConfig, ConvolutionalConfig, GraphNetworkConfig, KernelRegressionConfig,
    LabelerConfig, MemoryNetworkConfig, Seq2SeqConfig, SpanReaderConfig, VisionTransformerConfig,
};
use regard_data::{Error, Result};
use serde::Serialize;
use std::collections::BTreeMap;

/// A network, by its configuration.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Network {
    /// A label for each token.
    Labeler(LabelerConfig),
    /// A class for a sequence.
    Classifier(ClassifierConfig),
    /// A class for an image, by a Transformer.
    Vision(VisionTransformerConfig),
    /// A class for an image, by convolutions.
    Convolutional(ConvolutionalConfig),
    /// A class for each node of a graph.
    Graph(GraphNetworkConfig),
    /// A number, out of those known.
    Regression(KernelRegressionConfig),
    /// A text for a text, a recording or a picture.
    Seq2Seq(Seq2SeqConfig),
    /// One of the answers that are known, for a story and a question.
    Memory(MemoryNetworkConfig),
    /// The first and the last word of an answer in a text.
    SpanReader(SpanReaderConfig),
}

/// A network, and what it answers for some inputs: so that whoever loads its weights elsewhere can
/// check that it answers the same.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The network.
    pub network: Network,
    /// Inputs by the names of the arguments that the exported module takes.
    pub inputs: BTreeMap<String, Tensor>,
    /// What the network gives for them: logits, or values.
    pub output: Tensor,
}

impl Network {
    /// Its configuration as JSON. Refuses a score that is code.
    pub(crate) fn json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(|e| Error::invalid(e.to_string()))
    }

    /// The encoders in it: of the sequence, and of a word's letters.
    pub(crate) fn encoders(&self) -> Vec<&EncoderConfig> {
        let (encoder, characters) = match self {
            Self::Labeler(c) => (&c.encoder, &c.characters),
            Self::Classifier(c) => (&c.encoder, &c.characters),
            Self::Seq2Seq(c) => return vec![&c.encoder],
            Self::Memory(c) => return vec![&c.encoder],
            Self::SpanReader(c) => return vec![&c.encoder],
            _ => return Vec::new(),
        };
        std::iter::once(encoder).chain(characters.iter().map(|c| &c.encoder)).collect()
    }
}

//! Models: a configuration (serde) and the parameters it asks for.
//!
//! | from | to | model |
//! |---|---|---|
//! | a sequence, sound or an image | another sequence | [`Seq2Seq`] |
//! | a sequence | a label for each vector | [`SequenceLabeler`] |
//! | a sequence | one class | [`SequenceClassifier`] |
//! | an image | one class | [`VisionTransformer`], [`ConvolutionalClassifier`] |
//! | a graph | a class for each node | [`GraphAttentionNetwork`] |
//! | a story and a question | an answer | [`MemoryNetwork`] |
//! | a text and a question | a span of the text | [`SpanReader`] |
//! | points | a curve | [`KernelRegression`] |

mod classifier;
mod graph_network;
mod kernel_regression;
mod labeler;
mod memory_network;
mod reader;
mod seq2seq;
mod sequence;
mod vision;

pub use classifier::{Classified, ClassifierConfig, ClassifierPooling, SequenceClassifier};
pub use graph_network::{GraphAttentionNetwork, GraphLayer, GraphNetworkConfig};
pub use kernel_regression::{KernelRegression, KernelRegressionConfig};
pub use labeler::{Labeled, LabelerConfig, SequenceLabeler};
pub use memory_network::{Answered, MemoryNetwork, MemoryNetworkConfig, SentenceWeights, Stories};
pub use reader::{Passages, Pointed, Span, SpanReader, SpanReaderConfig};
pub use seq2seq::{
    Considered, ContextConfig, Copies, DecoderConfig, Hypothesis, SearchConfig, Sentences, Seq2Seq,
    Seq2SeqConfig, Source, SourceConfig, TeacherForced, Tied,
};
pub use sequence::{CharactersConfig, InputConfig, Sequences};
pub use vision::{
    ConvolutionalClassifier, ConvolutionalConfig, ImagePooling, VisionTransformer,
    VisionTransformerConfig,
};

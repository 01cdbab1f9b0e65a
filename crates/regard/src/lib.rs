//! Attention you can pick, train, run fast and look at.
//!
//! ```
//! use regard::{Attention, Mask, Random, Score, DType};
//!
//! let random = Random::new(1);
//! let x = random.normal(&[2, 10, 16], 0.0, 1.0, DType::F32)?;
//! let attention = Attention { mask: Mask::within(3), ..Attention::new(Score::ScaledDot) };
//! assert_eq!(attention.forward(&x, &x, &x)?.shape(), [2, 10, 16]);
//! # Ok::<(), regard::Error>(())
//! ```

mod attention;
mod classifier;
mod convolution;
mod encoder;
mod graph;
mod image;
mod kernel_regression;
mod labeler;
mod layer;
mod length;
mod mechanism;
mod mode;
mod pooling;
mod recurrent;
mod reinforce;
mod seq2seq;
mod sequence;
mod transformer;

pub use attention::{Attended, Attention, Bias, Mask, OwnScore, Score, Segments};
pub use classifier::{Classified, ClassifierConfig, ClassifierPooling, SequenceClassifier};
pub use convolution::{Convolution, ConvolutionConfig};
pub use encoder::{Encoded, Encoder, EncoderConfig};
pub use graph::{
    Graph, GraphAttended, GraphAttention, GraphAttentionConfig, GraphAttentionNetwork, GraphLayer,
    GraphMean, GraphNetworkConfig, GraphVersion, segment_softmax,
};
pub use image::{
    ConvolutionalClassifier, ConvolutionalConfig, ImagePooling, VisionTransformer,
    VisionTransformerConfig,
};
pub use kernel_regression::{KernelRegression, KernelRegressionConfig, Regressed};
pub use labeler::{Labeled, LabelerConfig, SequenceLabeler};
pub use layer::{
    BlockConfig, DecoderBlock, DecoderCache, Embedding, EncoderBlock, FeedForward, KeyValueCache,
    LayerNorm, Linear, MultiHeadAttention, MultiHeadConfig, Nonlinearity, Position, WindowedConfig,
    WindowedSelfAttention, alibi_slopes, rotate, sinusoids,
};
pub use mechanism::{
    BilinearScale, Keys, LearnedQueries, Mechanism, MechanismConfig, ScoreConfig, Weighting,
};
pub use mode::Mode;
pub use pooling::{Gate, Pooled, Pooling, PoolingConfig};
pub use recurrent::{Recurrent, RecurrentConfig, RecurrentOutput, RecurrentState, Unit};
pub use regard_kernels::{Activation, Dropout, Edges, Normalizer, Real, Window};
pub use regard_tensor::*;
pub use reinforce::{Reinforce, ReinforceConfig, entropy};
pub use seq2seq::{
    ContextConfig, DecoderConfig, Hypothesis, SearchConfig, Sentences, Seq2Seq, Seq2SeqConfig,
    Taught, Tied,
};
pub use sequence::{CharactersConfig, InputConfig, Sequences};
pub use transformer::{
    Decoded, TransformerCache, TransformerConfig, TransformerDecoder, TransformerEncoder,
};

/// The README's snippet, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! From vectors to vectors that know their neighbors: what every task stands on.

mod config;

pub use config::EncoderConfig;

use crate::attention::{Site, intervention};
use crate::{
    Convolution, FullyConnected, Mask, Mode, Need, Recurrent, RecurrentState, SelfAttention,
    SelfAttentionConfig, TransformerEncoder, Weighting, length,
};
use regard_tensor::{Parameters, Result, Tensor, ensure};

/// An encoder of any kind: vectors `[B, N, D]` and lengths give vectors `[B, N, width]` that know
/// their neighbors, and one vector `[B, width]` for each sequence.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{Cell, Encoder, EncoderConfig, RecurrentConfig};
/// let gru = RecurrentConfig { both_directions: true, ..RecurrentConfig::new(Cell::Gru, 16) };
/// let encoder = Encoder::new(&Parameters::new(DType::F32, 1), &EncoderConfig::Recurrent(gru), 8)?;
/// let x = Random::new(1).normal(&[2, 7, 8], 0.0, 1.0, DType::F32)?;
/// let encoded = encoder.encode(&x, Some(&[7, 3]), Mode::Infer, Need::OUTPUT)?;
/// assert_eq!(encoded.out.shape(), [2, 7, 32]);
/// assert_eq!(encoded.summary.shape(), [2, 32]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Encoder {
    kind: Kind,
    input: usize,
    width: usize,
}

#[derive(Clone, Debug)]
enum Kind {
    None,
    Recurrent(Recurrent),
    Convolution(Convolution),
    FullyConnected(FullyConnected),
    SelfAttention(SelfAttention),
    Transformer(TransformerEncoder),
}

/// What an [`Encoder`] gives.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{Encoder, EncoderConfig};
/// let encoder = Encoder::new(&Parameters::new(DType::F32, 1), &EncoderConfig::None, 1)?;
/// let x = Tensor::from_vec(vec![1f32, 3.0, 9.0], &[1, 3, 1])?;
/// let encoded = encoder.encode(&x, Some(&[2]), Mode::Infer, Need::OUTPUT)?;
/// assert_eq!(encoded.out.to_vec::<f32>()?, [1.0, 3.0, 0.0]);
/// assert_eq!(encoded.summary.to_vec::<f32>()?, [2.0]);
/// assert!(encoded.state.is_none() && encoded.weights.is_empty());
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Encoded {
    /// `[B, N, width]`; 0 past a sequence's length.
    pub out: Tensor,
    /// `[B, width]`: a recurrent network's last state, of both directions side by side where there
    /// are two; the mean over the sequence for the other kinds.
    pub summary: Tensor,
    /// All last states of a recurrent network.
    pub state: Option<RecurrentState>,
    /// The weights `[B, H, N, N]` of a Transformer, block by block, or of self-attention, where they were
    /// asked for.
    pub weights: Vec<Tensor>,
}

impl Encoder {
    /// New, for vectors of width `input`; refuses what cannot be built, by name.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Cell, Encoder, EncoderConfig, RecurrentConfig};
    /// let none = EncoderConfig::Recurrent(RecurrentConfig { layers: 0, ..RecurrentConfig::new(Cell::Gru, 16) });
    /// let error = Encoder::new(&Parameters::new(DType::F32, 1), &none, 8).unwrap_err();
    /// assert_eq!(error.to_string(), "encoder: a recurrent network of 0 layers");
    /// ```
    pub fn new(parameters: &Parameters, config: &EncoderConfig, input: usize) -> Result<Self> {
        ensure!(input > 0, "an encoder of vectors of width 0");
        let kind = match config {
            EncoderConfig::None => Ok(Kind::None),
            EncoderConfig::Recurrent(c) => {
                Recurrent::new(parameters, c, input).map(Kind::Recurrent)
            }
            EncoderConfig::Cnn(c) => Convolution::new(parameters, c, input).map(Kind::Convolution),
            EncoderConfig::FullyConnected(c) => {
                FullyConnected::new(parameters, c, input).map(Kind::FullyConnected)
            }
            EncoderConfig::SelfAttention(c) => {
                self_attention(parameters, c, input).map(Kind::SelfAttention)
            }
            EncoderConfig::Transformer(c) => {
                TransformerEncoder::new(parameters, c, input).map(Kind::Transformer)
            }
        };
        let kind = kind.map_err(|error| error.within("encoder"))?;
        let width = match &kind {
            Kind::None => input,
            Kind::Recurrent(network) => network.config().width(),
            Kind::Convolution(network) => network.config().width,
            Kind::FullyConnected(network) => network.config().width,
            Kind::SelfAttention(network) => {
                network.config().heads.saturating_mul(network.config().value_width)
            }
            Kind::Transformer(network) => network.config().width,
        };
        Ok(Self { kind, input, width })
    }

    /// Width of what it gives.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Cell, Encoder, EncoderConfig, RecurrentConfig};
    /// let both = RecurrentConfig { both_directions: true, ..RecurrentConfig::new(Cell::Gru, 16) };
    /// let encoder = Encoder::new(&Parameters::new(DType::F32, 1), &EncoderConfig::Recurrent(RecurrentConfig { cell: Cell::Lstm, ..both }), 8)?;
    /// assert_eq!(encoder.width(), 32);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn width(&self) -> usize {
        self.width
    }

    /// Vectors `[B, N, input]`, of these lengths (all of them N where none are given), give
    /// `[B, N, width]`. A padded batch gives the same numbers as each sequence alone.
    /// Refuses an input of another width or type, and lengths that are not one for each sequence or beyond N.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Cell, Encoder, EncoderConfig, RecurrentConfig};
    /// let gru = EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 16));
    /// let encoder = Encoder::new(&Parameters::new(DType::F64, 1), &gru, 8)?;
    /// let x = Random::new(1).normal(&[1, 7, 8], 0.0, 1.0, DType::F64)?;
    /// let padded = encoder.forward(&x, Some(&[3]), Mode::Infer)?;
    /// let alone = encoder.forward(&x.narrow(1, 0, 3)?, None, Mode::Infer)?;
    /// assert!(padded.narrow(1, 0, 3)?.squared_error(&alone)?.item()? < 1e-20);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor, lengths: Option<&[usize]>, mode: Mode) -> Result<Tensor> {
        Ok(self.encode(x, lengths, mode, Need::OUTPUT)?.out)
    }

    /// As [`Encoder::forward`], with a summary of each sequence, a recurrent network's state, and a
    /// Transformer's weights where they are needed.
    /// Refuses an input of another width or type, and lengths that are not one for each sequence or beyond N.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Encoder, EncoderConfig};
    /// let config = EncoderConfig::Transformer(TransformerConfig::new(16, 4, 2));
    /// let encoder = Encoder::new(&Parameters::new(DType::F32, 1), &config, 8)?;
    /// let x = Tensor::zeros(&[2, 7, 8], DType::F32)?;
    /// let weights = encoder.encode(&x, None, Mode::Infer, Need::WEIGHTS)?.weights;
    /// assert_eq!((weights.len(), weights[1].shape()), (2, &[2, 4, 7, 7][..]));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn encode(
        &self,
        x: &Tensor,
        lengths: Option<&[usize]>,
        mode: Mode,
        need: Need,
    ) -> Result<Encoded> {
        self.encode_masked(x, lengths, &Mask::none(), mode, need)
    }

    /// As [`Encoder::encode`], where vectors see only what a mask allows beside the lengths.
    /// Refuses what [`Encoder::encode`] refuses, a mask of another shape, and a mask where nothing attends: in
    /// every encoder but self-attention and a Transformer.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Cell, Encoder, EncoderConfig, RecurrentConfig};
    /// let x = Tensor::zeros(&[1, 3, 8], DType::F32)?;
    /// let config = EncoderConfig::Transformer(TransformerConfig::new(16, 4, 1));
    /// let encoder = Encoder::new(&Parameters::new(DType::F32, 1), &config, 8)?;
    /// let weights = encoder.encode_masked(&x, None, &Mask::causal(), Mode::Infer, Need::WEIGHTS)?.weights;
    /// assert_eq!(weights[0].i((0, 0, 0))?.to_vec::<f32>()?, [1.0, 0.0, 0.0]);
    /// let gru = EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 16));
    /// let encoder = Encoder::new(&Parameters::new(DType::F32, 1), &gru, 8)?;
    /// let error = encoder.encode_masked(&x, None, &Mask::causal(), Mode::Infer, Need::OUTPUT).unwrap_err();
    /// assert_eq!(error.to_string(), "encoder: a recurrent network does not attend, so it takes no mask");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn encode_masked(
        &self,
        x: &Tensor,
        lengths: Option<&[usize]>,
        mask: &Mask,
        mode: Mode,
        need: Need,
    ) -> Result<Encoded> {
        if let (Some(kind), false) = (self.unmasked(), mask.allows_all()) {
            ensure!(false, "encoder: {kind} does not attend, so it takes no mask");
        }
        ensure!(
            x.rank() == 3 && x.shape()[2] == self.input,
            "encoder: vectors of shape {:?}; it wants [B, N, {}]",
            x.shape(),
            self.input
        );
        let (b, n) = (x.shape()[0], x.shape()[1]);
        length::check("encoder", lengths, b, n)?;
        let out = match &self.kind {
            Kind::None => {
                length::without_padding(x, length::keep(lengths, n, x.device())?.as_ref())?
            }
            Kind::Recurrent(network) => {
                let output = network.forward(x, lengths, None, mode)?;
                let state = output.state;
                let directions = network.config().directions();
                let summary = Tensor::cat(&state.h[state.h.len() - directions..], 1)?;
                let (out, state) = (output.out, Some(state));
                return Ok(Encoded { out, summary, state, weights: Vec::new() });
            }
            Kind::Convolution(network) => network.forward(x, lengths, mode)?,
            Kind::FullyConnected(network) => network.forward(x, lengths, mode)?,
            Kind::SelfAttention(network) => {
                let keep = length::keep(lengths, n, x.device())?;
                let x = length::without_padding(x, keep.as_ref())?;
                let padding = keep.as_ref().and(lengths).map_or_else(Mask::none, Mask::lengths);
                let mask = padding.and(mask)?;
                let attend = || network.attend(&x, &mask, mode, need);
                let attended = intervention::at(Site::Encoder, 0, 0, attend)?;
                let out = length::without_padding(&attended.out, keep.as_ref())?;
                let summary = length::mean(&out, lengths)?;
                let weights = attended.weights.into_iter().collect();
                return Ok(Encoded { out, summary, state: None, weights });
            }
            Kind::Transformer(network) => {
                return network.encode_masked(x, lengths, mask, mode, need);
            }
        };
        let summary = length::mean(&out, lengths)?;
        Ok(Encoded { out, summary, state: None, weights: Vec::new() })
    }

    /// What it is where it has no attention that a mask would change.
    fn unmasked(&self) -> Option<&'static str> {
        match &self.kind {
            Kind::None => Some("no encoder"),
            Kind::Recurrent(_) => Some("a recurrent network"),
            Kind::Convolution(_) => Some("a convolutional network"),
            Kind::FullyConnected(_) => Some("a fully connected network"),
            Kind::SelfAttention(_) | Kind::Transformer(_) => None,
        }
    }
}

/// Self-attention over vectors of width `input`.
fn self_attention(
    parameters: &Parameters,
    config: &SelfAttentionConfig,
    input: usize,
) -> Result<SelfAttention> {
    ensure!(
        config.weighting != Weighting::Sample,
        "sampling within an encoder, which gives no log-probability to learn it from; \
         straight-through and gumbel-hard choose and need none"
    );
    SelfAttention::new(parameters, &SelfAttentionConfig { width: input, ..config.clone() })
}

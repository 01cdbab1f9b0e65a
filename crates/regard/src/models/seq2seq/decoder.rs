//! Any decoder behind one entrance: over known tokens, and one token at a time.

use super::convolutional::{self, ConvolutionalDecoder, LayerSources, Windows};
use super::recurrent::{self, PreparedSource, RecurrentDecoder};
use super::{ContextConfig, Copies, DecoderConfig, Seq2SeqConfig};
use crate::attention::{Site, intervention};
use crate::{Encoded, Mask, Mode, Need, RecurrentState, TransformerCache, TransformerDecoder};
use regard_tensor::{Parameters, Result, Tensor};

#[derive(Clone, Debug)]
pub(super) enum Decoder {
    Recurrent(RecurrentDecoder),
    Convolutional(ConvolutionalDecoder),
    Transformer { decoder: TransformerDecoder, fixed: bool },
}

/// Where decoding one token at a time stands.
#[derive(Clone, Debug)]
pub(super) struct Decoding {
    kind: Kind,
    /// How many tokens were written.
    place: usize,
    /// The source of each row.
    pub(super) sources: Vec<usize>,
    /// The words of the sources, for a model that copies.
    pub(super) copies: Option<Copies>,
}

#[derive(Clone, Debug)]
enum Kind {
    Recurrent { source: Box<PreparedSource>, state: RecurrentState },
    Convolutional { sources: Box<LayerSources>, windows: Windows },
    Transformer { cache: TransformerCache, lengths: Option<Vec<usize>> },
}

/// What a decoder gives for some tokens.
pub(super) struct Written {
    /// What the output is made of, `[B, T, width]`.
    pub(super) hidden: Tensor,
    /// Layer by layer `[B, H, T, N]`; none where the context is fixed.
    pub(super) weights: Vec<Tensor>,
    /// `[B, T]`
    pub(super) log_prob: Option<Tensor>,
}

impl Decoder {
    /// New, for encoder outputs of width `context`.
    pub(super) fn new(
        parameters: &Parameters,
        config: &Seq2SeqConfig,
        context: usize,
    ) -> Result<Self> {
        match &config.decoder {
            DecoderConfig::Recurrent(cell) => {
                RecurrentDecoder::new(parameters, config, cell, context).map(Self::Recurrent)
            }
            DecoderConfig::Cnn(c) => {
                ConvolutionalDecoder::new(parameters, config, c, context).map(Self::Convolutional)
            }
            DecoderConfig::Transformer(c) => {
                let mechanism = match &config.context {
                    ContextConfig::Attention(mechanism) => Some(mechanism),
                    _ => None,
                };
                let embedding = config.embedding;
                let decoder =
                    TransformerDecoder::new(parameters, c, mechanism, embedding, context)?;
                let fixed =
                    matches!(config.context, ContextConfig::Fixed | ContextConfig::Pooled { .. });
                Ok(Self::Transformer { decoder, fixed })
            }
        }
    }

    /// Width of what the output is made of.
    pub(super) fn width(&self, embedding: usize) -> usize {
        match self {
            Self::Recurrent(_) => embedding,
            Self::Convolutional(decoder) => decoder.width(),
            Self::Transformer { decoder, .. } => decoder.config().width,
        }
    }

    /// Whether it looks at the source anew for every token.
    pub(super) fn attends(&self) -> bool {
        match self {
            Self::Recurrent(decoder) => decoder.attends(),
            Self::Convolutional(decoder) => decoder.attends(),
            Self::Transformer { fixed, .. } => !fixed,
        }
    }

    /// Over known tokens: their vectors `[B, T, E]`.
    pub(super) fn forward(
        &self,
        y: &Tensor,
        encoded: &Encoded,
        lengths: &[usize],
        mode: Mode,
        need: Need,
    ) -> Result<Written> {
        let need = Need { weights: need.weights && self.attends(), ..need };
        match self {
            Self::Recurrent(decoder) => {
                let (source, state) = decoder.start(encoded, lengths)?;
                let forward = || decoder.forward(y, &source, &state, mode, need);
                Ok(intervention::at(Site::Cross, 0, 0, forward)?.into())
            }
            Self::Convolutional(decoder) => {
                let (sources, windows) = decoder.start(encoded, lengths)?;
                let forward = || decoder.forward(y, &sources, &windows, mode, need);
                Ok(intervention::at(Site::Cross, 0, 0, forward)?.into())
            }
            Self::Transformer { decoder, fixed } => {
                let (memory, mask) = memory(encoded, lengths, *fixed)?;
                let decoded = decoder.decode(y, &memory, &mask, mode, need)?;
                Ok(Written {
                    hidden: decoded.out,
                    weights: decoded.weights,
                    log_prob: decoded.log_prob,
                })
            }
        }
    }

    /// The weights of known tokens over those before them `[B, H, T, T]`, layer by layer; none where
    /// it is no Transformer.
    pub(super) fn self_attention_weights(
        &self,
        y: &Tensor,
        encoded: &Encoded,
        lengths: &[usize],
    ) -> Result<Vec<Tensor>> {
        let Self::Transformer { decoder, fixed } = self else { return Ok(Vec::new()) };
        let (memory, mask) = memory(encoded, lengths, *fixed)?;
        decoder.self_attention_weights(y, &memory, &mask)
    }

    /// What decoding one token at a time starts with.
    pub(super) fn start(&self, encoded: &Encoded, lengths: &[usize]) -> Result<Decoding> {
        let kind = match self {
            Self::Recurrent(decoder) => {
                let (source, state) = decoder.start(encoded, lengths)?;
                Kind::Recurrent { source: Box::new(source), state }
            }
            Self::Convolutional(decoder) => {
                let (sources, windows) = decoder.start(encoded, lengths)?;
                Kind::Convolutional { sources: Box::new(sources), windows }
            }
            Self::Transformer { decoder, fixed } => {
                let (memory, mask) = memory(encoded, lengths, *fixed)?;
                Kind::Transformer { cache: decoder.start(&memory)?, lengths: mask.key_lengths }
            }
        };
        Ok(Decoding { kind, place: 0, sources: (0..lengths.len()).collect(), copies: None })
    }

    /// One token more: its vectors y `[B, E]`. A Transformer's steps give no gradient.
    pub(super) fn step(
        &self,
        y: &Tensor,
        decoding: &mut Decoding,
        mode: Mode,
        need: Need,
    ) -> Result<Written> {
        let need = Need { weights: need.weights && self.attends(), ..need };
        let y = y.unsqueeze(1)?;
        let place = decoding.place;
        decoding.place += 1;
        match (self, &mut decoding.kind) {
            (Self::Recurrent(decoder), Kind::Recurrent { source, state }) => {
                let step = || decoder.forward(&y, source, state, mode, need);
                let steps = intervention::at(Site::Cross, 0, place, step)?;
                *state = steps.state.clone();
                Ok(steps.into())
            }
            (Self::Convolutional(decoder), Kind::Convolutional { sources, windows }) => {
                let step = || decoder.forward(&y, sources, windows, mode, need);
                let steps = intervention::at(Site::Cross, 0, place, step)?;
                *windows = steps.windows.clone();
                Ok(steps.into())
            }
            (Self::Transformer { decoder, .. }, Kind::Transformer { cache, lengths }) => {
                let mask = Mask { key_lengths: lengths.clone(), ..Mask::none() };
                let decoded = decoder.extend(&y, cache, &mask, need)?;
                Ok(Written { hidden: decoded.out, weights: decoded.weights, log_prob: None })
            }
            _ => Err(crate::Error::new("this decoding is that of another decoder")),
        }
    }
}

impl From<recurrent::DecodedSteps> for Written {
    fn from(steps: recurrent::DecodedSteps) -> Self {
        let weights = steps.weights.into_iter().collect();
        Self { hidden: steps.hidden, weights, log_prob: steps.log_prob }
    }
}

impl From<convolutional::DecodedSteps> for Written {
    fn from(steps: convolutional::DecodedSteps) -> Self {
        Self { hidden: steps.hidden, weights: steps.weights, log_prob: steps.log_prob }
    }
}

impl Decoding {
    /// Keeps and repeats rows: what a beam does when its hypotheses change places. What is known
    /// of the source stays where rows keep their source.
    pub(super) fn reorder(&mut self, items: &[usize]) -> Result<()> {
        let sources: Vec<usize> = items.iter().map(|&at| self.sources[at]).collect();
        let same = sources == self.sources;
        match &mut self.kind {
            Kind::Recurrent { source, state } => {
                *state = state.reorder(items)?;
                if !same {
                    **source = source.reorder(items)?;
                }
            }
            Kind::Convolutional { sources, windows } => {
                *windows = windows.reorder(items)?;
                if !same {
                    **sources = sources.reorder(items)?;
                }
            }
            Kind::Transformer { cache, .. } if same => cache.reorder_own(items)?,
            Kind::Transformer { cache, lengths } => {
                cache.reorder(items)?;
                if let Some(lengths) = lengths {
                    *lengths = items.iter().map(|&at| lengths[at]).collect();
                }
            }
        }
        self.sources = sources;
        Ok(())
    }
}

/// What a Transformer attends to: all of the source, or its one vector.
fn memory(encoded: &Encoded, lengths: &[usize], fixed: bool) -> Result<(Tensor, Mask)> {
    if fixed {
        return Ok((encoded.summary.unsqueeze(1)?, Mask::none()));
    }
    Ok((encoded.out.clone(), Mask::lengths(lengths)))
}

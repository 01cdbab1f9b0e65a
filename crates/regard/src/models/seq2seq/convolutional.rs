//! The convolutional decoder: causal convolutions, and attention at each layer (Gehring and others
//! 2017).
//!
//! With y for the tokens' vectors and their places, x starting as y, and C (fixed) or attention for
//! the context, each layer is: h = f(conv(x)), which sees x and what stood before it;
//! c = attention by W_q h + y, or C; x ← (x + (h + W_c c) · √½) · √½.

use super::{ContextConfig, Seq2SeqConfig};
use crate::attention::intervention;
use crate::layers::PositionalEncoding;
use crate::{ConvolutionConfig, Encoded, Keys, Linear, Mask, Mechanism, Mode, Need};
use regard_tensor::{Init, Parameter, Parameters, Result, Tensor};

#[derive(Clone, Debug)]
pub(super) struct ConvolutionalDecoder {
    config: ConvolutionConfig,
    input: Linear,
    places: PositionalEncoding,
    layers: Vec<Layer>,
}

#[derive(Clone, Debug)]
struct Layer {
    /// `[width, width, kernel]`
    weight: Parameter,
    bias: Parameter,
    attention: Option<(Linear, Mechanism)>,
    context: Linear,
}

/// What the layers need of the source, made ready once.
#[derive(Clone, Debug)]
pub(super) struct LayerSources {
    layers: Vec<LayerSource>,
    mask: Mask,
}

#[derive(Clone, Debug)]
struct LayerSource {
    keys: Option<Keys>,
    /// W_c times the encoder's outputs `[B, N, width]`, or times the fixed vector `[B, 1, width]`.
    values: Tensor,
}

/// What is kept between steps: for each layer the inputs that the next convolution sees.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    /// `[B, kernel − 1, width]`
    layers: Vec<Tensor>,
    place: usize,
}

/// What some steps gave.
pub(super) struct DecodedSteps {
    /// What the output is made of, `[B, T, width]`.
    pub(super) hidden: Tensor,
    pub(super) windows: Windows,
    /// Layer by layer `[B, 1, T, N]`.
    pub(super) weights: Vec<Tensor>,
    /// `[B, T]`, of all layers together.
    pub(super) log_prob: Option<Tensor>,
}

impl ConvolutionalDecoder {
    pub(super) fn new(
        parameters: &Parameters,
        config: &Seq2SeqConfig,
        convolution: &ConvolutionConfig,
        context: usize,
    ) -> Result<Self> {
        convolution.check()?;
        let c = convolution;
        let mechanism = match &config.context {
            ContextConfig::Fixed | ContextConfig::Pooled { .. } => None,
            ContextConfig::Attention(mechanism) => Some(mechanism),
            ContextConfig::MultiHead => {
                return Err(crate::Error::new(
                    "a convolutional decoder attends by one mechanism at each layer; heads are a \
                     Transformer's",
                ));
            }
        };
        let layer = |layer: usize| -> Result<Layer> {
            let at = parameters.at("layers").at(layer);
            let attention = mechanism.map(|mechanism| -> Result<_> {
                Ok((
                    Linear::new(&at.at("query"), c.width, c.width, true)?,
                    Mechanism::new(&at.at("attention"), mechanism, c.width, context)?,
                ))
            });
            Ok(Layer {
                weight: at.parameter("weight", &[c.width, c.width, c.kernel], Init::Glorot)?,
                bias: at.parameter("bias", &[c.width], Init::Zeros)?,
                attention: attention.transpose()?,
                context: Linear::new(&at.at("context"), context, c.width, false)?,
            })
        };
        Ok(Self {
            config: *c,
            input: Linear::new(&parameters.at("input"), config.embedding, c.width, true)?,
            places: PositionalEncoding::new(parameters, c.position, c.longest, c.width)?,
            layers: (0..c.layers).map(layer).collect::<Result<_>>()?,
        })
    }

    pub(super) fn attends(&self) -> bool {
        self.layers.iter().any(|layer| layer.attention.is_some())
    }

    pub(super) fn width(&self) -> usize {
        self.config.width
    }

    /// The source made ready, and the zeros that stand before the first token.
    pub(super) fn start(
        &self,
        encoded: &Encoded,
        lengths: &[usize],
    ) -> Result<(LayerSources, Windows)> {
        let one = |layer: &Layer| -> Result<LayerSource> {
            let (keys, context) = match &layer.attention {
                Some((_, mechanism)) => (Some(mechanism.keys(&encoded.out)?), encoded.out.clone()),
                None => (None, encoded.summary.unsqueeze(1)?),
            };
            Ok(LayerSource { keys, values: layer.context.forward(&context)? })
        };
        let layers = self.layers.iter().map(one).collect::<Result<Vec<_>>>()?;
        let before = [lengths.len(), self.config.kernel - 1, self.config.width];
        let before = Tensor::zeros(&before, encoded.out.dtype())?;
        let windows = vec![before.to_device(encoded.out.device())?; self.layers.len()];
        let sources = LayerSources { layers, mask: Mask::lengths(lengths) };
        Ok((sources, Windows { layers: windows, place: 0 }))
    }

    /// Steps over known tokens y `[B, T, E]`, which stand behind those of the windows.
    pub(super) fn forward(
        &self,
        y: &Tensor,
        sources: &LayerSources,
        windows: &Windows,
        mode: Mode,
        need: Need,
    ) -> Result<DecodedSteps> {
        let y = self.places.add(&self.input.forward(y)?, windows.place)?;
        let mut x = y.clone();
        let mut after = Windows { layers: Vec::new(), place: windows.place + y.shape()[1] };
        let (mut weights, mut log_prob) = (Vec::new(), None::<Tensor>);
        let half = 0.5f64.sqrt();
        let layers = self.layers.iter().zip(&sources.layers).zip(&windows.layers);
        for (at, ((layer, source), window)) in layers.enumerate() {
            let seen = mode.dropout(&x, self.config.dropout)?;
            let seen = match self.config.kernel {
                1 => seen,
                _ => Tensor::cat(&[window.clone(), seen], 1)?,
            };
            let kept = window.shape()[1];
            after.layers.push(seen.narrow(1, seen.shape()[1] - kept, kept)?);
            let h = seen.transpose(1, 2)?.conv1d(&layer.weight.tensor(), None, 1, 0, 1)?;
            let h = h.transpose(1, 2)?;
            let h = h.activate_with(&layer.bias.tensor(), self.config.activation)?;
            let context = match (&layer.attention, &source.keys) {
                (Some((query, mechanism)), Some(keys)) => {
                    let q = query.forward(&h)?.add(&y)?;
                    let (values, mask) = (&source.values, &sources.mask);
                    let attend = || mechanism.attend_keys(&q, keys, values, mask, mode, need);
                    let attended = intervention::moved(|here| here.layer = at, attend)?;
                    weights.extend(attended.weights.map(|w| w.unsqueeze(1)).transpose()?);
                    log_prob = match (log_prob, attended.log_prob) {
                        (Some(sum), Some(more)) => Some(sum.add(&more)?),
                        (sum, more) => sum.or(more),
                    };
                    attended.out
                }
                _ => source.values.clone(),
            };
            x = x.add(&h.add(&context)?.scale(half)?)?.scale(half)?;
        }
        let hidden = mode.dropout(&x, self.config.dropout)?;
        Ok(DecodedSteps { hidden, windows: after, weights, log_prob })
    }
}

impl LayerSources {
    /// Keeps and repeats batch items.
    pub(super) fn reorder(&self, items: &[usize]) -> Result<Self> {
        let one = |layer: &LayerSource| -> Result<LayerSource> {
            let keys = layer.keys.as_ref().map(|keys| keys.reorder(items)).transpose()?;
            Ok(LayerSource { keys, values: layer.values.pick(items)? })
        };
        let mut mask = self.mask.clone();
        mask.key_lengths = mask.key_lengths.map(|all| items.iter().map(|&at| all[at]).collect());
        Ok(Self { layers: self.layers.iter().map(one).collect::<Result<_>>()?, mask })
    }
}

impl Windows {
    /// Keeps and repeats batch items.
    pub(super) fn reorder(&self, items: &[usize]) -> Result<Self> {
        let layers = self.layers.iter().map(|window| window.pick(items));
        Ok(Self { layers: layers.collect::<Result<_>>()?, place: self.place })
    }
}

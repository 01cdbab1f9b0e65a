//! The recurrent decoder.
//!
//! With C (fixed) or c_i (attention, by the state before the step) for the context:
//! s_i = f(s_{i−1}, y_{i−1}, c_i), and the output is made of tanh(W_s s_i + W_y y_{i−1} + W_c c_i + b).
//!
//! Both uses of the context are products with it, and a product with a mean is the mean of the
//! products: the encoder's outputs are multiplied once, and attention adds up those products, so
//! that no step has a product with the context left to make. So is the product with y made for all
//! steps at once, where they are known.

use super::{ContextConfig, Seq2SeqConfig};
use crate::attention::intervention;
use crate::{
    Encoded, Keys, Linear, Mask, Mechanism, Mode, Need, Recurrent, RecurrentConfig, RecurrentState,
};
use regard_tensor::{Activation, Cell, Init, Parameter, Parameters, Result, Tensor, ensure};

#[derive(Clone, Debug)]
pub(super) struct RecurrentDecoder {
    cell: Recurrent,
    bridge: Linear,
    mechanism: Option<Mechanism>,
    /// What the state is multiplied by as a query, `[1]`.
    query_gain: Option<Parameter>,
    readout: Linear,
    embedding: usize,
    context: usize,
    dropout: f64,
}

/// What the steps need of the source, made ready once.
#[derive(Clone, Debug)]
pub(super) struct PreparedSource {
    keys: Option<Keys>,
    /// The products of the context: `[B, N, G·H + E]`, or `[B, 1, G·H + E]` where it is fixed.
    values: Tensor,
    mask: Mask,
}

/// What some steps gave.
pub(super) struct DecodedSteps {
    /// What the output is made of, `[B, T, E]`.
    pub(super) hidden: Tensor,
    pub(super) state: RecurrentState,
    /// `[B, 1, T, N]`
    pub(super) weights: Option<Tensor>,
    /// `[B, T]`
    pub(super) log_prob: Option<Tensor>,
}

impl RecurrentDecoder {
    pub(super) fn new(
        parameters: &Parameters,
        config: &Seq2SeqConfig,
        cell: &RecurrentConfig,
        context: usize,
    ) -> Result<Self> {
        ensure!(!cell.both_directions, "a decoder writes in one direction; both were asked for");
        let mechanism = match &config.context {
            ContextConfig::Fixed | ContextConfig::Pooled { .. } => None,
            ContextConfig::Attention(mechanism) => {
                let at = parameters.at("attention");
                Some(Mechanism::new(&at, mechanism, cell.hidden, context)?)
            }
            ContextConfig::MultiHead => {
                return Err(crate::Error::new(
                    "a recurrent decoder attends by one mechanism; heads are a Transformer's",
                ));
            }
        };
        let (embedding, hidden) = (config.embedding, cell.hidden);
        let states = cell.layers.saturating_mul(if cell.cell == Cell::Lstm { 2 } else { 1 });
        Ok(Self {
            cell: Recurrent::new(&parameters.at("cell"), cell, embedding + context)?,
            bridge: Linear::new(
                &parameters.at("bridge"),
                context,
                states.saturating_mul(hidden),
                true,
            )?,
            mechanism,
            query_gain: config
                .query_gain
                .then(|| {
                    let root = Init::Constant((hidden as f64).sqrt());
                    parameters.parameter("query_gain", &[1], root)
                })
                .transpose()?,
            readout: Linear::new(
                &parameters.at("readout"),
                hidden.saturating_add(embedding).saturating_add(context),
                embedding,
                true,
            )?,
            embedding,
            context,
            dropout: config.dropout,
        })
    }

    pub(super) fn attends(&self) -> bool {
        self.mechanism.is_some()
    }

    /// The source made ready, and the states that the decoder starts from: tanh of a product with
    /// the encoder's summary.
    pub(super) fn start(
        &self,
        encoded: &Encoded,
        lengths: &[usize],
    ) -> Result<(PreparedSource, RecurrentState)> {
        let hidden = self.cell.config().hidden;
        let readout = self.readout.weight.tensor();
        let of_context = readout.narrow(1, hidden + self.embedding, self.context)?;
        let weight = [self.cell.input_weight(self.embedding, self.context)?, of_context];
        let weight = Tensor::cat(&weight, 0)?;
        let (keys, context) = match &self.mechanism {
            Some(mechanism) => (Some(mechanism.keys(&encoded.out)?), encoded.out.clone()),
            None => (None, encoded.summary.unsqueeze(1)?),
        };
        let source = PreparedSource {
            keys,
            values: context.linear(&weight, None)?,
            mask: Mask::lengths(lengths),
        };
        let layers = self.cell.config().layers;
        let first = self.bridge.activated(&encoded.summary, Activation::Tanh)?;
        let mut h = first.split(1, &vec![hidden; first.shape()[1] / hidden])?;
        let c = h.split_off(layers);
        Ok((source, RecurrentState { h, c }))
    }

    /// Steps over known tokens y `[B, T, E]`.
    pub(super) fn forward(
        &self,
        y: &Tensor,
        source: &PreparedSource,
        start: &RecurrentState,
        mode: Mode,
        need: Need,
    ) -> Result<DecodedSteps> {
        let (steps, embedding) = (y.shape()[1], self.embedding);
        let hidden = self.cell.config().hidden;
        let gates =
            y.linear(&self.cell.input_weight(0, embedding)?, Some(&self.cell.input_bias()))?;
        let parts = [gates.shape()[2], embedding];
        let walked = match (&self.mechanism, &source.keys) {
            (Some(mechanism), Some(keys)) => {
                let asked = StepAttention { mechanism, keys, source, mode, need };
                self.attending(&asked, &gates.split(1, &vec![1; steps])?, start, &parts)?
            }
            _ => {
                let mut products = source.values.split(2, &parts)?;
                let after = self.cell.forward_gates(&gates.add(&products[0])?, start, mode)?;
                let (of_context, state) = (products.swap_remove(1), after.state);
                Walked { states: after.out, of_context, state, weights: None, log_prob: None }
            }
        };
        let weight = self.readout.weight.tensor();
        let bias = self.readout.bias.as_ref().map(|bias| bias.tensor());
        let sum = walked
            .states
            .linear(&weight.narrow(1, 0, hidden)?, bias.as_ref())?
            .add(&y.linear(&weight.narrow(1, hidden, embedding)?, None)?)?
            .add(&walked.of_context)?;
        let hidden = mode.dropout(&sum.activate(Activation::Tanh)?, self.dropout)?;
        let Walked { state, weights, log_prob, .. } = walked;
        Ok(DecodedSteps { hidden, state, weights, log_prob })
    }

    /// Step after step, each attending by the state before it; `gates` are those of the tokens.
    fn attending(
        &self,
        asked: &StepAttention,
        gates: &[Tensor],
        start: &RecurrentState,
        parts: &[usize],
    ) -> Result<Walked> {
        let StepAttention { mechanism, keys, source, mode, need } = *asked;
        let (values, mask) = (&source.values, &source.mask);
        let together = match gates.len() > 1 && need == Need::OUTPUT {
            true => mechanism.steps(keys, values, mask, mode)?,
            false => None,
        };
        let mut state = start.clone();
        let (mut states, mut of_context) = (Vec::new(), Vec::new());
        let (mut weights, mut log_prob) = (Vec::new(), Vec::new());
        for (step, gates) in gates.iter().enumerate() {
            let before = state.h[state.h.len() - 1].unsqueeze(1)?;
            let before = match &self.query_gain {
                Some(gain) => before.mul(&gain.tensor())?,
                None => before,
            };
            let products = match &together {
                Some(together) => {
                    intervention::moved(|here| here.row += step, || together.step(&before))?
                }
                None => {
                    let attend = || mechanism.attend_keys(&before, keys, values, mask, mode, need);
                    let seen = intervention::moved(|here| here.row += step, attend)?;
                    weights.extend(seen.weights);
                    log_prob.extend(seen.log_prob);
                    seen.out
                }
            };
            let mut products = products.split(2, parts)?;
            let after = self.cell.forward_gates(&gates.add(&products[0])?, &state, mode)?;
            state = after.state;
            states.push(after.out);
            of_context.push(products.swap_remove(1));
        }
        let joined = |all: Vec<Tensor>| match all.is_empty() {
            true => Ok(None),
            false => Tensor::cat(&all, 1).map(Some),
        };
        Ok(Walked {
            states: Tensor::cat(&states, 1)?,
            of_context: Tensor::cat(&of_context, 1)?,
            state,
            weights: joined(weights)?.map(|weights| weights.unsqueeze(1)).transpose()?,
            log_prob: joined(log_prob)?,
        })
    }
}

/// Who attends to what, at every step.
struct StepAttention<'a> {
    mechanism: &'a Mechanism,
    keys: &'a Keys,
    source: &'a PreparedSource,
    mode: Mode<'a>,
    need: Need,
}

/// What the steps left, before the output is made of it.
struct Walked {
    /// `[B, T, H]`
    states: Tensor,
    /// The readout's product with each step's context, `[B, T, E]`.
    of_context: Tensor,
    state: RecurrentState,
    /// `[B, 1, T, N]`
    weights: Option<Tensor>,
    /// `[B, T]`
    log_prob: Option<Tensor>,
}

impl PreparedSource {
    /// Keeps and repeats batch items.
    pub(super) fn reorder(&self, items: &[usize]) -> Result<Self> {
        let keys = self.keys.as_ref().map(|keys| keys.reorder(items)).transpose()?;
        let mut mask = self.mask.clone();
        mask.key_lengths = mask.key_lengths.map(|all| items.iter().map(|&at| all[at]).collect());
        Ok(Self { keys, values: self.values.pick(items)?, mask })
    }
}

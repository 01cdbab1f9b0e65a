//! What a mechanism is asked on the operator's axes, and its answer.

use super::{Keys, Mechanism, Weighting};
use crate::attention::axes::repeat_heads;
use crate::{Attended, Attention, Bias, Mask, Mode, Need};
use regard_kernels::Normalizer;
use regard_tensor::{Random, Result, Tensor};

/// What a mechanism is asked on the operator's axes.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    /// `[B, Hq, Nq, Dq]`
    pub(crate) q: &'a Tensor,
    pub(crate) keys: &'a Keys,
    /// `[B, Hk, Nk, Dv]`
    pub(crate) v: &'a Tensor,
    pub(crate) mask: &'a Mask,
    pub(crate) mode: Mode<'a>,
    pub(crate) need: Need,
    /// What positions add to the scores.
    pub(crate) bias: &'a Bias,
}

/// The operator for some keys, and the queries as it scores them.
pub(super) struct PreparedQueries {
    pub(super) attention: Attention,
    pub(super) q: Tensor,
}

impl Mechanism {
    /// Attention by the weighting of the configuration.
    pub(crate) fn answer(&self, request: &Request) -> Result<Attended> {
        use Weighting as W;
        let chosen = |normalizer| self.soft(&Request { mode: Mode::Infer, ..*request }, normalizer);
        match (self.config.weighting, request.mode) {
            (W::Softmax, _) | (W::Gumbel, Mode::Infer) => self.soft(request, Normalizer::Softmax),
            (W::Sparsemax, _) => self.soft(request, Normalizer::Sparsemax),
            (W::Entmax15, _) => self.soft(request, Normalizer::Entmax15),
            (W::Sigmoid, _) => self.soft(request, Normalizer::Sigmoid),
            (W::None, _) => self.soft(request, Normalizer::None),
            (W::Argmax, _) | (W::Sample | W::StraightThrough | W::GumbelHard, Mode::Infer) => {
                chosen(Normalizer::Argmax)
            }
            (W::Sample, Mode::Train(random)) => chosen(Normalizer::Sample { seed: random.key() }),
            (W::StraightThrough, Mode::Train(_)) => {
                let prepared = self.prepare(request, Normalizer::Softmax, 1.0)?;
                straight_through(&prepared, request)
            }
            (W::Gumbel, Mode::Train(random)) => {
                let PreparedQueries { attention, q } = self.noisy(request, random)?;
                attention.attend(&q, &request.keys.k, request.v, request.mask, request.need)
            }
            (W::GumbelHard, Mode::Train(random)) => {
                straight_through(&self.noisy(request, random)?, request)
            }
        }
    }

    /// Attention by a normalizer.
    pub(super) fn soft(&self, request: &Request, normalizer: Normalizer) -> Result<Attended> {
        let PreparedQueries { mut attention, q } = self.prepare(request, normalizer, 1.0)?;
        attention.dropout = request.mode.weights_dropout(self.config.dropout);
        attention.attend(&q, &request.keys.k, request.v, request.mask, request.need)
    }

    /// Softmax of the scores with Gumbel noise, all over the temperature.
    fn noisy(&self, request: &Request, random: &Random) -> Result<PreparedQueries> {
        let temperature = self.config.temperature;
        let mut prepared = self.prepare(request, Normalizer::Softmax, temperature)?;
        let (q, k) = (prepared.q.shape(), request.keys.k.shape());
        let shape = [q[0], q[1], q[2], k[2]];
        let u = random.uniform(&shape, 1e-9, 1.0 - 1e-9, prepared.q.dtype())?;
        let u = u.to_device(prepared.q.device())?;
        // −ln(−ln u), over the temperature, joins whatever bias there is.
        let noise = u.ln()?.scale(-1.0)?.ln()?.scale(-1.0 / temperature)?;
        let bias = &mut prepared.attention.bias.full;
        *bias = Some(match bias.take() {
            Some(bias) => bias.add(&noise)?,
            None => noise,
        });
        Ok(prepared)
    }

    /// The operator for a request, its scores divided by a temperature.
    pub(super) fn prepare(
        &self,
        request: &Request,
        normalizer: Normalizer,
        temperature: f64,
    ) -> Result<PreparedQueries> {
        let Request { q, keys, .. } = request;
        let heads = q.shape()[1];
        let prepared = self.scorer.queries(q, keys.center.as_ref())?;
        let by = |x: Tensor| if temperature == 1.0 { Ok(x) } else { x.scale(1.0 / temperature) };
        let Bias { full, alibi, relative, .. } = request.bias.clone();
        let key = keys.bias.as_ref().map(|bias| repeat_heads(bias, heads)).transpose()?;
        let mut bias = Bias {
            key: key.map(by).transpose()?,
            full: full.map(by).transpose()?,
            alibi: alibi.map(|all| all.iter().map(|slope| slope / temperature).collect()),
            relative: relative.map(by).transpose()?,
        };
        // A term of the query alone cancels where a shift of the scores changes nothing.
        let shifts_matter = matches!(normalizer, Normalizer::Sigmoid | Normalizer::None);
        if let (Some(own), true) = (prepared.own, shifts_matter) {
            let own = own.unsqueeze(3)?;
            bias.full = Some(match bias.full {
                Some(full) => full.add(&own)?,
                None => own,
            });
        }
        let attention =
            Attention { bias, normalizer, ..Attention::new(self.scorer.score(temperature)?) };
        Ok(PreparedQueries { attention, q: prepared.x })
    }
}

/// The best key forward, softmax backward: weights whose value is one choice and whose gradient is
/// that of the probabilities.
fn straight_through(prepared: &PreparedQueries, request: &Request) -> Result<Attended> {
    let PreparedQueries { attention, q } = prepared;
    let Request { keys, v, mask, need, .. } = request;
    let soft = attention.attend(q, &keys.k, v, mask, Need { weights: true, ..*need })?;
    let hard = Attention { normalizer: Normalizer::Argmax, ..attention.clone() };
    let chosen = hard.attend(&q.detach(), &keys.k.detach(), &v.detach(), mask, Need::WEIGHTS)?;
    let (Some(p), Some(choice)) = (soft.weights, chosen.weights) else {
        return Err(crate::Error::new("attention gave no weights"));
    };
    let weights = p.add(&choice.sub(&p.detach())?)?;
    Ok(Attended {
        out: weights.matmul(&repeat_heads(v, q.shape()[1])?)?,
        weights: Some(weights).filter(|_| need.weights),
        edge_weights: None,
        lse: soft.lse,
        index: chosen.index,
        log_prob: None,
    })
}

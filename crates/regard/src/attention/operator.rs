//! The fused operator on the tape.

use super::axes::{Axes, lift};
use super::call::{Arriving, Call, Results, Stored};
use super::inputs::{Inputs, Learned};
use super::{Attended, Bias, Mask, Need, Score, intervention};
use half::{bf16, f16};
use regard_kernels::{Dropout, Normalizer};
use regard_tensor::{DType, Error, Precision, Result, Tensor, ensure, is_recording, precision};

/// One attention mechanism: score, bias, normalizer and dropout.
///
/// ```
/// use regard::prelude::*;
/// let random = Random::new(1);
/// let x = random.normal(&[2, 4, 10, 16], 0.0, 1.0, DType::F32)?;
/// let attention = Attention::new(Score::ScaledDot);
/// let attended = attention.attend(&x, &x, &x, &Mask::causal(), Need::WEIGHTS)?;
/// assert_eq!(attended.out.shape(), [2, 4, 10, 16]);
/// assert_eq!(attended.weights.unwrap().shape(), [2, 4, 10, 10]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Attention {
    /// How a query and a key give a score.
    pub score: Score,
    /// What is added to the scores.
    pub bias: Bias,
    /// How scores become weights.
    pub normalizer: Normalizer,
    /// Dropout on the weights.
    pub dropout: Option<Dropout>,
    /// Query i stands at key position i + offset; Nk − Nq where none is given.
    pub offset: Option<isize>,
}

impl Attention {
    /// Softmax attention with a score and nothing else.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let x = Random::new(1).normal(&[5, 8], 0.0, 1.0, DType::F64)?;
    /// let attended = Attention::new(Score::ScaledDot).attend(&x, &x, &x, &Mask::none(), Need::WEIGHTS)?;
    /// let sums = attended.weights.unwrap().sum(1)?.to_vec::<f64>()?;
    /// assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-9));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(score: Score) -> Self {
        Self {
            score,
            bias: Bias::default(),
            normalizer: Normalizer::Softmax,
            dropout: None,
            offset: None,
        }
    }

    /// The output: q `[B, Hq, Nq, Dq]`, k `[B, Hk, Nk, Dk]`, v `[B, Hk, Nk, Dv]` give
    /// `[B, Hq, Nq, Dv]`. Without heads `[B, N, D]`, without a batch `[N, D]`, and a single query
    /// `[D]` over keys and values `[N, D]`, do as well.
    /// Refuses shapes that do not fit, two types, and a mask of another shape.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32);
    /// let (q, k, v) = (zeros(&[2, 5, 8])?, zeros(&[2, 7, 8])?, zeros(&[2, 7, 3])?);
    /// let attention = Attention::new(Score::ScaledDot);
    /// assert_eq!(attention.forward(&q, &k, &v, &Mask::none())?.shape(), [2, 5, 3]);
    /// let one = attention.forward(&zeros(&[8])?, &zeros(&[7, 8])?, &zeros(&[7, 3])?, &Mask::none())?;
    /// assert_eq!(one.shape(), [3]);
    /// let error = attention.forward(&q, &k, &zeros(&[7, 3])?, &Mask::none()).unwrap_err().to_string();
    /// assert!(error.starts_with("q, k and v have shapes [2, 5, 8], [2, 7, 8] and [7, 3]"));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, q: &Tensor, k: &Tensor, v: &Tensor, mask: &Mask) -> Result<Tensor> {
        Ok(self.attend(q, k, v, mask, Need::OUTPUT)?.out)
    }

    /// As [`Attention::forward`], with what is needed beside the output, and the choice of hard
    /// attention.
    /// Refuses shapes that do not fit, two types, and a mask of another shape.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let (q, k) = (Tensor::zeros(&[2, 5, 8], DType::F32)?, Tensor::zeros(&[2, 7, 8], DType::F32)?);
    /// let attention = Attention::new(Score::ScaledDot);
    /// let attended = attention.attend(&q, &k, &k, &Mask::lengths(&[7, 3]), Need::WEIGHTS)?;
    /// assert_eq!(attended.weights.unwrap().shape(), [2, 5, 7]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn attend(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        mask: &Mask,
        need: Need,
    ) -> Result<Attended> {
        let axes = Axes::of(q.shape(), k.shape(), v.shape())?;
        ensure!(
            q.dtype() == k.dtype() && k.dtype() == v.dtype(),
            "attention: q is {}, k {} and v {}; they want one type",
            q.dtype(),
            k.dtype(),
            v.dtype()
        );
        let (q, k, v) = (lift(q)?, lift(k)?, lift(v)?);
        let attended = match intervention::active() {
            Some(active) => active.attend(self, [&q, &k, &v], mask, need)?,
            None => self.attend_lifted([&q, &k, &v], mask, need)?,
        };
        axes.drop_from(attended)
    }

    /// On q, k and v `[B, H, N, D]`, as the fields say.
    pub(super) fn attend_lifted(
        &self,
        [q, k, v]: [&Tensor; 3],
        mask: &Mask,
        need: Need,
    ) -> Result<Attended> {
        match q.dtype() {
            DType::F32 if self.is_rounded() => {
                let [q, k, v] = [q, k, v].map(|x| x.to_dtype(DType::BF16));
                let attended = self.run::<bf16>(&q?, &k?, &v?, mask, need)?;
                Ok(Attended { out: attended.out.to_dtype(DType::F32)?, ..attended })
            }
            DType::F32 => self.run::<f32>(q, k, v, mask, need),
            DType::F64 => self.run::<f64>(q, k, v, mask, need),
            DType::BF16 => self.run::<bf16>(q, k, v, mask, need),
            DType::F16 => self.run::<f16>(q, k, v, mask, need),
            other => Err(Error::new(format!("attention: wants fractions, was given {other}"))),
        }
    }

    /// Whether its products are those that a precision rounds: of queries and keys, and of weights and values.
    fn is_rounded(&self) -> bool {
        precision() == Precision::Bf16 && matches!(self.score, Score::ScaledDot | Score::Dot { .. })
    }

    /// On q, k and v `[B, H, N, D]`.
    fn run<E: Stored>(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        mask: &Mask,
        need: Need,
    ) -> Result<Attended> {
        let inputs = Inputs { q: Some(q), k: Some(k), v: Some(v), learned: self.learned() };
        let call = Call::<E>::new(self, inputs, [q, k, v], mask)?;
        let nothing = Tensor::zeros(&[0], DType::F32)?;
        let inputs = inputs.into_array().map(|x| x.unwrap_or(&nothing));
        let backward = is_recording() && inputs.iter().any(|x| x.has_gradient());
        let results = call.forward(need, backward)?;
        let lse = results.lse.clone().filter(|_| need.lse);
        if !backward {
            let Results { out, weights, edge_weights, index, log_prob, .. } = results;
            return Ok(Attended { out, weights, edge_weights, lse, index, log_prob });
        }
        let index = results.index.clone();
        let learns = self.normalizer == Normalizer::Softmax || self.normalizer.is_hard();
        let (plain, lse) = if learns { (None, lse) } else { (lse, None) };
        let Differentiable { out, weights, edge_weights, lse, log_prob } =
            record(call, results, lse, &inputs)?;
        Ok(Attended { out, weights, edge_weights, lse: lse.or(plain), index, log_prob })
    }

    fn learned(&self) -> Learned<Option<&Tensor>> {
        let (w, own) = match &self.score {
            Score::Additive { w, .. } => (Some(w), None),
            Score::Own { parameters, .. } => (None, Some(parameters)),
            Score::Expression { parameters, .. } => {
                (None, Some(parameters).filter(|x| x.numel() > 0))
            }
            Score::ScaledDot | Score::Dot { .. } => (None, None),
        };
        let Bias { key, full, relative, .. } = &self.bias;
        let (key_bias, bias, relative) = (key.as_ref(), full.as_ref(), relative.as_ref());
        Learned { w, own, key_bias, bias, relative }
    }
}

/// What of the results carries a gradient.
#[derive(Clone, Copy)]
struct Differentiable<X> {
    out: X,
    weights: Option<X>,
    edge_weights: Option<X>,
    lse: Option<X>,
    log_prob: Option<X>,
}

impl<X> Differentiable<X> {
    fn into_vec(self) -> Vec<X> {
        let Self { out, weights, edge_weights, lse, log_prob } = self;
        [Some(out), weights, edge_weights, lse, log_prob].into_iter().flatten().collect()
    }

    /// The same parts, from a list in their order.
    fn of_same<Y>(&self, list: Vec<Y>) -> Result<Differentiable<Y>> {
        let mut list = list.into_iter();
        let out = list.next().ok_or_else(|| Error::new("attention gave nothing"))?;
        let mut next = |part: &Option<X>| part.as_ref().and_then(|_| list.next());
        Ok(Differentiable {
            out,
            weights: next(&self.weights),
            edge_weights: next(&self.edge_weights),
            lse: next(&self.lse),
            log_prob: next(&self.log_prob),
        })
    }

    /// Which parts there are.
    fn there(&self) -> Differentiable<()> {
        Differentiable {
            out: (),
            weights: self.weights.as_ref().map(|_| ()),
            edge_weights: self.edge_weights.as_ref().map(|_| ()),
            lse: self.lse.as_ref().map(|_| ()),
            log_prob: self.log_prob.as_ref().map(|_| ()),
        }
    }
}

/// Puts the results on the tape.
fn record<E: Stored>(
    call: Call<E>,
    results: Results,
    lse: Option<Tensor>,
    inputs: &[&Tensor],
) -> Result<Differentiable<Tensor>> {
    let parts = Differentiable {
        out: results.out.clone(),
        weights: results.weights.clone(),
        edge_weights: results.edge_weights.clone(),
        lse,
        log_prob: results.log_prob.clone(),
    };
    let there = parts.there();
    let saved = Results { weights: None, edge_weights: None, log_prob: None, ..results };
    let recorded = Tensor::record_all("attention", parts.into_vec(), inputs, move |grads, to| {
        let grads = there.of_same(grads)?;
        let arriving = Arriving {
            out: grads.out,
            weights: grads.weights.flatten(),
            edge_weights: grads.edge_weights.flatten(),
            lse: grads.lse.flatten(),
            log_prob: grads.log_prob.flatten(),
        };
        let want = Inputs::from_array(std::array::from_fn(|input| to.want(input)));
        to.add_all(call.backward(&saved, arriving, want)?.into_array())
    });
    there.of_same(recorded)
}

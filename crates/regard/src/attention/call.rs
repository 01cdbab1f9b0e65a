//! One call of the kernels, forward and backward.

use super::inputs::{Inputs, Learned};
use super::mask::{Dense, four};
use super::own::Precision;
use super::strided_output::{StridedOutput, slice_mut};
use super::{Attention, Mask, Need, Score};
use regard_kernels as kernels;
use regard_kernels::{Broadcast, Cpu, Element, Normalizer, View};
use regard_tensor::{DType, Error, Result, Scalar, Tensor, ensure};

const OP: &str = "attention";

/// A type that q, k and v are stored in.
pub(super) trait Stored: Element<Compute: Precision> + Scalar {}
impl<E: Element<Compute: Precision> + Scalar> Stored for E {}

/// One call's inputs, off the tape and in the form the kernels read.
pub(super) struct Call<E: Stored> {
    q: Tensor,
    k: Tensor,
    v: Tensor,
    learned: Learned<Option<Tensor>>,
    alibi: Option<Vec<E::Compute>>,
    dense: Option<Dense>,
    mask: Mask,
    attention: Attention,
}

/// What forward gives.
pub(super) struct Results {
    pub(super) out: Tensor,
    pub(super) weights: Option<Tensor>,
    /// `[B, Hq, E]`
    pub(super) edge_weights: Option<Tensor>,
    pub(super) lse: Option<Tensor>,
    /// Of sparsemax and entmax, for backward.
    pub(super) threshold: Option<Tensor>,
    pub(super) index: Option<Tensor>,
    pub(super) log_prob: Option<Tensor>,
}

/// The gradients that arrive at the results.
pub(super) struct Arriving {
    pub(super) out: Option<Tensor>,
    pub(super) weights: Option<Tensor>,
    pub(super) log_prob: Option<Tensor>,
    pub(super) edge_weights: Option<Tensor>,
    pub(super) lse: Option<Tensor>,
}

impl<E: Stored> Call<E> {
    /// Of q, k and v `[B, H, N, D]`.
    pub(super) fn new(
        attention: &Attention,
        inputs: Inputs<Option<&Tensor>>,
        [q, k, v]: [&Tensor; 3],
        mask: &Mask,
    ) -> Result<Self> {
        let learned = inputs.learned.try_map(|name, x| {
            let Some(x) = x else { return Ok(None) };
            ensure!(
                x.dtype() == <E::Compute as Scalar>::DTYPE,
                "attention: {name} is {}, q is {}; they want one type",
                x.dtype(),
                q.dtype()
            );
            x.detach().contiguous().map(Some)
        })?;
        if let Some(relative) = &learned.relative {
            ensure!(
                relative.rank() == 2 && relative.shape()[1] % 2 == 1,
                "relative bias of shape {:?}; it wants [1 or Hq, 2R + 1]",
                relative.shape()
            );
        }
        let slopes = attention.bias.alibi.as_ref();
        Ok(Self {
            q: rows(q)?,
            k: rows(k)?,
            v: rows(v)?,
            learned,
            alibi: slopes.map(|s| s.iter().map(|&s| Scalar::from_f64(s)).collect()),
            dense: mask.dense_truths()?,
            mask: mask.clone(),
            attention: attention.clone(),
        })
    }

    /// The output and what is needed beside it: by the caller, and for backward where there will
    /// be one.
    pub(super) fn forward(&self, need: Need, backward: bool) -> Result<Results> {
        let normalizer = self.attention.normalizer;
        let (b, hq, nq) = (self.q.shape()[0], self.q.shape()[1], self.q.shape()[2]);
        let (nk, dv) = (self.k.shape()[2], self.v.shape()[3]);
        let soft = normalizer == Normalizer::Softmax;
        let hard = normalizer.is_hard();
        let thresholded = matches!(normalizer, Normalizer::Sparsemax | Normalizer::Entmax15);
        let compute = <E::Compute as Scalar>::DTYPE;
        let rows =
            |wanted: bool, dtype| wanted.then(|| Tensor::uninit(&[b, hq, nq], dtype)).transpose();
        let mut out = StridedOutput::like(&self.q, [b, hq, nq, dv])?;
        let mut lse = rows(need.lse || backward && (soft || hard), compute)?;
        let mut threshold = rows(backward && thresholded, compute)?;
        let mut index = rows(hard, DType::I64)?;
        let mut log_prob = rows(hard, compute)?;
        let mut weights =
            need.weights.then(|| Tensor::uninit(&[b, hq, nq, nk], compute)).transpose()?;
        let edges = self.mask.edges.as_ref().filter(|_| need.edge_weights);
        ensure!(
            !need.edge_weights || edges.is_some(),
            "attention: the weights along edges were asked for, and the mask has no edges"
        );
        let mut edge_weights =
            edges.map(|edges| Tensor::uninit(&[b, hq, edges.len()], compute)).transpose()?;
        self.with(|spec, q, k, v| {
            let pass = kernels::Forward {
                out: out.view_mut::<E>()?,
                lse: lse.as_mut().map(slice_mut).transpose()?,
                threshold: threshold.as_mut().map(slice_mut).transpose()?,
                index: index.as_mut().map(slice_mut).transpose()?,
                log_prob: log_prob.as_mut().map(slice_mut).transpose()?,
                weights: weights.as_mut().map(slice_mut).transpose()?,
                edge_weights: edge_weights.as_mut().map(slice_mut).transpose()?,
            };
            Ok(Cpu::best().forward(spec, q, k, v, pass)?)
        })?;
        let out = out.tensor()?;
        Ok(Results { out, weights, edge_weights, lse, threshold, index, log_prob })
    }

    /// The gradients that are wanted.
    pub(super) fn backward(
        &self,
        saved: &Results,
        arriving: Arriving,
        want: Inputs<bool>,
    ) -> Result<Inputs<Option<Tensor>>> {
        let grad_out = match arriving.out {
            Some(grad) => rows(&grad)?,
            None => Tensor::zeros(saved.out.shape(), saved.out.dtype())?,
        };
        let plain = |x: Option<Tensor>| x.map(|x| x.contiguous()).transpose();
        let (grad_weights, grad_log_prob) = (plain(arriving.weights)?, plain(arriving.log_prob)?);
        let (grad_edges, grad_lse) = (plain(arriving.edge_weights)?, plain(arriving.lse)?);
        let like = |want: bool, x: &Tensor| {
            let s = x.shape();
            want.then(|| StridedOutput::like(x, [s[0], s[1], s[2], s[3]])).transpose()
        };
        let mut q_grad = like(want.q, &self.q)?;
        let mut k_grad = like(want.k, &self.k)?;
        let mut v_grad = like(want.v, &self.v)?;
        let mut learned = self.learned.as_ref().zip(want.learned).try_map(|_, (x, want)| {
            x.as_ref().filter(|_| want).map(|x| Tensor::uninit(x.shape(), x.dtype())).transpose()
        })?;
        self.with(|spec, q, k, v| {
            let to = learned.as_mut().try_map(|_, x| x.as_mut().map(slice_mut).transpose())?;
            let pass = kernels::Backward {
                grad_out: view(&grad_out)?,
                grad_weights: slice(&grad_weights)?,
                grad_edge_weights: slice(&grad_edges)?,
                grad_log_prob: slice(&grad_log_prob)?,
                grad_lse: slice(&grad_lse)?,
                saved: kernels::Saved {
                    out: Some(view(&saved.out)?),
                    lse: slice(&saved.lse)?,
                    threshold: slice(&saved.threshold)?,
                    index: slice(&saved.index)?,
                },
                gradients: kernels::Gradients {
                    q: q_grad.as_mut().map(StridedOutput::view_mut).transpose()?,
                    k: k_grad.as_mut().map(StridedOutput::view_mut).transpose()?,
                    v: v_grad.as_mut().map(StridedOutput::view_mut).transpose()?,
                    w: to.w,
                    own: to.own,
                    key_bias: to.key_bias,
                    bias: to.bias,
                    relative: to.relative,
                },
            };
            Ok(Cpu::best().backward(spec, q, k, v, pass)?)
        })?;
        let tensor = |x: Option<StridedOutput>| x.map(StridedOutput::tensor).transpose();
        Ok(Inputs { q: tensor(q_grad)?, k: tensor(k_grad)?, v: tensor(v_grad)?, learned })
    }

    /// Calls `f` with the spec and the views of q, k and v; the kernels check them.
    fn with<R>(
        &self,
        f: impl FnOnce(&kernels::Spec<E::Compute>, View<E>, View<E>, View<E>) -> Result<R>,
    ) -> Result<R> {
        let learned = self.learned.as_ref().try_map(|_, x| slice::<E::Compute>(x))?;
        let parameters = self.parameters(learned.own.unwrap_or_default());
        let score = match &self.attention.score {
            Score::ScaledDot => kernels::Score::scaled_dot(self.q.shape()[3]),
            Score::Dot { scale } => kernels::Score::Dot { scale: Scalar::from_f64(*scale) },
            Score::Additive { activation, .. } => kernels::Score::Additive {
                activation: *activation,
                w: learned.w.unwrap_or_default(),
            },
            Score::Own { score, .. } => kernels::Score::Own {
                score: E::Compute::own(&**score),
                parameters: learned.own.unwrap_or_default(),
            },
            Score::Expression { expression, .. } => {
                kernels::Score::Expression { expression, parameters: &parameters }
            }
        };
        let Attention { normalizer, dropout, offset, .. } = self.attention;
        let (mask, bias) = (self.mask(), self.bias(&learned)?);
        let spec = kernels::Spec { score, mask, bias, normalizer, dropout, offset };
        f(&spec, view(&self.q)?, view(&self.k)?, view(&self.v)?)
    }

    /// The parameters of an expression, each from its place among all their numbers.
    fn parameters<'a>(
        &self,
        mut numbers: &'a [E::Compute],
    ) -> Vec<kernels::Parameter<'a, E::Compute>> {
        let Score::Expression { shapes, .. } = &self.attention.score else { return Vec::new() };
        let each = shapes.iter().map(|&shape| {
            let (data, rest) = numbers.split_at(shape[0] * shape[1]);
            numbers = rest;
            kernels::Parameter { data, shape }
        });
        each.collect()
    }

    fn mask(&self) -> kernels::Mask<'_> {
        let Mask { causal, window, key_lengths, segments, edges, .. } = &self.mask;
        kernels::Mask {
            causal: *causal,
            window: *window,
            key_lengths: key_lengths.as_deref(),
            segments: segments.as_ref().map(|s| kernels::Segments { q: &s.q, k: &s.k }),
            dense: self.dense.as_ref().map(|d| Broadcast { data: &d.truths, shape: d.shape }),
            edges: edges.as_deref(),
        }
    }

    fn bias<'a>(
        &'a self,
        numbers: &Learned<Option<&'a [E::Compute]>>,
    ) -> Result<kernels::Bias<'a, E::Compute>> {
        let Learned { key_bias, bias, relative, .. } = self.learned.as_ref();
        let broadcast = |numbers: Option<&'a [E::Compute]>, shape| {
            numbers.map(|data| Broadcast { data, shape })
        };
        let key_shape = key_bias.as_ref().map_or(Ok([1; 4]), key_bias_shape)?;
        let shape = bias.as_ref().map_or(Ok([1; 4]), |x| four("bias", x.shape()))?;
        let max_distance = relative.as_ref().map_or(0, |x| x.shape()[1] / 2);
        Ok(kernels::Bias {
            key: broadcast(numbers.key_bias, key_shape),
            full: broadcast(numbers.bias, shape),
            alibi: self.alibi.as_deref(),
            relative: numbers.relative.map(|table| kernels::Relative { table, max_distance }),
        })
    }
}

fn key_bias_shape(bias: &Tensor) -> Result<[usize; 4]> {
    match *bias.shape() {
        [n] => Ok([1, 1, 1, n]),
        [b, n] => Ok([b, 1, 1, n]),
        [b, h, 1, n] => Ok([b, h, 1, n]),
        _ => Err(Error::new(format!(
            "key bias of shape {:?}; [Nk], [B, Nk] and [B, Hq, 1, Nk] fit",
            bias.shape()
        ))),
    }
}

/// A tensor off the tape whose last axis is contiguous.
fn rows(x: &Tensor) -> Result<Tensor> {
    let x = x.detach();
    if x.strides()[3] == 1 || x.shape()[3] <= 1 { Ok(x) } else { x.contiguous() }
}

fn view<E: Stored>(x: &Tensor) -> Result<View<'_, E>> {
    let (numbers, strides) = x.strided::<E>()?;
    let s = x.shape();
    let strides = [strides[0], strides[1], strides[2]];
    Ok(View::strided(numbers, [s[0], s[1], s[2], s[3]], strides)?)
}

fn slice<T: Scalar>(x: &Option<Tensor>) -> Result<Option<&[T]>> {
    x.as_ref().map(|x| x.as_slice(OP)).transpose()
}

//! One call of the kernels, forward and backward.

use super::inputs::{Inputs, Learned};
use super::mask::{Dense, four};
use super::own::Precision;
use super::strided_output::{StridedOutput, slice_mut};
use super::{Attention, Mask, Need, Score};
use regard_kernels as kernels;
#[cfg(feature = "cuda")]
use regard_kernels::cuda::{BackwardAt, DeviceRows, ForwardAt, GradientsAt, OptionsAt};
use regard_kernels::{Broadcast, Cpu, Element, Normalizer, View};
use regard_tensor::{DType, Device, Error, Result, Scalar, Tensor, ensure};

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
        // Where one of them lies on a GPU, constants follow it there.
        let mut device = Device::Cpu;
        let mut look =
            |x: &Tensor| device = if device == Device::Cpu { x.device() } else { device };
        [q, k, v].into_iter().for_each(&mut look);
        inputs.learned.try_map(|_, x| {
            x.into_iter().for_each(&mut look);
            Ok::<(), Error>(())
        })?;
        let beside = |name: &str, x: &Tensor| {
            let x = x.constant_on(device)?;
            ensure!(
                x.device() == device,
                "attention: {name} lies on {}, another on {device}; move one with to_device",
                x.device(),
            );
            Ok(x)
        };
        let (q, k, v) = (&beside("q", q)?, &beside("k", k)?, &beside("v", v)?);
        let learned = inputs.learned.try_map(|name, x| {
            let Some(x) = x else { return Ok(None) };
            let x = beside(name, x)?;
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
        let room = |wanted: bool, shape: &[usize], dtype| {
            wanted.then(|| self.q.uninit_beside(shape, dtype)).transpose()
        };
        let rows = |wanted: bool, dtype| room(wanted, &[b, hq, nq], dtype);
        let mut out = StridedOutput::like(&self.q, [b, hq, nq, dv])?;
        let mut lse = rows(need.lse || backward && (soft || hard), compute)?;
        let mut threshold = rows(backward && thresholded, compute)?;
        let mut index = rows(hard, DType::I64)?;
        // The largest score is found without an exponential; how likely it is takes one for every key.
        let likely = need != Need::OUTPUT || backward || normalizer != Normalizer::Argmax;
        let mut log_prob = rows(hard && likely, compute)?;
        let mut weights = room(need.weights, &[b, hq, nq, nk], compute)?;
        let edges = self.mask.edges.as_ref().filter(|_| need.edge_weights);
        ensure!(
            !need.edge_weights || edges.is_some(),
            "attention: the weights along edges were asked for, and the mask has no edges"
        );
        let mut edge_weights =
            room(edges.is_some(), &[b, hq, edges.map_or(0, |edges| edges.len())], compute)?;
        #[cfg(feature = "cuda")]
        if let Some(cuda) = self.q.cuda() {
            let pass = ForwardAt {
                out: out.device_rows::<E>()?,
                lse: address(&lse)?,
                threshold: address(&threshold)?,
                index: address(&index)?,
                log_prob: address(&log_prob)?,
                weights: address(&weights)?,
                edge_weights: address(&edge_weights)?,
                options: self.options()?,
            };
            self.with_spec(|spec| {
                // SAFETY: every address is a tensor's on this GPU, whose stream frees it after this call's kernels;
                // the results were made for it.
                Ok(unsafe { cuda.forward_at(spec, self.device_rows()?, pass) }?)
            })?;
            let out = out.tensor()?;
            return Ok(Results { out, weights, edge_weights, lse, threshold, index, log_prob });
        }
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

    /// The gradients that are needed.
    pub(super) fn backward(
        &self,
        saved: &Results,
        arriving: Arriving,
        want: Inputs<bool>,
    ) -> Result<Inputs<Option<Tensor>>> {
        let grad_out = match arriving.out {
            Some(grad) => rows(&grad)?,
            None => saved.out.detach().zeros_like()?,
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
            let x = x.as_ref().filter(|_| want);
            x.map(|x| x.uninit_beside(x.shape(), x.dtype())).transpose()
        })?;
        #[cfg(feature = "cuda")]
        if let Some(cuda) = self.q.cuda() {
            let rows = |x: &Option<StridedOutput>| x.as_ref().map(|x| x.device_rows()).transpose();
            let to = learned.as_ref().try_map(|_, x| address(x))?;
            let pass = BackwardAt {
                grad_out: device_rows::<E>(&grad_out)?,
                grad_weights: address(&grad_weights)?,
                grad_edge_weights: address(&grad_edges)?,
                grad_log_prob: address(&grad_log_prob)?,
                grad_lse: address(&grad_lse)?,
                out: Some(device_rows(&saved.out)?),
                lse: address(&saved.lse)?,
                threshold: address(&saved.threshold)?,
                index: address(&saved.index)?,
                gradients: GradientsAt {
                    q: rows(&q_grad)?,
                    k: rows(&k_grad)?,
                    v: rows(&v_grad)?,
                    w: to.w,
                    own: to.own,
                    key_bias: to.key_bias,
                    bias: to.bias,
                    relative: to.relative,
                },
                options: self.options()?,
            };
            self.with_spec(|spec| {
                // SAFETY: as in the forward pass.
                Ok(unsafe { cuda.backward_at(spec, self.device_rows()?, pass) }?)
            })?;
            let tensor = |x: Option<StridedOutput>| x.map(StridedOutput::tensor).transpose();
            let (q, k, v) = (tensor(q_grad)?, tensor(k_grad)?, tensor(v_grad)?);
            return Ok(Inputs { q, k, v, learned });
        }
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
        self.with_spec(|spec| f(spec, view(&self.q)?, view(&self.k)?, view(&self.v)?))
    }

    /// Calls `f` with the spec. What was learned and lies on a GPU is there as so many zeros: its addresses are in
    /// [`Call::options`].
    fn with_spec<R>(&self, f: impl FnOnce(&kernels::Spec<E::Compute>) -> Result<R>) -> Result<R> {
        let on_gpu = self.q.device() != Device::Cpu;
        let numel = |x: &Option<Tensor>| x.as_ref().map_or(0, Tensor::numel);
        let mut most = 0;
        self.learned.as_ref().try_map(|_, x| {
            most = most.max(numel(x));
            Ok::<(), Error>(())
        })?;
        let stand_in = vec![E::Compute::from_f64(0.0); if on_gpu { most } else { 0 }];
        let learned = self.learned.as_ref().try_map(|_, x| match on_gpu {
            true => Ok(x.as_ref().map(|x| &stand_in[..x.numel()])),
            false => slice::<E::Compute>(x),
        })?;
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
        f(&kernels::Spec { score, mask, bias, normalizer, dropout, offset })
    }

    /// Where q, k and v lie on a GPU.
    #[cfg(feature = "cuda")]
    fn device_rows(&self) -> Result<[DeviceRows<E>; 3]> {
        Ok([device_rows(&self.q)?, device_rows(&self.k)?, device_rows(&self.v)?])
    }

    /// Where what the spec names lies on a GPU.
    #[cfg(feature = "cuda")]
    fn options(&self) -> Result<OptionsAt> {
        let at = self.learned.as_ref().try_map(|_, x| address(x))?;
        let mut options = OptionsAt {
            key_bias: at.key_bias,
            bias: at.bias,
            relative: at.relative,
            w: at.w,
            ..OptionsAt::default()
        };
        if let (Score::Expression { shapes, .. }, Some(mut own)) = (&self.attention.score, at.own) {
            ensure!(
                shapes.len() <= options.parameters.len(),
                "attention: an expression with {} parameters; on a GPU it has {} at most",
                shapes.len(),
                options.parameters.len()
            );
            for (to, shape) in options.parameters.iter_mut().zip(shapes) {
                *to = Some(own);
                own += (shape[0] * shape[1] * size_of::<E::Compute>()) as u64;
            }
        }
        Ok(options)
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

/// Where rows lie on a GPU.
#[cfg(feature = "cuda")]
fn device_rows<E>(x: &Tensor) -> Result<DeviceRows<E>> {
    let (s, strides) = (x.shape(), x.strides());
    let strides = [strides[0], strides[1], strides[2]];
    Ok(DeviceRows::new(x.device_address()?, [s[0], s[1], s[2], s[3]], strides)?)
}

/// Where a tensor lies on a GPU.
#[cfg(feature = "cuda")]
fn address(x: &Option<Tensor>) -> Result<Option<u64>> {
    x.as_ref().map(Tensor::device_address).transpose()
}

fn slice<T: Scalar>(x: &Option<Tensor>) -> Result<Option<&[T]>> {
    x.as_ref().map(|x| x.as_slice(OP)).transpose()
}

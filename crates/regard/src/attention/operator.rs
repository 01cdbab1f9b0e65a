//! The fused operator on the tape.

use super::mask::four;
use super::own::Erased;
use super::{Bias, Mask, Score};
use regard_kernels as kernels;
use regard_kernels::{Broadcast, Cpu, Dropout, Edges, Normalizer, View, ViewMut};
use regard_tensor::{DType, Error, Float, Result, Tensor, ensure};
use std::sync::Arc;

/// One attention mechanism: score, mask, bias, normalizer and dropout.
///
/// ```
/// use regard::prelude::*;
/// let random = Random::new(1);
/// let x = random.normal(&[2, 4, 10, 16], 0.0, 1.0, DType::F32)?;
/// let attention = Attention { mask: Mask::causal(), ..Attention::new(Score::ScaledDot) };
/// let attended = attention.attend(&x, &x, &x, true)?;
/// assert_eq!(attended.out.shape(), [2, 4, 10, 16]);
/// assert_eq!(attended.weights.unwrap().shape(), [2, 4, 10, 10]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Attention {
    /// How a query and a key give a score.
    pub score: Score,
    /// Which keys a query may attend to.
    pub mask: Mask,
    /// What is added to the scores.
    pub bias: Bias,
    /// How scores become weights.
    pub normalizer: Normalizer,
    /// Dropout on the weights.
    pub dropout: Option<Dropout>,
    /// Query i stands at key position i + offset; Nk − Nq where none is given.
    pub offset: Option<isize>,
}

/// What attention gives.
///
/// ```
/// use regard::prelude::*;
/// let x = Tensor::from_vec(vec![1f32, 0.0, 0.0, 1.0], &[2, 2])?;
/// let hard = Attention { normalizer: Normalizer::Argmax, ..Attention::new(Score::dot()) };
/// let attended = hard.attend(&x, &x, &x, false)?;
/// assert_eq!(attended.index.unwrap().to_vec::<i64>()?, [0, 1]);
/// assert_eq!(attended.out.to_vec::<f32>()?, x.to_vec::<f32>()?);
/// assert!(attended.weights.is_none());
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Attended {
    /// `[B, Hq, Nq, Dv]`
    pub out: Tensor,
    /// `[B, Hq, Nq, Nk]`, where they were asked for: what v was multiplied by, dropout included.
    /// Differentiable for the soft normalizers.
    pub weights: Option<Tensor>,
    /// `[B, Hq, Nq]`: the key that hard attention chose, −1 where there was none.
    pub index: Option<Tensor>,
    /// `[B, Hq, Nq]`: the log-probability of the chosen key; its gradient trains the scores.
    pub log_prob: Option<Tensor>,
}

impl Attention {
    /// Softmax attention with a score and nothing else.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let x = Random::new(1).normal(&[5, 8], 0.0, 1.0, DType::F64)?;
    /// let weights = Attention::new(Score::ScaledDot).attend(&x, &x, &x, true)?.weights.unwrap();
    /// assert!(weights.sum(1)?.to_vec::<f64>()?.iter().all(|sum| (sum - 1.0).abs() < 1e-9));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(score: Score) -> Self {
        Self {
            score,
            mask: Mask::default(),
            bias: Bias::default(),
            normalizer: Normalizer::Softmax,
            dropout: None,
            offset: None,
        }
    }

    /// The output: q `[B, Hq, Nq, Dq]`, k `[B, Hk, Nk, Dk]`, v `[B, Hk, Nk, Dv]` give
    /// `[B, Hq, Nq, Dv]`. Without heads `[B, N, D]`, and without a batch `[N, D]`, do as well.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32);
    /// let (q, k, v) = (zeros(&[2, 5, 8])?, zeros(&[2, 7, 8])?, zeros(&[2, 7, 3])?);
    /// let attention = Attention::new(Score::ScaledDot);
    /// assert_eq!(attention.forward(&q, &k, &v)?.shape(), [2, 5, 3]);
    /// let error = attention.forward(&q, &k, &zeros(&[7, 3])?).unwrap_err().to_string();
    /// assert!(error.starts_with("q, k and v have shapes [2, 5, 8], [2, 7, 8] and [7, 3]"));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
        Ok(self.attend(q, k, v, false)?.out)
    }

    /// As [`Attention::forward`], with the weights where they are asked for, and the choice of
    /// hard attention.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let (q, k) = (Tensor::zeros(&[2, 5, 8], DType::F32)?, Tensor::zeros(&[2, 7, 8], DType::F32)?);
    /// let attended = Attention::new(Score::ScaledDot).attend(&q, &k, &k, true)?;
    /// assert_eq!(attended.weights.unwrap().shape(), [2, 5, 7]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn attend(&self, q: &Tensor, k: &Tensor, v: &Tensor, weights: bool) -> Result<Attended> {
        let rank = q.rank();
        ensure!(
            (2..=4).contains(&rank) && k.rank() == rank && v.rank() == rank,
            "q, k and v have shapes {:?}, {:?} and {:?}; attention wants [B, H, N, D], [B, N, D] or [N, D]",
            q.shape(),
            k.shape(),
            v.shape()
        );
        ensure!(
            q.dtype() == k.dtype() && k.dtype() == v.dtype(),
            "q, k and v are {}, {} and {}; attention wants one type",
            q.dtype(),
            k.dtype(),
            v.dtype()
        );
        let lift = |x: &Tensor| match rank {
            4 => Ok(x.clone()),
            3 => x.unsqueeze(1),
            _ => x.unsqueeze(0)?.unsqueeze(0),
        };
        let (q, k, v) = (lift(q)?, lift(k)?, lift(v)?);
        let mut attended = match q.dtype() {
            DType::F32 => self.run::<f32>(&q, &k, &v, weights),
            DType::F64 => self.run::<f64>(&q, &k, &v, weights),
            other => {
                Err(Error::new(format!("attention: computes in f32 and f64, was given {other}")))
            }
        }?;
        let drop = |x: Tensor| match rank {
            4 => Ok(x),
            3 => x.squeeze(1),
            _ => x.squeeze(0)?.squeeze(0),
        };
        attended.out = drop(attended.out)?;
        for part in [&mut attended.weights, &mut attended.index, &mut attended.log_prob] {
            if let Some(x) = part.take() {
                *part = Some(drop(x)?);
            }
        }
        Ok(attended)
    }

    fn run<T: Own>(&self, q: &Tensor, k: &Tensor, v: &Tensor, weights: bool) -> Result<Attended> {
        let call = Call::<T>::new(self, q, k, v)?;
        let (shape, dtype) = (call.shape()?, q.dtype());
        let kernels::Shape { b, hq, nq, nk, dv, .. } = shape;
        let rows = [b, hq, nq];
        let hard = self.normalizer.is_hard();
        let mut out = Room::like(q, [b, hq, nq, dv])?;
        let mut lse = Tensor::uninit(&rows, dtype)?;
        let thresholded = matches!(self.normalizer, Normalizer::Sparsemax | Normalizer::Entmax15);
        let mut threshold = thresholded.then(|| Tensor::uninit(&rows, dtype)).transpose()?;
        let mut index = hard.then(|| Tensor::uninit(&rows, DType::I64)).transpose()?;
        let mut log_prob = hard.then(|| Tensor::uninit(&rows, dtype)).transpose()?;
        let mut all = weights.then(|| Tensor::uninit(&[b, hq, nq, nk], dtype)).transpose()?;
        call.with(|spec, q, k, v| {
            let mut pass = kernels::Forward::new(out.view_mut::<T>()?);
            pass.lse = Some(lse.as_mut_slice()?);
            pass.threshold = threshold.as_mut().map(Tensor::as_mut_slice).transpose()?;
            pass.index = index.as_mut().map(Tensor::as_mut_slice).transpose()?;
            pass.log_prob = log_prob.as_mut().map(Tensor::as_mut_slice).transpose()?;
            pass.weights = all.as_mut().map(Tensor::as_mut_slice).transpose()?;
            Ok(Cpu::best().forward(spec, q, k, v, pass)?)
        })?;
        let out = out.tensor()?;
        let nothing = Tensor::zeros(&[0], dtype)?;
        let learned: Vec<&Tensor> = self.learned().map(|x| x.unwrap_or(&nothing)).into();
        let inputs = [&[q, k, v], &learned[..]].concat();
        let mut results = vec![out.clone()];
        results.extend(all.clone());
        results.extend(log_prob.clone());
        let saved = Saved { out, lse, threshold, index: index.clone() };
        let has_weights = all.is_some();
        let mut results =
            Tensor::record_all("attention", results, &inputs, move |mut grads, to| {
                let log_prob = if hard { grads.pop().flatten() } else { None };
                let weights = if has_weights { grads.pop().flatten() } else { None };
                let out = grads.pop().flatten();
                let want: [bool; 8] = std::array::from_fn(|input| to.want(input));
                to.add_all(call.backward(&saved, out, weights, log_prob, want)?)
            })?
            .into_iter();
        let mut next = |present: bool| present.then(|| results.next()).flatten();
        let out = next(true).ok_or_else(|| Error::new("attention gave nothing"))?;
        let weights = next(has_weights);
        Ok(Attended { out, weights, index, log_prob: next(hard) })
    }

    /// What may be learned, beside q, k and v: the additive vector, the own score's numbers, the
    /// biases per key, full and relative.
    fn learned(&self) -> [Option<&Tensor>; 5] {
        let (w, own) = match &self.score {
            Score::Additive { w, .. } => (Some(w), None),
            Score::Own { parameters, .. } => (None, Some(parameters)),
            _ => (None, None),
        };
        [w, own, self.bias.key.as_ref(), self.bias.full.as_ref(), self.bias.relative.as_ref()]
    }
}

/// Binds an own score in a precision.
trait Own: Float {
    fn bind<'a>(
        score: &'a dyn Erased,
        parameters: &'a [Self],
    ) -> Box<dyn kernels::OwnScore<Self> + 'a>;
}
impl Own for f32 {
    fn bind<'a>(s: &'a dyn Erased, p: &'a [f32]) -> Box<dyn kernels::OwnScore<f32> + 'a> {
        s.f32(p)
    }
}
impl Own for f64 {
    fn bind<'a>(s: &'a dyn Erased, p: &'a [f64]) -> Box<dyn kernels::OwnScore<f64> + 'a> {
        s.f64(p)
    }
}

/// What forward leaves for backward.
struct Saved {
    out: Tensor,
    lse: Tensor,
    threshold: Option<Tensor>,
    index: Option<Tensor>,
}

/// One call's inputs, off the tape and in the form the kernels read.
struct Call<T> {
    q: Tensor,
    k: Tensor,
    v: Tensor,
    score: Score,
    learned: [Option<Tensor>; 5],
    alibi: Option<Vec<T>>,
    key_lengths: Option<Vec<usize>>,
    segments: Option<super::Segments>,
    dense: Option<(Vec<bool>, [usize; 4])>,
    edges: Option<Arc<Edges>>,
    causal: bool,
    window: Option<kernels::Window>,
    key_shape: [usize; 4],
    full_shape: [usize; 4],
    normalizer: Normalizer,
    dropout: Option<Dropout>,
    offset: Option<isize>,
}

impl<T: Own> Call<T> {
    fn new(a: &Attention, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Self> {
        let learned = a.learned().map(|x| x.map(|x| x.detach().contiguous()).transpose());
        let [w, own, key, full, relative] = learned;
        let learned = [w?, own?, key?, full?, relative?];
        for (name, x) in
            ["w", "own parameters", "key bias", "bias", "relative bias"].iter().zip(&learned)
        {
            if let Some(x) = x {
                ensure!(
                    x.dtype() == q.dtype(),
                    "attention: {name} is {}, q is {}",
                    x.dtype(),
                    q.dtype()
                );
            }
        }
        let key_shape = match learned[2].as_ref().map(Tensor::shape) {
            None => [1; 4],
            Some(&[n]) => [1, 1, 1, n],
            Some(&[b, n]) => [b, 1, 1, n],
            Some(&[b, h, 1, n]) => [b, h, 1, n],
            Some(other) => {
                return Err(Error::new(format!(
                    "key bias of shape {other:?}; [Nk], [B, Nk] and [B, Hq, 1, Nk] fit"
                )));
            }
        };
        let full_shape = learned[3].as_ref().map_or(Ok([1; 4]), |x| four("bias", x.shape()))?;
        if let Some(relative) = &learned[4] {
            ensure!(
                relative.rank() == 2 && relative.shape()[1] % 2 == 1,
                "relative bias of shape {:?}; it wants [1 or Hq, 2R + 1]",
                relative.shape()
            );
        }
        Ok(Self {
            q: rows(q)?,
            k: rows(k)?,
            v: rows(v)?,
            score: a.score.clone(),
            learned,
            alibi: a.bias.alibi.as_ref().map(|s| s.iter().map(|&s| T::from_f64(s)).collect()),
            key_lengths: a.mask.key_lengths.clone(),
            segments: a.mask.segments.clone(),
            dense: a.mask.dense_bools()?,
            edges: a.mask.edges.clone(),
            causal: a.mask.causal,
            window: a.mask.window,
            key_shape,
            full_shape,
            normalizer: a.normalizer,
            dropout: a.dropout,
            offset: a.offset,
        })
    }

    fn shape(&self) -> Result<kernels::Shape> {
        self.with(|spec, q, k, v| Ok(spec.check(&q, &k, &v)?))
    }

    /// Calls `f` with the spec and the views of q, k and v.
    fn with<R>(
        &self,
        f: impl FnOnce(&kernels::Spec<T>, View<T>, View<T>, View<T>) -> Result<R>,
    ) -> Result<R> {
        const OP: &str = "attention";
        let learned = self.learned.each_ref().map(|x| x.as_ref().map(|x| x.as_slice::<T>(OP)));
        let [w, own, key, full, relative] = learned;
        let (w, own, key) = (w.transpose()?, own.transpose()?, key.transpose()?);
        let (full, relative) = (full.transpose()?, relative.transpose()?);
        let bound = match &self.score {
            Score::Own { score, .. } => Some(T::bind(&**score, own.unwrap_or_default())),
            _ => None,
        };
        let width = self.q.shape()[3];
        let score = match (&self.score, &bound) {
            (Score::Own { .. }, Some(own)) => kernels::Score::Own(&**own),
            (Score::Dot { scale }, _) => kernels::Score::Dot { scale: T::from_f64(*scale) },
            (Score::Additive { activation, .. }, _) => {
                kernels::Score::Additive { activation: *activation, w: w.unwrap_or_default() }
            }
            _ => kernels::Score::scaled_dot(width),
        };
        let spec = kernels::Spec {
            score,
            mask: kernels::Mask {
                causal: self.causal,
                window: self.window,
                key_lengths: self.key_lengths.as_deref(),
                segments: self.segments.as_ref().map(|s| kernels::Segments { q: &s.q, k: &s.k }),
                dense: self.dense.as_ref().map(|(data, shape)| Broadcast { data, shape: *shape }),
                edges: self.edges.as_deref(),
            },
            bias: kernels::Bias {
                key: key.map(|data| Broadcast { data, shape: self.key_shape }),
                full: full.map(|data| Broadcast { data, shape: self.full_shape }),
                alibi: self.alibi.as_deref(),
                relative: relative.map(|table| kernels::Relative {
                    table,
                    max_distance: self.learned[4].as_ref().map_or(0, |x| x.shape()[1] / 2),
                }),
            },
            normalizer: self.normalizer,
            dropout: self.dropout,
            offset: self.offset,
        };
        f(&spec, view(&self.q)?, view(&self.k)?, view(&self.v)?)
    }

    /// The gradients of q, k, v and what is learned, where they are wanted.
    fn backward(
        &self,
        saved: &Saved,
        grad_out: Option<Tensor>,
        grad_weights: Option<Tensor>,
        grad_log_prob: Option<Tensor>,
        want: [bool; 8],
    ) -> Result<Vec<Option<Tensor>>> {
        const OP: &str = "attention";
        let grad_out = match grad_out {
            Some(grad) => rows(&grad)?,
            None => Tensor::zeros(saved.out.shape(), saved.out.dtype())?,
        };
        let plain = |x: Option<Tensor>| x.map(|x| x.contiguous()).transpose();
        let (grad_weights, grad_log_prob) = (plain(grad_weights)?, plain(grad_log_prob)?);
        let mut views = [None, None, None];
        for (at, x) in [&self.q, &self.k, &self.v].into_iter().enumerate() {
            if want[at] {
                let s = x.shape();
                views[at] = Some(Room::like(x, [s[0], s[1], s[2], s[3]])?);
            }
        }
        let mut learned: [Option<Tensor>; 5] = [const { None }; 5];
        for (at, x) in self.learned.iter().enumerate() {
            if let (Some(x), true) = (x, want[3 + at]) {
                learned[at] = Some(Tensor::uninit(x.shape(), x.dtype())?);
            }
        }
        self.with(|spec, q, k, v| {
            let [gq, gk, gv] = &mut views;
            let [gw, go, gkey, gfull, grelative] = &mut learned;
            let pass = kernels::Backward {
                grad_out: view(&grad_out)?,
                grad_weights: grad_weights.as_ref().map(|x| x.as_slice::<T>(OP)).transpose()?,
                grad_log_prob: grad_log_prob.as_ref().map(|x| x.as_slice::<T>(OP)).transpose()?,
                grad_edge_weights: None,
                grad_lse: None,
                saved: kernels::Saved {
                    out: Some(view(&saved.out)?),
                    lse: Some(saved.lse.as_slice::<T>(OP)?),
                    threshold: saved.threshold.as_ref().map(|x| x.as_slice::<T>(OP)).transpose()?,
                    index: saved.index.as_ref().map(|x| x.as_slice::<i64>(OP)).transpose()?,
                },
                gradients: kernels::Gradients {
                    q: gq.as_mut().map(Room::view_mut).transpose()?,
                    k: gk.as_mut().map(Room::view_mut).transpose()?,
                    v: gv.as_mut().map(Room::view_mut).transpose()?,
                    w: gw.as_mut().map(Tensor::as_mut_slice).transpose()?,
                    own: go.as_mut().map(Tensor::as_mut_slice).transpose()?,
                    key_bias: gkey.as_mut().map(Tensor::as_mut_slice).transpose()?,
                    bias: gfull.as_mut().map(Tensor::as_mut_slice).transpose()?,
                    relative: grelative.as_mut().map(Tensor::as_mut_slice).transpose()?,
                },
            };
            Ok(Cpu::best().backward(spec, q, k, v, pass)?)
        })?;
        let views = views.into_iter().map(|room| room.map(Room::tensor).transpose());
        views.chain(learned.into_iter().map(Ok)).collect()
    }
}

/// A tensor off the tape whose last axis is contiguous.
fn rows(x: &Tensor) -> Result<Tensor> {
    let x = x.detach();
    if x.strides()[3] == 1 || x.shape()[3] <= 1 { Ok(x) } else { x.contiguous() }
}

fn view<T: Float>(x: &Tensor) -> Result<View<'_, T>> {
    let (numbers, strides) = x.strided::<T>()?;
    let s = x.shape();
    let strides = [strides[0], strides[1], strides[2]];
    Ok(View::strided(numbers, [s[0], s[1], s[2], s[3]], strides)?)
}

/// Room for a `[B, H, N, D]` result that lies in memory as another tensor does: `[B, N, H, D]`
/// where heads were split off a projection, so that joining them again costs nothing.
struct Room {
    numbers: Tensor,
    shape: [usize; 4],
    heads_inside: bool,
}

impl Room {
    fn like(x: &Tensor, shape: [usize; 4]) -> Result<Self> {
        let [b, h, n, d] = shape;
        let strides = x.strides();
        let heads_inside = h > 1 && n > 1 && strides[2] > strides[1];
        let lies = if heads_inside { [b, n, h, d] } else { shape };
        Ok(Self { numbers: Tensor::uninit(&lies, x.dtype())?, shape, heads_inside })
    }

    fn view_mut<T: Float>(&mut self) -> Result<ViewMut<'_, T>> {
        let [_, h, n, d] = self.shape;
        let strides = if self.heads_inside { [n * h * d, d, h * d] } else { [h * n * d, n * d, d] };
        let numbers = self.numbers.as_mut_slice()?;
        Ok(ViewMut::strided(numbers, self.shape, strides)?)
    }

    fn tensor(self) -> Result<Tensor> {
        if self.heads_inside { self.numbers.transpose(1, 2) } else { Ok(self.numbers) }
    }
}

//! The operator over arrays that lie on the GPU already, in the order of a stream of the caller's: what a
//! framework such as PyTorch calls.

use super::arrived::Arrived;
use super::backward;
use super::forward::{self, Results};
use super::options_at::OptionsAt;
use super::pass::{DeviceGradients, OptionalArray, Written};
use super::problem::{Rows, Source};
use crate::cuda::device::Cuda;
use crate::error::{Error, ensure};
use crate::numel::numel;
use crate::spec::{Present, Score, Shape, Spec, asked_of, no_dense};
use crate::view::{check_apart, reach};
use crate::{Element, Real, View};
use std::marker::PhantomData;

/// A `[B, H, N, D]` on the GPU: an address, and strides in elements; the last axis is contiguous.
///
/// ```
/// use regard_kernels::cuda::DeviceRows;
///
/// let rows = DeviceRows::<f32>::new(0x7f00_0000_0000, [2, 4, 128, 64], [32768, 8192, 64])?;
/// assert_eq!(rows.shape(), [2, 4, 128, 64]);
/// let said = DeviceRows::<f32>::new(0x7f00_0000_0001, [1, 1, 1, 1], [1, 1, 1]).unwrap_err();
/// assert!(said.to_string().contains("not a multiple of 4"));
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DeviceRows<E> {
    address: u64,
    shape: [usize; 4],
    strides: [usize; 3],
    of: PhantomData<E>,
}

impl<E> DeviceRows<E> {
    /// Refuses an address at which no number of this type stands, and strides that reach beyond any memory.
    ///
    /// ```
    /// use regard_kernels::cuda::DeviceRows;
    /// let rows = DeviceRows::<f32>::new(0x7f00_0000_0000, [2, 4, 128, 64], [32768, 8192, 64])?;
    /// assert!(DeviceRows::<f32>::new(0, [1, 1, 1, 1], [1, 1, 1]).is_err());
    /// # let _ = rows;
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn new(address: u64, shape: [usize; 4], strides: [usize; 3]) -> Result<Self, Error> {
        let size = size_of::<E>() as u64;
        ensure!(
            address.is_multiple_of(size),
            "the address {address:#x} is not a multiple of {size}, the size of a number"
        );
        ensure!(
            address != 0 || shape.contains(&0),
            "the address of an array of shape {shape:?} is 0"
        );
        let bytes = reach(shape, strides)?.checked_mul(size_of::<E>());
        ensure!(
            bytes.is_some_and(|bytes| address.checked_add(bytes as u64).is_some()),
            "shape {shape:?} with strides {strides:?} reaches beyond any memory"
        );
        Ok(Self { address, shape, strides, of: PhantomData })
    }

    /// Batch, heads, length, width.
    ///
    /// ```
    /// use regard_kernels::cuda::DeviceRows;
    /// let rows = DeviceRows::<f32>::new(0x7f00_0000_0000, [2, 4, 128, 64], [32768, 8192, 64])?;
    /// assert_eq!(rows.shape(), [2, 4, 128, 64]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// What it consists of that lies in one piece, as far as that goes: where each begins, and its length.
    fn pieces(&self) -> Vec<(usize, usize)> {
        let ([b, h, n, d], [by_b, by_h, by_n]) = (self.shape, self.strides);
        let count = b * h * n * d;
        if count == 0 {
            return Vec::new();
        }
        let mut axes = [(by_b, b), (by_h, h), (by_n, n)];
        axes.sort_unstable_by(|x, y| y.cmp(x));
        let mut length = d;
        let mut outer: Vec<(usize, usize)> = Vec::new();
        for &(stride, size) in axes.iter().rev().filter(|axis| axis.1 > 1) {
            match outer.is_empty() && stride == length {
                true => length *= size,
                false => outer.push((stride, size)),
            }
        }
        let of_piece = |mut n: usize| {
            let from = outer.iter().map(|&(stride, size)| {
                let at = n % size * stride;
                n /= size;
                at
            });
            (from.sum(), length)
        };
        (0..count / length).map(of_piece).collect()
    }

    /// Its shape and strides as the specification checks them: without data there is no row to read.
    fn rows(&self) -> Rows<'static, E> {
        let view = View { data: &[], shape: self.shape, strides: self.strides };
        Rows { view, at: Some(self.address) }
    }
}

/// What forward writes on the GPU. Rows are `[B, Hq, Nq]` of what is computed in, one after another.
///
/// ```
/// use regard_kernels::cuda::{DeviceRows, ForwardAt};
/// let rows = DeviceRows::<f32>::new(0x7f00_0000_0000, [2, 4, 128, 64], [32768, 8192, 64])?;
/// let pass = ForwardAt { weights: Some(0x7f10_0000_0000), ..ForwardAt::new(rows) };
/// # let _ = pass;
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ForwardAt<E> {
    /// `[B, Hq, Nq, Dv]`
    pub out: DeviceRows<E>,
    /// Rows: where the log-sum-exps go.
    pub lse: Option<u64>,
    /// Rows: where the thresholds of sparsemax and entmax go.
    pub threshold: Option<u64>,
    /// Rows of `i64`: where the chosen keys go; −1 where there is none.
    pub index: Option<u64>,
    /// Rows: where the log-probabilities of the chosen keys go.
    pub log_prob: Option<u64>,
    /// `[B, Hq, Nq, Nk]`: where the weights go.
    pub weights: Option<u64>,
    /// `[B, Hq, E]`: where the weights of a graph's edges go.
    pub edge_weights: Option<u64>,
    /// What of the specification lies on the GPU.
    pub options: OptionsAt,
}

impl<E> ForwardAt<E> {
    /// The output alone.
    ///
    /// ```
    /// use regard_kernels::cuda::{DeviceRows, ForwardAt};
    /// let rows = DeviceRows::<f32>::new(0x7f00_0000_0000, [2, 4, 128, 64], [32768, 8192, 64])?;
    /// assert!(ForwardAt::new(rows).weights.is_none());
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn new(out: DeviceRows<E>) -> Self {
        let [lse, threshold, index, log_prob, weights, edge_weights] = [None; 6];
        let options = OptionsAt::default();
        Self { out, lse, threshold, index, log_prob, weights, edge_weights, options }
    }
}

/// What backward reads and writes on the GPU.
/// For a loss L it is given ∂L/∂out, and writes ∂L/∂q and the others that `gradients` has a place for.
#[derive(Clone, Copy, Debug)]
pub struct BackwardAt<E> {
    /// `[B, Hq, Nq, Dv]`
    pub grad_out: DeviceRows<E>,
    /// `[B, Hq, Nq, Nk]`: what arrives at the weights.
    pub grad_weights: Option<u64>,
    /// `[B, Hq, E]`: what arrives at the edges' weights.
    pub grad_edge_weights: Option<u64>,
    /// Rows: what arrives at the log-probabilities of the chosen keys.
    pub grad_log_prob: Option<u64>,
    /// Rows: what arrives at the log-sum-exps.
    pub grad_lse: Option<u64>,
    /// Softmax: the output, as forward wrote it.
    pub out: Option<DeviceRows<E>>,
    /// Softmax: the log-sum-exps.
    pub lse: Option<u64>,
    /// Sparsemax and entmax: the thresholds.
    pub threshold: Option<u64>,
    /// Argmax and sampling: the chosen keys.
    pub index: Option<u64>,
    /// Where the gradients go.
    pub gradients: GradientsAt<E>,
    /// What of the specification lies on the GPU.
    pub options: OptionsAt,
}

/// Where gradients go on the GPU; each is overwritten. Those of what the specification names are numbers of what is
/// computed in, one after another, in the shape that they have there.
/// For a loss L: ∂L/∂q, ∂L/∂k, ∂L/∂v, and so on.
#[derive(Clone, Copy, Debug)]
pub struct GradientsAt<E> {
    /// The shape of q.
    pub q: Option<DeviceRows<E>>,
    /// The shape of k.
    pub k: Option<DeviceRows<E>>,
    /// The shape of v.
    pub v: Option<DeviceRows<E>>,
    /// Of the additive score's vector.
    pub w: Option<u64>,
    /// Of an expression's parameters, one after another.
    pub own: Option<u64>,
    /// Of the keys' bias.
    pub key_bias: Option<u64>,
    /// Of the full bias.
    pub bias: Option<u64>,
    /// Of the bias by distance.
    pub relative: Option<u64>,
}

impl<E> Default for GradientsAt<E> {
    fn default() -> Self {
        let (q, k, v) = (None, None, None);
        let [w, own, key_bias, bias, relative] = [None; 5];
        Self { q, k, v, w, own, key_bias, bias, relative }
    }
}

impl Cuda {
    /// [`Cuda::forward`] over arrays on the GPU. Returns when the kernels were asked for, not when they are
    /// done. What the specification names (masks, biases, parameters) lies in the host's memory, but for what
    /// `pass.options` has.
    ///
    /// Refuses what `forward` refuses.
    /// output = normalize(score(q, k) + bias, where mask) · v.
    ///
    /// # Safety
    /// Every address is of this GPU, holds what its shape and strides say, and does so until the stream
    /// has come past this call; nothing else writes there meanwhile, and what is written overlaps nothing.
    pub unsafe fn forward_at<E: Element>(
        &self,
        spec: &Spec<E::Compute>,
        qkv: [DeviceRows<E>; 3],
        pass: ForwardAt<E>,
    ) -> Result<(), Error> {
        let s = check(spec, &qkv)?;
        pass.check(spec, &s)?;
        pass.options.check(spec)?;
        let edges = spec.mask.edges.map_or(0, |edges| edges.len());
        if s.rows() == 0 {
            return Ok(());
        }
        let _entered = self.device.enter()?;
        let real = size_of::<E::Compute>();
        let given =
            |at: Option<u64>, size: usize| OptionalArray::given(&self.device, at, s.rows() * size);
        let out = pass.out.rows();
        let results = Results {
            out: Written::given(&out),
            // Every form writes one for each row.
            lse: OptionalArray::written(pass.lse, s.rows() * real),
            threshold: given(pass.threshold, real)?,
            index: given(pass.index, size_of::<i64>())?,
            log_prob: given(pass.log_prob, real)?,
            weights: given(pass.weights, s.nk * real)?,
            edge_weights: OptionalArray::given(
                &self.device,
                pass.edge_weights,
                s.b * s.hq * edges * real,
            )?,
        };
        let [q, k, v] = qkv.map(|rows| rows.rows());
        forward::Run::of(&self.device, spec, &s, &[q, k, v, out], results, pass.options)?.launch()
    }

    /// [`Cuda::backward`] over arrays on the GPU. Returns when the kernels were asked for, not when they are
    /// done.
    ///
    /// Refuses what `backward` refuses.
    /// For a loss L and ∂L/∂out: ∂L/∂q, ∂L/∂k, ∂L/∂v, and so on.
    ///
    /// # Safety
    /// As for [`Cuda::forward_at`].
    pub unsafe fn backward_at<E: Element>(
        &self,
        spec: &Spec<E::Compute>,
        qkv: [DeviceRows<E>; 3],
        pass: BackwardAt<E>,
    ) -> Result<(), Error> {
        let s = check(spec, &qkv)?;
        pass.check(spec, &s, &qkv)?;
        pass.options.check(spec)?;
        if s.rows() == 0 || s.nk == 0 {
            return self.clear_at(spec, &pass.gradients);
        }
        let _entered = self.device.enter()?;
        let GradientsAt { q, k, v, .. } = pass.gradients;
        let all = qkv.into_iter().chain([pass.grad_out]).chain(pass.out);
        let arrived = Arrived {
            rows: all.chain([q, k, v].into_iter().flatten()).map(|rows| rows.rows()).collect(),
            has_out: pass.out.is_some(),
            grad_weights: Source::Device(pass.grad_weights),
            grad_edge_weights: Source::Device(pass.grad_edge_weights),
            grad_log_prob: Source::Device(pass.grad_log_prob),
            grad_lse: Source::Device(pass.grad_lse),
            lse: Source::Device(pass.lse),
            threshold: Source::Device(pass.threshold),
            index: Source::Device(pass.index),
            options: pass.options,
        };
        let written = |rows: Option<DeviceRows<E>>| rows.map(|rows| Written::given(&rows.rows()));
        let asked = |at: Option<u64>, numbers: usize| {
            OptionalArray::given(&self.device, at, numbers * size_of::<E::Compute>())
        };
        let sizes = Learned::of(spec);
        let sent = DeviceGradients {
            q: written(q),
            k: written(k),
            v: written(v),
            w: asked(pass.gradients.w, sizes.w)?,
            own: asked(pass.gradients.own, sizes.own)?,
            key_bias: asked(pass.gradients.key_bias, sizes.key_bias)?,
            bias: asked(pass.gradients.bias, sizes.bias)?,
            relative: asked(pass.gradients.relative, sizes.relative)?,
        };
        backward::Run::of(&self.device, spec, &s, arrived, sent)?.launch()
    }

    /// Which kernels a forward and a backward pass over such arrays go to, where nothing is asked for but the output
    /// and gradients: `Dot`, `Tile`, `Graph`, …; `Generic` has everything and is the slowest.
    /// Refuses what [`Cuda::forward_at`] refuses.
    ///
    /// ```no_run
    /// use regard_kernels::{Cuda, Spec, cuda::DeviceRows};
    /// let x = DeviceRows::<f32>::new(0x7f00_0000_0000, [2, 4, 128, 64], [32768, 8192, 64])?;
    /// println!("{:?}", Cuda::new(0)?.forms(&Spec::scaled_dot(64), [x, x, x])?);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn forms<E: Element>(
        &self,
        spec: &Spec<E::Compute>,
        qkv: [DeviceRows<E>; 3],
    ) -> Result<[String; 2], Error> {
        let s = check(spec, &qkv)?;
        let device = &self.device;
        let rows = qkv.map(|rows| rows.rows());
        Ok(super::forms(spec, &s, rows, device.form_capability, device.shared_memory))
    }

    /// Gradients of a problem in which nothing looks at anything.
    fn clear_at<E: Element>(
        &self,
        spec: &Spec<E::Compute>,
        gradients: &GradientsAt<E>,
    ) -> Result<(), Error> {
        let GradientsAt { q, k, v, w, own, key_bias, bias, relative } = gradients;
        let _entered = self.device.enter()?;
        let sizes = Learned::of(spec);
        for (at, numbers) in [
            (w, sizes.w),
            (own, sizes.own),
            (key_bias, sizes.key_bias),
            (bias, sizes.bias),
            (relative, sizes.relative),
        ] {
            OptionalArray::given(&self.device, *at, numbers * size_of::<E::Compute>())?;
        }
        for rows in [q, k, v].into_iter().flatten() {
            for (from, numbers) in rows.pieces() {
                let [at, bytes] = [from, numbers].map(|n| n * size_of::<E>());
                crate::cuda::memory::clear(&self.device, rows.address + at as u64, bytes)?;
            }
        }
        Ok(())
    }
}

/// How many numbers there are of what a specification names and learns.
struct Learned {
    w: usize,
    own: usize,
    key_bias: usize,
    bias: usize,
    relative: usize,
}

impl Learned {
    fn of<T: Real>(spec: &Spec<T>) -> Self {
        let (w, own) = match &spec.score {
            Score::Additive { w, .. } => (w.len(), 0),
            Score::Expression { parameters, .. } => {
                (0, parameters.iter().map(|parameter| parameter.data.len()).sum())
            }
            _ => (0, 0),
        };
        let bias = &spec.bias;
        Self {
            w,
            own,
            key_bias: bias.key.map_or(0, |bias| numel(&bias.shape)),
            bias: bias.full.map_or(0, |bias| numel(&bias.shape)),
            relative: bias.relative.map_or(0, |relative| relative.table.len()),
        }
    }
}

impl<E: Element> ForwardAt<E> {
    /// What [`Forward`](crate::Forward) checks.
    fn check(&self, spec: &Spec<E::Compute>, s: &Shape) -> Result<(), Error> {
        written("out", self.out, s.out())?;
        let chooses = self.index.is_some() || self.log_prob.is_some();
        asked_of(spec.normalizer, self.threshold.is_some(), chooses)?;
        ensure!(
            self.edge_weights.is_none() || spec.mask.edges.is_some(),
            "edge_weights was given; the mask has no edges"
        );
        let real = size_of::<E::Compute>();
        aligned("lse", self.lse, real)?;
        aligned("threshold", self.threshold, real)?;
        aligned("index", self.index, size_of::<i64>())?;
        aligned("log_prob", self.log_prob, real)?;
        no_dense(self.weights.is_some(), &spec.mask)?;
        aligned("weights", self.weights, real)?;
        aligned("edge_weights", self.edge_weights, real)
    }
}

impl<E: Element> BackwardAt<E> {
    /// What [`Backward`](crate::Backward) checks.
    fn check(
        &self,
        spec: &Spec<E::Compute>,
        s: &Shape,
        [q, k, v]: &[DeviceRows<E>; 3],
    ) -> Result<(), Error> {
        same_shape("grad_out", self.grad_out.shape, s.out())?;
        self.out.map_or(Ok(()), |out| same_shape("saved out", out.shape, s.out()))?;
        let grads = &self.gradients;
        for (name, rows, shape) in [
            ("grad q", grads.q, q.shape),
            ("grad k", grads.k, k.shape),
            ("grad v", grads.v, v.shape),
        ] {
            rows.map_or(Ok(()), |rows| written(name, rows, shape))?;
        }
        ensure!(
            self.grad_edge_weights.is_none() || spec.mask.edges.is_some(),
            "grad_edge_weights was given; the mask has no edges"
        );
        Present {
            out: self.out.is_some(),
            lse: self.lse.is_some(),
            threshold: self.threshold.is_some(),
            index: self.index.is_some(),
            grad_log_prob: self.grad_log_prob.is_some(),
            grad_lse: self.grad_lse.is_some(),
        }
        .check(spec.normalizer)?;
        grads.check(spec)?;
        no_dense(self.grad_weights.is_some(), &spec.mask)?;
        let real = size_of::<E::Compute>();
        aligned("grad_weights", self.grad_weights, real)?;
        aligned("grad_edge_weights", self.grad_edge_weights, real)?;
        aligned("grad_log_prob", self.grad_log_prob, real)?;
        aligned("grad_lse", self.grad_lse, real)?;
        aligned("saved lse", self.lse, real)?;
        aligned("saved threshold", self.threshold, real)?;
        aligned("saved index", self.index, size_of::<i64>())
    }
}

impl<E: Element> GradientsAt<E> {
    /// Whether the specification has what a gradient is asked of.
    fn check(&self, spec: &Spec<E::Compute>) -> Result<(), Error> {
        let bias = &spec.bias;
        for (name, at, is_there) in [
            ("grad w", self.w, matches!(spec.score, Score::Additive { .. })),
            ("grad of the own score", self.own, spec.score.own_len().is_some()),
            ("grad key_bias", self.key_bias, bias.key.is_some()),
            ("grad bias", self.bias, bias.full.is_some()),
            ("grad relative_bias", self.relative, bias.relative.is_some()),
        ] {
            ensure!(at.is_none() || is_there, "{name} was given, but the spec has no such part");
            aligned(name, at, size_of::<E::Compute>())?;
        }
        Ok(())
    }
}

/// Refuses an address at which no number of so many bytes stands.
fn aligned(name: &str, at: Option<u64>, size: usize) -> Result<(), Error> {
    let at = at.unwrap_or(0);
    ensure!(
        at.is_multiple_of(size as u64),
        "{name} lies at {at:#x}, which is not a multiple of {size}, the size of a number"
    );
    Ok(())
}

/// Refuses rows of another shape, and rows that overlap, so that what is written to one is lost.
fn written<E>(name: &str, rows: DeviceRows<E>, expected: [usize; 4]) -> Result<(), Error> {
    same_shape(name, rows.shape, expected)?;
    check_apart(rows.shape, rows.strides).map_err(|e| Error::new(format!("{name}: {e}")))
}

fn check<E: Element>(spec: &Spec<E::Compute>, qkv: &[DeviceRows<E>; 3]) -> Result<Shape, Error> {
    let [q, k, v] = qkv.map(|rows| rows.rows().view);
    spec.check(&q, &k, &v)
}

fn same_shape(name: &str, found: [usize; 4], expected: [usize; 4]) -> Result<(), Error> {
    ensure!(
        found == expected || numel(&found) + numel(&expected) == 0,
        "{name} has shape {found:?}, expected is {expected:?}"
    );
    Ok(())
}

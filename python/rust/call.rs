//! One call of the kernels, forward or backward.

use crate::array::{Block, Rows, Zero, refused};
use crate::gpu::{self, Gpu};
use crate::inputs::{Inputs, Random, no_such_type};
use crate::mechanism::{Mechanism, Score};
use crate::threads;
use half::{bf16, f16};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use regard_kernels::{Backward, Cpu, Element, Forward, Gradients, Real, Saved, Spec};

/// Multiplications below which one thread is done before another is awake.
const LARGE: usize = 1 << 19;

/// What forward writes besides the output: lse, threshold, index, log_prob, weights, edge_weights.
pub(crate) type Results<T> = (
    Option<Block<T>>,
    Option<Block<T>>,
    Option<Block<i64>>,
    Option<Block<T>>,
    Option<Block<T>>,
    Option<Block<T>>,
);

/// What arrives besides the gradient of the output: of weights, edge_weights, log_prob, lse.
pub(crate) type Arriving<T> =
    (Option<Block<T>>, Option<Block<T>>, Option<Block<T>>, Option<Block<T>>);

/// What forward left: out, lse, threshold, index.
pub(crate) type Left<T> = (Option<Rows>, Option<Block<T>>, Option<Block<T>>, Option<Block<i64>>);

/// What backward writes: of q, k, v, w, parameters, key_bias, bias, relative_bias.
pub(crate) type Wanted<T> = (
    Option<Rows>,
    Option<Rows>,
    Option<Rows>,
    Option<Block<T>>,
    Option<Block<T>>,
    Option<Block<T>>,
    Option<Block<T>>,
    Option<Block<T>>,
);

/// What computes a call: so many threads of the CPU, or a GPU.
#[derive(Clone, Copy, FromPyObject)]
pub(crate) enum Place {
    Cpu(usize),
    Gpu(Gpu),
}

/// The frame of a call; in Python a tuple in this order.
pub(crate) struct Call<'py> {
    /// The type of the numbers: 0 f32, 1 f64, 2 bf16, 3 f16.
    code: u8,
    place: Place,
    pub(crate) mechanism: Bound<'py, Mechanism>,
    pub(crate) random: Random,
    pub(crate) q: Rows,
    pub(crate) k: Rows,
    pub(crate) v: Rows,
}

impl<'py> FromPyObject<'_, 'py> for Call<'py> {
    type Error = PyErr;

    fn extract(from: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (code, place, mechanism, random, q, k, v) = from.extract()?;
        Ok(Self { code, place, mechanism, random, q, k, v })
    }
}

/// Computes the output and what else there is a place for.
///
/// Every array is live and of the size it says, and lies where the call computes; the inputs always in
/// the host's memory. The caller sees to that.
#[pyfunction]
#[pyo3(signature = (call, out, inputs=None, results=None))]
pub(crate) fn forward(
    py: Python<'_>,
    call: Call<'_>,
    out: Rows,
    inputs: Option<&Bound<'_, PyAny>>,
    results: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    match call.code {
        0 => forward_of::<f32>(py, &call, out, inputs, results),
        1 => forward_of::<f64>(py, &call, out, inputs, results),
        2 => forward_of::<bf16>(py, &call, out, inputs, results),
        3 => forward_of::<f16>(py, &call, out, inputs, results),
        other => Err(no_such_type(other)),
    }
}

/// Which kernels a call on a GPU goes to, forward and backward.
#[pyfunction]
#[pyo3(signature = (call, inputs=None))]
pub(crate) fn forms(call: Call<'_>, inputs: Option<&Bound<'_, PyAny>>) -> PyResult<[String; 2]> {
    let Place::Gpu(gpu) = call.place else {
        return Err(PyTypeError::new_err("query is on the CPU; forms are of calls on a GPU"));
    };
    match call.code {
        0 => gpu::forms::<f32>(gpu, &call, inputs),
        1 => gpu::forms::<f64>(gpu, &call, inputs),
        2 => gpu::forms::<bf16>(gpu, &call, inputs),
        3 => gpu::forms::<f16>(gpu, &call, inputs),
        other => Err(no_such_type(other)),
    }
}

/// Computes the gradients that there is a place for.
///
/// As for [`forward`].
#[pyfunction]
#[pyo3(signature = (call, grad_out, left, wanted, inputs=None, arriving=None))]
pub(crate) fn backward(
    py: Python<'_>,
    call: Call<'_>,
    grad_out: Rows,
    left: &Bound<'_, PyAny>,
    wanted: &Bound<'_, PyAny>,
    inputs: Option<&Bound<'_, PyAny>>,
    arriving: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let more = (left, wanted, inputs, arriving);
    match call.code {
        0 => backward_of::<f32>(py, &call, grad_out, more),
        1 => backward_of::<f64>(py, &call, grad_out, more),
        2 => backward_of::<bf16>(py, &call, grad_out, more),
        3 => backward_of::<f16>(py, &call, grad_out, more),
        other => Err(no_such_type(other)),
    }
}

fn forward_of<E: Element<Compute: Zero>>(
    py: Python<'_>,
    call: &Call<'_>,
    out: Rows,
    inputs: Option<&Bound<'_, PyAny>>,
    results: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let threads = match call.place {
        Place::Cpu(threads) => threads,
        Place::Gpu(gpu) => return gpu::forward::<E>(py, gpu, call, out, inputs, results),
    };
    // SAFETY: Python holds every array until this call returns; the results are fresh.
    unsafe {
        let inputs = Inputs::<E::Compute>::of(inputs)?;
        let (q, k, v) = (call.q.view::<E>()?, call.k.view::<E>()?, call.v.view::<E>()?);
        let mut pass = Forward::new(out.view_mut::<E>()?);
        if let Some(results) = results {
            let (lse, threshold, index, log_prob, weights, edge_weights) =
                results.extract::<Results<E::Compute>>()?;
            pass.lse = lse.map(|x| x.slice_mut()).transpose()?;
            pass.threshold = threshold.map(|x| x.slice_mut()).transpose()?;
            pass.index = index.map(|x| x.slice_mut()).transpose()?;
            pass.log_prob = log_prob.map(|x| x.slice_mut()).transpose()?;
            pass.weights = weights.map(|x| x.slice_mut()).transpose()?;
            pass.edge_weights = edge_weights.map(|x| x.slice_mut()).transpose()?;
        }
        let spec = inputs.spec(call.mechanism.get(), call.q.shape()[3], call.random);
        let large = call.is_large(&spec);
        py.detach(|| threads::run(threads, large, || Cpu::best().forward(&spec, q, k, v, pass)))
            .map_err(refused)
    }
}

/// What forward left, what is wanted, the inputs, and what arrives besides.
pub(crate) type More<'a, 'py> = (
    &'a Bound<'py, PyAny>,
    &'a Bound<'py, PyAny>,
    Option<&'a Bound<'py, PyAny>>,
    Option<&'a Bound<'py, PyAny>>,
);

fn backward_of<E: Element<Compute: Zero>>(
    py: Python<'_>,
    call: &Call<'_>,
    grad_out: Rows,
    more: More<'_, '_>,
) -> PyResult<()> {
    let threads = match call.place {
        Place::Cpu(threads) => threads,
        Place::Gpu(gpu) => return gpu::backward::<E>(py, gpu, call, grad_out, more),
    };
    let (left, wanted, inputs, arriving) = more;
    // SAFETY: Python holds every array until this call returns; the gradients are fresh.
    unsafe {
        let inputs = Inputs::<E::Compute>::of(inputs)?;
        let (q, k, v) = (call.q.view::<E>()?, call.k.view::<E>()?, call.v.view::<E>()?);
        let (out, lse, threshold, index) = left.extract::<Left<E::Compute>>()?;
        let saved = Saved {
            out: out.map(|x| x.view()).transpose()?,
            lse: lse.map(|x| x.slice()).transpose()?,
            threshold: threshold.map(|x| x.slice()).transpose()?,
            index: index.map(|x| x.slice()).transpose()?,
        };
        let (to_q, to_k, to_v, w, own, key_bias, bias, relative) =
            wanted.extract::<Wanted<E::Compute>>()?;
        let gradients = Gradients {
            q: to_q.map(|x| x.view_mut()).transpose()?,
            k: to_k.map(|x| x.view_mut()).transpose()?,
            v: to_v.map(|x| x.view_mut()).transpose()?,
            w: w.map(|x| x.slice_mut()).transpose()?,
            own: own.map(|x| x.slice_mut()).transpose()?,
            key_bias: key_bias.map(|x| x.slice_mut()).transpose()?,
            bias: bias.map(|x| x.slice_mut()).transpose()?,
            relative: relative.map(|x| x.slice_mut()).transpose()?,
        };
        let mut pass = Backward::new(grad_out.view::<E>()?, saved, gradients);
        if let Some(arriving) = arriving {
            let (weights, edge_weights, log_prob, lse) =
                arriving.extract::<Arriving<E::Compute>>()?;
            pass.grad_weights = weights.map(|x| x.slice()).transpose()?;
            pass.grad_edge_weights = edge_weights.map(|x| x.slice()).transpose()?;
            pass.grad_log_prob = log_prob.map(|x| x.slice()).transpose()?;
            pass.grad_lse = lse.map(|x| x.slice()).transpose()?;
        }
        let spec = inputs.spec(call.mechanism.get(), call.q.shape()[3], call.random);
        let large = call.is_large(&spec);
        py.detach(|| threads::run(threads, large, || Cpu::best().backward(&spec, q, k, v, pass)))
            .map_err(refused)
    }
}

impl Call<'_> {
    /// Whether the work is worth waking other threads.
    fn is_large<T: Real>(&self, spec: &Spec<T>) -> bool {
        let [b, h, nq, dq] = self.q.shape();
        let [_, _, nk, dv] = self.v.shape();
        let pairs = match (spec.mask.edges, spec.mask.window) {
            (Some(edges), _) => edges.len(),
            (None, Some(window)) => {
                nq.saturating_mul(nk.min(window.left.saturating_add(window.right)))
            }
            (None, None) => nq.saturating_mul(nk),
        };
        let each = match self.mechanism.get().score {
            Score::Dot(_) => dq.saturating_add(dv).saturating_add(8),
            _ => dq.saturating_mul(8).saturating_add(dv),
        };
        [h, pairs, each].iter().fold(b, |all, &n| all.saturating_mul(n)) >= LARGE
    }
}

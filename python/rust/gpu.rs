//! One call of the kernels over arrays that lie on an NVIDIA GPU, in the order of PyTorch's stream.

use crate::array::{Block, Rows, Zero, refused};
use crate::call::{Arriving, Call, Left, More, Results, Wanted};
use crate::inputs::Inputs;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use regard_kernels::cuda::{BackwardAt, ForwardAt, GradientsAt};
use regard_kernels::{Cuda, Element};
use std::collections::BTreeMap;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A GPU's number, and PyTorch's current stream on it.
#[derive(Clone, Copy, FromPyObject)]
pub(crate) struct Gpu(usize, usize);

/// The GPU, its work asked of the stream.
fn open(Gpu(ordinal, stream): Gpu) -> PyResult<Cuda> {
    static OPEN: Mutex<BTreeMap<usize, Cuda>> = Mutex::new(BTreeMap::new());
    // The process that came first: a child that was forked from it has no driver that works, and may find
    // the lock taken for ever.
    static PROCESS: AtomicU32 = AtomicU32::new(0);
    let this = process::id();
    if PROCESS.compare_exchange(0, this, Relaxed, Relaxed).is_err_and(|first| first != this) {
        return Err(PyRuntimeError::new_err(
            "this process was forked from one that uses a GPU, which CUDA does not allow: start it with \
             the method 'spawn'",
        ));
    }
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let cuda = match open.get(&ordinal) {
        Some(cuda) => cuda,
        None => {
            let cuda = Cuda::new(ordinal).map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
            open.entry(ordinal).or_insert(cuda)
        }
    };
    // SAFETY: PyTorch's streams are of the primary context, and it never destroys one.
    Ok(unsafe { cuda.on_stream(stream as *mut _) })
}

/// As [`crate::call::forward`] does.
pub(crate) fn forward<E: Element<Compute: Zero>>(
    py: Python<'_>,
    gpu: Gpu,
    call: &Call<'_>,
    out: Rows,
    inputs: Option<&Bound<'_, PyAny>>,
    results: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    // SAFETY: Python holds the host's arrays until this call returns, when they have been copied; those
    // on the GPU are freed, if at all, in the order of the stream.
    unsafe {
        let inputs = Inputs::<E::Compute>::of(inputs)?;
        let qkv = [call.q.on_gpu::<E>()?, call.k.on_gpu()?, call.v.on_gpu()?];
        let mut pass = ForwardAt::new(out.on_gpu()?);
        pass.options = inputs.at;
        if let Some(results) = results {
            let (lse, threshold, index, log_prob, weights, edge_weights) =
                results.extract::<Results<E::Compute>>()?;
            pass.lse = address(lse)?;
            pass.threshold = address(threshold)?;
            pass.index = address(index)?;
            pass.log_prob = address(log_prob)?;
            pass.weights = address(weights)?;
            pass.edge_weights = address(edge_weights)?;
        }
        let spec = inputs.spec(call.mechanism.get(), call.q.shape()[3], call.random);
        let cuda = open(gpu)?;
        py.detach(|| cuda.forward_at(&spec, qkv, pass)).map_err(refused)
    }
}

/// Which kernels a call goes to, forward and backward.
pub(crate) fn forms<E: Element<Compute: Zero>>(
    gpu: Gpu,
    call: &Call<'_>,
    inputs: Option<&Bound<'_, PyAny>>,
) -> PyResult<[String; 2]> {
    // SAFETY: as above; nothing is read but sizes.
    let inputs = unsafe { Inputs::<E::Compute>::of(inputs)? };
    let qkv = [call.q.on_gpu::<E>()?, call.k.on_gpu()?, call.v.on_gpu()?];
    let spec = inputs.spec(call.mechanism.get(), call.q.shape()[3], call.random);
    open(gpu)?.forms(&spec, qkv).map_err(refused)
}

/// Where it lies, if it is there: what has no numbers may lie nowhere.
fn address<T>(block: Option<Block<T>>) -> PyResult<Option<u64>> {
    match block {
        Some(block) if block.address() == 0 && !block.shape().contains(&0) => {
            Err(PyTypeError::new_err("an array has no memory: it is fake, meta or a wrapper"))
        }
        Some(block) => Ok(Some(block.address())),
        None => Ok(None),
    }
}

/// As [`crate::call::backward`] does.
pub(crate) fn backward<E: Element<Compute: Zero>>(
    py: Python<'_>,
    gpu: Gpu,
    call: &Call<'_>,
    grad_out: Rows,
    (left, wanted, inputs, arriving): More<'_, '_>,
) -> PyResult<()> {
    // SAFETY: as above.
    unsafe {
        let inputs = Inputs::<E::Compute>::of(inputs)?;
        let qkv = [call.q.on_gpu::<E>()?, call.k.on_gpu()?, call.v.on_gpu()?];
        let (out, lse, threshold, index) = left.extract::<Left<E::Compute>>()?;
        let (q, k, v, w, own, key_bias, bias, relative) = wanted.extract::<Wanted<E::Compute>>()?;
        let rows = |rows: Option<Rows>| rows.map(|rows| rows.on_gpu::<E>()).transpose();
        let arriving = arriving.map(|more| more.extract::<Arriving<E::Compute>>()).transpose()?;
        let (weights, edge_weights, log_prob, grad_lse) =
            arriving.unwrap_or((None, None, None, None));
        let pass = BackwardAt {
            grad_out: grad_out.on_gpu()?,
            grad_weights: address(weights)?,
            grad_edge_weights: address(edge_weights)?,
            grad_log_prob: address(log_prob)?,
            grad_lse: address(grad_lse)?,
            out: rows(out)?,
            lse: address(lse)?,
            threshold: address(threshold)?,
            index: address(index)?,
            gradients: GradientsAt {
                q: rows(q)?,
                k: rows(k)?,
                v: rows(v)?,
                w: address(w)?,
                own: address(own)?,
                key_bias: address(key_bias)?,
                bias: address(bias)?,
                relative: address(relative)?,
            },
            options: inputs.at,
        };
        let spec = inputs.spec(call.mechanism.get(), call.q.shape()[3], call.random);
        let cuda = open(gpu)?;
        py.detach(|| cuda.backward_at(&spec, qkv, pass)).map_err(refused)
    }
}

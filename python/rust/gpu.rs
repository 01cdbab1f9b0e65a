//! One call of the kernels over arrays that lie on an NVIDIA GPU, in the order of PyTorch's stream.

use crate::array::{Block, Rows, refused};
use crate::call::Call;
use crate::inputs::{Inputs, no_such_type};
use half::{bf16, f16};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use regard_kernels::cuda::{BackwardAt, ForwardAt, GradientsAt};
use regard_kernels::{Cuda, Element};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The GPU's number, and PyTorch's current stream on it.
type Place = (usize, usize);

/// What forward writes besides the output: lse, threshold.
type Results<T> = (Option<Block<T>>, Option<Block<T>>);

/// What forward left: out, lse, threshold.
type Left<T> = (Option<Rows>, Option<Block<T>>, Option<Block<T>>);

/// What backward writes: of q, k, v, w, parameters, key_bias, bias, relative_bias.
type Wanted<T> = (
    Option<Rows>,
    Option<Rows>,
    Option<Rows>,
    Option<Block<T>>,
    Option<Block<T>>,
    Option<Block<T>>,
    Option<Block<T>>,
    Option<Block<T>>,
);

/// As [`crate::call::forward`], over arrays on a GPU; what the inputs name lies in the host's memory.
#[pyfunction]
#[pyo3(signature = (place, call, out, inputs=None, results=None))]
pub(crate) fn forward_on_gpu(
    py: Python<'_>,
    place: Place,
    call: Call<'_>,
    out: Rows,
    inputs: Option<&Bound<'_, PyAny>>,
    results: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let more = (out, inputs, results);
    match call.code {
        0 => forward_of::<f32>(py, place, &call, more),
        1 => forward_of::<f64>(py, place, &call, more),
        2 => forward_of::<bf16>(py, place, &call, more),
        3 => forward_of::<f16>(py, place, &call, more),
        other => Err(no_such_type(other)),
    }
}

/// As [`crate::call::backward`], over arrays on a GPU.
#[pyfunction]
#[pyo3(signature = (place, call, grad_out, left, wanted, inputs=None, grad_lse=None))]
pub(crate) fn backward_on_gpu(
    py: Python<'_>,
    place: Place,
    call: Call<'_>,
    grad_out: Rows,
    left: &Bound<'_, PyAny>,
    wanted: &Bound<'_, PyAny>,
    inputs: Option<&Bound<'_, PyAny>>,
    grad_lse: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let more = Arriving { grad_out, left, wanted, inputs, grad_lse };
    match call.code {
        0 => backward_of::<f32>(py, place, &call, more),
        1 => backward_of::<f64>(py, place, &call, more),
        2 => backward_of::<bf16>(py, place, &call, more),
        3 => backward_of::<f16>(py, place, &call, more),
        other => Err(no_such_type(other)),
    }
}

/// The GPU, its work asked of the stream.
fn gpu((ordinal, stream): Place) -> PyResult<Cuda> {
    static OPEN: Mutex<BTreeMap<usize, Cuda>> = Mutex::new(BTreeMap::new());
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

type ForwardMore<'a, 'py> = (Rows, Option<&'a Bound<'py, PyAny>>, Option<&'a Bound<'py, PyAny>>);

fn forward_of<E: Element>(
    py: Python<'_>,
    place: Place,
    call: &Call<'_>,
    (out, inputs, results): ForwardMore<'_, '_>,
) -> PyResult<()> {
    // SAFETY: Python holds the host's arrays until this call returns, when they have been copied; those
    // on the GPU are freed, if at all, in the order of the stream.
    unsafe {
        let inputs = Inputs::<E::Compute>::of(inputs)?;
        let qkv = [call.q.on_gpu::<E>()?, call.k.on_gpu()?, call.v.on_gpu()?];
        let (lse, threshold) = match results {
            Some(results) => results.extract::<Results<E::Compute>>()?,
            None => (None, None),
        };
        let address = |block: Option<Block<E::Compute>>| block.map(|block| block.address());
        let pass =
            ForwardAt { out: out.on_gpu()?, lse: address(lse), threshold: address(threshold) };
        let spec = inputs.spec(call.mechanism.get(), call.q.shape()[3], call.random);
        let cuda = gpu(place)?;
        py.detach(|| cuda.forward_at(&spec, qkv, pass)).map_err(refused)
    }
}

struct Arriving<'a, 'py> {
    grad_out: Rows,
    left: &'a Bound<'py, PyAny>,
    wanted: &'a Bound<'py, PyAny>,
    inputs: Option<&'a Bound<'py, PyAny>>,
    grad_lse: Option<&'a Bound<'py, PyAny>>,
}

fn backward_of<E: Element>(
    py: Python<'_>,
    place: Place,
    call: &Call<'_>,
    arriving: Arriving<'_, '_>,
) -> PyResult<()> {
    let Arriving { grad_out, left, wanted, inputs, grad_lse } = arriving;
    // SAFETY: as above.
    unsafe {
        let inputs = Inputs::<E::Compute>::of(inputs)?;
        let qkv = [call.q.on_gpu::<E>()?, call.k.on_gpu()?, call.v.on_gpu()?];
        let (out, lse, threshold) = left.extract::<Left<E::Compute>>()?;
        let (q, k, v, w, own, key_bias, bias, relative) = wanted.extract::<Wanted<E::Compute>>()?;
        let rows = |rows: Option<Rows>| rows.map(|rows| rows.on_gpu::<E>()).transpose();
        let address = |block: Option<Block<E::Compute>>| block.map(|block| block.address());
        let grad_lse = grad_lse.map(|block| block.extract::<Block<E::Compute>>()).transpose()?;
        let pass = BackwardAt {
            grad_out: grad_out.on_gpu()?,
            grad_lse: address(grad_lse),
            out: rows(out)?,
            lse: address(lse),
            threshold: address(threshold),
            gradients: GradientsAt {
                q: rows(q)?,
                k: rows(k)?,
                v: rows(v)?,
                w: address(w),
                own: address(own),
                key_bias: address(key_bias),
                bias: address(bias),
                relative: address(relative),
            },
        };
        let spec = inputs.spec(call.mechanism.get(), call.q.shape()[3], call.random);
        let cuda = gpu(place)?;
        py.detach(|| cuda.backward_at(&spec, qkv, pass)).map_err(refused)
    }
}

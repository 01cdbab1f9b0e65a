//! RNN, GRU and LSTM over whole sequences, by the fused kernels.

use super::elementwise::maybe;
use super::fused::room;
use crate::backend::{RecurrentCall, RecurrentForward, RecurrentSeeds};
use crate::dtype::{Float, floats};
use crate::{Result, Tensor};
use regard_kernels::step::{Recurrent, RecurrentGrads, RecurrentOut, RecurrentSeed};
use regard_kernels::{Cell, Cpu};

const OP: &str = "recurrent";

fn layer<T: Float>(call: &RecurrentCall) -> Result<Recurrent<'_, T>> {
    let shape = call.gates.shape();
    Ok(Recurrent {
        cell: call.cell,
        batch: shape[0],
        steps: shape[1],
        hidden: call.w_hh.shape()[1],
        w_hh: call.w_hh.as_slice(OP)?,
        b_hh: maybe(call.b_hh.as_ref())?,
        h0: maybe(call.h0.as_ref())?,
        c0: maybe(call.c0.as_ref())?,
        lengths: call.lengths.as_deref(),
        reverse: call.reverse,
    })
}

pub(super) fn forward(call: &RecurrentCall, learns: bool) -> Result<RecurrentForward> {
    floats!(call.gates.dtype(), OP, T => forward_in::<T>(call, learns))
}

fn forward_in<T: Float>(call: &RecurrentCall, learns: bool) -> Result<RecurrentForward> {
    let (layer, dtype) = (layer::<T>(call)?, T::DTYPE);
    let state = [layer.batch, layer.hidden];
    let mut out = Tensor::uninit(&[layer.batch, layer.steps, layer.hidden], dtype)?;
    let mut h = Tensor::uninit(&state, dtype)?;
    let mut c = room(call.cell == Cell::Lstm, &state, dtype)?;
    let mut saved = Tensor::uninit(&[if learns { layer.saved_len() } else { 0 }], dtype)?;
    let to = RecurrentOut {
        out: out.as_mut_slice::<T>()?,
        h: Some(h.as_mut_slice()?),
        c: c.as_mut().map(Tensor::as_mut_slice).transpose()?,
        saved: if learns { Some(saved.as_mut_slice()?) } else { None },
    };
    Cpu::best().recurrent(call.gates.as_slice::<T>(OP)?, &layer, to)?;
    Ok(RecurrentForward { out, h, c, saved })
}

pub(super) fn backward(
    call: &RecurrentCall,
    out: &Tensor,
    saved: &Tensor,
    seeds: &RecurrentSeeds,
    want: [bool; 5],
) -> Result<[Option<Tensor>; 5]> {
    floats!(call.gates.dtype(), OP, T => backward_in::<T>(call, out, saved, seeds, want))
}

fn backward_in<T: Float>(
    call: &RecurrentCall,
    out: &Tensor,
    saved: &Tensor,
    seeds: &RecurrentSeeds,
    want: [bool; 5],
) -> Result<[Option<Tensor>; 5]> {
    let layer = layer::<T>(call)?;
    let seed = RecurrentSeed {
        out: maybe(seeds.out.as_ref())?,
        h: maybe(seeds.h.as_ref())?,
        c: maybe(seeds.c.as_ref())?,
    };
    let (wide, state) = (call.cell.gates() * layer.hidden, [layer.batch, layer.hidden]);
    // All the others follow from the gates' gradient, so it is made in any case.
    let mut gates = Tensor::uninit(call.gates.shape(), T::DTYPE)?;
    let mut w_hh = room(want[1], &[wide, layer.hidden], T::DTYPE)?;
    let mut b_hh = room(want[2], &[wide], T::DTYPE)?;
    let mut h0 = room(want[3], &state, T::DTYPE)?;
    let mut c0 = room(want[4], &state, T::DTYPE)?;
    let grads = RecurrentGrads {
        gates_x: gates.as_mut_slice::<T>()?,
        w_hh: w_hh.as_mut().map(Tensor::as_mut_slice).transpose()?,
        b_hh: b_hh.as_mut().map(Tensor::as_mut_slice).transpose()?,
        h0: h0.as_mut().map(Tensor::as_mut_slice).transpose()?,
        c0: c0.as_mut().map(Tensor::as_mut_slice).transpose()?,
    };
    let (out, saved) = (out.as_slice::<T>(OP)?, saved.as_slice::<T>(OP)?);
    Cpu::best().recurrent_backward(&layer, out, saved, seed, grads)?;
    Ok([Some(gates), w_hh, b_hh, h0, c0])
}

//! What a pass reads and writes on the device, and how it comes back.

use super::options_at::EdgesAt;
use super::problem::{Array, Rows};
use super::source::{key_warps, row_warps};
use crate::cuda::device::Device;
use crate::cuda::memory::{self, Memory};
use crate::error::Error;
use crate::numel::numel;
use crate::spec::{Gradients, Shape, Spec};
use crate::{Element, Real, ViewMut};
use std::sync::Arc;

/// Warps at most: enough to fill any GPU there is, whatever it is, so that what a row is added to
/// depends on the shape alone.
pub(in crate::cuda) const WARPS: usize = 8192;

pub(in crate::cuda) const LANES: usize = 32;

/// The most bytes that the warps' rows of scores take together.
const SCRATCH: usize = 1 << 30;

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(in crate::cuda) struct ForwardPass {
    pub(in crate::cuda) out: Array,
    pub(in crate::cuda) lse: u64,
    pub(in crate::cuda) threshold: u64,
    pub(in crate::cuda) index: u64,
    pub(in crate::cuda) log_prob: u64,
    pub(in crate::cuda) weights: u64,
    pub(in crate::cuda) edge_weights: u64,
    pub(in crate::cuda) scratch: u64,
    pub(in crate::cuda) scratch_row: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(in crate::cuda) struct BackwardPass {
    pub(in crate::cuda) grad_out: Array,
    pub(in crate::cuda) out: Array,
    pub(in crate::cuda) grad_weights: u64,
    pub(in crate::cuda) grad_edge_weights: u64,
    pub(in crate::cuda) grad_log_prob: u64,
    pub(in crate::cuda) grad_lse: u64,
    pub(in crate::cuda) lse: u64,
    pub(in crate::cuda) threshold: u64,
    pub(in crate::cuda) index: u64,
    pub(in crate::cuda) grad_q: Array,
    pub(in crate::cuda) grad_k: Array,
    pub(in crate::cuda) grad_v: Array,
    pub(in crate::cuda) delta: u64,
    pub(in crate::cuda) own_slabs: u64,
    pub(in crate::cuda) relative_slabs: u64,
    pub(in crate::cuda) key_sums: u64,
    pub(in crate::cuda) grad_bias: u64,
    pub(in crate::cuda) bias_shape: [i64; 4],
    pub(in crate::cuda) chunks: i64,
    pub(in crate::cuda) scratch: u64,
    pub(in crate::cuda) scratch_row: i64,
}

/// An array that is asked for, or not: memory of its own, or the caller's on the device.
pub(in crate::cuda) struct OptionalArray {
    memory: Option<Memory>,
    at: u64,
    bytes: usize,
}

impl OptionalArray {
    /// Zeros, where they are asked for.
    pub(in crate::cuda) fn of(
        device: &Arc<Device>,
        asked: bool,
        bytes: usize,
    ) -> Result<Self, Error> {
        let memory = asked.then(|| Memory::zeros(device, bytes)).transpose()?;
        Ok(Self { at: memory.as_ref().map_or(0, |memory| memory.at), memory, bytes })
    }

    /// The caller's, which is overwritten; none at address 0.
    pub(in crate::cuda) fn given(
        device: &Device,
        at: Option<u64>,
        bytes: usize,
    ) -> Result<Self, Error> {
        let given = Self { memory: None, at: at.unwrap_or(0), bytes };
        given.clear(device)?;
        Ok(given)
    }

    /// The caller's, which a kernel writes all of; none at address 0.
    pub(in crate::cuda) fn written(at: Option<u64>, bytes: usize) -> Self {
        Self { memory: None, at: at.unwrap_or(0), bytes }
    }

    /// Zeros, where it is asked for.
    pub(in crate::cuda) fn clear(&self, device: &Device) -> Result<(), Error> {
        match self.at {
            0 => Ok(()),
            at => memory::clear(device, at, self.bytes),
        }
    }

    pub(in crate::cuda) fn is_asked(&self) -> bool {
        self.at != 0
    }

    /// Where it lies, or 0.
    pub(in crate::cuda) fn at(&self) -> u64 {
        self.at
    }

    pub(in crate::cuda) fn copy_to<X: Copy>(&self, to: Option<&mut [X]>) -> Result<(), Error> {
        match (&self.memory, to) {
            (Some(memory), Some(to)) => memory.copy_to(to),
            _ => Ok(()),
        }
    }
}

/// A `[B, H, N, D]` that a kernel writes: contiguous in memory of its own, or the caller's on the device.
pub(in crate::cuda) struct Written {
    memory: Option<Memory>,
    pub(in crate::cuda) array: Array,
}

impl Written {
    pub(in crate::cuda) fn of(
        device: &Arc<Device>,
        shape: [usize; 4],
        size: usize,
    ) -> Result<Self, Error> {
        let [_, h, n, d] = shape;
        let memory = Memory::zeros(device, numel(&shape) * size)?;
        let array = Array { data: memory.at, strides: [h * n * d, n * d, d].map(|x| x as i64) };
        Ok(Self { memory: Some(memory), array })
    }

    /// The caller's.
    pub(in crate::cuda) fn given<E>(rows: &Rows<E>) -> Self {
        let strides = rows.view.strides.map(|stride| stride as i64);
        Self { memory: None, array: Array { data: rows.at.unwrap_or(0), strides } }
    }

    /// Copies it back, row by row where the view has gaps.
    pub(in crate::cuda) fn copy_to<E: Element>(&self, to: &mut ViewMut<E>) -> Result<(), Error> {
        let shape = to.shape;
        let [_, h, n, d] = shape;
        let count = numel(&shape);
        let Some(memory) = &self.memory else { return Ok(()) };
        let mut rows: Vec<E> = vec![E::narrow(<E::Compute as Real>::ZERO); count];
        memory.copy_to(&mut rows)?;
        for (row, from) in rows.chunks_exact(d.max(1)).enumerate() {
            // SAFETY: the row is one of the view's, which nobody else uses.
            unsafe {
                let to = to.row(row / n / h, row / n % h, row % n);
                std::ptr::copy_nonoverlapping(from.as_ptr(), to, d);
            }
        }
        Ok(())
    }
}

/// Rows of scores for the warps.
pub(in crate::cuda) struct Scratch {
    pub(in crate::cuda) memory: Memory,
    /// Numbers of a row.
    pub(in crate::cuda) row: usize,
    /// Rows that there is room for at once.
    pub(in crate::cuda) rows: usize,
    /// Warps that share a row.
    pub(in crate::cuda) row_warps: usize,
    /// And a key, in backward.
    pub(in crate::cuda) key_warps: usize,
}

impl Scratch {
    pub(in crate::cuda) fn of<T: Real>(
        device: &Arc<Device>,
        spec: &Spec<T>,
        s: &Shape,
        real: usize,
        (rows, at): (usize, Option<EdgesAt>),
    ) -> Result<Self, Error> {
        // A graph's rows are as long as its busiest query's list.
        let row = match spec.mask.edges {
            Some(_) if at.is_some() => at.map_or(0, |at| at.longest),
            Some(edges) => edges.starts().windows(2).map(|x| x[1] - x[0]).max().unwrap_or(0),
            None => s.nk,
        };
        let row = row.max(1).next_multiple_of(LANES);
        // Whole blocks of warps.
        let warps = (SCRATCH / (rows * row * real)).clamp(LANES, WARPS) / 4 * 4;
        let memory = Memory::uninit(device, warps * rows * row * real)?;
        let (row_warps, key_warps) = (row_warps(spec, s), key_warps(spec, s));
        Ok(Self { memory, row, rows: warps, row_warps, key_warps })
    }
}

/// The gradients that were asked for, on the device.
pub(in crate::cuda) struct DeviceGradients {
    pub(in crate::cuda) q: Option<Written>,
    pub(in crate::cuda) k: Option<Written>,
    pub(in crate::cuda) v: Option<Written>,
    pub(in crate::cuda) w: OptionalArray,
    pub(in crate::cuda) own: OptionalArray,
    pub(in crate::cuda) key_bias: OptionalArray,
    pub(in crate::cuda) bias: OptionalArray,
    pub(in crate::cuda) relative: OptionalArray,
}

impl DeviceGradients {
    pub(in crate::cuda) fn of<E: Element>(
        device: &Arc<Device>,
        asked: &Gradients<E>,
    ) -> Result<Self, Error> {
        let rows = |view: &Option<ViewMut<E>>| {
            view.as_ref().map(|x| Written::of(device, x.shape, size_of::<E>())).transpose()
        };
        let numbers = |slice: &Option<&mut [E::Compute]>| {
            let bytes = slice.as_deref().map_or(0, size_of_val);
            OptionalArray::of(device, slice.is_some(), bytes)
        };
        Ok(Self {
            q: rows(&asked.q)?,
            k: rows(&asked.k)?,
            v: rows(&asked.v)?,
            w: numbers(&asked.w)?,
            own: numbers(&asked.own)?,
            key_bias: numbers(&asked.key_bias)?,
            bias: numbers(&asked.bias)?,
            relative: numbers(&asked.relative)?,
        })
    }

    pub(in crate::cuda) fn copy_to<E: Element>(&self, mut to: Gradients<E>) -> Result<(), Error> {
        for (from, to) in [(&self.q, &mut to.q), (&self.k, &mut to.k), (&self.v, &mut to.v)] {
            if let (Some(from), Some(to)) = (from, to) {
                from.copy_to(to)?;
            }
        }
        self.w.copy_to(to.w)?;
        self.own.copy_to(to.own)?;
        self.key_bias.copy_to(to.key_bias)?;
        self.bias.copy_to(to.bias)?;
        self.relative.copy_to(to.relative)
    }
}

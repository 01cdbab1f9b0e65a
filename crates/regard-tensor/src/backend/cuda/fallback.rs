//! What the CPU does for a GPU's tensors, between two copies.

use super::CudaBackend;
use crate::backend::RecurrentCall;
use crate::backend::cpu::CpuBackend;
use crate::layout::Layout;
use crate::{Result, Tensor};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How often each operation on a GPU's tensors was computed by the CPU, since the program began.
static FALLBACKS: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());

/// How often each operation on a GPU's tensors was computed by the CPU between two copies, since the program
/// began: none is what a training step wants.
#[doc(hidden)]
pub fn fallbacks() -> BTreeMap<&'static str, u64> {
    FALLBACKS.lock().unwrap_or_else(|e| e.into_inner()).clone()
}

/// How often numbers were copied from a GPU to main memory.
static DOWNLOADS: AtomicU64 = AtomicU64::new(0);

/// How often numbers were copied from a GPU to main memory, since the program began: each time the host waited for the
/// GPU. None is what a training step wants.
#[doc(hidden)]
pub fn downloads() -> u64 {
    DOWNLOADS.load(Relaxed)
}

impl CudaBackend {
    /// Counts a copy from the GPU.
    pub(super) fn count_download(&self) {
        DOWNLOADS.fetch_add(1, Relaxed);
    }

    /// Counts a call that the CPU answers.
    pub(super) fn count(&self, op: &'static str) {
        let mut all = FALLBACKS.lock().unwrap_or_else(|e| e.into_inner());
        *all.entry(op).or_default() += 1;
    }

    pub(super) fn back(&self, x: &Tensor) -> Result<Tensor> {
        self.forever()?.upload(&x.contiguous()?)
    }

    /// One result, by the CPU.
    pub(super) fn by_cpu(
        &self,
        op: &'static str,
        f: impl FnOnce(&CpuBackend) -> Result<Tensor>,
    ) -> Result<Tensor> {
        self.count(op);
        self.back(&f(&CpuBackend)?)
    }

    /// Two results, by the CPU.
    pub(super) fn two_by_cpu(
        &self,
        op: &'static str,
        f: impl FnOnce(&CpuBackend) -> Result<(Tensor, Tensor)>,
    ) -> Result<(Tensor, Tensor)> {
        self.count(op);
        let (a, b) = f(&CpuBackend)?;
        Ok((self.back(&a)?, self.back(&b)?))
    }

    /// The results that are wanted, by the CPU.
    pub(super) fn some_by_cpu<const N: usize>(
        &self,
        op: &'static str,
        f: impl FnOnce(&CpuBackend) -> Result<[Option<Tensor>; N]>,
    ) -> Result<[Option<Tensor>; N]> {
        self.count(op);
        let mut all = f(&CpuBackend)?;
        for x in all.iter_mut().flatten() {
            *x = self.back(x)?;
        }
        Ok(all)
    }

    /// A change in place, by the CPU.
    pub(super) fn change_by_cpu(
        &self,
        op: &'static str,
        to: &mut Tensor,
        f: impl FnOnce(&CpuBackend, &mut Tensor) -> Result<()>,
    ) -> Result<()> {
        self.count(op);
        let mut changed = host(to)?;
        f(&CpuBackend, &mut changed)?;
        self.replace(to, &changed)
    }

    /// The numbers of one tensor become those of another; its place on the tape stays.
    pub(super) fn replace(&self, to: &mut Tensor, by: &Tensor) -> Result<()> {
        let mut new = self.back(by)?;
        new.node = to.node.take();
        *to = new;
        Ok(())
    }
}

/// A copy in main memory, with the same strides, in storage of its own.
pub(super) fn host(x: &Tensor) -> Result<Tensor> {
    x.to_host()
}

/// A part of a tensor as it lies in the tensor's copy, which begins with its first number.
pub(super) fn part_of_copy(to: &Tensor, part: &Layout) -> Layout {
    Layout { offset: part.offset - to.layout.offset, ..*part }
}

pub(super) fn maybe_host(x: Option<&Tensor>) -> Result<Option<Tensor>> {
    x.map(host).transpose()
}

pub(super) fn host_call(call: &RecurrentCall) -> Result<RecurrentCall> {
    Ok(RecurrentCall {
        gates: host(&call.gates)?,
        w_hh: host(&call.w_hh)?,
        b_hh: maybe_host(call.b_hh.as_ref())?,
        h0: maybe_host(call.h0.as_ref())?,
        c0: maybe_host(call.c0.as_ref())?,
        ..call.clone()
    })
}

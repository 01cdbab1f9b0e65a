//! Memory and work, as much of them as a file may ask for.
//!
//! A file of a few bytes can name sizes that no machine has; a sentence about it is better than
//! being killed halfway.

use crate::tensors::extent;
use anyhow::{Context, Result, bail, ensure};
use bytemuck::Zeroable;
use regard_kernels::Shape;
use std::fs;

/// How much a file may ask for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of results.
    pub bytes: usize,
    /// Pairs of a query and a key, over all heads.
    pub pairs: usize,
}

impl Limits {
    /// As much as it takes.
    pub fn none() -> Self {
        Self { bytes: usize::MAX, pairs: usize::MAX }
    }

    /// As many bytes as the machine has free, where it says so.
    pub fn of_machine() -> Self {
        let free = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
            line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
        });
        Self { bytes: free.unwrap_or(usize::MAX), ..Self::none() }
    }
}

/// What is left of the limits.
pub(crate) struct Budget {
    left: Limits,
}

impl Budget {
    pub(crate) fn within(limits: Limits) -> Self {
        Self { left: limits }
    }

    /// Refuses more pairs than there may be.
    pub(crate) fn check_pairs(&self, s: &Shape) -> Result<()> {
        let pairs = extent(&[s.b, s.hq, s.nq, s.nk]);
        ensure!(
            pairs.is_some_and(|pairs| pairs <= self.left.pairs),
            "{} batch items, {} heads, {} queries and {} keys make more pairs than can be computed",
            s.b,
            s.hq,
            s.nq,
            s.nk
        );
        Ok(())
    }

    /// Counts an array; refuses one that does not fit. Gives its number of elements.
    pub(crate) fn take<T>(&mut self, name: &str, shape: &[usize]) -> Result<usize> {
        let bytes = extent(shape).and_then(|n| n.checked_mul(size_of::<T>()));
        let Some(bytes) = bytes else {
            bail!("{name} would have shape {shape:?}, larger than any memory");
        };
        let left = self.left.bytes;
        self.left.bytes = left.checked_sub(bytes).with_context(|| {
            format!("{name} of shape {shape:?} needs {bytes} bytes, and only {left} are free")
        })?;
        Ok(shape.iter().product())
    }

    /// An array of zeros that fits.
    pub(crate) fn zeros<T: Zeroable + Clone>(
        &mut self,
        name: &str,
        shape: &[usize],
    ) -> Result<Vec<T>> {
        let n = self.take::<T>(name, shape)?;
        let mut zeros = Vec::new();
        zeros.try_reserve_exact(n).with_context(|| {
            format!("{name} of shape {shape:?} needs {} bytes", n * size_of::<T>())
        })?;
        zeros.resize(n, T::zeroed());
        Ok(zeros)
    }

    /// An array of zeros that fits, where it is asked for.
    pub(crate) fn zeros_if<T: Zeroable + Clone>(
        &mut self,
        wanted: bool,
        name: &str,
        shape: &[usize],
    ) -> Result<Option<Vec<T>>> {
        wanted.then(|| self.zeros(name, shape)).transpose()
    }
}

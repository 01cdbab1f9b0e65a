//! An array that stands for a larger one.

use crate::error::{Error, ensure};
use crate::numel::numel;

/// An array broadcast to `[B, Hq, Nq, Nk]`: each axis is full or 1.
///
/// ```
/// use regard_kernels::{Bias, Broadcast, Spec};
/// // a number for each of three keys, the same for all queries and heads
/// let key = Some(Broadcast { data: &[0.0, 0.5, 1.0], shape: [1, 1, 1, 3] });
/// let spec = Spec { bias: Bias { key, ..Bias::default() }, ..Spec::<f32>::scaled_dot(8) };
/// # let _ = spec;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Broadcast<'a, T> {
    /// The elements, contiguous.
    pub data: &'a [T],
    /// The array's own shape.
    pub shape: [usize; 4],
}

impl<T> Broadcast<'_, T> {
    pub(super) fn check(&self, name: &str, full: [usize; 4]) -> Result<(), Error> {
        ensure!(
            self.shape.iter().zip(full).all(|(&own, full)| own == full || own == 1),
            "{name} has shape {:?}, which does not broadcast to [B, Hq, Nq, Nk] = {full:?}",
            self.shape
        );
        let count = numel(&self.shape);
        ensure!(
            self.data.len() == count,
            "{name} has {} elements, its shape {:?} needs {count}",
            self.data.len(),
            self.shape
        );
        Ok(())
    }

    /// Whether every query has a number of its own for every key.
    pub(crate) fn is_by_pair(&self) -> bool {
        let [_, _, queries, keys] = self.strides();
        queries > 0 && keys > 0
    }

    /// Strides in which a broadcast axis has 0.
    pub(crate) fn strides(&self) -> [usize; 4] {
        let [_, h, q, k] = self.shape;
        let full = [h * q * k, q * k, k, 1];
        std::array::from_fn(|axis| if self.shape[axis] == 1 { 0 } else { full[axis] })
    }

    /// Where the element for (b, h, i, j) lies in `data`.
    #[inline(always)]
    pub(crate) fn index(&self, b: usize, h: usize, i: usize, j: usize) -> usize {
        let [sb, sh, sq, sk] = self.strides();
        b * sb + h * sh + i * sq + j * sk
    }
}

impl<T: Copy> Broadcast<'_, T> {
    #[inline(always)]
    pub(crate) fn at(&self, b: usize, h: usize, i: usize, j: usize) -> T {
        self.data[self.index(b, h, i, j)]
    }
}

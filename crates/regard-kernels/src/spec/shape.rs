//! The sizes of one attention problem.

use crate::error::{Error, ensure};
use crate::numel::{MOST, numel};

/// The sizes of q `[B, Hq, Nq, Dq]`, k `[B, Hk, Nk, Dk]` and v `[B, Hk, Nk, Dv]`.
///
/// ```
/// use regard_kernels::{Spec, View};
/// let (q, k) = ([0f32; 24], [0f32; 12]);
/// let (q, k) = (View::new(&q, [1, 4, 3, 2])?, View::new(&k, [1, 2, 3, 2])?);
/// let shape = Spec::scaled_dot(2).check(&q, &k, &k)?;
/// assert_eq!((shape.hq, shape.hk, shape.nk), (4, 2, 3));
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Batch items.
    pub b: usize,
    /// Query heads.
    pub hq: usize,
    /// Key and value heads; divides `hq`.
    pub hk: usize,
    /// Queries.
    pub nq: usize,
    /// Keys.
    pub nk: usize,
    /// Width of a query.
    pub dq: usize,
    /// Width of a key.
    pub dk: usize,
    /// Width of a value.
    pub dv: usize,
}

impl Shape {
    /// Refuses shapes that do not belong together.
    pub(crate) fn of(q: [usize; 4], k: [usize; 4], v: [usize; 4]) -> Result<Self, Error> {
        ensure!(
            q[0] == k[0] && k[0] == v[0],
            "q, k and v have batch sizes {}, {} and {}; they must be equal",
            q[0],
            k[0],
            v[0]
        );
        ensure!(
            k[1] == v[1] && k[2] == v[2],
            "k has shape {k:?} and v {v:?}; they must have as many heads and as many rows"
        );
        ensure!(
            if k[1] == 0 { q[1] == 0 } else { q[1].is_multiple_of(k[1]) },
            "q has {} heads, k has {}; the query heads must be a multiple of the key heads",
            q[1],
            k[1]
        );
        let shape =
            Self { b: q[0], hq: q[1], hk: k[1], nq: q[2], nk: k[2], dq: q[3], dk: k[3], dv: v[3] };
        let limit = u32::MAX as usize;
        ensure!(
            shape.nq < limit && shape.nk < limit && shape.b.saturating_mul(shape.hq) < limit,
            "q of shape {q:?} and k of shape {k:?}: lengths, and batch times heads, stay below 2³²"
        );
        // A view without rows or columns, or with strides of 0, may say any size.
        let sizes = [0, 1, 2, 3].map(|axis| q[axis].max(k[axis]).max(v[axis]).max(1));
        ensure!(
            numel(&sizes) <= MOST,
            "q of shape {q:?}, k of shape {k:?} and v of shape {v:?} are larger than any memory"
        );
        Ok(shape)
    }

    /// Query heads that share one key head.
    ///
    /// ```
    /// use regard_kernels::{Spec, View};
    /// let (q, k) = ([0f32; 24], [0f32; 12]);
    /// let (q, k) = (View::new(&q, [1, 4, 3, 2])?, View::new(&k, [1, 2, 3, 2])?);
    /// let shape = Spec::scaled_dot(2).check(&q, &k, &k)?;
    /// assert_eq!(shape.group(), 2);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn group(&self) -> usize {
        self.hq.checked_div(self.hk).unwrap_or(0)
    }

    /// Attention rows: B · Hq · Nq.
    pub fn rows(&self) -> usize {
        numel(&[self.b, self.hq, self.nq])
    }

    /// Batch item, query head and query of one of the rows.
    pub(crate) fn place(&self, row: usize) -> (usize, usize, usize) {
        (row / self.nq / self.hq, row / self.nq % self.hq, row % self.nq)
    }

    /// `[B, Hq, Nq, Dv]`
    ///
    /// ```
    /// use regard_kernels::{Spec, View};
    /// let (q, k) = ([0f32; 24], [0f32; 12]);
    /// let (q, k) = (View::new(&q, [1, 4, 3, 2])?, View::new(&k, [1, 2, 3, 2])?);
    /// let shape = Spec::scaled_dot(2).check(&q, &k, &k)?;
    /// assert_eq!(shape.out(), [1, 4, 3, 2]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn out(&self) -> [usize; 4] {
        [self.b, self.hq, self.nq, self.dv]
    }
}

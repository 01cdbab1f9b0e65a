//! Hard attention's backward: what goes to the chosen values, and to the scores by which they
//! were chosen.

use super::problem::Problem;
use super::tile::keep;
use super::{plan, tasks};
use crate::{Real, View, ViewMut};

/// The chosen keys, and the gradients of their log-probabilities; both are rows.
#[derive(Clone, Copy)]
pub(super) struct Choice<'a, T> {
    pub(super) index: &'a [i64],
    pub(super) grad: &'a [T],
}

impl<T: Real> Choice<'_, T> {
    /// A row's gradient; none for an empty row, which chose nothing.
    pub(super) fn grad(&self, row: usize) -> T {
        if self.index[row] < 0 { T::ZERO } else { self.grad[row] }
    }
}

/// Each row's gradient goes to the value it chose.
pub(super) fn values<T: Real>(p: &Problem<T>, grad_out: &View<T>, index: &[i64], to: &ViewMut<T>) {
    let s = &p.s;
    super::zero(to);
    let chunk = plan::value_chunk(s);
    let chunks = s.nk.div_ceil(chunk);
    tasks::each(s.b * s.hk * chunks, &|task| {
        let (head, cut) = (task / chunks, task % chunks);
        let (b, hk) = (head / s.hk, head % s.hk);
        let keys = cut * chunk..((cut + 1) * chunk).min(s.nk);
        for h in hk * s.group()..(hk + 1) * s.group() {
            for i in 0..s.nq {
                let j = index[p.row(b, h, i)];
                if j < 0 || !keys.contains(&(j as usize)) {
                    continue;
                }
                let from = grad_out.row(b, h, i);
                // SAFETY: the keys of this chunk are this task's alone.
                unsafe {
                    let to = to.row(b, hk, j as usize);
                    (p.kernels.axpy)(s.dv, keep(p, b, h, i, j as usize), from.as_ptr(), to);
                }
            }
        }
    });
}

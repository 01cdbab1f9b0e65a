//! Hard attention's backward: what goes to the chosen values, and to the scores by which they
//! were chosen.

use super::plan;
use super::problem::Problem;
use super::tile::keep;
use crate::cpu::tasks;
use crate::spec::{Backward, Normalizer};
use crate::{Real, View, ViewMut};

/// The chosen keys, and the gradients of their log-probabilities and of the log-sum-exps; all are
/// rows.
#[derive(Clone, Copy)]
pub(super) struct Choice<'a, T> {
    pub(super) index: &'a [i64],
    log_prob: Option<&'a [T]>,
    lse: Option<&'a [T]>,
}

impl<'a, T: Real> Choice<'a, T> {
    /// Where hard attention has a gradient to send to its scores.
    pub(super) fn of(normalizer: Normalizer, pass: &Backward<'a, T>) -> Option<Self> {
        let (log_prob, lse) = (pass.grad_log_prob, pass.grad_lse);
        let index = pass.saved.index.filter(|_| normalizer.is_hard())?;
        (log_prob.is_some() || lse.is_some()).then_some(Self { index, log_prob, lse })
    }

    /// What goes to the score of a row's chosen key; nothing in an empty row, which chose none.
    pub(super) fn of_chosen(&self, row: usize) -> T {
        self.log_prob.filter(|_| self.index[row] >= 0).map_or(T::ZERO, |grad| grad[row])
    }

    /// What goes to every score of a row, times its probability.
    pub(super) fn of_all(&self, row: usize) -> T {
        let lse = self.lse.filter(|_| self.index[row] >= 0).map_or(T::ZERO, |grad| grad[row]);
        lse - self.of_chosen(row)
    }
}

/// Each row's gradient goes to the value it chose.
pub(super) fn values<T: Real>(p: &Problem<T>, grad_out: &View<T>, index: &[i64], to: &ViewMut<T>) {
    let s = &p.s;
    super::pass::zero(to);
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

//! Rows that are not numbers.
//!
//! A hidden key has weight 0, and the kernels multiply its value by that, which is nothing, unless
//! the value is infinite or NaN. So where something may be hidden and a row comes out as NaN, it is
//! computed again by the plain formula, which does not look at what is hidden. Cost: a look at the
//! output, and only for masks, biases, thresholds and weights that were asked for.

use super::problem::Problem;
use super::shared::Shared;
use super::{Rows, tasks};
use crate::{Real, reference};

/// Numbers of the output that are looked at in one go.
const TASK: usize = 1 << 14;

/// Computes rows again that are NaN and perhaps should not be, or not all of them.
pub(super) fn repair<T: Real>(p: &Problem<T>, rows: &Rows<T>, weights: Option<&Shared<T>>) {
    let (s, spec) = (&p.s, p.spec);
    let hides = spec.mask.is_more_than_edges() || !spec.bias.is_none();
    let looks = hides || spec.normalizer.has_threshold() || weights.is_some();
    if spec.normalizer.is_hard() || s.dv == 0 || !looks {
        return;
    }
    let each = |row: usize| {
        let at @ (b, h, i) = s.place(row);
        // SAFETY: each row is one task's alone, and the pass is done.
        let out = unsafe { std::slice::from_raw_parts_mut(rows.out.row(b, h, i), s.dv) };
        if !is_nan(p, out) || (weights.is_none() && is_nan(p, p.q.row(b, h, i))) {
            return;
        }
        let plain = reference::row(spec, s, [&p.q, &p.k, &p.v], at);
        out.copy_from_slice(&plain.out);
        rows.set_lse(row, plain.lse);
        rows.set_threshold(row, plain.threshold);
        if let Some(weights) = weights {
            // SAFETY: as above.
            unsafe { weights.part(row * s.nk, s.nk) }.copy_from_slice(&plain.weights);
        }
    };
    if s.rows() * s.dv <= TASK {
        (0..s.rows()).for_each(each);
    } else {
        tasks::runs(s.rows(), TASK.div_ceil(s.dv), &each);
    }
}

/// Whether any number of a row is NaN.
fn is_nan<T: Real>(p: &Problem<T>, row: &[T]) -> bool {
    // SAFETY: a row of so many numbers.
    let [_, nothing] = unsafe { (p.kernels.max_abs)(row.len(), row.as_ptr()) };
    nothing != T::ZERO && row.iter().any(|x| x.f64().is_nan())
}

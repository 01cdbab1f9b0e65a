//! Rows that are not numbers.
//!
//! A hidden key has weight 0, and the kernels multiply its value by that, which is nothing, unless
//! the value is infinite or NaN. So where a row comes out as NaN and such a key is hidden from it,
//! the row is computed again by the plain formula, which does not look at what is hidden. Cost: a
//! look at the output, and only with masks, biases, or weights that were asked for.

use super::problem::Problem;
use super::shared::Shared;
use super::{Rows, tasks};
use crate::{Real, reference};
use std::sync::OnceLock;

/// Numbers of the output that are looked at in one go.
const TASK: usize = 1 << 14;

/// Computes rows again that are NaN and perhaps should not be, or not all of them.
pub(super) fn repair<T: Real>(p: &Problem<T>, rows: &Rows<T>, weights: Option<&Shared<T>>) {
    let (s, spec) = (&p.s, p.spec);
    let hides = spec.mask.is_more_than_edges() || !spec.bias.is_none();
    // What has the products from the stored numbers has seen that all of them are finite.
    if spec.normalizer.is_hard() || s.dv == 0 || p.products.is_some() {
        return;
    }
    let asked = weights.is_some() || rows.edge_weights.is_some();
    if !hides && !asked {
        return;
    }
    // Found once for a head, and only where there is a NaN.
    let bad: Vec<OnceLock<Vec<usize>>> = (0..s.b * s.hk).map(|_| OnceLock::new()).collect();
    let each = |row: usize| {
        let at @ (b, h, i) = s.place(row);
        // SAFETY: each row is one task's alone, and the pass is done.
        let out = unsafe { std::slice::from_raw_parts_mut(rows.out.row(b, h, i), s.dv) };
        if is_finite(p, out) || !out.iter().any(|x| x.f64().is_nan()) {
            return;
        }
        let hk = p.key_head(h);
        let bad = bad[b * s.hk + hk].get_or_init(|| bad_keys(p, b, hk));
        if !asked && !bad.iter().any(|&j| is_hidden(p, at, j)) {
            return;
        }
        let plain = reference::row(spec, s, [&p.q, &p.k, &p.v], at);
        out.copy_from_slice(&plain.out);
        // SAFETY: as above.
        unsafe {
            rows.set_lse(row, || plain.lse);
            rows.set_threshold(row, plain.threshold);
            if let Some(weights) = weights {
                weights.part(row * s.nk, s.nk).copy_from_slice(&plain.weights);
            }
            if let (Some(weights), Some(edges)) = (&rows.edge_weights, spec.mask.edges) {
                let keys = edges.of_query(i);
                let from = (b * s.hq + h) * edges.len() + edges.starts()[i];
                for (to, &j) in weights.part(from, keys.len()).iter_mut().zip(keys) {
                    *to = plain.weights[j as usize];
                }
            }
        }
    };
    if s.rows() * s.dv <= TASK {
        (0..s.rows()).for_each(each);
    } else {
        tasks::runs(s.rows(), TASK.div_ceil(s.dv), &each);
    }
}

/// The keys of a head that are not finite, or their values are not.
fn bad_keys<T: Real>(p: &Problem<T>, b: usize, hk: usize) -> Vec<usize> {
    let bad = |j: &usize| !is_finite(p, p.k.row(b, hk, *j)) || !is_finite(p, p.v.row(b, hk, *j));
    (0..p.s.nk).filter(bad).collect()
}

/// Whether a key is hidden from a query by more than that a graph has no edge there, along which
/// nothing is multiplied.
fn is_hidden<T: Real>(p: &Problem<T>, (b, h, i): (usize, usize, usize), j: usize) -> bool {
    let (mask, bias) = (&p.spec.mask, &p.spec.bias);
    let edge = mask.edges.is_none_or(|e| e.of_query(i).binary_search(&(j as u32)).is_ok());
    let allowed = mask.allows(&p.s, p.offset, b, h, i, j);
    edge && !(allowed && bias.at(p.offset, b, h, i, j) != T::NEG_INFINITY)
}

/// Whether a row has neither ∞ nor NaN.
fn is_finite<T: Real>(p: &Problem<T>, row: &[T]) -> bool {
    // SAFETY: a row of so many numbers.
    let [_, nothing] = unsafe { (p.kernels.max_abs)(row.len(), row.as_ptr()) };
    nothing == T::ZERO
}

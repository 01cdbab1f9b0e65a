//! What an additive score keeps of the queries and keys, made once for a call: every block of queries
//! meets every tile of keys, and would make the keys' again.

use super::additive::Form;
use super::plan::rows_at_once;
use super::problem::Problem;
use crate::cpu::scratch::Large;
use crate::cpu::shared::Shared;
use crate::cpu::tasks;
use crate::spec::Score;
use crate::{Real, View};

/// Rows of q and k as the score's [`Form`] has them, `[B, H, N, D]` without gaps.
pub(in crate::cpu) struct Prepared<T: Real> {
    q: Large<T>,
    k: Large<T>,
}

/// [`Prepared`], to be read.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct PreparedRows<'a, T> {
    pub(in crate::cpu) q: View<'a, T>,
    pub(in crate::cpu) k: View<'a, T>,
}

impl<T: Real> Prepared<T> {
    /// None where the score reads q and k as they are.
    pub(in crate::cpu) fn of(p: &Problem<T>) -> Option<Self> {
        let additive = matches!(p.spec.score, Score::Additive { .. });
        (additive && !p.form.is_direct())
            .then(|| Self { q: prepare(p, p.form, &p.q), k: prepare(p, p.form, &p.k) })
    }

    pub(in crate::cpu) fn rows<'a>(&'a self, p: &Problem<'a, T>) -> PreparedRows<'a, T> {
        let view = |data: &'a [T], x: &View<T>| {
            let [_, h, n, d] = x.shape;
            View { data, shape: x.shape, strides: [h * n * d, n * d, d] }
        };
        PreparedRows { q: view(&self.q, &p.q), k: view(&self.k, &p.k) }
    }
}

fn prepare<T: Real>(p: &Problem<T>, form: Form, x: &View<T>) -> Large<T> {
    let [b, h, n, d] = x.shape;
    let mut all = Large::new(b * h * n * d);
    let to = Shared::new(&mut all);
    tasks::runs(b * h * n, rows_at_once(d), &|row| {
        let from = x.row(row / n / h, row / n % h, row % n);
        // SAFETY: a row of d numbers; each is one task's alone.
        unsafe {
            let to = to.part(row * d, d).as_mut_ptr();
            (p.kernels.prepare)(form, from.as_ptr(), d, 1, d, to, d);
        }
    });
    all
}

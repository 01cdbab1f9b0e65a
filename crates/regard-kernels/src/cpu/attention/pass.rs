//! The passes: forward and backward, by tiles or by lists.

use super::choice::{self, Choice};
use super::prepared::Prepared;
use super::problem::{Block, Problem};
use super::rows::{Chosen, Rows};
use super::split::{Portion, Tasks};
use super::weights::Rule;
use super::{list, plan, split, tile, tile_backward, undefined};
use crate::cpu::shared::Shared;
use crate::cpu::tasks;
use crate::spec::{Backward, Gradients};
use crate::{Real, ViewMut};

pub(in crate::cpu) fn forward<T: Real>(p: &Problem<T>, rows: Rows<T>, weights: Option<Shared<T>>) {
    let s = &p.s;
    if s.rows() == 0 {
        return;
    }
    if s.nk == 0 {
        zero(&rows.out);
        for row in 0..s.rows() {
            // SAFETY: there are no other tasks.
            unsafe {
                rows.set_lse(row, || T::NEG_INFINITY);
                rows.set_threshold(row, T::ZERO);
                rows.set_choice(row, Chosen::NONE, || T::NEG_INFINITY);
            }
        }
        return;
    }
    if let Some(weights) = &weights {
        tasks::runs(s.rows(), plan::rows_at_once(s.nk), &|row| {
            // SAFETY: each row is one task's alone, and nothing else uses the weights yet.
            unsafe { weights.part(row * s.nk, s.nk) }.fill(T::ZERO);
        });
    }
    // A threshold is known when its row is, so its weights are written on the way; others after.
    let on_the_way = p.spec.normalizer.has_threshold();
    let mut rows = rows;
    if !undefined::matters(p, &rows, weights.as_ref()) {
        rows.undefined = None;
    }
    let mut index = Vec::new();
    if weights.is_some() && p.spec.normalizer.is_hard() && rows.index.is_none() {
        index.resize(s.rows(), -1);
        rows.index = Some(Shared::new(&mut index));
    }
    if on_the_way {
        rows.weights = weights.as_ref().map(|weights| weights.narrow(0, s.rows() * s.nk));
    }
    let prepared = if list::serves(p) { None } else { Prepared::of(p) };
    let p = &Problem { prepared: prepared.as_ref().map(|rows| rows.rows(p)), ..*p };
    if list::serves(p) {
        // Their outputs are few.
        rows.set_undefined();
        list::forward(p, &rows);
    } else {
        tiles_forward(p, &rows);
    }
    if let Some(weights) = &weights
        && !on_the_way
    {
        write_weights(p, rows.index.as_ref(), weights);
    }
    undefined::repair(p, &rows, weights.as_ref());
}

fn tiles_forward<T: Real>(p: &Problem<T>, rows: &Rows<T>) {
    if p.spec.normalizer.has_threshold() {
        tasks::each(plan::row_blocks(&p.s), &|task| {
            tile::forward(p, &p.row_block(task), &[Portion { keys: 0..p.s.nk, rows }]);
        });
        return;
    }
    // Few blocks and many keys: the keys are cut too.
    let splits = plan::forward_splits(p.spec, &p.s);
    let rows_of = |task: usize| {
        let Block { b, h, i0, n, .. } = p.block(task);
        let first = p.row(b, h, i0);
        first..first + n
    };
    let tasks = Tasks { count: plan::blocks(&p.s), rows: &rows_of };
    split::forward(p, rows, splits, tasks, |task, portions| {
        tile::forward(p, &p.block(task), portions);
    });
}

/// The weights of the normalizers without a threshold, into zeros.
fn write_weights<T: Real>(p: &Problem<T>, index: Option<&Shared<i64>>, weights: &Shared<T>) {
    let s = &p.s;
    let Some(rule) = Rule::of(p.spec.normalizer) else {
        let Some(index) = index else { return };
        // SAFETY: forward is done, so nobody writes the choices any more.
        let index = &*unsafe { index.part(0, s.rows()) };
        tasks::runs(s.rows(), 64, &|row| {
            if let Ok(j) = usize::try_from(index[row]) {
                let (b, h, i) = s.place(row);
                // SAFETY: each row is one task's alone.
                unsafe { weights.set(row * s.nk + j, tile::keep(p, b, h, i, j)) };
            }
        });
        return;
    };
    if list::serves(p) {
        list::write_weights(p, rule, weights);
    } else {
        tasks::each(plan::row_blocks(s), &|task| {
            tile::write_weights(p, rule, &p.row_block(task), weights);
        });
    }
}

pub(in crate::cpu) fn backward<T: Real>(p: &Problem<T>, mut pass: Backward<T>) {
    if p.s.rows() == 0 || p.s.nk == 0 {
        return zero_all(pass.gradients);
    }
    if p.spec.normalizer.is_hard() {
        // The values' gradients do not depend on the scores, nor the scores' on the values.
        if let Some(to) = pass.gradients.v.take() {
            choice::values(p, &pass.grad_out, pass.saved.index.unwrap_or_default(), &to);
        }
        if Choice::of(p.spec.normalizer, &pass).is_none() {
            return zero_all(pass.gradients);
        }
    }
    let finite = backward_by_path(p, Backward { gradients: pass.gradients.reborrow(), ..pass });
    if !finite && undefined::hides(p) && p.products.is_none() {
        undefined::repair_gradients(p, pass);
    }
}

/// Gives whether all gradients are finite, for certain where something may be hidden.
pub(super) fn backward_by_path<T: Real>(p: &Problem<T>, mut pass: Backward<T>) -> bool {
    if list::serves(p) {
        list::backward(p, Backward { gradients: pass.gradients.reborrow(), ..pass });
        return !undefined::hides(p) || undefined::are_finite(p, &mut pass.gradients);
    }
    let prepared = Prepared::of(p);
    let prepared = prepared.as_ref().map(|rows| rows.rows(p));
    let p = &Problem { prepared, ..*p };
    let gradients = pass.gradients.reborrow();
    let finite = tile_backward::backward(p, Backward { gradients, ..pass });
    finite && undefined::parameters_are_finite(p, &pass.gradients)
}

/// Fills all gradients with zeros.
pub(super) fn zero_all<T: Real>(g: Gradients<T>) {
    for view in [&g.q, &g.k, &g.v].into_iter().flatten() {
        zero(view);
    }
    for slice in [g.w, g.own, g.key_bias, g.bias, g.relative].into_iter().flatten() {
        slice.fill(T::ZERO);
    }
}

/// Fills a view with zeros.
pub(super) fn zero<T: Real>(view: &ViewMut<T>) {
    let [b, h, n, d] = view.shape;
    tasks::runs(b * h * n, plan::rows_at_once(d), &|row| {
        // SAFETY: each row is one task's alone.
        unsafe {
            let row = view.row(row / n / h, row / n % h, row % n);
            std::slice::from_raw_parts_mut(row, d).fill(T::ZERO);
        }
    });
}
